"""Every key and every command, in one place: the bindings, the footer and the help are made from it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Literal

from textual.binding import Binding, BindingType

from ..app.requests import MAX_DRAFT, Speculate

HOTTEST = 5.0
THEMES = {"dark": "specchat-dark", "light": "specchat-light"}


@dataclass(frozen=True)
class Help:
    """Show the keys and the commands."""


@dataclass(frozen=True)
class Clear:
    """Begin a new conversation."""


@dataclass(frozen=True)
class SetSystem:
    """Change the system prompt; `None` only shows it, an empty text removes it."""

    text: str | None


@dataclass(frozen=True)
class SetSpeculate:
    """Change whether drafts are made; `None` only shows it."""

    mode: Speculate | None


@dataclass(frozen=True)
class SetTemperature:
    """Change the temperature; `None` only shows it."""

    value: float | None


@dataclass(frozen=True)
class SetDraftMax:
    """Change how long a draft may be; `None` only shows it."""

    value: int | None


@dataclass(frozen=True)
class SetTheme:
    """Change the colours; `None` only shows them."""

    name: str | None


@dataclass(frozen=True)
class Leave:
    """End the program."""


@dataclass(frozen=True)
class Say:
    """A text for the model."""

    text: str


Intent = Help | Clear | SetSystem | SetSpeculate | SetTemperature | SetDraftMax | SetTheme | Leave
"""What a command asks for."""


class CommandError(Exception):
    """A command that cannot be carried out; its message says what can."""


@dataclass(frozen=True)
class SlashCommand:
    """A command typed into the prompt."""

    name: str
    argument: str
    help: str
    parse: Callable[[str], Intent] = field(repr=False)

    @property
    def usage(self) -> str:
        """The command as it is typed."""
        return f"/{self.name} {self.argument}".strip()


@dataclass(frozen=True)
class KeyAction:
    """Keys and what they do."""

    keys: str
    action: str
    shown: str
    help: str
    where: Literal["app", "prompt"] = "app"
    footer: str = ""
    """What the footer calls it; empty keeps it out of the footer."""
    priority: bool = False
    """It works before the prompt sees the key."""


def _no_argument(intent: Intent, name: str) -> Callable[[str], Intent]:
    def parse(argument: str) -> Intent:
        if argument:
            raise CommandError(f"/{name} takes nothing after it")
        return intent

    return parse


def _speculate(argument: str) -> Intent:
    modes: dict[str, Speculate] = {"on": "auto", "auto": "auto", "off": "off", "always": "always"}
    if not argument:
        return SetSpeculate(None)
    if argument.lower() not in modes:
        raise CommandError(f"/spec is on, off or always, not “{argument}”")
    return SetSpeculate(modes[argument.lower()])


def _temperature(argument: str) -> Intent:
    if not argument:
        return SetTemperature(None)
    try:
        value = float(argument.replace(",", "."))
    except ValueError:
        value = -1.0
    if not 0.0 <= value <= HOTTEST:
        raise CommandError(f"/temp is a number from 0 (the likeliest token) to {HOTTEST:g}, not “{argument}”")
    return SetTemperature(value)


def _draft_max(argument: str) -> Intent:
    if not argument:
        return SetDraftMax(None)
    if not argument.isdecimal() or not 1 <= int(argument) <= MAX_DRAFT:
        allowed = f"a whole number from 1 to {MAX_DRAFT}"
        raise CommandError(f"/draft-max is {allowed}, not “{argument}”; /spec off stops drafting")
    return SetDraftMax(int(argument))


def _system(argument: str) -> Intent:
    if not argument:
        return SetSystem(None)
    return SetSystem("" if argument.lower() == "none" else argument)


def _theme(argument: str) -> Intent:
    if not argument:
        return SetTheme(None)
    if argument.lower() not in THEMES:
        raise CommandError(f"/theme is {' or '.join(THEMES)}, not “{argument}”")
    return SetTheme(THEMES[argument.lower()])


COMMANDS = (
    SlashCommand("help", "", "the keys and the commands", _no_argument(Help(), "help")),
    SlashCommand("clear", "", "begin a new conversation", _no_argument(Clear(), "clear")),
    SlashCommand("system", "TEXT", "what the model is told first; “none” removes it", _system),
    SlashCommand("spec", "on|off|always", "draft where it pays, never, or always", _speculate),
    SlashCommand("temp", "X", f"temperature, from 0 to {HOTTEST:g}", _temperature),
    SlashCommand("draft-max", "N", f"draft tokens per pass, from 1 to {MAX_DRAFT}", _draft_max),
    SlashCommand("theme", "dark|light", "the colours", _theme),
    SlashCommand("quit", "", "leave", _no_argument(Leave(), "quit")),
)

KEYS = (
    KeyAction("enter", "submit", "Enter", "send the prompt", "prompt", "send"),
    KeyAction("ctrl+j,shift+enter,alt+enter", "newline", "Ctrl+J", "new line", "prompt", "new line"),
    KeyAction("up", "earlier", "Up", "on the first line: the prompt before", "prompt"),
    KeyAction("down", "later", "Down", "on the last line: the prompt after", "prompt"),
    KeyAction("escape", "stop", "Esc", "stop the answer and keep it; else back to the end", footer="stop"),
    KeyAction("ctrl+o", "toggle_origin", "Ctrl+O", "colour answers by each token's origin", footer="origin"),
    KeyAction("ctrl+r", "restart", "Ctrl+R", "start the engine again, when it is gone or a load failed"),
    KeyAction("ctrl+c,super+c", "copy", "Ctrl+C", "copy the selection; else stop the answer", priority=True),
    KeyAction("pageup", "page_up", "PageUp", "scroll up", "prompt"),
    KeyAction("pagedown", "page_down", "PageDown", "scroll down", "prompt"),
    KeyAction("ctrl+home", "to_start", "Ctrl+Home", "to the start of the conversation", "prompt"),
    KeyAction("end", "end", "End", "to the end: of the line, then of the conversation", "prompt"),
    KeyAction("ctrl+end", "to_end", "Ctrl+End", "to the end of the conversation", "prompt"),
    KeyAction("f1", "help", "F1", "this help", footer="help"),
    KeyAction("ctrl+q", "quit", "Ctrl+Q", "leave", footer="quit", priority=True),
)


def bindings() -> list[BindingType]:
    """The bindings of the app; the prompt looks its keys up itself."""
    return [
        Binding(key.keys, key.action, key.help, show=False, priority=key.priority)
        for key in KEYS
        if key.where == "app"
    ]


def understand(text: str) -> Say | Intent:
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
    commands = {command.name: command for command in COMMANDS}
    command = commands.get(name.lower())
    if command is None:
        raise CommandError(_unknown(name, list(commands)))
    return command.parse(rest[0] if rest else "")


def _unknown(name: str, known: list[str]) -> str:
    near = get_close_matches(name.lower(), known, n=1, cutoff=0.4)
    nearest = near[0] if near else next((k for k in known if name and k.startswith(name[0].lower())), "help")
    return f"There is no /{name}. Did you mean /{nearest}? (//{name} … sends the text as it is)"
