"""`specchat config`: the settings in force and where each comes from, as a settings file would say them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from . import toml_text
from .new_file import write_new
from .options import Number
from .presets import preset_lines
from .private_files import make_folder
from .settings import TABLES, Setting, SettingsError, SettingsFile, Value
from .settings_file import nearest_to
from .terminal import json_text

_SOURCE_COLUMN = 44


def as_toml(known: Sequence[Setting], values: Mapping[str, Value], file: SettingsFile, folder: Path) -> str:
    """The settings in force, each with its source behind it; a settings file that says the same.

    Args:
        known: All settings.
        values: What is in force.
        file: Where keys and presets come from.
        folder: Where relative paths of flags and variables start from.
    """
    lines: list[str] = []
    for table in TABLES:
        lines.append(f"[{table}]")
        for setting in known:
            if setting.table == table:
                lines.append(_line(setting, values[setting.dest], folder))
        lines.append("")
    if file.keys:
        lines += [
            "[keys]",
            *(f"{toml_text.key(do)} = {toml_text.literal(keys)}" for do, keys in file.keys.items()),
        ]
        lines.append("")
    for name, preset in file.presets.items():
        lines += [f"[{toml_text.key('presets', name)}]", *preset_lines(preset, known), ""]
    return "\n".join(lines)


def as_json(known: Sequence[Setting], values: Mapping[str, Value], file: SettingsFile, folder: Path) -> str:
    """The same for programs: each setting as its value and its source, by table and key."""
    tables: dict[str, dict[str, Any]] = {table: {} for table in TABLES}
    for setting in known:
        said = values[setting.dest]
        tables[setting.table][setting.key] = {
            "value": setting.located(said.value, folder), "source": said.source,
        }  # fmt: skip
    key_of = {setting.dest: setting.key for setting in known}
    presets = {
        name: {key_of[dest]: value for dest, value in preset.items()} for name, preset in file.presets.items()
    }
    path = str(file.path) if file.path is not None else None
    return json_text({"file": path, **tables, "keys": dict(file.keys), "presets": presets}, indent=2)


def template(known: Sequence[Setting]) -> str:
    """A settings file that changes nothing: every setting as a comment, with what it is."""
    lines = [
        "# specchat's settings. A flag goes before a SPECCHAT_ variable (SPECCHAT_TEMP=0.5), and that before",
        "# what is said here. Relative paths start from this folder. specchat config shows what is in force.",
    ]
    for table in TABLES:
        lines += ["", f"[{table}]"]
        for setting in known:
            if setting.table == table:
                lines += [f"# {setting.help}", _proposed(setting)]
    lines += [
        "",
        "[keys]",
        "# Keys by what they do; the chat's help (F1) names what can be done.",
        "",
        "# [presets.careful]",
        "# Anything of answers and drafting, taken together under a name.",
        "# temp = 0.2",
    ]
    return "\n".join(lines) + "\n"


def write_template(path: Path, known: Sequence[Setting]) -> None:
    """Write the template where the settings file belongs.

    Raises:
        SettingsError: There is a file already, or it cannot be written.
    """
    name = toml_text.printable(path)
    try:
        make_folder(path.parent)
        write_new(path, template(known))
    except FileExistsError as error:
        there = toml_text.printable(error.filename)
        raise SettingsError(f"{there} is there already and stays as it is") from None
    except OSError as error:
        raise SettingsError(f"{name} cannot be written: {error.strerror}") from None


def unknown_variables(known: Sequence[Setting], environment: Mapping[str, str]) -> list[str]:
    """A line for each SPECCHAT_ variable that sets nothing."""
    prefix = "SPECCHAT_"
    known_ends = ["CONFIG", *(setting.variable.removeprefix(prefix) for setting in known)]
    lines: list[str] = []
    for name in sorted(environment):
        end = name.removeprefix(prefix)
        if end != name and end not in known_ends:
            nearest = nearest_to(end, known_ends)
            meant = f"; did you mean {prefix}{nearest}?" if nearest else ""
            lines.append(f"{toml_text.printable(name)} sets nothing{meant}")
    return lines


def _line(setting: Setting, said: Value, folder: Path) -> str:
    source = toml_text.printable(said.source)
    value = setting.located(said.value, folder)
    if value is None or (said.value == setting.built_in and not _sayable(setting)):
        return f"# {setting.key}".ljust(_SOURCE_COLUMN) + f" # {source}: {setting.built_in_words}"
    return f"{setting.key} = {toml_text.literal(value)}".ljust(_SOURCE_COLUMN) + f" # {source}"


def _proposed(setting: Setting) -> str:
    """The setting at its built-in value, or with a word that stands for one, as a comment."""
    if _sayable(setting):
        return f"# {setting.key} = {toml_text.literal(setting.built_in)}".ljust(_SOURCE_COLUMN) + (
            f" # {setting.takes}"
        )
    placeholder = str(setting.option.metavar)
    value = placeholder if isinstance(setting.option.type, Number) else toml_text.literal(placeholder)
    return f"# {setting.key} = {value}".ljust(_SOURCE_COLUMN) + (
        f" # {setting.takes}; not set: {setting.built_in_words}"
    )


def _sayable(setting: Setting) -> bool:
    """Whether the built-in value can be said in a file; no choice, which stands for one, cannot."""
    try:
        setting.from_toml(setting.built_in, Path())
    except ValueError:
        return False
    return True
