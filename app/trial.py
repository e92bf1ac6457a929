"""Work that may end its process, done in one of its own: what it tells, and in words how it failed."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from ..models.errors import SpecchatError
from ..models.text import printable
from .deaths import how_it_died

Tell = Callable[[object], None]
"""Sends what was found to the process that waits for it."""

_LONGEST_WORDS = 300


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
    spawn = multiprocessing.get_context("spawn")
    ours, theirs = spawn.Pipe(duplex=False)
    with tempfile.TemporaryDirectory() as folder:
        words = Path(folder) / "words"
        process = spawn.Process(target=_try, args=(work, arguments, theirs, words), daemon=True)
        process.start()
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
                raise TrialFailed(how_it_died(process.exitcode) + _last_of(words))
        finally:
            process.kill()
            process.join()
            ours.close()


def _try(
    work: Callable[..., None], arguments: tuple[object, ...], connection: Connection[Any, Any], words: Path
) -> None:
    """The other process."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl+C belongs to the one that waits
    sink = os.open(words, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    os.dup2(sink, 1)
    os.dup2(sink, 2)
    try:
        work(connection.send, *arguments)
    except SpecchatError as error:
        connection.send(_Raised(f"failed: {error}"))
    except Exception as error:
        connection.send(_Raised(f"failed with {type(error).__name__}: {' '.join(str(error).split())}"))


def _last_of(words: Path) -> str:
    """The last line that the process printed, which may say why it died."""
    with contextlib.suppress(OSError):
        lines = words.read_text(errors="replace").split("\n")
        said = next((line.strip() for line in reversed(lines) if line.strip()), "")
        return f" (it last said: {printable(said)[:_LONGEST_WORDS]})" if said else ""
    return ""
