"""How a command ends: its exit code, and in one line what nobody foresaw."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence

from .exit_codes import FAILED, INTERRUPTED


def exit_code_of(command: Callable[[], int], words: Sequence[str]) -> int:
    """The command's exit code; an error that it does not meet itself is told in one line.

    Args:
        command: Does the work.
        words: Of the command line; with `--debug` among them it is told where an error came from.
    """
    try:
        return command()
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        # Whoever read the output has left; what Python would still flush has nowhere to go.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return FAILED
    except OSError as error:
        from .terminal import tell_failure

        if "--debug" in words:
            return _with_traceback(error)
        # Mostly the output: its disk is full. What Python would still flush is lost as well.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        where = f"{error.filename}: " if error.filename else "what was to be printed could not be written: "
        tell_failure("specchat", f"{where}{error.strerror or error}")
        return FAILED
    except Exception as error:
        if "--debug" in words:
            return _with_traceback(error)
        from .crash_report import unexpected
        from .terminal import tell_failure

        tell_failure("specchat", unexpected(error, "the command line", debug=False, said=words))
        return FAILED


def _with_traceback(error: Exception) -> int:
    from .terminal import tell_traceback

    tell_traceback(error)
    return FAILED
