"""The console script: the command line, with the screen for it to open."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ..app.process import EngineProcess
    from ..app.requests import AnswerOptions, LoadOptions
    from ..app.settings import ChatSettings


def main() -> int:
    """Run specchat; returns the exit code."""
    _open_closed_streams()
    try:
        from ..app.cli import main as run_command  # here, so that Ctrl+C is met from the first moment

        return run_command(sys.argv[1:], _open_chat)
    except KeyboardInterrupt:
        from ..app.exit_codes import INTERRUPTED

        return INTERRUPTED
    except BrokenPipeError:
        from ..app.exit_codes import FAILED

        # Whoever read the output has left; what Python would still flush has nowhere to go.
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        return FAILED


def _open_chat(
    engine: EngineProcess,
    load: LoadOptions | None,
    answer: AnswerOptions,
    system: str | None,
    notice: str,
    chat: ChatSettings,  # noqa: ARG001 - the screen has no settings yet
) -> int:
    if load is None:
        from ..app.exit_codes import UNUSABLE

        engine.close()
        print("specchat: a model is needed: -m/--target (see specchat --help)", file=sys.stderr)
        return UNUSABLE
    from .app import run_chat  # Textual takes a while to import, and only the chat needs it

    return run_chat(engine, load, answer, system=system, notice=notice)


def _open_closed_streams() -> None:
    """Put nothing where the caller closed a standard stream.

    Python has `None` there, and would print on stdout what is meant for a stderr that is closed.
    """
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: PTH123, SIM115


if __name__ == "__main__":
    sys.exit(main())
