"""What can be set, and whose word counts: a flag's, the environment's, the file's, or the built-in value's.

A setting is an option of the command line, described in `options.py` alone: what the file or a variable says
is judged by the option's own type.
"""

from __future__ import annotations

import argparse
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, TypeAlias, cast

from ..models.built_in_templates import BUILT_IN_TEMPLATES
from ..models.errors import SpecchatError
from ..models.repository import parse_name
from . import toml_text
from .options import (
    FILE,
    FOLDER,
    GGUF,
    Number,
    Parser,
    add_answer_options,
    add_chat_settings,
    add_model_options,
    options_of,
)

TABLES = ("models", "answers", "drafting", "chat")
"""The tables of the file; the parser's groups have the same names."""

PRESET_TABLES = ("answers", "drafting")
"""What a preset may set."""

Preset: TypeAlias = Mapping[str, Any]
"""Some settings of answers and drafting, by the names that options have."""

BUILT_IN, FLAG = "built in", "flag"

_YES, _NO = ("1", "true", "yes", "on"), ("0", "false", "no", "off")
_DEFAULT_IN_HELP = re.compile(r"\s*\(default: (.*)\)$")


class SettingsError(SpecchatError):
    """A settings file, or a variable, that says what it may not."""


@dataclass(frozen=True)
class Setting:
    """One thing that can be set: with a flag, with a variable, and with a key in the file."""

    table: str
    option: argparse.Action
    may_be_false: bool = False

    @property
    def dest(self) -> str:
        """Its name among the parsed options."""
        return self.option.dest

    @property
    def key(self) -> str:
        """Its name in its table."""
        return self.dest.replace("_", "-")

    @property
    def variable(self) -> str:
        """Its environment variable."""
        return f"SPECCHAT_{self.dest.upper()}"

    @property
    def built_in(self) -> Any:
        """Its value when nobody sets it."""
        return self.option.default

    @property
    def help(self) -> str:
        """What it is, without its default."""
        return _DEFAULT_IN_HELP.sub("", self.option.help or "")

    @property
    def built_in_words(self) -> str:
        """What happens when nobody sets it."""
        found = _DEFAULT_IN_HELP.search(self.option.help or "")
        return found[1] if found else "none"

    @property
    def takes(self) -> str:
        """What it may be, in words."""
        if self._is_switch:
            return "true or false"
        if self._is_list:
            return "a list of texts"
        if isinstance(self.option.type, Number):
            return self.option.type.what
        if self.option.choices is not None:
            return ", ".join(map(toml_text.literal, self.option.choices))
        return "a text, or false" if self.may_be_false else "a text"

    def from_word(self, word: str) -> Any:
        """What the word of a variable says.

        Raises:
            ValueError: it says nothing that this may be.
        """
        if self._is_switch or (self.may_be_false and word.lower() in _NO):
            if word.lower() not in (*_YES, *_NO):
                raise ValueError
            return word.lower() in _YES
        if self._is_list:
            return [expanded(part) for part in word.split(os.pathsep) if part]
        value = self._judged(word)
        return expanded(value) if self._is_path else value

    def from_toml(self, value: object, folder: Path) -> Any:
        """What a value in a file says; paths in it start from the file's folder.

        Raises:
            ValueError: it says nothing that this may be.
        """
        if self._is_switch or (self.may_be_false and value is False):
            if not isinstance(value, bool):
                raise ValueError
            return value
        if self._is_list:
            texts = cast("list[object]", value) if isinstance(value, list) else [value]
            if not isinstance(value, list) or not all(isinstance(text, str) for text in texts):
                raise ValueError
            return [self.located(str(text), folder) for text in texts]
        if isinstance(value, bool) or not isinstance(value, int | float | str):
            raise ValueError
        if isinstance(value, str) is isinstance(self.option.type, Number) or "\0" in str(value):
            raise ValueError
        return self.located(self._judged(str(value)), folder)

    def located(self, value: Any, folder: Path) -> Any:
        """The value, with a path in it made whole; the name of what is no file stays as it is."""
        if isinstance(value, list):
            return [self.located(part, folder) for part in cast("list[Any]", value)]
        if not self._is_path or not isinstance(value, str) or not value:
            return value
        path = os.path.join(folder, expanded(value))  # noqa: PTH118
        # os.path, since pathlib raises for a name that is too long.
        there = os.path.exists(path)  # noqa: PTH110
        names_a_model = self.option.metavar == GGUF and parse_name(value) is not None
        names_a_template = self.dest == "chat_template" and value in BUILT_IN_TEMPLATES
        return value if names_a_template or (names_a_model and not there) else path

    @property
    def _is_switch(self) -> bool:
        return isinstance(self.option, argparse.BooleanOptionalAction)

    @property
    def _is_list(self) -> bool:
        return self.option.nargs == "*"

    @property
    def _is_path(self) -> bool:
        return self.option.metavar in (GGUF, FILE, FOLDER)

    def _judged(self, word: str) -> Any:
        try:
            value = self.option.type(word) if isinstance(self.option.type, Number) else word
        except argparse.ArgumentTypeError as error:
            raise ValueError from error
        if self.option.choices is not None and value not in self.option.choices:
            raise ValueError
        return value


@dataclass(frozen=True)
class SettingsFile:
    """What the user's settings file says, and the presets beside it; no path stands for no file."""

    path: Path | None = None
    values: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """By the names that options have."""
    keys: Mapping[str, str] = field(default_factory=dict[str, str])
    """Keys by the name of the action that they do."""
    presets: Mapping[str, Preset] = field(default_factory=dict[str, Preset])

    @property
    def name(self) -> str:
        """Its name, as the source of a setting."""
        return self.path.name if self.path is not None else ""

    @property
    def presets_path(self) -> Path | None:
        """Where presets are kept that were saved in the chat."""
        return self.path.with_name("presets.toml") if self.path is not None else None


@dataclass(frozen=True)
class Value:
    """What a setting is, and who says so: `FLAG`, a variable's name, a file's name, or `BUILT_IN`."""

    value: Any
    source: str


@dataclass(frozen=True)
class ChatSettings:
    """How the chat looks and where it finds things; the screen judges what it is given."""

    theme: str = "dark"
    panel: bool = True
    history: Path | Literal[False] | None = None
    """Where conversations are kept: `None` is the usual place, `False` nowhere."""
    model_folders: tuple[Path, ...] = ()
    editor: str | None = None
    """What opens a long prompt; `None` is what $VISUAL or $EDITOR says."""
    keys: Mapping[str, str] = field(default_factory=dict[str, str])
    """Keys by the name of the action that they do."""
    presets: Mapping[str, Preset] = field(default_factory=dict[str, Preset])
    presets_path: Path | None = None
    """Where presets are kept; `None` if no settings file is in use."""
    debug: bool = False
    """Whether a report of a crash may hold what was said."""


def all_settings() -> tuple[Setting, ...]:
    """Everything that can be set, in the order of the file."""
    parser = Parser(add_help=False)
    add_model_options(parser)
    add_answer_options(parser)
    add_chat_settings(parser)
    options = [(title, option) for title, option in options_of(parser) if title in TABLES]
    with_false = {option.dest for _, option in options if option.const is False}
    return tuple(
        Setting(str(title), option, option.dest in with_false)
        for title, option in options
        if option.const is not False
    )


def in_force(
    known: Sequence[Setting],
    flags: Mapping[str, Any],
    environment: Mapping[str, str],
    file: SettingsFile,
) -> dict[str, Value]:
    """Every setting's value and source, by the option's name; an empty text is as good as none.

    Args:
        known: All settings.
        flags: What was given on the command line, by the option's name.
        environment: The variables; an empty one is as good as not set.
        file: What the settings file says.

    Raises:
        SettingsError: A variable says what it may not.
    """
    return {setting.dest: _value_of(setting, flags, environment, file) for setting in known}


def chat_settings(values: Mapping[str, Value], file: SettingsFile) -> ChatSettings:
    """What the screen needs to know of the settings in force."""
    history = values["history"].value
    return ChatSettings(
        theme=values["theme"].value or "dark",
        panel=values["panel"].value,
        history=Path(history) if history else history,
        model_folders=tuple(map(Path, values["model_folders"].value)),
        editor=values["editor"].value,
        keys=file.keys,
        presets=file.presets,
        presets_path=file.presets_path,
    )


def _value_of(
    setting: Setting, flags: Mapping[str, Any], environment: Mapping[str, str], file: SettingsFile
) -> Value:
    if setting.dest in flags:
        value, source = flags[setting.dest], FLAG
    elif word := environment.get(setting.variable):
        try:
            value, source = setting.from_word(word), setting.variable
        except ValueError:
            raise SettingsError(
                f"{setting.variable} takes {setting.takes}, not {toml_text.literal(word)}"
            ) from None
    elif setting.dest in file.values:
        value, source = file.values[setting.dest], file.name
    else:
        value, source = setting.built_in, BUILT_IN
    return Value(setting.built_in if value == "" else value, source)


def expanded(text: str) -> str:
    """The text with ~ for the home folder."""
    # Path.expanduser raises where there is no such user.
    return os.path.expanduser(text)  # noqa: PTH111
