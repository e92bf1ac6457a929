"""What a prompt may be completed to while it is typed: commands, their arguments, paths."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ..app.attachments import complete_path
from .registry import COMMANDS

if TYPE_CHECKING:
    from .app import SpecchatApp

MOST = 8
"""Of those that are shown at a time."""
_PATH = re.compile(r'(?:^|\s)@("[^"\n]*|[^\s"]*)$')


@dataclass(frozen=True)
class Completion:
    """One way to go on."""

    text: str
    """What is put in."""
    replaces: int
    """So many characters before the cursor make room for it."""
    shown: str
    help: str = ""


def completions(before: str, app: SpecchatApp, folder: Path) -> Sequence[Completion]:
    """What the text before the cursor may become, the first choice first."""
    if before.startswith("/") and not before.startswith("//") and "\n" not in before:
        name, space, argument = before[1:].partition(" ")
        if not space:
            return _commands(name.lower())
        return _arguments(name.lower(), argument, app, folder)
    found = _PATH.search(before)
    return _paths(found[1], folder) if found else ()


def _commands(typed: str) -> list[Completion]:
    begun = [each for each in COMMANDS if each.command.startswith(typed)]
    begun += [each for each in COMMANDS if each not in begun and any(a.startswith(typed) for a in each.also)]
    return [
        Completion(
            f"/{each.command}{' ' if each.argument else ''}", len(typed) + 1, each.usage,
            each.help + (f" ({each.shown})" if each.shown else ""),
        )
        for each in begun
    ]  # fmt: skip


def _arguments(name: str, typed: str, app: SpecchatApp, folder: Path) -> list[Completion]:
    action = next((each for each in COMMANDS if name in (each.command, *each.also)), None)
    if action is None:
        return []
    if action.name == "file":
        return _paths(typed, folder)
    words = [] if action.completes is None else list(action.completes(app))
    return [Completion(word, len(typed), word) for word in words if word.startswith(typed) and word != typed]


def _paths(typed: str, folder: Path) -> list[Completion]:
    """What a path may become; one with spaces is quoted, and its quotes stay open where it may go on."""
    found = complete_path(typed.removeprefix('"'), folder, MOST + 1)
    return [Completion(_quoted(path), len(typed), path) for path in found]


def _quoted(path: str) -> str:
    quote = '"' if " " in path else ""
    return f"{quote}{path}" if path.endswith("/") else f"{quote}{path}{quote} "
