"""Reads a file that somebody names, to a bound: a device or a model named by mistake goes on and on."""

from __future__ import annotations

import errno
from pathlib import Path

_LONGEST = 16_777_216
"""Characters; far above any chat template, settings file or list of prompts."""


def read_bounded(path: Path, encoding: str = "utf-8-sig") -> str:
    """The text of a file, which may be a pipe.

    Raises:
        OSError: It cannot be read, or is too long.
        UnicodeDecodeError: It is no text.
    """
    with path.open(encoding=encoding) as file:
        text = file.read(_LONGEST + 1)
    if len(text) > _LONGEST:
        raise OSError(errno.EFBIG, f"it has more than {_LONGEST:,} characters", str(path))
    return text
