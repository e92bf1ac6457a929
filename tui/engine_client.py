"""What the screen needs of an engine that runs somewhere else."""

from __future__ import annotations

from typing import Protocol

from ..app.events import Command, Event


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
