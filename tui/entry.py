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
        from ..app.ending import exit_code_of  # here, so that Ctrl+C is met from the first moment

        return exit_code_of(_command_line, sys.argv[1:])
    except KeyboardInterrupt:
        from ..app.exit_codes import INTERRUPTED

        return INTERRUPTED


def _command_line() -> int:
    from ..app.cli import main

    return main(sys.argv[1:], _open_chat)


def _open_chat(
    engine: EngineProcess,
    load: LoadOptions | None,
    answer: AnswerOptions,
    system: str | None,
    notice: str,
    chat: ChatSettings,
    go_on: bool,
) -> int:
    # Textual takes a while to import, and only the chat needs it.
    from ..app.exit_codes import UNUSABLE
    from ..app.history import IN_MEMORY, History, HistoryError, default_path
    from ..app.terminal import tell_failure
    from .app import run_chat

    path = IN_MEMORY if chat.history is False else chat.history or default_path()
    try:
        history = History(path)
        resume = history.latest() if go_on else None
    except HistoryError as error:
        engine.close()
        tell_failure("specchat", f"{error} (or chat without a history: --no-history)")
        return UNUSABLE
    if go_on and resume is None:
        notice = "\n".join(filter(None, (notice, "There is no conversation to go on with yet.")))
    return run_chat(
        engine, load, answer, system=system, notice=notice, history=history, settings=chat, resume=resume
    )


def _open_closed_streams() -> None:
    """Put nothing where the caller closed a standard stream.

    Python has `None` there, and would print on stdout what is meant for a stderr that is closed. Other
    processes of this program have the same.
    """
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            stream = open(os.devnull, mode, encoding="utf-8")  # noqa: PTH123, SIM115
            os.set_inheritable(stream.fileno(), True)
            setattr(sys, name, stream)


if __name__ == "__main__":
    sys.exit(main())
