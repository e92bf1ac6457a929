"""What is printed: no text from outside, of a model, a file or a hub, may steer the terminal."""

from __future__ import annotations

import logging
import os
import sys
from typing import TextIO

from ..models.text import PrintableText, printable


def tell(text: str, stream: TextIO | None = None) -> None:
    """Say something to the person, on stderr or the stream."""
    print(printable(text), file=stream or sys.stderr, flush=True)


def tell_failure(name: str, reason: object) -> None:
    """Say in one line, on stderr, what failed in the command of this name."""
    tell(one_line(f"{name}: {reason}"))


def one_line(text: str) -> str:
    """The text as a message on one line, harmless to a terminal."""
    return printable(text).strip().replace("\n", " ")


def status(text: str) -> None:
    """Show on stderr, a terminal, a line that the next one replaces."""
    print(f"\r\x1b[K{one_line(text)}", end="", file=sys.stderr, flush=True)


def mend_terminal() -> None:
    """Begin a line of its own, with the cursor seen, where what drew on the terminal ended in the middle."""
    if sys.stderr.isatty():
        shown = "" if os.environ.get("TERM", "") in ("", "dumb", "unknown") else "\x1b[?25h"
        print(shown, file=sys.stderr, flush=True)


def show(text: str, *, end: str = "\n") -> None:
    """Print a result on stdout: as it is for a file or a pipe, harmless where it is a terminal."""
    print(printable(text) if sys.stdout.isatty() else text, end=end, flush=True)


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
