"""Two contenders answer the same prompt in turn: whose turn it is, what was measured, how it came out."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass, replace

from ..app.events import Ask, Cancel, Command, Died, Event, Failed, Finished, Load, Loaded
from ..app.requests import AnswerOptions, Drafting, LoadOptions, Turn
from . import figures
from .session import Phase

SIDES = ("left", "right")
ABOUT_AS_FAST = 1.03
"""Speeds that differ by less are not told apart: two runs of one pair differ as much."""


@dataclass(frozen=True)
class Contender:
    """What drafts for the target on one side."""

    name: str
    drafting: Drafting
    load: LoadOptions | None = None
    """What has to be loaded; `None` where no draft model is asked, whichever is loaded."""


def plain(drafting: Drafting) -> Contender:
    """The target alone."""
    return Contender("plain, no draft", replace(drafting, speculate="off"))


def lookup_alone(drafting: Drafting) -> Contender:
    """Drafts from the text so far."""
    return Contender("lookup alone, no draft model", replace(_drafted(drafting), drafter="lookup"))


def with_draft(name: str, load: LoadOptions, drafting: Drafting) -> Contender:
    """A draft model, and the text so far where that is in force."""
    drafting = _drafted(drafting)
    return Contender(
        name, replace(drafting, drafter="both") if drafting.drafter == "lookup" else drafting, load
    )


def as_loaded(loaded: Loaded, load: LoadOptions, drafting: Drafting) -> Contender:
    """What the chat answers with; where a draft is loaded, with it."""
    if loaded.draft is not None:
        return with_draft(f"{loaded.draft.name} {loaded.draft.quantization}", load, drafting)
    if drafting.speculate == "off" or drafting.drafter == "model":
        return plain(drafting)
    return lookup_alone(drafting)


def _drafted(drafting: Drafting) -> Drafting:
    return replace(drafting, speculate="auto") if drafting.speculate == "off" else drafting


class SideBySide:
    """Lets one side answer after the other, the one that goes first changing each time.

    Two at a time would take the processor from each other, and neither figure would be true.
    """

    def __init__(self, left: Contender, right: Contender, loaded: LoadOptions) -> None:
        """`loaded` is what the engine has loaded."""
        self.contenders = [left, right]
        self.loaded: LoadOptions | None = loaded
        """What the engine has loaded; `None` once that failed."""
        self.phase: Phase = "ready"
        self.turn: int | None = None
        """The side that answers."""
        self.rounds: list[tuple[Finished, Finished]] = []
        """What both sides answered to the present prompt, the left one's first."""
        self._fallback = self._loading = loaded
        self._begun = 0
        self._waiting: list[int] = []
        self._answers: dict[int, Finished] = {}
        self._asked: tuple[tuple[Turn, ...], AnswerOptions] | None = None
        self._options = AnswerOptions()

    @property
    def busy(self) -> bool:
        """Whether the engine has something to do."""
        return self.phase in ("loading", "answering", "stopping")

    def change(self, side: int, contender: Contender) -> None:
        """Put another contender on a side: what was measured against the former one counts no more."""
        self.contenders[side] = contender
        self._forget()

    def begin(self, turns: tuple[Turn, ...], options: AnswerOptions, seed: int) -> Command:
        """Ask both sides; the seed is for answers above temperature 0 that have none of their own."""
        if (turns, options) != self._asked:
            self._forget()
        self._asked = turns, options
        sampling = options.sampling
        if sampling.temperature > 0 and sampling.seed is None:
            sampling = replace(sampling, seed=seed)
        self._options = replace(options, sampling=sampling)
        self._waiting = [0, 1] if self._begun % 2 == 0 else [1, 0]
        self._begun += 1
        self._answers = {}
        return self._load_next()

    def take(self, event: Event) -> Command | None:
        """One event of the engine's; what the engine is to do next."""
        match event:
            case Loaded():
                assert self._asked is not None
                assert self.turn is not None
                self.loaded = self._loading
                if self.phase == "stopping":
                    return self._end()
                self.phase = "answering"
                options = replace(self._options, drafting=self.contenders[self.turn].drafting)
                return Ask(self._asked[0], options, afresh=True)
            case Finished():
                assert self.turn is not None
                if self.phase == "stopping":
                    return self._end()
                self._answers[self.turn] = event
                return self._next()
            case Failed():
                if self.phase == "loading":
                    self.loaded = None
                return self._end() if self.phase == "stopping" else self._next()
            case Died():
                self.loaded = None
                self._end()
                self.phase = "dead"
            case _:
                pass
        return None

    def stop(self) -> Command | None:
        """End the round without a result."""
        if self.phase not in ("loading", "answering"):
            return None
        if self.phase == "loading":
            self.loaded = None  # until it says that it was loaded all the same
        self.phase = "stopping"
        return Cancel()

    def _load_next(self) -> Command:
        self.turn = self._waiting.pop(0)
        self.phase = "loading"
        contender = self.contenders[self.turn]
        self._loading = contender.load or self.loaded or self._fallback
        return Load(self._loading, contender.drafting)

    def _next(self) -> Command | None:
        if self._waiting:
            return self._load_next()
        if len(self._answers) == len(SIDES):
            self.rounds.append((self._answers[0], self._answers[1]))
        return self._end()

    def _end(self) -> None:
        self.turn = None
        self.phase = "ready"
        self._waiting = []

    def _forget(self) -> None:
        self.rounds = []
        self._begun = 0

    # How it came out.

    def median(self, side: int) -> float | None:
        """Tokens per second of a side, over the rounds so far."""
        rates = [rate for each in self.rounds if (rate := each[side].stats.tokens_per_second) is not None]
        return statistics.median(rates) if rates else None

    def verdict(self) -> tuple[str, str]:
        """Which side is how much faster, and whether the texts are the same; empty before a round is over."""
        if not self.rounds:
            return "", ""
        return self._speeds(), self._texts()

    def _speeds(self) -> str:
        left, right = self.median(0), self.median(1)
        if left is None or right is None:
            return "The answers are too short for a speed to be measured."
        count = len(self.rounds)
        of = "one run each" if count == 1 else f"medians of {count} runs each"
        rates = f"{figures.rate(max(left, right))} against {figures.rate(min(left, right))} tok/s, {of}"
        if not any(answer.stats.drafted for each in self.rounds for answer in each):
            return f"Nothing was drafted on either side, so neither is faster: {rates}."
        ratio = max(left, right) / min(left, right)
        if ratio < ABOUT_AS_FAST:
            return f"Both are about as fast: {rates}."
        return f"The {SIDES[right > left]} side is {figures.times(ratio)} as fast: {rates}."

    def _texts(self) -> str:
        temperature = self._options.sampling.temperature
        if temperature > 0:
            return f"At temperature {temperature:g} each side draws its own text; at 0 they are compared."
        left, right = (each.token_ids for each in self.rounds[-1])
        place = first_difference(left, right)
        if place is None:
            return f"The texts are equal, token for token ({figures.count(len(left))} tokens)."
        strict = self._options.drafting.strict
        why = "/strict does not allow that" if strict else "rounding may do that, not with /strict"
        return f"The texts differ from token {figures.count(place + 1)} on; {why}."


def first_difference(left: Sequence[int], right: Sequence[int]) -> int | None:
    """Tokens before the first one that differs, or that only one of them has; `None` if none does."""
    for place, (one, other) in enumerate(zip(left, right, strict=False)):
        if one != other:
            return place
    return None if len(left) == len(right) else min(len(left), len(right))
