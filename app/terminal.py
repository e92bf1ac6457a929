"""What is printed: no text from outside, of a model, a file or a hub, may steer the terminal."""

from __future__ import annotations

import contextlib
import io
import json
import logging
import os
import re
import sys
from pathlib import Path
from traceback import TracebackException
from typing import TextIO, cast

from ..models.text import PrintableText, printable

_NOT_ASCII = re.compile(r"[^\0-\x7f]")
_USUAL_COLUMNS, _END_OF_STATUS = 80, 16


def tell(text: str, stream: TextIO | None = None) -> None:
    """Say something to the person, on stderr or the stream."""
    print(printable(text), file=stream or sys.stderr, flush=True)


def tell_failure(name: str, reason: object) -> None:
    """Say in one line, on stderr, what failed in the command of this name."""
    tell(one_line(f"{name}: {reason}"))


def tell_traceback(error: BaseException) -> None:
    """Say on stderr where an error came from, as Python would, whatever its message quotes."""
    tell("".join(TracebackException.from_exception(error).format()).rstrip("\n"))


def one_line(text: str) -> str:
    """The text as a message on one line, harmless to a terminal."""
    return printable(text).strip().replace("\n", " ")


def status(text: str) -> None:
    """Show on stderr, a terminal, a line that the next one replaces."""
    print(f"\r\x1b[K{_fitted(one_line(text), _columns() - 1)}", end="", file=sys.stderr, flush=True)


def _columns() -> int:
    try:
        return os.get_terminal_size(sys.stderr.fileno()).columns or _USUAL_COLUMNS
    except (OSError, ValueError):
        return _USUAL_COLUMNS


def _fitted(line: str, cells: int) -> str:
    """The line in so many cells, its end kept: what goes over two rows cannot be replaced."""
    from rich.cells import cell_len, set_cell_size  # only here: most commands show no such line

    if cell_len(line) <= cells:
        return line
    end = line[-_END_OF_STATUS:]
    return f"{set_cell_size(line, max(0, cells - 1 - cell_len(end)))}…{end}"


def mend_terminal() -> None:
    """Begin a line of its own, with the cursor seen, where what drew on the terminal ended in the middle."""
    if sys.stderr.isatty():
        shown = "" if os.environ.get("TERM", "") in ("", "dumb", "unknown") else "\x1b[?25h"
        print(shown, file=sys.stderr, flush=True)


def show(text: str, *, end: str = "\n") -> None:
    """Print a result on stdout: as it is for a file or a pipe, harmless where it is a terminal."""
    print(printable(text) if sys.stdout.isatty() else text, end=end, flush=True)


def show_path(path: Path) -> None:
    """Print a path on stdout: into a file or a pipe with the bytes that it has, which may be no UTF-8.

    A character that stdout's encoding lacks becomes a mark, as in any other result.
    """
    if _is_writable(str(path), "surrogateescape"):
        _write_all("surrogateescape")
    show(str(path))


def show_json(value: object, *, indent: int | None = None) -> None:
    """Print a value on stdout as JSON; nothing of it is lost, whoever reads it.

    Raises:
        ValueError: A number in it is none that JSON has.
    """
    show_json_text(json_text(value, indent=indent))


def show_json_text(text: str) -> None:
    """Print JSON on stdout: in ASCII where stdout's encoding lacks a character of it: none is lost."""
    if not _is_writable(text):
        text = _NOT_ASCII.sub(lambda found: json.dumps(found[0])[1:-1], text)
    show(text)


def json_text(value: object, *, indent: int | None = None) -> str:
    """The value as JSON: as people read it, but in ASCII where something in it might steer a terminal."""
    text = json.dumps(value, indent=indent, ensure_ascii=False, allow_nan=False)
    return text if printable(text) == text else json.dumps(value, indent=indent, allow_nan=False)


def write_anything() -> None:
    """Have stdout write a mark for what its encoding has no character for, and not fail."""
    _write_all("replace")


def _is_writable(text: str, errors: str = "strict") -> bool:
    """Whether stdout's encoding has all characters of the text."""
    try:
        text.encode(sys.stdout.encoding or "utf-8", errors)
    except UnicodeEncodeError:
        return False
    return True


def _write_all(errors: str) -> None:
    with contextlib.suppress(AttributeError):  # what stands in for it may be no file
        cast("io.TextIOWrapper", sys.stdout).reconfigure(errors=errors)


class Streamed:
    """A result on stdout that comes in pieces, printed as `show` prints a whole one."""

    def __init__(self) -> None:
        self._filter = PrintableText() if sys.stdout.isatty() else None

    def show(self, piece: str) -> None:
        """Print a piece."""
        print(self._filter.take(piece) if self._filter else piece, end="", flush=True)


def log_to(handler: logging.Handler, form: str = "%(asctime)s %(message)s") -> None:
    """Send the log to a file; whoever reads it in a terminal sees what steers one as harmless characters."""
    handler.setFormatter(_HarmlessFormatter(form))
    logging.basicConfig(level=logging.INFO, handlers=[handler])


class _HarmlessFormatter(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        return printable(super().format(record))
