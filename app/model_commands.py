"""The work of the commands that load models, each imported where it is done: in a process of its own."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from .parsers import COMMANDS
from .requests import AnswerOptions, LoadOptions


def answer_once(
    load: LoadOptions,
    answer: AnswerOptions,
    prompt: str,
    log_file: Path | None,
    name: str,
    options: argparse.Namespace,
) -> int:
    """Answer a prompt, as `run` and the demo do; returns the exit code."""
    from .running import run_once

    return run_once(
        load, answer, prompt, options.system, as_json=options.json, verify=options.verify,
        log_file=log_file, debug=options.debug, name=name,
    )  # fmt: skip


def compare(
    load: LoadOptions, answer: AnswerOptions, log_file: Path | None, options: argparse.Namespace
) -> int:
    """Compare what the options name; returns the exit code."""
    from .compare_command import compare_command

    return compare_command(COMMANDS["compare"](), options, load, answer, log_file)


def derive(words: Sequence[str]) -> int:
    """Make the draft that the words ask for; returns the exit code."""
    from .derive_command import derive_command

    return derive_command(COMMANDS["derive"](), words)
