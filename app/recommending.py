"""What the figures of a comparison recommend, in words, and what of that is kept for the chat to offer."""

from __future__ import annotations

import os
import platform
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

from ..models.gguf_layout import shown
from .comparison import Comparison, Contender, PassCosts, Recommendation, Row, plain_beside
from .events import ModelInfo
from .remembered import Remembered
from .unrest import falling

GAIN = 1.03
"""A gain is one that every measurement shows, by more than this; a loss likewise."""

_RECOMMENDED = "recommended draft"
_TYPICAL_PASS = 5
"""Tokens of the pass by which it is told why nothing pays: four drafted ones and the one before."""


def recommend(
    contenders: Sequence[Contender], rows: Sequence[Row], costs: Sequence[PassCosts]
) -> tuple[Recommendation, ...]:
    """What to use with each target that was measured, which follows from the rows alone.

    A contender is recommended where its overall speed-up is the best one, is not below 1, and it gains on
    some kind of prompt in every measurement, as by its counted passes. Of those as fast as the best within
    3 %, the one that takes the least memory is.
    """
    by_contender = {
        index: [row for row in rows if row.contender == index] for index in range(len(contenders))
    }
    told: list[Recommendation] = []
    for plain in (index for index, one in enumerate(contenders) if one.drafts == "none"):
        judged = [
            _Judged(index, contenders[index], by_contender[index])
            for index in range(len(contenders))
            if index != plain and plain_beside(contenders, index) == plain
        ]
        measured = [one for one in judged if one.answered]
        if measured:
            cost = next((one for one in costs if one.target == contenders[plain].target), None)
            told.append(_recommended(contenders[plain].target, measured, cost))
    return tuple(told)


@dataclass(frozen=True)
class Advice:
    """What was measured of a target on this machine."""

    sentence: str
    draft: str | None
    """The recommended draft's file; `None` where the text so far or nothing is to draft."""
    measured: dict[str, str]
    """By a draft's file, its whole path: "1.7x on code, no gain to speak of on story"."""


def keep_recommendations(comparison: Comparison, remembered: Remembered) -> None:
    """Keep what a comparison recommends, by target; it takes the place of what an earlier one did.

    Nothing is kept of one that was stopped, or measured while the machine was not at rest.
    """
    if not comparison.complete or comparison.unrest is not None:
        return
    for one in comparison.recommendations:
        beside = [
            (index, contender)
            for index, contender in enumerate(comparison.contenders)
            if contender.target == one.target and contender.draft is not None
        ]
        best = comparison.contenders[one.best].draft if one.best is not None else None
        measured = {
            _whole(contender.draft.path): _by_kind([row for row in comparison.rows if row.contender == index])
            for index, contender in beside
            if contender.draft is not None
        }
        kept = {"sentence": one.sentence, "draft": _whole(best.path) if best else None, "measured": measured}
        remembered.keep(_RECOMMENDED, _identity(one.target), kept)


def recommended_draft(target: ModelInfo, remembered: Remembered) -> Advice | None:
    """What a comparison on this machine found about drafts for this target, if there was one."""
    kept = remembered.recall(_RECOMMENDED, _identity(target))
    if kept is None:
        return None
    sentence, draft, measured = kept.get("sentence"), kept.get("draft"), kept.get("measured")
    if not isinstance(sentence, str) or not isinstance(draft, str | None) or not isinstance(measured, dict):
        return None
    return Advice(sentence, draft, {str(path): str(said) for path, said in measured.items()})  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]


def _whole(path: str) -> str:
    return str(Path(path).absolute())


def _identity(target: ModelInfo) -> dict[str, object]:
    """What a recommendation depends on, as the chat's screen can tell it, too, without llama.cpp."""
    return {
        "format": 1,
        "target": [Path(target.path).name, target.name, target.quantization, target.size_bytes],
        "machine": [platform.machine(), platform.processor(), os.cpu_count()],
        "build": version("llama-cpp-python"),
    }


class _Judged:
    """A contender with its figures, and what may be said of them."""

    def __init__(self, index: int, contender: Contender, rows: Sequence[Row]) -> None:
        self.index, self.contender = index, contender
        self.kinds = [row for row in rows if row.kind is not None and row.speedup is not None]
        self.rows = rows
        self.overall = next((row.speedup for row in rows if row.kind is None), None)

    @property
    def answered(self) -> bool:
        """Whether anything of it was measured; where it drafted nothing, that is its speed alone."""
        return self.overall is not None or any(row.tokens_per_second is not None for row in self.rows)

    @property
    def median(self) -> float:
        """Of all kinds together; of what drafted nothing that of plain decoding, which it was."""
        return self.overall.median if self.overall else 1.0

    @property
    def pays(self) -> bool:
        """Whether it may be recommended."""
        return self.median >= 1.0 and any(map(_gains, self.kinds))

    @property
    def called(self) -> str:
        """Its name, with the draft's file where it has one."""
        draft = self.contender.draft
        return (
            f"{self.contender.name} ({shown(Path(Path(draft.path).name))})" if draft else self.contender.name
        )


def _recommended(target: ModelInfo, judged: Sequence[_Judged], costs: PassCosts | None) -> Recommendation:
    paying = [one for one in judged if one.pays]
    if not paying:
        sentence = f"Plain decoding is best with {target.name} here: nothing gains on the whole."
        if why := _why_plain(costs):
            sentence += f" {why}"
        return Recommendation(target, None, sentence, tuple(map(_other, judged)))
    most = max(one.median for one in paying)
    best = min(
        (one for one in paying if one.median * GAIN >= most),
        key=lambda one: (one.contender.memory_bytes, -one.median),
    )
    draft = best.contender.draft
    what = f"{best.called} with {target.name}" if draft else f"{best.called} alone with {target.name}"
    others = (_other(one, best) for one in judged if one is not best)
    return Recommendation(target, best.index, f"Use {what}: {_by_kind(best.rows)}.", tuple(others))


def _other(one: _Judged, best: _Judged | None = None) -> str:
    """How a contender did that is not recommended."""
    if one.overall is None:
        return f"{one.called} drafted nothing here: it did not promise to pay."
    if one.median < 1 / GAIN and any(map(_loses, one.kinds)):
        return (
            f"{one.called} is slower than plain here, {one.median:.2f}x on the whole: {_by_kind(one.rows)}."
        )
    said = f"{one.called}, {one.median:.2f}x on the whole: {_by_kind(one.rows)}"
    if best is not None and one.pays and one.median > best.median:
        more = (one.contender.memory_bytes - best.contender.memory_bytes) / 1e6
        said += f"; hardly faster than {best.called}, and takes {more:,.0f} MB more"
    only_by_clock = [
        row.kind
        for row in one.kinds
        if row.speedup and row.speedup.low > GAIN and not _gains(row) and row.kind
    ]
    if only_by_clock:
        said += f"; on {_listed(only_by_clock)} faster by the clock, but not by its passes"
    return f"{said}."


def _by_kind(rows: Sequence[Row]) -> str:
    """As in "1.7x on code, no gain to speak of on story, slower on explanation (0.90x)"."""
    gains: list[tuple[float, str]] = []
    even: list[str] = []
    losses: list[tuple[float, str]] = []
    undrafted: list[str] = []
    for row in rows:
        if row.kind is None:
            continue
        if row.speedup is None:
            if row.tokens_per_second is not None:
                undrafted.append(row.kind)
            continue
        if _gains(row):
            gains.append((-row.speedup.median, f"{row.speedup.median:.2f}x on {row.kind}"))
        elif _loses(row):
            losses.append((row.speedup.median, f"{row.kind} ({row.speedup.median:.2f}x)"))
        else:
            even.append(row.kind)
    parts = [said for _, said in sorted(gains)]
    if even:
        parts.append(f"no gain to speak of on {_listed(even)}")
    if losses:
        parts.append(f"slower on {_listed([said for _, said in sorted(losses)])}")
    if undrafted:
        parts.append(f"nothing drafted on {_listed(undrafted)}")
    return ", ".join(parts) or "nothing was measured"


def _gains(row: Row) -> bool:
    """Whether every measurement shows a gain, and the passes that were counted do not gainsay it."""
    speedup, counted = row.speedup, row.counted_speedup
    return speedup is not None and speedup.low > GAIN and (counted is None or counted.median > 1.0)


def _loses(row: Row) -> bool:
    """Whether every measurement shows a loss; of a single one the counted passes have to show it, too."""
    speedup, counted = row.speedup, row.counted_speedup
    if speedup is None or speedup.high >= 1 / GAIN:
        return False
    return speedup.count > 1 or counted is None or counted.median < 1.0


def _listed(words: Sequence[str]) -> str:
    return " and ".join(filter(None, (", ".join(words[:-1]), words[-1])))


def _why_plain(costs: PassCosts | None) -> str | None:
    """By the costs of passes: what a whole accepted draft would bring at the most."""
    if costs is None or 1 not in costs.target_s or _TYPICAL_PASS not in costs.target_s:
        return None
    if falling(costs.target_s) is not None:
        return None
    one = costs.target_s[1]
    several = costs.target_s[_TYPICAL_PASS] / one
    drafts = [seconds / one for seconds in costs.draft_s.values()]
    drafted = min(drafts) if drafts else 0.0
    ceiling = _TYPICAL_PASS / (several + (_TYPICAL_PASS - 1) * drafted)
    drafting = f", and drafting each {drafted:.2f}" if drafts else ""
    return (
        f"Checking {_TYPICAL_PASS - 1} drafted tokens at once takes as long as {several:.1f} plain tokens"
        f"{drafting}: even if all of them are right that gives {ceiling:.2f}x."
    )
