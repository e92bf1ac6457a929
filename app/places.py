"""The user's files and folders: where each is, whether it can be written, how large it is."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from pathlib import Path

from . import history, remembered
from .settings_file import chosen_path, default_path

_MOST_ENTRIES = 50_000
"""Files of a folder that are counted; a size beyond them is a least one."""


def users_places(environment: Mapping[str, str]) -> dict[str, Path]:
    """Where specchat keeps what is the user's, by what is kept there."""
    # Only here, since importing it takes longer than all the rest.
    from huggingface_hub import constants

    measured = remembered.default_path()
    return {
        "settings": chosen_path(None, False, environment) or default_path(),
        "history": history.default_path(),
        "measured": measured,
        "cache": measured.parent,
        "hugging_face": Path(constants.HF_HUB_CACHE).expanduser(),
    }


def folder_figures(path: Path) -> dict[str, str | int | bool | None]:
    """What a bug report needs to know of a file or folder, which need not exist yet."""
    standing = next((one for one in (path, *path.parents) if _exists(one)), Path(path.anchor))
    try:
        free = shutil.disk_usage(standing).free
    except OSError:
        free = None
    # A system's own tree, as /proc, lets root write everywhere and has room nowhere.
    takes_files = free != 0 and (standing == path or standing.is_dir())
    return {
        "path": str(path),
        "exists": _exists(path),
        "writable": takes_files and os.access(standing, os.W_OK),
        "size_bytes": _size(path) if _exists(path) else None,
        "free_bytes": free,
    }


def _exists(path: Path) -> bool:
    try:
        return path.exists()
    except OSError:  # in a folder that may not be looked into
        return False


def _size(path: Path) -> int:
    """Bytes in a file or below a folder; what links lead to counts where it lies."""
    if path.is_file():
        return path.stat().st_size
    total = counted = 0
    for folder, _, names in os.walk(path):
        for name in names:
            try:
                total += os.lstat(Path(folder, name)).st_size
            except OSError:
                continue
            counted += 1
            if counted >= _MOST_ENTRIES:
                return total
    return total
