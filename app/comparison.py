"""What a comparison of pairs is: contenders, the answers they gave, and the figures these add up to."""

from __future__ import annotations

import itertools
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from .decoding.stats import AnswerStats
from .events import ModelInfo

Drafts = Literal["none", "lookup", "model", "both"]
"""What proposes tokens: nothing (plain decoding), the text so far, the draft model, the two together."""


@dataclass(frozen=True)
class Contender:
    """A target and what drafts for it."""

    name: str
    """Short, and told apart from every other contender's."""
    target: ModelInfo
    draft: ModelInfo | None
    drafts: Drafts
    memory_bytes: int
    """Of both models and their caches, as estimated from the headers."""


@dataclass(frozen=True)
class Spread:
    """A figure that was measured several times."""

    median: float
    """Of all kinds of prompt together: the geometric mean of the kinds' medians, each weighed alike."""
    low: float
    high: float
    """The least and the largest; of all kinds together, of the kinds' medians."""
    count: int

    @classmethod
    def of(cls, values: Sequence[float]) -> Spread | None:
        """The spread of these values; `None` where there are none."""
        return cls(statistics.median(values), min(values), max(values), len(values)) if values else None


@dataclass(frozen=True)
class Answered:
    """One answer of one contender."""

    contender: int
    """The contender's place in the comparison."""
    kind: str
    """Of prompt: "code", "prose", ..."""
    prompt: int
    """The prompt's place among those of its kind."""
    stats: AnswerStats
    counted_speedup: float | None
    """What plain passes would have cost over what these passes cost, at the costs measured beforehand;
    a slow moment of the machine does not touch it. `None` where the costs are not known."""
    times_s: tuple[float, ...]
    """When each token was there, in seconds since decoding began."""
    same_as_plain: bool | None
    """Whether the text is the plain one's, token by token; `None` above temperature 0 and for plain ones."""
    differs_from: int | None = None
    """The number, from 1, of the first token that is not the plain one's; `None` where there is none."""
    repeat: int = 0
    """How often the prompt had been answered before; the first time the whole prompt is read, and timed."""


@dataclass(frozen=True)
class Row:
    """One contender's figures for one kind of prompt, or for all of them."""

    contender: int
    kind: str | None
    """`None` is all kinds together, each weighed alike."""
    tokens_per_second: Spread | None
    speedup: Spread | None
    """Against the same target's plain answer to the same prompt beside it. `None` for plain decoding, and
    where nothing was drafted: that was plain decoding, too, and counts as 1 among all kinds."""
    counted_speedup: Spread | None
    ttft_s: Spread | None
    tokens_per_pass: float | None
    drafted: int
    accepted: int
    accepted_by_position: tuple[int, ...]
    tested_by_position: tuple[int, ...]

    @property
    def acceptance_rate(self) -> float | None:
        """Accepted / drafted; `None` when nothing was drafted."""
        return self.accepted / self.drafted if self.drafted else None


@dataclass(frozen=True)
class PassCosts:
    """What passes of one target cost here, and draft passes beside it."""

    target: ModelInfo
    target_s: dict[int, float]
    """Seconds of a target pass, by the tokens in it."""
    draft_s: dict[str, float]
    """Seconds of a pass of each draft over one token, by its contender's name."""


@dataclass(frozen=True)
class Recommendation:
    """What the figures say, in a sentence, about one target."""

    target: ModelInfo
    best: int | None
    """The contender to use; `None` where plain decoding is."""
    sentence: str
    """"Use X with Y: 1.7x on code, no gain on prose." """
    others: tuple[str, ...]
    """A sentence for each other contender that says how it did."""


@dataclass(frozen=True)
class Comparison:
    """All of it; a comparison that was stopped holds what there was."""

    date: str
    """ISO, with the time of day."""
    machine: tuple[str, ...]
    """Names of the devices, cores and architecture."""
    build: str
    """Which llama.cpp, built for what."""
    settings: dict[str, object]
    """What every answer was asked with: temperature, tokens, context size, threads, ..."""
    contenders: tuple[Contender, ...]
    rows: tuple[Row, ...]
    costs: tuple[PassCosts, ...]
    answers: tuple[Answered, ...]
    recommendations: tuple[Recommendation, ...]
    complete: bool
    """Whether every contender answered a prompt of every kind, and nobody stopped it before it was done."""
    seconds: float
    """How long it took."""
    unrest: str | None = None
    """What says that the machine was not at rest, so that no figure is to be trusted; else `None`."""


def rows_of(contenders: Sequence[Contender], answers: Sequence[Answered]) -> tuple[Row, ...]:
    """Every contender's figures, by kind and then for all kinds; one that answered nothing has no row."""
    rates = {(one.contender, *_asked(one)): one.stats.tokens_per_second for one in answers}
    rows: list[Row] = []
    for index in range(len(contenders)):
        plain = plain_beside(contenders, index)
        mine = [one for one in answers if one.contender == index]
        by_kind: list[Row] = []
        for kind in dict.fromkeys(one.kind for one in mine):
            of_kind = [one for one in mine if one.kind == kind]
            beside = [rates.get((plain, *_asked(one))) if plain != index else None for one in of_kind]
            by_kind.append(_row(of_kind, beside))
        rows += by_kind
        if by_kind:
            rows.append(_together(by_kind, mine))
    return tuple(rows)


def plain_beside(contenders: Sequence[Contender], index: int) -> int:
    """Which contender is plain decoding with the same target."""
    target = contenders[index].target
    return next(at for at, one in enumerate(contenders) if one.target == target and one.drafts == "none")


def settled(before: Sequence[Row], after: Sequence[Row], within: float = 0.03) -> bool:
    """Whether no median speed-up has moved by more than this part of it from one set of rows to the next."""
    known = {(row.contender, row.kind): row.speedup for row in before}
    for row in after:
        was = known.get((row.contender, row.kind))
        if row.speedup and (was is None or abs(row.speedup.median / was.median - 1.0) > within):
            return False
    return True


def _asked(answer: Answered) -> tuple[str, int, int]:
    return answer.kind, answer.prompt, answer.repeat


def _row(answers: Sequence[Answered], plain_rates: Sequence[float | None]) -> Row:
    """The figures of one contender's answers of one kind, each with the rate of the plain one beside it."""
    stats = [one.stats for one in answers]
    rates = [one.tokens_per_second for one in stats]
    return Row(
        contender=answers[0].contender,
        kind=answers[0].kind,
        tokens_per_second=Spread.of([rate for rate in rates if rate]),
        speedup=Spread.of(
            [rate / plain for rate, plain in zip(rates, plain_rates, strict=True) if rate and plain]
            if any(one.drafted for one in stats)
            else []
        ),
        counted_speedup=Spread.of([one.counted_speedup for one in answers if one.counted_speedup]),
        ttft_s=Spread.of([one.ttft_s for one in stats if one.ttft_s is not None]),
        tokens_per_pass=_tokens_per_pass(stats),
        drafted=sum(one.drafted for one in stats),
        accepted=sum(one.accepted for one in stats),
        accepted_by_position=_added([one.accepted_by_position for one in stats]),
        tested_by_position=_added([one.tested_by_position for one in stats]),
    )


def _together(rows: Sequence[Row], answers: Sequence[Answered]) -> Row:
    """A contender's kinds, each weighed alike; what is counted in tokens is that of all its answers."""
    return Row(
        contender=rows[0].contender,
        kind=None,
        tokens_per_second=_weighed_alike([row.tokens_per_second for row in rows]),
        speedup=_weighed_alike([row.speedup or _AS_PLAIN for row in rows])
        if any(row.speedup for row in rows)
        else None,
        counted_speedup=_weighed_alike([row.counted_speedup for row in rows]),
        ttft_s=_weighed_alike([row.ttft_s for row in rows]),
        tokens_per_pass=_tokens_per_pass([one.stats for one in answers]),
        drafted=sum(row.drafted for row in rows),
        accepted=sum(row.accepted for row in rows),
        accepted_by_position=_added([row.accepted_by_position for row in rows]),
        tested_by_position=_added([row.tested_by_position for row in rows]),
    )


_AS_PLAIN = Spread(1.0, 1.0, 1.0, 0)


def _weighed_alike(kinds: Sequence[Spread | None]) -> Spread | None:
    medians = [kind.median for kind in kinds if kind is not None]
    if not medians:
        return None
    low, high = min(medians), max(medians)
    # Rounding may carry a mean of equal figures past them.
    mean = min(max(statistics.geometric_mean(medians), low), high) if low > 0 else 0.0
    return Spread(mean, low, high, len(medians))


def _tokens_per_pass(stats: Sequence[AnswerStats]) -> float | None:
    counted = [(one.tokens_per_pass, one.target_passes) for one in stats if one.tokens_per_pass is not None]
    passes = sum(count for _, count in counted)
    return sum(tokens * count for tokens, count in counted) / passes if passes else None


def _added(by_position: Sequence[tuple[int, ...]]) -> tuple[int, ...]:
    return tuple(map(sum, itertools.zip_longest(*by_position, fillvalue=0)))
