"""Processes of this program's own: each a new interpreter that imports what this one would."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
from collections.abc import Generator
from multiprocessing import resource_tracker
from multiprocessing.context import SpawnProcess

SPAWN = multiprocessing.get_context("spawn")

_SAFE_PATH = "PYTHONSAFEPATH"


def ensure_tracker() -> None:
    """Start multiprocessing's own process, which spawning needs, where it does not run yet."""
    if os.name == "posix":
        with _safe_path():
            resource_tracker.ensure_running()


def start(process: SpawnProcess) -> None:
    """Start a process.

    Raises:
        OSError: The system would not have another one.
    """
    ensure_tracker()
    with _safe_path():
        process.start()


@contextlib.contextmanager
def _safe_path() -> Generator[None]:
    """Keep a new interpreter from taking a stranger's `socket.py` in the working folder for Python's own.

    Until it is told where this one imports from, it looks there first.
    """
    before = os.environ.get(_SAFE_PATH)
    os.environ[_SAFE_PATH] = "1"
    try:
        yield
    finally:
        if before is None:
            del os.environ[_SAFE_PATH]
        else:
            os.environ[_SAFE_PATH] = before
