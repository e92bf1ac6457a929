"""Time that only goes on, whatever the clock does."""

from __future__ import annotations

from collections.abc import Callable


def steady(clock: Callable[[], float]) -> Callable[[], float]:
    """The seconds that pass on this clock, from 0 on; where it is set back, none have passed."""
    seconds, before = 0.0, clock()

    def now() -> float:
        nonlocal seconds, before
        read = clock()
        seconds, before = seconds + max(0.0, read - before), read
        return seconds

    return now
