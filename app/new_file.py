"""Files that are written whole or not at all, and never over another."""

from __future__ import annotations

import contextlib
from pathlib import Path


def write_new(path: Path, text: str) -> None:
    """Write a file that is not there yet.

    Raises:
        FileExistsError: there is one.
        OSError: it cannot be written; none of it is left behind.
    """
    with path.open("x", encoding="utf-8") as file:
        try:
            file.write(text)
            file.flush()
        except OSError:
            with contextlib.suppress(OSError):
                path.unlink()
            with contextlib.suppress(OSError):
                file.close()
            raise
