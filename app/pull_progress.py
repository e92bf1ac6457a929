"""How far a download is, on stderr: a bar where a person looks, a line now and then where none does."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Generator
from typing import TextIO

from rich.console import Console
from rich.progress import (
    BarColumn,
    DownloadColumn,
    Progress,
    TaskID,
    TextColumn,
    TimeRemainingColumn,
    TransferSpeedColumn,
)

from ..models.text import on_one_line
from . import terminal
from .byte_counts import bytes_text
from .downloading import Progress as Told

_QUIET_S = 10.0
"""Between two lines about one file."""


@contextlib.contextmanager
def shown_on(
    stream: TextIO, clock: Callable[[], float] = time.monotonic
) -> Generator[Callable[[str], Told], None, None]:
    """While this lasts: given a file's name, what shows how far it is.

    Args:
        stream: Where it is shown, as bars if that is a terminal.
        clock: Tells when the next line is due.
    """
    console = Console(file=stream)
    if not console.is_terminal:
        yield lambda file: _lines(stream, file, clock)
        return
    columns = (
        TextColumn("{task.description}", markup=False), BarColumn(bar_width=20), DownloadColumn(),
        TransferSpeedColumn(), TimeRemainingColumn(),
    )  # fmt: skip
    # Started with the first file: where none comes, nothing is drawn.
    bars = Progress(*columns, console=console)
    try:
        yield lambda file: _bar(bars, file)
    finally:
        if bars.tasks:
            bars.stop()


def _bar(bars: Progress, file: str) -> Told:
    task: TaskID | None = None

    def tell(done: int, total: int) -> None:
        nonlocal task
        if task is None:
            # What an earlier attempt left was not fetched now, and counts for no speed.
            bars.start()
            task = bars.add_task(_last_step(file), total=total, completed=done)
        else:
            bars.update(task, completed=done)

    return tell


def _lines(stream: TextIO, file: str, clock: Callable[[], float]) -> Told:
    due = clock()

    def tell(done: int, total: int) -> None:
        nonlocal due
        if (now := clock()) >= due or done >= total:
            due = now + _QUIET_S
            share = f" ({done / total:.0%})" if total else ""
            terminal.tell(f"{_last_step(file)}: {bytes_text(done)} of {bytes_text(total)}{share}", stream)

    return tell


def _last_step(file: str) -> str:
    return on_one_line(file.rsplit("/", 1)[-1])
