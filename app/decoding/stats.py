"""What a round was, and what an answer's rounds add up to."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Origin = Literal["target", "accepted", "correction"]
"""Where a token came from: the target's own choice (a plain pass, or the extra token after a draft
that was accepted whole), an accepted draft token, or the target's replacement of a refused one."""

FinishReason = Literal["stop", "length", "context", "cancelled"]
State = Literal["drafting", "plain"]


@dataclass(frozen=True)
class AnswerStats:
    """The figures of one answer, finished or under way; `None` is a figure that was not measured."""

    ttft_s: float | None = None
    """Seconds from submit to the first token, prefill included."""
    tokens_per_second: float | None = None
    """Tokens emitted after the first one, per second since the first one."""
    completion_tokens: int = 0
    target_passes: int = 0
    plain_passes: int = 0
    """Target passes that tested no draft token."""
    drafted: int = 0
    """Draft tokens that the target tested: the accepted ones and each round's first refused one."""
    accepted: int = 0
    accepted_by_position: tuple[int, ...] = ()
    """How many rounds accepted their first, second, ... draft token."""
    tested_by_position: tuple[int, ...] = ()
    """How many rounds tested their first, second, ... draft token."""
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
    def tokens_per_pass(self) -> float | None:
        """Tokens emitted per target pass; 1.0 is plain decoding."""
        return self.completion_tokens / self.target_passes if self.target_passes else None

    @property
    def speedup(self) -> float | None:
        """Tokens per second over the baseline; `None` until both are measured."""
        if self.tokens_per_second is None or self.baseline_tokens_per_second is None:
            return None
        return self.tokens_per_second / self.baseline_tokens_per_second
