"""Ctrl+C as a wish that is looked at where stopping is safe.

An exception instead would be swallowed where it meets one of llama.cpp's callbacks.
"""

from __future__ import annotations

import signal
from types import FrameType

from ..models.errors import SpecchatError


class Stopped(SpecchatError):
    """Work that ends early because the user wants it."""


class Interrupt:
    """Ctrl+C: the first one ends the work and keeps what there is, the second ends the program."""

    def __init__(self) -> None:
        self._came = False
        self._former = signal.signal(signal.SIGINT, self._handle)

    def came(self) -> bool:
        """Whether there was one."""
        return self._came

    def check(self) -> None:
        """Go on if there was none.

        Raises:
            Stopped: There was one.
        """
        if self._came:
            raise Stopped("stopped")

    def restore(self) -> None:
        """Handle signals as before."""
        signal.signal(signal.SIGINT, self._former)

    def _handle(self, _number: int, _frame: FrameType | None) -> None:
        self._came = True
        signal.signal(signal.SIGINT, signal.SIG_DFL)  # Python's own handler would raise in a callback
