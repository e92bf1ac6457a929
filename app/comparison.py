"""What a comparison of pairs is: contenders, the answers they gave, and the figures these add up to."""

from __future__ import annotations

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
    low: float
    high: float
    """The least and the largest."""
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


@dataclass(frozen=True)
class Row:
    """One contender's figures for one kind of prompt, or for all of them."""

    contender: int
    kind: str | None
    """`None` is all kinds together: the median over kinds, each weighed alike."""
    tokens_per_second: Spread | None
    speedup: Spread | None
    """Against the same target's plain answer to the same prompt beside it; `None` for plain decoding."""
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
    """Whether it ran to its end: every prompt answered by every contender, as often as was wanted."""
    seconds: float
    """How long it took."""
