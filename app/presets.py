"""Presets: some settings of answers under a name, laid over an answer's options, and kept in a file."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from . import toml_text
from .private_files import write_whole
from .requests import AnswerOptions, Drafting
from .settings import PRESET_TABLES, Preset, Setting, SettingsError
from .settings_file import read_presets

_SAMPLING = {
    "temp": "temperature",
    **{name: name for name in ("top_k", "top_p", "min_p", "repeat_penalty", "seed")},
}
"""The fields of `Sampling` by the names that options have; those of `Drafting` have the same names."""

_HEAD = """\
# Written by specchat when a preset is saved. Presets of your own can stand in config.toml as well;
# one here goes before one of the same name there.
"""


_WHOLE = frozenset(("temp", "top_k", "top_p", "min_p", "repeat_penalty", "speculate", "drafter", "strict"))
"""A preset that says all of these was saved from an answer's options."""


def preset_of(answer: AnswerOptions, system: str | None) -> Preset:
    """The preset that brings these options back, but for those that are `None`: it says nothing of them."""
    values: dict[str, Any] = {option: getattr(answer.sampling, name) for option, name in _SAMPLING.items()}
    values |= {field.name: getattr(answer.drafting, field.name) for field in dataclasses.fields(Drafting)}
    values |= {"max_tokens": answer.max_tokens, "system": system or ""}
    return {option: value for option, value in values.items() if value is not None}


def with_preset(answer: AnswerOptions, preset: Preset) -> AnswerOptions:
    """The options, changed in what the preset says; its system prompt is `preset.get("system")`."""
    if _WHOLE <= preset.keys():
        # Saved with everything that can be said: what is missing has no value.
        preset = {"seed": None, "max_tokens": None, "draft_max": None, "draft_p_min": None, **preset}
    sampling = {name: preset[option] for option, name in _SAMPLING.items() if option in preset}
    drafting = {
        field.name: preset[field.name] for field in dataclasses.fields(Drafting) if field.name in preset
    }
    return AnswerOptions(
        sampling=dataclasses.replace(answer.sampling, **sampling),
        drafting=dataclasses.replace(answer.drafting, **drafting),
        max_tokens=preset.get("max_tokens", answer.max_tokens),
    )


def save_preset(path: Path, name: str, preset: Preset, known: Sequence[Setting]) -> None:
    """Keep a preset in the file, beside those already there.

    Args:
        path: `SettingsFile.presets_path`.
        name: What it is called; one of the same name is replaced.
        preset: The values.
        known: All settings.

    Raises:
        SettingsError: There is no name, or the file cannot be read or written.
    """
    if not name.strip():
        raise SettingsError("a preset needs a name")
    lines = [_HEAD]
    for title, values in {**read_presets(path, known), name: preset}.items():
        lines += [f"[{toml_text.key('presets', title)}]", *preset_lines(values, known), ""]
    try:
        write_whole(path, "\n".join(lines))
    except OSError as error:
        raise SettingsError(
            f"the preset cannot be kept in {toml_text.printable(path)}: {error.strerror}"
        ) from None


def preset_lines(preset: Preset, known: Sequence[Setting]) -> list[str]:
    """What a preset says, as lines of TOML."""
    return [
        f"{setting.key} = {toml_text.literal(preset[setting.dest])}"
        for setting in known
        if setting.table in PRESET_TABLES and setting.dest in preset
    ]
