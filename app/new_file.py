"""Files that are written whole or not at all, and never over another."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

from .private_files import open_new


def write_new(path: Path, text: str) -> None:
    """Write a file that is not there yet, for its owner alone.

    Raises:
        FileExistsError: there is one.
        OSError: it cannot be written; none of it is left behind.
    """
    with os.fdopen(open_new(path), "w", encoding="utf-8") as file:
        try:
            file.write(text)
            file.flush()
        except OSError:
            with contextlib.suppress(OSError):
                path.unlink()
            with contextlib.suppress(OSError):
                file.close()
            raise
