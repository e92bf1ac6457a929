"""What a process with llama.cpp in it prints itself: kept in a file, and told where the process dies."""

from __future__ import annotations

import contextlib
import io
import os
import re
import tempfile
from collections.abc import Sequence
from pathlib import Path

from ..models.text import printable
from .private_files import open_to_append

_LAST_LINES, _LAST_BYTES = 60, 16_384
"""What is told of a file when the process that wrote it is dead."""

_LONGEST = 300

_REASON = re.compile(r"\.(?:c|cc|cpp|cu|cuh|h|hpp|m):\d+: |what\(\): |terminate called|Fatal Python error")
"""What a line with the reason has; it is mostly not the last one, since calls are listed behind it."""


class LastWords:
    """The file that a process writes to, as the one that waits for it sees it."""

    def __init__(self, log_file: Path | None = None) -> None:
        """Begin behind what the log file holds, or with a file that has no name once the process has it open.

        What goes to a log that is no file, but a pipe or a terminal, cannot be read again.
        """
        self.path = log_file
        self._file: io.BufferedReader | None = None
        self._unnamed: Path | None = None
        with contextlib.suppress(OSError):
            if log_file is None:
                handle, name = tempfile.mkstemp(prefix="specchat-words-", suffix=".log")
                self.path = self._unnamed = Path(name)
                self._file = os.fdopen(handle, "rb")
            elif log_file.is_file() or not log_file.exists():
                os.close(open_to_append(log_file))
                self._file = log_file.open("rb")
        self._start = os.fstat(self._file.fileno()).st_size if self._file else 0

    @property
    def unnamed(self) -> bool:
        """Whether the process is to take the file's name away, so that it is gone when both processes are."""
        return self._unnamed is not None

    def lines(self) -> tuple[str, ...]:
        """The last lines that the process wrote."""
        if self._file is None:
            return ()
        with contextlib.suppress(OSError):
            end = os.fstat(self._file.fileno()).st_size
            self._file.seek(max(self._start, end - _LAST_BYTES))
            lines = self._file.read(_LAST_BYTES).decode("utf-8", "replace").splitlines()
            return tuple(lines[-_LAST_LINES:])
        return ()

    def close(self) -> None:
        """Let go of the file."""
        if self._file is not None:
            self._file.close()
        if self._unnamed is not None:
            with contextlib.suppress(OSError):
                self._unnamed.unlink(missing_ok=True)


def keep_words(path: Path | None, unnamed: bool) -> None:
    """Send what llama.cpp prints in this process to the file, or nowhere if it cannot be written.

    It writes to descriptors 1 and 2 without asking Python. Where it dies it would have a debugger list its
    calls there, which takes seconds and covers the reason.

    Args:
        path: The file.
        unnamed: Whether its name is taken away.
    """
    os.environ.setdefault("GGML_NO_BACKTRACE", "1")
    sink = _open(path)
    os.dup2(sink, 1)
    os.dup2(sink, 2)
    os.close(sink)
    if unnamed and path is not None:
        with contextlib.suppress(OSError):
            path.unlink()


def it_last_said(lines: Sequence[str]) -> str:
    """The end of a sentence about a process that died: what it said of the reason, or said last."""
    said = [line.strip() for line in lines if line.strip()]
    if not said:
        return ""
    told = next((line for line in reversed(said) if _REASON.search(line)), said[-1])
    return f" (it last said: {printable(told)[:_LONGEST]})"


def _open(path: Path | None) -> int:
    if path is not None:
        with contextlib.suppress(OSError):
            return open_to_append(path)
    return os.open(os.devnull, os.O_WRONLY)
