"""The console script: the command line, with the screen for it to open."""

from __future__ import annotations

import sys

from ..app.cli import main as run_command
from ..app.process import EngineProcess
from ..app.requests import AnswerOptions, LoadOptions


def main() -> int:
    """Run specchat; returns the exit code."""
    return run_command(sys.argv[1:], _open_chat)


def _open_chat(
    engine: EngineProcess, load: LoadOptions, answer: AnswerOptions, system: str | None, notice: str
) -> int:
    from .app import run_chat  # Textual takes a while to import, and only the chat needs it

    return run_chat(engine, load, answer, system=system, notice=notice)


if __name__ == "__main__":
    sys.exit(main())
