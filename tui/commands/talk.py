"""Actions on the conversation: another answer, another prompt, another branch, another conversation."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from ...app.exporting import export_json, export_markdown, file_name
from ...app.history import Conversation, HistoryError
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
    if not _at_rest(app):
        return
    if not app.session.messages:
        app.incoming.hint("there is nothing to answer yet")
        return
    app.incoming.answer_again()


def go_on(app: SpecchatApp, _value: object) -> None:
    """Go on with the last answer."""
    if not _at_rest(app):
        return
    messages = app.session.messages
    if not messages:
        app.incoming.hint("there is no answer to go on with")
    elif messages[-1].role == "user":
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
    if not 1 <= back <= len(prompts):
        raise CommandError(f"there are {len(prompts)} prompts to edit; /edit 1 is the last one")
    session.editing = prompts[-back]
    app.prompt.put(session.messages[session.editing].text)
    app.incoming.hint("Enter sends it on a branch of its own; Esc leaves it as it was")
    app.prompt.focus()


def version(app: SpecchatApp, step: int | None) -> None:
    """Change to the version before or after of the last message that has several."""
    if not _at_rest(app):
        return
    session = app.session
    try:
        moved = session.show_version(1 if step is None else step)
        found = session.versions()
    except HistoryError as error:
        app.say(str(error), "error")
        return
    if moved:
        app.incoming.show_branch()
    if found is None:
        app.incoming.hint("nothing here has another version; /regen makes one")
    else:
        _, beside, at = found
        app.incoming.hint(f"version {at + 1} of {len(beside)}")


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
            _delete(app, conversation)
            chats(app, words)
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
    when = datetime.fromtimestamp(each.updated).strftime("%Y-%m-%d %H:%M")
    turns = f"{each.turns} turn{'' if each.turns == 1 else 's'}"
    return Choice((each.id, None), each.title or "untitled", f"{when} · {turns} · {each.pair or '-'}")


def _found(app: SpecchatApp, text: str) -> list[Choice]:
    """Conversations whose title or whose messages have these words."""
    try:
        titled = [_choice(each) for each in app.session.history.conversations()]
        words = text.lower().split()
        choices = [each for each in titled if each.answers(words)]
        # A single letter is found everywhere, and takes its time.
        for hit in app.session.history.search(text) if len(text) > 1 else ():
            snippet = printable(" ".join(hit.snippet.replace("\x02", "").replace("\x03", "").split()))
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
        return

    def picked(result: Picked | None) -> None:
        app.prompt.focus()
        if result is not None and result.value:
            _delete(app, conversation)

    choices = [
        Choice(False, "Keep it"),
        Choice(True, "Delete it", "with all its branches; it cannot be undone"),
    ]
    app.push_screen(Picker("Delete this conversation?", choices), picked)


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
    if kind not in ("md", "json"):
        kind, rest = ("json" if kind.endswith(".json") else "md"), argument or ""
    try:
        conversation = session.history.get(session.conversation)
    except HistoryError as error:
        app.say(str(error), "error")
        return
    text = (export_json if kind == "json" else export_markdown)(conversation, session.messages)
    path = Path(rest).expanduser() if rest else Path.cwd() / file_name(conversation.title, f".{kind}")
    try:
        with path.open("x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError:
        app.say(f"{path} is there already; name another file: /export {kind} FILE", "error")
    except OSError as error:
        app.say(f"It could not be written: {error}", "error")
    else:
        app.say(f"Written to {path}")


def _at_rest(app: SpecchatApp) -> bool:
    if app.session.busy:
        app.incoming.hint("Esc stops the answer first")
        return False
    return True
