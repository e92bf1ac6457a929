"""Reads the user's settings file and the presets beside it; says in one line what is wrong with them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

import platformdirs

from . import toml_text
from .bounded_files import read_bounded
from .settings import PRESET_TABLES, TABLES, Preset, Setting, SettingsError, SettingsFile, expanded

_KEYS, _PRESETS = "keys", "presets"
_MOST_SHOWN = 60


def default_path() -> Path:
    """The file in the platform's folder for settings."""
    return platformdirs.user_config_path("specchat") / "config.toml"


def chosen_path(named: str | None, unread: bool, environment: Mapping[str, str]) -> Path | None:
    """Which file the settings come from; `None` for none.

    Args:
        named: What --config says.
        unread: Whether --no-config was given.
        environment: Holds SPECCHAT_CONFIG, perhaps.
    """
    if unread:
        return None
    word = named or environment.get("SPECCHAT_CONFIG")
    return Path(expanded(word)).absolute() if word else default_path()


def read_settings(path: Path | None, known: Sequence[Setting]) -> SettingsFile:
    """What the file says, and what the presets beside it say; the user's own file need not be there.

    Raises:
        SettingsError: It cannot be read, is no TOML, or says what it may not.
    """
    if path is None:
        return SettingsFile()
    tables = _tables_of(path, may_lack=path == default_path())
    _must_be_known(path, (), tables, (*TABLES, _KEYS, _PRESETS), known)
    values: dict[str, Any] = {}
    for name in TABLES:
        allowed = [setting for setting in known if setting.table == name]
        values |= _values_of(path, (name,), tables.get(name, {}), allowed, known)
    keys = _table(path, (_KEYS,), tables.get(_KEYS, {}))
    for action, said in keys.items():
        if not isinstance(said, str):
            raise _takes(path, (_KEYS, action), "a text", said)
    presets = _presets_of(path, tables, known)
    if beside := SettingsFile(path).presets_path:
        presets |= read_presets(beside, known)
    return SettingsFile(path, values, cast("dict[str, str]", keys), presets)


def read_presets(path: Path, known: Sequence[Setting]) -> dict[str, Preset]:
    """The presets in a file of nothing else, which need not be there.

    Raises:
        SettingsError: It cannot be read, is no TOML, or says what it may not.
    """
    tables = _tables_of(path, may_lack=True)
    _must_be_known(path, (), tables, (_PRESETS,), known)
    return _presets_of(path, tables, known)


def _presets_of(path: Path, tables: dict[str, Any], known: Sequence[Setting]) -> dict[str, Preset]:
    allowed = [setting for setting in known if setting.table in PRESET_TABLES]
    return {
        name: _values_of(path, (_PRESETS, name), said, allowed, allowed)
        for name, said in _table(path, (_PRESETS,), tables.get(_PRESETS, {})).items()
    }


def _values_of(
    path: Path, place: tuple[str, ...], said: object, allowed: Sequence[Setting], known: Sequence[Setting]
) -> dict[str, Any]:
    settings = {setting.key: setting for setting in allowed}
    table = _table(path, place, said)
    _must_be_known(path, place, table, settings, known)
    values: dict[str, Any] = {}
    for key, value in table.items():
        setting = settings[key]
        try:
            values[setting.dest] = setting.from_toml(value, path.parent.absolute())
        except ValueError:
            raise _takes(path, (*place, key), setting.takes, value) from None
    return values


def _tables_of(path: Path, *, may_lack: bool) -> dict[str, Any]:
    """What stands in a TOML file, as it stands there.

    Raises:
        SettingsError: It cannot be read, or is no TOML.
    """
    name = toml_text.printable(path)
    try:
        text = read_bounded(path)
        # Only here: most have no settings file, and pay nothing for it.
        import tomllib

        return tomllib.loads(text)
    except (FileNotFoundError, NotADirectoryError):
        if may_lack:
            return {}
        raise SettingsError(f"the settings file {name} does not exist") from None
    except OSError as error:
        raise SettingsError(f"the settings file {name} cannot be read: {error.strerror}") from None
    except (ValueError, RecursionError) as error:
        # Beside TOML's own errors: no UTF-8, a number of thousands of digits, lists in lists without end.
        raise SettingsError(f"{name} is no TOML: {toml_text.printable(error)}") from None


def _table(path: Path, place: tuple[str, ...], said: object) -> dict[str, Any]:
    if not isinstance(said, dict):
        raise _takes(path, place, f"a table: [{toml_text.key(*place)}]", said)
    return cast("dict[str, Any]", said)


def _must_be_known(
    path: Path,
    place: tuple[str, ...],
    table: Mapping[str, Any],
    allowed: Iterable[str],
    settings: Sequence[Setting],
) -> None:
    """Refuse a key that is not allowed at its place, and name the setting that was meant."""
    allowed = list(allowed)
    for key in table:
        if key not in allowed:
            meant = _meant(place, key, allowed, settings)
            raise SettingsError(
                f"{toml_text.printable(path)}: there is no setting {toml_text.key(*place, key)}; "
                + (f"did you mean {meant}?" if meant else "specchat config shows all")
            )


def _meant(
    place: tuple[str, ...], key: str, allowed: Sequence[str], settings: Sequence[Setting]
) -> str | None:
    key = key.replace("_", "-")
    homes = {setting.key: toml_text.key(setting.table, setting.key) for setting in settings}
    if key in homes and key not in allowed:  # in the wrong table, or in none
        return homes[key]
    if here := nearest_to(key, allowed):
        return toml_text.key(*place, here)
    elsewhere = nearest_to(key, homes)
    return homes[elsewhere] if elsewhere else None


def nearest_to(word: str, known: Iterable[str]) -> str | None:
    """The known word that was probably meant, if there is one."""
    import difflib  # only here, where something is wrong already

    return next(iter(difflib.get_close_matches(word, list(known), 1)), None)


def _takes(path: Path, place: tuple[str, ...], what: str, said: object) -> SettingsError:
    found = toml_text.literal(said)
    found = found if len(found) <= _MOST_SHOWN else f"{found[:_MOST_SHOWN]}..."
    return SettingsError(f"{toml_text.printable(path)}: {toml_text.key(*place)} takes {what}, not {found}")
