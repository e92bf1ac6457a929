"""How a chat ends, by the user or by a signal to its process: what was said is saved, or said not to be."""

from __future__ import annotations

import asyncio
import signal
from contextlib import suppress
from types import FrameType
from typing import TYPE_CHECKING

from ..app.terminal import tell_failure
from .session import Session

if TYPE_CHECKING:
    from .app import SpecchatApp

_SIGNALS = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]


def save_the_rest(session: Session) -> None:
    """Save what could not be saved before; what still cannot is said where the next command is typed."""
    if count := session.save_the_rest():
        messages = "1 message" if count == 1 else f"{count} messages"
        tell_failure("specchat", f"{messages} could not be saved: {session.trouble}")


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
