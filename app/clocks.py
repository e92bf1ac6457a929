"""Clocks that were set wrongly: time that only goes on, and dates that no calendar has."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, tzinfo


def steady(clock: Callable[[], float]) -> Callable[[], float]:
    """The seconds that pass on this clock, from 0 on; where it is set back, none have passed."""
    seconds, before = 0.0, clock()

    def now() -> float:
        nonlocal seconds, before
        read = clock()
        seconds, before = seconds + max(0.0, read - before), read
        return seconds

    return now


def date_and_time(seconds: float, zone: tzinfo | None = None) -> str:
    """Seconds since the epoch as a date and a time of day, the machine's own zone if none is given."""
    try:
        return datetime.fromtimestamp(seconds, zone).strftime("%Y-%m-%d %H:%M")
    except (ValueError, OverflowError, OSError):
        return "at an unknown time"
