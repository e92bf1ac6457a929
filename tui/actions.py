"""What an action is: a key, a command or both, and what a typed text asks for."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from .app import SpecchatApp


class CommandError(Exception):
    """A command that cannot be carried out; its message says what can."""


Parse = Callable[[str], Any]
"""What is typed after a command, as the action takes it; raises `CommandError`."""


@dataclass(frozen=True)
class Action:
    """Something the user can ask for."""

    name: str
    help: str
    run: Callable[[SpecchatApp, Any], None] | None = field(default=None, repr=False)
    """Carries it out, given what was typed after the command; `None` where the prompt or a screen does."""
    keys: str = ""
    shown: str = ""
    """What the keys are called."""
    footer: str = ""
    """What the footer calls it; empty keeps it out of the footer."""
    priority: bool = False
    """The key works before the prompt sees it."""
    where: Literal["app", "prompt", "compare"] = "app"
    """Who carries it out: the app, the prompt, or the screen of a comparison."""
    command: str = ""
    also: tuple[str, ...] = ()
    """Other names of the command."""
    argument: str = ""
    parse: Parse | None = field(default=None, repr=False)
    completes: Callable[[SpecchatApp], Iterable[str]] | None = field(default=None, repr=False)
    """What may stand after the command."""
    group: str = "Chat"
    keeps_prompt: bool = False
    """The command itself puts something into the prompt."""

    @property
    def usage(self) -> str:
        """The command as it is typed."""
        return f"/{self.command} {self.argument}".strip()


@dataclass(frozen=True)
class Say:
    """A text for the model."""

    text: str


@dataclass(frozen=True)
class Do:
    """An action, and what was typed after its command; `None` is nothing."""

    action: Action
    value: Any = None


def understand(text: str, actions: Iterable[Action]) -> Say | Do:
    """What a submitted prompt is: a command, or a text for the model.

    A text that starts with two slashes is sent with one.

    Raises:
        CommandError: for a command that is unknown or has a value it cannot have.
    """
    text = text.strip()
    if text.startswith("//"):
        return Say(text[1:])
    if not text.startswith("/"):
        return Say(text)
    name, *rest = text[1:].split(maxsplit=1) or [""]
    known = {name: each for each in actions if each.command for name in (each.command, *each.also)}
    action = known.get(name.lower())
    if action is None:
        raise CommandError(_unknown(name, list(known)))
    argument = rest[0] if rest else ""
    if not argument:
        return Do(action)
    if action.parse is None:
        raise CommandError(f"/{action.command} takes nothing after it")
    return Do(action, action.parse(argument))


def _unknown(name: str, known: list[str]) -> str:
    near = get_close_matches(name.lower(), known, n=1, cutoff=0.4)
    nearest = near[0] if near else next((k for k in known if name and k.startswith(name[0].lower())), "help")
    return f"There is no /{name}. Did you mean /{nearest}? (//{name} … sends the text as it is)"
