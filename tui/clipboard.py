"""Copy a text: to the system's own clipboard, or to that of the terminal where there is none."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

TOOL_SECONDS = 1.0
"""What a tool may take: the screen waits for it."""


@dataclass(frozen=True)
class Copied:
    """Where a text went."""

    how: str
    """In words that complete “copied to”, or say what else became of it."""
    certain: bool
    """Whether it is known to have arrived."""


def copy(
    text: str,
    osc52: Callable[[str], object],
    environ: Mapping[str, str] = os.environ,
    platform: str = sys.platform,
    seconds: float = TOOL_SECONDS,
) -> Copied:
    """Copy a text; never raises, and is done within a few times `seconds`.

    Args:
        text: The text.
        osc52: Has the terminal copy it, by the escape sequence of that name.
        environ: The environment, which says where this runs.
        platform: What `sys.platform` says.
        seconds: What each tool may take.
    """
    for command, encoding in _tools(environ, platform):
        if _run(command, text.encode(encoding, "replace"), environ, seconds):
            return Copied("the clipboard", certain=True)
    try:
        osc52(text)
    except Exception:  # whatever becomes of the terminal, copying is no reason to end
        return Copied("nowhere: there is no clipboard to be found", certain=False)
    return Copied("sent to the terminal's clipboard (OSC 52); some terminals ignore it", certain=False)


def _tools(environ: Mapping[str, str], platform: str) -> Iterator[tuple[list[str], str]]:
    """The commands that copy what they read, the likeliest first, each with the encoding that it reads.

    Over ssh a tool would copy on the far side, except where a display is forwarded.
    """
    wayland, x11 = environ.get("WAYLAND_DISPLAY"), environ.get("DISPLAY")
    remote = environ.get("SSH_TTY")
    if platform == "darwin" and not remote:
        yield ["pbcopy"], "utf-8"
    if (platform == "win32" or "WSL_DISTRO_NAME" in environ) and not remote:
        yield ["clip.exe"], "utf-16-le"
    if wayland:
        yield ["wl-copy", "--type", "text/plain"], "utf-8"
    if x11:
        yield ["xclip", "-selection", "clipboard"], "utf-8"
        yield ["xsel", "--clipboard", "--input"], "utf-8"


def _run(command: list[str], data: bytes, environ: Mapping[str, str], seconds: float) -> bool:
    """Whether this command is there and took the data in time."""
    tool = shutil.which(command[0], path=environ.get("PATH", ""))
    if tool is None:
        return False
    try:
        # xclip and wl-copy leave a process behind that holds the text: it must hold no pipe of ours, nor
        # end with our terminal.
        done = subprocess.run(
            [tool, *command[1:]],
            input=data,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env=dict(environ),
            timeout=seconds,
            start_new_session=True,
            check=False,
        )
    except (OSError, ValueError, subprocess.SubprocessError):
        return False
    return done.returncode == 0
