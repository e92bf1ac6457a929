"""How much to draft, and whether to: a fixed length, paused where it is measured not to pay."""

from __future__ import annotations

import statistics
from collections import deque
from dataclasses import dataclass
from typing import Protocol

from .stats import Round, State

_PLAIN_EVERY = 32
"""One round in this many is plain, so that the baseline stays that of this text at this depth."""

_TRIAL_ROUNDS = 4
"""Drafted rounds that are weighed together before drafting is paused."""

_HOPELESS_ROUNDS = 2
"""Rounds in a row that would not have paid with every token accepted, before drafting is paused."""

_FIRST_PAUSE, _LONGEST_PAUSE = 32, 512
"""Plain rounds before drafting is tried again; doubled each time it did not pay."""

_WORTHWHILE = 1.0
"""Drafting goes on while it gives at least this many times the plain rate."""

_FAST = 50.0
"""Plain tokens per second from which on a target has little to gain: all that is around a pass weighs."""


class Baseline:
    """What plain decoding costs here: the latest plain rounds of this conversation."""

    def __init__(self) -> None:
        self._seconds: deque[float] = deque(maxlen=15)

    def observe(self, done: Round) -> None:
        """Take a round into account if it was plain."""
        if done.proposed == 0 and done.target_s:
            self._seconds.append(done.wall_s - done.draft_s)

    @property
    def seconds_per_token(self) -> float | None:
        """The median plain round; `None` until there was one."""
        return statistics.median(self._seconds) if self._seconds else None

    @property
    def tokens_per_second(self) -> float | None:
        """The plain rate; `None` until it was measured."""
        seconds = self.seconds_per_token
        return 1.0 / seconds if seconds else None


@dataclass(frozen=True)
class Plan:
    """How many tokens to draft in the next round, and how the state line puts it."""

    length: int
    state: State
    reason: str


class Pacing(Protocol):
    """Anything that decides how much to draft."""

    def plan(self, limit: int) -> Plan:
        """How many tokens, at most `limit`, to draft in the next round."""
        ...

    def observe(self, done: Round) -> None:
        """Learn from a round."""
        ...

    @property
    def rests_long(self) -> bool:
        """Whether nothing will be drafted for a good while."""
        ...


class PlainPacing:
    """Never drafts, for a reason that does not change."""

    rests_long = True

    def __init__(self, reason: str) -> None:
        self._reason = reason

    def plan(self, limit: int) -> Plan:
        """Draft nothing."""
        return Plan(0, "plain", self._reason)

    def observe(self, done: Round) -> None:
        """Nothing to learn."""


class FixedPacing:
    """Drafts up to the same length each round, but for a plain round now and then."""

    rests_long = False

    def __init__(self, draft_max: int, reason: str) -> None:
        self._draft_max = draft_max
        self._reason = reason
        self._rounds = 0

    def plan(self, limit: int) -> Plan:
        """The first round is plain, for the soonest first token, and so is one in 32 after it."""
        plain = self._rounds % _PLAIN_EVERY == 0
        return Plan(0 if plain else min(self._draft_max, limit), "drafting", self._reason)

    def observe(self, done: Round) -> None:
        """Count the round."""
        self._rounds += 1


class GuardedPacing:
    """Drafts up to a fixed length while that is measured to pay, and pauses where it does not.

    What is weighed is seconds for seconds: the time of the last drafted rounds against the time that
    plain rounds would have taken for the tokens they gave. A trial that does not pay doubles the pause
    before the next one; one that pays ends the doubling. Where a pass costs so much that no draft could
    pay, two rounds show it and the longest pause follows, unless drafting has paid before.
    """

    def __init__(self, draft_max: int, baseline: Baseline) -> None:
        self._draft_max = draft_max
        self._baseline = baseline
        self._rounds = 0
        self._trial: deque[tuple[int, float]] = deque(maxlen=_TRIAL_ROUNDS)
        self._hopeless = 0
        self._has_paid = False
        self._pause_left = 0
        self._next_pause = _FIRST_PAUSE
        self._reason = f"up to {draft_max} tokens a pass"

    @property
    def rests_long(self) -> bool:
        """Whether the pause is a long one yet."""
        return self._pause_left >= _LONGEST_PAUSE // 2

    def plan(self, limit: int) -> Plan:
        """Draft, unless paused, or measuring the baseline."""
        if self._pause_left > 0:
            return Plan(0, "plain", f"{self._reason}; next try in {self._pause_left} tokens")
        plain = self._rounds % _PLAIN_EVERY == 0 or self._baseline.seconds_per_token is None
        return Plan(0 if plain else min(self._draft_max, limit), "drafting", self._reason)

    def observe(self, done: Round) -> None:
        """Weigh a drafted round, or count one of a pause."""
        self._rounds += 1
        if self._pause_left > 0:
            self._pause_left -= 1
            if self._pause_left == 0:
                self._reason = f"trying up to {self._draft_max} tokens a pass again"
            return
        plain = self._baseline.seconds_per_token
        if plain is None or (done.proposed == 0 and done.draft_s == 0.0):
            return  # nothing was drafted, and nothing spent on it
        self._trial.append((len(done.emitted), done.wall_s))
        passes = done.wall_s / plain
        cannot_pay = passes >= done.proposed + 1 and done.proposed == self._draft_max
        self._hopeless = self._hopeless + 1 if cannot_pay else 0
        if self._hopeless >= _HOPELESS_ROUNDS:
            self._reason = f"{done.proposed} drafted tokens cost {passes:.1f} plain passes: no gain here"
            # Where drafting has paid before, it may have been the machine that was busy elsewhere.
            self._pause(self._next_pause if self._has_paid else _LONGEST_PAUSE)
            self._next_pause = min(2 * self._next_pause, _LONGEST_PAUSE)
            return
        if len(self._trial) < _TRIAL_ROUNDS:
            return
        gain = sum(count for count, _ in self._trial) * plain / sum(seconds for _, seconds in self._trial)
        if gain >= _WORTHWHILE:
            self._has_paid = True
            self._next_pause = _FIRST_PAUSE
            self._reason = f"up to {self._draft_max} tokens a pass, {gain:.2f}x the plain speed lately"
        else:
            self._reason = f"drafting gave {gain:.2f}x the plain speed"
            if plain < 1.0 / _FAST:
                self._reason += "; a target this fast gains little"
            self._pause(self._next_pause)
            self._next_pause = min(2 * self._next_pause, _LONGEST_PAUSE)

    def _pause(self, rounds: int) -> None:
        self._pause_left = rounds
        self._trial.clear()
        self._hopeless = 0
        self._rounds = 1  # the round after a pause is a drafted one
