"""Files and folders that are their owner's alone, whatever the umask says."""

from __future__ import annotations

import contextlib
import os
import tempfile
from pathlib import Path


def make_folder(path: Path) -> None:
    """Make a folder, and those that it lies in, where they are not there yet.

    Raises:
        OSError: It cannot be made.
    """
    missing: list[Path] = []
    for folder in (path, *path.parents):
        if folder.exists():
            break
        missing.append(folder)
    for folder in reversed(missing):
        folder.mkdir(mode=0o700, exist_ok=True)
    if not path.is_dir():
        path.mkdir(mode=0o700)  # says what stands in the way


def open_new(path: Path) -> int:
    """A descriptor to write a file with that is not there yet.

    Raises:
        OSError: It is there, or cannot be made.
    """
    return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)


def open_to_append(path: Path) -> int:
    """A descriptor to write behind what a file holds; the file and its folder are made if need be.

    Raises:
        OSError: It cannot be written.
    """
    make_folder(path.parent)
    return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)


def write_whole(path: Path, text: str) -> None:
    """Write a file, in place of one that may be there, so that no reader sees half of it.

    Raises:
        OSError: It cannot be written; what was there stays.
    """
    path = Path(os.path.realpath(path))  # a link stays a link
    make_folder(path.parent)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=path.name)
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
        Path(name).replace(path)
    except OSError:
        with contextlib.suppress(OSError):
            Path(name).unlink()
        raise
