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
    except OSError as error:
        from ..app.exit_codes import FAILED
        from ..app.terminal import tell_failure

        if "--debug" in sys.argv:
            return _with_traceback(error)
        # Mostly the output: its disk is full. What Python would still flush is lost as well.
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        where = f"{error.filename}: " if error.filename else "what was to be printed could not be written: "
        tell_failure("specchat", f"{where}{error.strerror or error}")
        return FAILED
    except Exception as error:
        if "--debug" in sys.argv:
            return _with_traceback(error)
        from ..app.crash_report import unexpected
        from ..app.exit_codes import FAILED
        from ..app.terminal import tell_failure

        tell_failure("specchat", unexpected(error, "the command line", debug=False, said=sys.argv[1:]))
        return FAILED


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


def _with_traceback(error: Exception) -> int:
    from ..app.exit_codes import FAILED
    from ..app.terminal import tell_traceback

    tell_traceback(error)
    return FAILED


def _open_closed_streams() -> None:
    """Put nothing where the caller closed a standard stream.

    Python has `None` there, and would print on stdout what is meant for a stderr that is closed.
    """
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: PTH123, SIM115


if __name__ == "__main__":
    sys.exit(main())
