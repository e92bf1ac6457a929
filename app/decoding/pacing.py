"""How much to draft: what every pacing is, and the two that do not learn."""

from __future__ import annotations

import statistics
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from .drafters import Drafter, Source, Step
from .sampling import Distribution
from .stats import Round, State

_PLAIN_EVERY = 32
"""One round in this many is plain, so that the baseline stays that of this text at this depth."""


@dataclass(frozen=True)
class Leaf:
    """Another choice beside a chain's token."""

    place: int
    """Index of the chain's token that it stands beside."""
    token: int


@dataclass(frozen=True)
class Proposal:
    """What the target is to test in one pass: a chain, and other choices beside some of its tokens."""

    steps: tuple[Step, ...]
    state: State
    reason: str
    """Why so much, or why nothing; for a person."""
    leaves: tuple[Leaf, ...] = ()
    source: Source | None = None


class Pacing(Protocol):
    """Owns the drafters of one answer and decides, round by round, what of theirs is tested."""

    @property
    def draft_s(self) -> float:
        """Seconds spent in draft passes so far."""
        ...

    @property
    def reads_prompt(self) -> bool:
        """Whether the draft model is soon to be asked, so that it should have read the prompt."""
        ...

    def propose(self, limit: int) -> Proposal:
        """What to test in the next round; the chain has at most `limit` tokens."""
        ...

    def observe(self, done: Round, verified: Sequence[Distribution]) -> None:
        """Learn from a round: the target's distributions in the tested places, in order."""
        ...

    def forget(self) -> None:
        """What was proposed last has not come about."""
        ...


def any_size(_size: int) -> bool:
    """A pass may be of any size."""
    return True


class Baseline:
    """What plain decoding costs here: the latest plain rounds of this conversation."""

    def __init__(self) -> None:
        self._seconds: deque[float] = deque(maxlen=15)

    def observe(self, done: Round) -> None:
        """Take a round into account if it was plain."""
        seconds = done.wall_s - done.draft_s
        if done.proposed == 0 and done.took_a_pass and seconds > 0.0:
            self._seconds.append(seconds)

    @property
    def seconds_per_token(self) -> float | None:
        """The median plain round; `None` until there was one."""
        return statistics.median(self._seconds) if self._seconds else None

    @property
    def tokens_per_second(self) -> float | None:
        """The plain rate; `None` until it was measured."""
        seconds = self.seconds_per_token
        return 1.0 / seconds if seconds else None


class PlainPacing:
    """Never drafts, for a reason that does not change."""

    draft_s = 0.0
    reads_prompt = False

    def __init__(self, reason: str) -> None:
        self._nothing = Proposal((), "plain", reason)

    def propose(self, limit: int) -> Proposal:
        """Nothing."""
        return self._nothing

    def observe(self, done: Round, verified: Sequence[Distribution]) -> None:
        """Nothing to learn."""

    def forget(self) -> None:
        """Nothing to forget."""


class FixedPacing:
    """Drafts up to the same length each round, but for a plain round now and then."""

    reads_prompt = True

    def __init__(
        self,
        drafters: Sequence[Drafter],
        draft_max: int,
        p_min: float,
        reason: str,
        plain_every: int = _PLAIN_EVERY,
        allowed: Callable[[int], bool] = any_size,
    ) -> None:
        """Take the first drafter's proposal that is one, up to a token of less confidence than `p_min`.

        `allowed` says whether the target may run a pass over so many tokens now.
        """
        self._drafters = drafters
        self._draft_max, self._p_min = draft_max, p_min
        self._reason = reason
        self._plain_every = plain_every
        self._allowed = allowed
        self._rounds = 0

    @property
    def draft_s(self) -> float:
        """Seconds spent in draft passes so far."""
        return sum(drafter.pass_s for drafter in self._drafters)

    def propose(self, limit: int) -> Proposal:
        """The first round is plain, for the soonest first token, and so is one now and then."""
        limit = self._fitting(min(limit, self._draft_max))
        if limit > 0 and self._rounds % self._plain_every:
            for drafter in self._drafters:
                steps: list[Step] = []
                for step in drafter.draft():
                    if step.confidence < self._p_min:
                        break
                    steps.append(step)
                    if len(steps) == limit:
                        break
                steps = steps[: self._fitting(len(steps))]
                if steps:
                    return Proposal(tuple(steps), "drafting", self._reason, source=drafter.source)
        return Proposal((), "drafting", self._reason)

    def _fitting(self, length: int) -> int:
        """The longest draft up to this length that makes a pass of an allowed size."""
        return next((short for short in range(length, 0, -1) if self._allowed(short + 1)), 0)

    def observe(self, done: Round, verified: Sequence[Distribution]) -> None:
        """Count the round, and tell the drafters what stands."""
        self._rounds += 1
        for drafter in self._drafters:
            drafter.observe([emitted.token for emitted in done.emitted])

    def forget(self) -> None:
        """Bring the drafters back to what stands."""
        for drafter in self._drafters:
            drafter.observe(())
