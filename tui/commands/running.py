"""Actions on the running program: stop, restart, leave."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ..app import SpecchatApp


def stop(app: SpecchatApp, _value: object) -> None:
    """Stop the answer; with none, leave what is being edited, take back what waits, or go to the end."""
    session = app.session
    if session.phase == "answering":
        app.incoming.stop()
    elif app.fetching is not None:
        app.fetching.set()
    elif session.waiting is not None:
        app.prompt.put(app.incoming.take_back())
    elif session.editing is not None:
        session.editing = None
        app.prompt.clear()
        app.incoming.hint("the prompt stays as it was")
    else:
        app.screen.clear_selection()
        app.transcript.to_end()
    app.prompt.focus()


def restart(app: SpecchatApp, _value: object) -> None:
    """Start the engine again, or load again."""
    if app.session.phase in ("dead", "unloaded"):
        app.start_engine()
        app.transcript.to_end()
    else:
        app.incoming.hint("the engine is running")


def leave(app: SpecchatApp, _value: object) -> None:
    """Leave at once; whoever started the chat closes the engine."""
    app.incoming.keep_partial()
    app.exit(0)
