"""Parameters and a system prompt, saved by name."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from ..app.presets import preset_of, save_preset, with_preset
from ..app.requests import AnswerOptions
from ..app.settings import Preset, SettingsError, all_settings
from .actions import CommandError


class Presets:
    """What is saved by name: what the settings say at the start, and what is saved in the chat."""

    def __init__(self, kept: Mapping[str, Preset] | None = None, path: Path | None = None) -> None:
        """Where there is no `path`, what is saved lasts until the end of the program."""
        self._kept = dict(kept or {})
        self._path = path

    def names(self) -> list[str]:
        """All names."""
        return list(self._kept)

    def load(self, name: str, options: AnswerOptions, system: str) -> tuple[AnswerOptions, str]:
        """The options and the system prompt with what a preset changes.

        Raises:
            CommandError: there is no such preset.
        """
        if name not in self._kept:
            known = f"there are: {', '.join(self._kept)}" if self._kept else "/preset save NAME makes one"
            raise CommandError(f"there is no preset “{name}”; {known}")
        preset = self._kept[name]
        return with_preset(options, preset), str(preset.get("system", system))

    def save(self, name: str, options: AnswerOptions, system: str) -> str:
        """Keep these under a name; returns what went wrong, or nothing."""
        preset = preset_of(options, system)
        try:
            if self._path is not None:
                save_preset(self._path, name, preset, all_settings())
        except SettingsError as error:
            return str(error)
        self._kept[name] = preset
        return ""
