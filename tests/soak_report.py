"""What a long chat did, what was seen of it, and what its process took of the system."""

from __future__ import annotations

import gc
from collections import Counter
from dataclasses import astuple, dataclass, field

import psutil

SETTLED = 100
"""Turns after which memory, files and threads are not to grow any more."""

GROWTH = 20_000_000
"""Bytes that the process may grow by after that."""


@dataclass(frozen=True)
class Taken:
    """What the process takes of the system."""

    resident: int
    files: int
    threads: int


@dataclass
class Report:
    """What was done, and what was seen."""

    turns: int = 0
    done: Counter[str] = field(default_factory=Counter)
    """What was done, and how answers ended."""
    rows_compared: int = 0
    worst_row: float = 0.0
    """The largest difference between a logit of a long-used context and one of a fresh context."""
    messages: int = 0
    conversations: int = 0
    settled: Taken | None = None
    most: Taken | None = None

    def measure(self) -> None:
        """See what the process takes now: once to compare with, then what is the most."""
        if self.turns < SETTLED:
            return
        process = psutil.Process()
        now = Taken(process.memory_info().rss, process.num_fds(), process.num_threads())
        if self.settled is None or self.most is None:
            gc.collect()
            self.settled = self.most = now
        self.most = Taken(*map(max, astuple(self.most), astuple(now)))

    @property
    def growth(self) -> int:
        """Bytes that the process has grown by, at the most, since it had settled."""
        assert self.settled is not None
        assert self.most is not None
        return self.most.resident - self.settled.resident

    def told(self) -> str:
        """In words."""
        lines = [
            f"{self.turns:,} turns"
            + (
                f"; {self.messages:,} messages in {self.conversations:,} conversations, all in the file as "
                "they were said"
                if self.conversations
                else ""
            ),
            ", ".join(f"{name} {count:,}" for name, count in sorted(self.done.items())),
            f"{self.rows_compared:,} rows of logits compared with fresh contexts, "
            f"the largest difference {self.worst_row:.1e}",
        ]
        if self.settled and self.most:
            lines.append(
                f"resident {self.settled.resident / 1e6:.1f} MB after {SETTLED} turns, "
                f"{self.most.resident / 1e6:.1f} MB at the most ({self.growth / 1e6:+.1f} MB); "
                f"file descriptors {self.settled.files} and {self.most.files}, "
                f"threads {self.settled.threads} and {self.most.threads}"
            )
        return "\n".join(lines)
