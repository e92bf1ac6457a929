"""Actions on the conversation: another answer, another prompt, another branch, another conversation."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...app.clocks import date_and_time
from ...app.exporting import export_json, export_markdown, file_name
from ...app.history import Conversation, HistoryError
from ...app.new_file import write_new
from ..actions import CommandError
from ..screens.picker import Choice, Picked, Picker
from ..transcript.ink import printable

if TYPE_CHECKING:
    from ..app import SpecchatApp


def new(app: SpecchatApp, _value: object) -> None:
    """Begin a new conversation."""
    app.incoming.clear()


def regenerate(app: SpecchatApp, _value: object) -> None:
    """Another answer to the last prompt."""
    if not app.session.messages:
        app.incoming.hint("there is nothing to answer yet")
    elif when_loaded(app, regenerate):
        app.incoming.answer_again()


def go_on(app: SpecchatApp, _value: object) -> None:
    """Go on with the last answer."""
    if not app.session.messages:
        app.incoming.hint("there is no answer to go on with")
    elif when_loaded(app, go_on):
        if app.session.unanswered:
            app.incoming.answer_again()
        else:
            app.incoming.continue_answer()


def edit(app: SpecchatApp, back: int | None) -> None:
    """Put an earlier prompt back to be changed; sending it begins a branch."""
    if not _at_rest(app):
        return
    session = app.session
    prompts = [place for place, message in enumerate(session.messages) if message.role == "user"]
    back = 1 if back is None else back
    if not prompts:
        app.incoming.hint("there is no prompt to change yet")
        return
    if not 1 <= back <= len(prompts):
        there = f"there are {len(prompts)} prompts" if len(prompts) > 1 else "there is one prompt"
        raise CommandError(f"{there} to edit; /edit 1 is the last one")
    session.editing = prompts[-back]
    app.prompt.put(session.messages[session.editing].text)
    app.incoming.hint("Enter sends it on a branch of its own; Esc leaves it as it was")
    app.prompt.focus()


def version(app: SpecchatApp, step: int | None) -> None:
    """Change to the version before or after, where a message has several."""
    if not _at_rest(app):
        return
    before = app.session.messages
    try:
        said = app.session.show_version(1 if step is None else step)
    except HistoryError as error:
        app.say(str(error), "error")
        return
    if app.session.messages is not before:
        app.incoming.show_branch()
    app.incoming.hint(said)


def chats(app: SpecchatApp, words: str | None) -> None:
    """Choose a conversation to go on with, or find one by what was said."""
    history = app.session.history
    try:
        known = history.conversations()
    except HistoryError as error:
        app.say(str(error), "error")
        return
    if words:
        hits = _found(app, words)
        known_hits = {hit.value[0] for hit in hits}
        if not known_hits:
            app.say(f"Nothing that was said has “{words}” in it.")
            return
        choices = hits
    else:
        choices = [_choice(each) for each in known]
    if not choices:
        app.incoming.hint("there is no conversation before this one")
        return

    def picked(result: Picked | None) -> None:
        app.prompt.focus()
        if result is None:
            return
        conversation, message = result.value
        if result.key == "delete":
            _confirm_deletion(app, conversation, lambda: chats(app, words))
        else:
            open_conversation(app, conversation, message)

    app.push_screen(
        Picker("Conversations", choices, keys={"delete": "delete"}, find=lambda text: _found(app, text)),
        picked,
    )


def open_conversation(app: SpecchatApp, conversation: int, message: int | None = None) -> None:
    """Go on with a conversation of before."""
    if not _at_rest(app):
        return
    session = app.session
    try:
        head = None if message is None else session.history.leaf(message)
        session.open(conversation, head)
    except HistoryError as error:
        app.say(str(error), "error")
        return
    app.incoming.show_branch()


def _choice(each: Conversation) -> Choice:
    when = date_and_time(each.updated)
    messages = f"{each.turns} message{'' if each.turns == 1 else 's'}"
    return Choice((each.id, None), each.title or "untitled", f"{when} · {messages} · {each.pair or '-'}")


def _found(app: SpecchatApp, text: str) -> list[Choice]:
    """Conversations whose title or whose messages have these words."""
    try:
        titled = [_choice(each) for each in app.session.history.conversations()]
        words = text.lower().split()
        choices = [each for each in titled if each.answers(words)]
        # A single letter is found everywhere, and takes its time.
        shown = {each.value[0]: each.title for each in choices}
        for hit in app.session.history.search(text) if len(text) > 1 else ():
            snippet = printable(" ".join(hit.snippet.replace("\x02", "").replace("\x03", "").split()))
            if snippet.strip("…") not in shown.get(hit.conversation.id, ""):
                choices.append(Choice((hit.conversation.id, hit.message), hit.conversation.title, snippet))
    except HistoryError:
        return []
    return choices


def _delete(app: SpecchatApp, conversation: int) -> None:
    session = app.session
    try:
        if conversation == session.conversation:
            if session.busy:
                app.incoming.hint("Esc stops the answer first")
                return
            app.incoming.clear()
        session.history.delete(conversation)
    except HistoryError as error:
        app.say(str(error), "error")
        return
    app.incoming.hint("the conversation is deleted")


def delete(app: SpecchatApp, _value: object) -> None:
    """Delete this conversation."""
    conversation = app.session.conversation
    if conversation is None:
        app.incoming.hint("there is no conversation to delete")
    else:
        _confirm_deletion(app, conversation, app.prompt.focus)


def _confirm_deletion(app: SpecchatApp, conversation: int, then: Callable[[], object]) -> None:
    def picked(result: Picked | None) -> None:
        app.prompt.focus()
        if result is not None and result.value:
            _delete(app, conversation)
        then()

    try:
        title = app.session.history.get(conversation).title
    except HistoryError as error:
        app.say(str(error), "error")
        return
    choices = [
        Choice(False, "Keep it"),
        Choice(True, "Delete it", "with all its branches; it cannot be undone"),
    ]
    app.push_screen(Picker(f"Delete “{printable(title)}”?", choices), picked)


def rename(app: SpecchatApp, title: str | None) -> None:
    """Give the conversation a title."""
    session = app.session
    if session.conversation is None:
        app.incoming.hint("there is no conversation to name yet")
        return
    try:
        if title:
            session.history.rename(session.conversation, title)
        app.say(f"Title: {session.history.get(session.conversation).title}")
    except HistoryError as error:
        app.say(str(error), "error")


def export(app: SpecchatApp, argument: str | None) -> None:
    """Write the conversation to a file."""
    session = app.session
    if session.conversation is None or not session.messages:
        app.incoming.hint("there is nothing to export yet")
        return
    kind, _, rest = (argument or "md").partition(" ")
    if kind.endswith((".md", ".json")):
        kind, rest = ("json" if kind.endswith(".json") else "md"), argument or ""
    elif kind not in ("md", "json"):
        raise CommandError(f"/export writes md or json, not “{kind}”: /export md FILE")
    try:
        conversation = session.history.get(session.conversation)
    except HistoryError as error:
        app.say(str(error), "error")
        return
    text = (export_json if kind == "json" else export_markdown)(conversation, session.messages)
    path = Path(rest).expanduser() if rest else Path.cwd() / file_name(conversation.title, f".{kind}")
    try:
        write_new(path, text)
    except FileExistsError:
        app.say(f"{path} is there already; name another file: /export {kind} FILE", "error")
    except OSError as error:
        app.say(f"{path} could not be written: {error.strerror}", "error")
    else:
        app.say(f"Written to {path}")


def when_loaded(app: SpecchatApp, action: Callable[[SpecchatApp, Any], None], value: object = None) -> bool:
    """Whether an answer can be begun; if the models are not there, it is begun once they are."""
    if not _at_rest(app):
        return False
    if app.session.phase == "ready":
        return True
    if app.load is not None or app.load_first_choice():
        app.once_loaded = lambda: action(app, value)
        if app.session.phase != "loading":
            app.start_engine()
        app.incoming.hint("as soon as the models are there")
    return False


def _at_rest(app: SpecchatApp) -> bool:
    if app.session.busy:
        app.incoming.hint("Esc stops the answer first")
        return False
    return True
