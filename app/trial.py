"""Work that may end its process, done in one of its own: what it tells, and in words how it failed."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from ..models.errors import SpecchatError
from .deaths import how_it_died
from .last_words import LastWords, it_last_said, keep_words
from .spawning import SPAWN, start

Tell = Callable[[object], None]
"""Sends what was found to the process that waits for it."""


class TrialFailed(SpecchatError):
    """Work that died, hung, or raised an error; the message is the rest of a sentence about it."""


@dataclass(frozen=True)
class _Raised:
    message: str


def told_by(work: Callable[..., None], arguments: tuple[object, ...], within_s: float) -> Iterator[Any]:
    """What `work(tell, *arguments)` tells, as it comes, from a process of its own.

    Args:
        work: A function of a module, which the other process imports.
        arguments: What it is called with, after `tell`.
        within_s: How long it may be silent.

    Raises:
        TrialFailed: It was killed, was silent for too long, or raised an error.
    """
    ours, theirs = SPAWN.Pipe(duplex=False)
    words = LastWords()
    process = SPAWN.Process(
        target=_try, args=(work, arguments, theirs, words.path, words.unnamed), daemon=True
    )
    start(process)
    theirs.close()
    try:
        while True:
            if not ours.poll(within_s):
                raise TrialFailed(f"did not answer within {within_s:g} seconds")
            try:
                message = ours.recv()
            except (EOFError, OSError):
                break
            if isinstance(message, _Raised):
                raise TrialFailed(message.message)
            yield message
        process.join(within_s)
        if process.exitcode != 0:
            raise TrialFailed(how_it_died(process.exitcode) + it_last_said(words.lines()))
    finally:
        process.kill()
        process.join()
        ours.close()
        words.close()


def _try(
    work: Callable[..., None],
    arguments: tuple[object, ...],
    connection: Connection[Any, Any],
    words: Path | None,
    unnamed: bool,
) -> None:
    """The other process."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl+C belongs to the one that waits
    keep_words(words, unnamed)
    try:
        work(connection.send, *arguments)
    except SpecchatError as error:
        connection.send(_Raised(f"failed: {error}"))
    except Exception as error:
        connection.send(_Raised(f"failed with {type(error).__name__}: {' '.join(str(error).split())}"))
