"""The signals that end a chat whose terminal is closed or whose machine goes down: what was said is saved."""

from __future__ import annotations

import asyncio
import signal
from contextlib import suppress
from types import FrameType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .app import SpecchatApp

_SIGNALS = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]


def end_by_signals(app: SpecchatApp) -> None:
    """Leave the chat in order where the system asks for it; asked again, the process ends at once."""
    loop = asyncio.get_running_loop()

    def leave(number: int) -> None:
        app.incoming.keep_partial()
        app.exit(return_code=128 + number)

    # Not by the loop's own handlers: a loop that is busy would not come to them, and nothing end the process.
    def heed(number: int, _frame: FrameType | None) -> None:
        for each in _SIGNALS:
            signal.signal(each, signal.SIG_DFL)
        try:
            loop.call_soon_threadsafe(leave, number)
        except RuntimeError:  # the loop has ended already
            signal.raise_signal(number)

    # In a thread that is not the main one there are no signals.
    with suppress(ValueError):
        for number in _SIGNALS:
            signal.signal(number, heed)
