"""What the screen needs of an engine that runs somewhere else, and the engine of a screen."""

from __future__ import annotations

from typing import Protocol

from ..app.events import Command, Event
from .session import Phase


class EngineClient(Protocol):
    """A process that loads models and answers; no call here waits for it, except `close`."""

    def start(self) -> None:
        """Start the process, also after it has died."""
        ...

    def send(self, command: Command) -> None:
        """Hand a command over."""
        ...

    def drain(self) -> list[Event]:
        """Take what has arrived; a process that is gone says so once, with `Died`."""
        ...

    @property
    def pid(self) -> int | None:
        """The process's id, or `None` while there is none."""
        ...

    def close(self) -> None:
        """Ask the process to end, wait a bounded time, and end it."""
        ...


class Listener(Protocol):
    """Takes what the engine says, in the screen's own thread, and draws it at its own pace."""

    @property
    def phase(self) -> Phase:
        """What the engine is doing for it."""
        ...

    def take(self, event: Event) -> None:
        """One event."""
        ...

    def draw(self, now: float) -> None:
        """Draw what has changed."""
        ...

    def stop(self) -> None:
        """Ask the engine to stop the answer."""
        ...

    def hint(self, text: str) -> None:
        """Say something for a moment."""
        ...
