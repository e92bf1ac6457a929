"""When the screen may refresh next, from what the last refreshes cost."""

from __future__ import annotations

SHARE = 0.02
"""How much of one core the screen may take while a pass runs."""
SHORTEST = 0.1
LONGEST = 1.0


class RefreshPacer:
    """Spaces refreshes so that the screen's thread stays within its share of a core."""

    def __init__(self, share: float = SHARE, shortest: float = SHORTEST, longest: float = LONGEST) -> None:
        self._share = share
        self._shortest = shortest
        self._longest = longest
        self._cost = 0.0
        self._last_cpu: float | None = None

    @property
    def cost(self) -> float:
        """Seconds of CPU that one refresh costs, averaged over the last few."""
        return self._cost

    def restart(self, cpu: float) -> None:
        """Begin an answer: what the thread did before it is not held against it."""
        self._last_cpu = cpu

    def next_delay(self, cpu: float) -> float:
        """Seconds to wait, given this thread's CPU time now; all it did since the last call counts."""
        if self._last_cpu is not None:
            # One costly moment, such as a resize, does not hold the text back for seconds.
            spent = min(max(0.0, cpu - self._last_cpu), self._longest * self._share)
            self._cost += 0.2 * (spent - self._cost)
        self._last_cpu = cpu
        return min(self._longest, max(self._shortest, self._cost / self._share))
