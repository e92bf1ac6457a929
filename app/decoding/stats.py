"""What a round was, and what an answer's rounds add up to."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import Literal

Origin = Literal["target", "accepted", "correction"]
"""Where a token came from: the target's own choice (a plain pass, or the extra token after a draft
that was accepted whole), an accepted draft token, or the target's replacement of a refused one."""

FinishReason = Literal["stop", "length", "context", "cancelled"]
State = Literal["drafting", "plain"]


@dataclass(frozen=True)
class Emitted:
    """One token of the answer, and where it came from."""

    token: int
    origin: Origin


@dataclass(frozen=True)
class Round:
    """One target pass and all that was done around it."""

    emitted: tuple[Emitted, ...]
    proposed: int
    """Draft tokens in the pass."""
    accepted: int
    """Of the chain: the draft's first choices, one after another."""
    tested: int
    """The accepted ones and the first refused one: those behind it were proposed, never tested."""
    leaves_tested: int
    """Draft tokens that were tested in place of the refused one, beside which they stood."""
    leaf_accepted: bool
    target_s: float
    draft_s: float
    wall_s: float
    """Seconds since the round before ended, or since decoding began."""
    state: State
    reason: str
    finish: FinishReason | None
    """Why this was the last round, if it was."""

    @property
    def took_a_pass(self) -> bool:
        """Whether the target ran; an answer that ends for another reason than its text ends without."""
        return self.finish in (None, "stop")


@dataclass(frozen=True)
class AnswerStats:
    """The figures of one answer, finished or under way; `None` is a figure that was not measured."""

    ttft_s: float | None = None
    """Seconds from submit to the first token, prefill included."""
    tokens_per_second: float | None = None
    """Tokens decided after the first ones, per second since then."""
    tokens_per_pass: float | None = None
    """Tokens decided per target pass, the one that ended the answer included; 1.0 is plain decoding."""
    completion_tokens: int = 0
    target_passes: int = 0
    plain_passes: int = 0
    """Target passes that tested no draft token."""
    drafted: int = 0
    """Draft tokens that the target tested: the accepted ones, each round's first refused one, and a tree's
    other choices in its place."""
    accepted: int = 0
    accepted_by_position: tuple[int, ...] = ()
    """How many draft tokens were accepted in the first, second, ... place of a round."""
    tested_by_position: tuple[int, ...] = ()
    """How many draft tokens were tested in the first, second, ... place; a tree may have several there."""
    target_s: float = 0.0
    """Seconds inside the target's passes."""
    draft_s: float = 0.0
    """Seconds inside the draft's passes."""
    overhead_s: float = 0.0
    """Seconds outside llama.cpp's passes while the answer was being decoded."""
    baseline_tokens_per_second: float | None = None
    """What plain decoding gives here: from measured plain passes of this conversation."""
    state: State = "plain"
    reason: str = ""
    """Why the state is what it is, for a person."""

    @property
    def acceptance_rate(self) -> float | None:
        """Accepted / drafted; `None` when nothing was drafted."""
        return self.accepted / self.drafted if self.drafted else None

    @property
    def speedup(self) -> float | None:
        """Tokens per second over the baseline; `None` until both are measured and something was drafted."""
        if self.tokens_per_second is None or self.baseline_tokens_per_second is None or not self.drafted:
            return None
        return self.tokens_per_second / self.baseline_tokens_per_second


class Tally:
    """Adds up an answer's rounds; seconds are those of the clock that timed the rounds."""

    def __init__(self, prefill_s: float) -> None:
        """`prefill_s` is the time from submit until decoding began."""
        self._prefill_s = prefill_s
        self._ttft_s: float | None = None
        self._first_s, self._first_count = 0.0, 0
        self._decoded_s = 0.0
        self._tokens = self._decided = self._passes = self._plain_passes = 0
        self._plain_s, self._plain_tokens = 0.0, 0
        self._accepted_at: list[int] = []
        self._tested_at: list[int] = []
        self._target_s = self._draft_s = 0.0
        self._state: State = "plain"
        self._reason = ""
        self._recent: deque[tuple[float, int]] = deque()

    def add(self, done: Round, plain_s: float | None = None) -> None:
        """Take one more round into account, and what a plain token costs now, in seconds, if known."""
        self._state, self._reason = done.state, done.reason
        if not done.took_a_pass:
            return
        self._passes += 1
        self._plain_passes += done.proposed == 0
        self._target_s += done.target_s
        self._draft_s += done.draft_s
        self._decoded_s += done.wall_s
        # The token that ends an answer is decided like any other, though nobody sees it.
        decided = len(done.emitted) + (done.finish == "stop")
        self._tokens += len(done.emitted)
        self._decided += decided
        while len(self._tested_at) < done.tested:
            self._tested_at.append(0)
            self._accepted_at.append(0)
        for position in range(done.tested):
            self._tested_at[position] += 1
            self._accepted_at[position] += position < done.accepted
        if done.tested:
            self._tested_at[done.tested - 1] += done.leaves_tested
            self._accepted_at[done.tested - 1] += done.leaf_accepted
        if self._ttft_s is not None and plain_s is not None:
            self._plain_s += decided * plain_s
            self._plain_tokens += decided
        if self._ttft_s is None:
            self._ttft_s = self._prefill_s + self._decoded_s
            self._first_s, self._first_count = self._decoded_s, decided
        self._recent.append((self._decoded_s, decided))
        while len(self._recent) > 2 and self._decoded_s - self._recent[0][0] > 2.0:
            self._recent.popleft()

    @property
    def live_tokens_per_second(self) -> float | None:
        """Over the rounds of the last two seconds."""
        if len(self._recent) < 2:
            return None
        span = self._recent[-1][0] - self._recent[0][0]
        return sum(count for _, count in list(self._recent)[1:]) / span if span > 0 else None

    def stats(self, baseline_tokens_per_second: float | None) -> AnswerStats:
        """The figures so far; the baseline given is that of the conversation, before the answer has its own.

        An answer's own baseline is what its tokens would have taken, each at the plain rate of its time:
        passes get slower as the text grows, and the latest would not be fair to the first.
        """
        if self._plain_s > 0.0:
            baseline_tokens_per_second = self._plain_tokens / self._plain_s
        rate = None
        if self._decided > self._first_count and self._decoded_s > self._first_s:
            rate = (self._decided - self._first_count) / (self._decoded_s - self._first_s)
        return AnswerStats(
            ttft_s=self._ttft_s,
            tokens_per_second=rate,
            tokens_per_pass=self._decided / self._passes if self._passes else None,
            completion_tokens=self._tokens,
            target_passes=self._passes,
            plain_passes=self._plain_passes,
            drafted=sum(self._tested_at),
            accepted=sum(self._accepted_at),
            accepted_by_position=tuple(self._accepted_at),
            tested_by_position=tuple(self._tested_at),
            target_s=self._target_s,
            draft_s=self._draft_s,
            overhead_s=max(0.0, self._decoded_s - self._target_s - self._draft_s),
            baseline_tokens_per_second=baseline_tokens_per_second,
            state=self._state,
            reason=self._reason,
        )
