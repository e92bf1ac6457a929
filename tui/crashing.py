"""What becomes of an error that should not have happened: a report, and a line that says where it is."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING

from textual.worker import WorkerFailed

from ..app.crash_report import (
    Crash,
    default_folder,
    settings_of,
    traceback_lines,
    where_it_is,
    write_report,
)
from ..app.events import Died, Event, Failed
from ..app.history import HistoryError
from ..app.terminal import tell_failure
from ..models.text import printable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .app import SpecchatApp


def with_report(app: SpecchatApp, event: Event) -> Event:
    """The event; of what should not have happened, its message also says where the report is."""
    if isinstance(event, Died):
        told = _report(app, "the engine, which is gone", (event.message,), event.log)
    elif isinstance(event, Failed) and event.traceback:
        told = _report(app, "the engine", event.traceback, ())
    else:
        return event
    return replace(event, message=f"{event.message}\n{told}")


def tell_of_crash(app: SpecchatApp) -> bool:
    """Whether the screen ended by an error; it is then reported, and told in a line on stderr."""
    error = app.error
    if error is None:
        return False
    if isinstance(error, WorkerFailed) and isinstance(error.error, Exception):
        error = error.error
    told = _report(app, "the screen", traceback_lines(error), ())
    kind = printable(type(error).__name__)
    tell_failure("specchat", f"the chat has ended by an error of its own ({kind}): {told}")
    return True


def _report(app: SpecchatApp, where: str, traceback: Sequence[str], log: Sequence[str]) -> str:
    whole = app.settings.debug
    settings = settings_of(app.load, app.session.options)
    path = write_report(Crash(where, traceback, log, settings, _said(app)), default_folder(), whole=whole)
    return where_it_is(path, whole=whole)


def _said(app: SpecchatApp) -> list[str]:
    """What belongs to the user alone: all that is said, typed or listed here."""
    session = app.session
    said = [session.system, *(message.text for message in session.messages), app.incoming.unfinished]
    if session.waiting is not None:
        said.append(session.waiting.text)
    with suppress(Exception):  # a screen that has failed may have no prompt any more
        said.append(app.prompt.text)
    with suppress(HistoryError):
        said += [conversation.title for conversation in session.history.conversations()]
    return said
