"""What llama.cpp says about itself: one logger, and the last errors, which hold the reason of a failure."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Generator

from .text import on_one_line, printable

log = logging.getLogger("specchat.llama.cpp")
log.addHandler(logging.NullHandler())  # silent unless someone listens

_LEVELS = {1: logging.DEBUG, 2: logging.INFO, 3: logging.WARNING, 4: logging.ERROR}


def hear(level: int, text: bytes) -> None:
    """Log one of llama.cpp's lines, with ggml's number for its level."""
    line = printable(text.decode("utf-8", errors="replace")).rstrip()
    if line.strip("."):  # a run of dots is llama.cpp's own progress bar
        log.log(_LEVELS.get(level, logging.DEBUG), "%s", line)


class LastErrors(logging.Handler):
    """Keeps llama.cpp's error lines, which hold the reason when a call returns nothing."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        """Keep a line."""
        self.lines.append(record.getMessage())

    def reason(self) -> str:
        """The most telling line, without the C function's name in front."""
        if not self.lines:
            return "llama.cpp gave no reason"
        told = next((line for line in self.lines if "error" in line), self.lines[0])
        return on_one_line(told.split(": ", 1)[-1].removeprefix("error loading model: "), 500)


@contextlib.contextmanager
def last_errors() -> Generator[LastErrors]:
    """The errors that llama.cpp logs within."""
    handler = LastErrors()
    log.addHandler(handler)
    try:
        yield handler
    finally:
        log.removeHandler(handler)
