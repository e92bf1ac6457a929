"""Ctrl+C: the first one is noticed, the second ends the program."""

from __future__ import annotations

import signal
from types import FrameType


class Interrupt:
    """Notices Ctrl+C, from when it is made until `restore`; what runs then looks whether it came."""

    def __init__(self) -> None:
        self._came = False
        self._former = signal.signal(signal.SIGINT, self._handle)

    def came(self) -> bool:
        """Whether there was one."""
        return self._came

    def restore(self) -> None:
        """Handle signals as before."""
        signal.signal(signal.SIGINT, self._former)

    def _handle(self, _number: int, _frame: FrameType | None) -> None:
        self._came = True
        signal.signal(signal.SIGINT, signal.default_int_handler)
