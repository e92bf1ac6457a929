"""Edit a text in the editor of the user's choice, while the screen steps aside."""

from __future__ import annotations

import contextlib
import os
import re
import shlex
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path

from textual.app import SuspendNotSupported

from ..models.text import is_plain

_FALLBACKS = ("nano", "vi")


@dataclass(frozen=True)
class EditorProblem:
    """Why the text is what it was."""

    message: str
    """One line: what happened, and what to do."""


def editor_command(setting: str | None, environ: Mapping[str, str]) -> str | None:
    """The editor to use: the setting, $VISUAL, $EDITOR, or one that most systems have."""
    chosen = (setting, environ.get("VISUAL"), environ.get("EDITOR"))
    found = (name for name in _FALLBACKS if shutil.which(name, path=environ.get("PATH", "")))
    return next((command for command in chosen if command and command.strip()), next(found, None))


def edit(
    text: str, command: str | None, suspend: Callable[[], AbstractContextManager[object]]
) -> str | EditorProblem:
    """Have a text edited; the result is the new text, or says why there is none.

    Args:
        text: The text to begin with.
        command: The editor and its options, as a shell would read them (see `editor_command`).
        suspend: Gives the terminal away while it is entered; the app's own `suspend`.
    """
    words = _words(command)
    if isinstance(words, EditorProblem):
        return words
    try:
        # A folder of its own: what an editor leaves beside the file goes with it.
        with tempfile.TemporaryDirectory(prefix="specchat-", ignore_cleanup_errors=True) as folder:
            path = Path(folder) / "prompt.md"
            with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:  # noqa: PTH123
                file.write(text.encode("utf-8", "replace"))
            with suspend(), _interrupts_are_the_editor_s():
                code = subprocess.run([*words, str(path)], check=False).returncode
            if code:
                return EditorProblem(f"{_named(words[0])} ended with code {code}: the text is as it was")
            edited = path.read_bytes().decode("utf-8")
    except SuspendNotSupported:
        return EditorProblem("This terminal cannot be given to an editor: the text is as it was")
    except UnicodeDecodeError:
        return EditorProblem(
            f"{_named(words[0])} wrote no UTF-8: the text is as it was; have the editor save as UTF-8"
        )
    except OSError as error:
        return EditorProblem(
            f"{_named(words[0])} could not be used ({error.strerror}): the text is as it was"
        )
    # Editors end the last line, which a prompt need not have.
    return edited if text.endswith("\n") else re.sub(r"\r?\n\Z", "", edited)


def _words(command: str | None) -> list[str] | EditorProblem:
    """The words of a command whose program is there."""
    if command is None:
        return EditorProblem("There is no editor: set $EDITOR to one")
    try:
        words = shlex.split(command)
    except ValueError:
        return EditorProblem(f"The editor {_named(command)} has a quote that does not end: correct $EDITOR")
    if not words:
        return EditorProblem("There is no editor: set $EDITOR to one")
    if shutil.which(words[0]) is None:
        return EditorProblem(f"There is no editor {_named(words[0])}: set $EDITOR to one that is installed")
    return words


@contextlib.contextmanager
def _interrupts_are_the_editor_s() -> Iterator[None]:
    """Ctrl+C reaches everything in the terminal; while an editor has it, it is not meant for the chat.

    The handler is a function, since a signal that is ignored would be ignored by the editor, too.
    """
    try:
        before = signal.signal(signal.SIGINT, lambda *_: None)
    except ValueError:  # not in the main thread, where no interrupt arrives
        yield
        return
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _named(word: str) -> str:
    return f"“{word}”" if is_plain(word) else ascii(word)
