"""Actions that carry text in and out: copying, an editor, files."""

from __future__ import annotations

import contextlib
import os
import re
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from textual.widgets import TextArea

from ...app.attachments import AttachmentError, as_mention, attach
from ..actions import CommandError
from ..clipboard import copy
from ..editor import EditorProblem, edit, editor_command
from ..screens.picker import Choice, Picked, Picker

if TYPE_CHECKING:
    from ..app import SpecchatApp

_FENCE = re.compile(
    r"^ {0,3}(?P<mark>`{3,}|~{3,})[^\n`]*\n(?P<code>.*?)(?:^ {0,3}(?P=mark)[`~]*[ \t]*$|\Z)", re.M | re.S
)


def copy_selection(app: SpecchatApp, _value: object) -> None:
    """Copy what is selected, in the transcript or in the prompt; with nothing selected, stop."""
    typed = app.focused if isinstance(app.focused, TextArea) else app.prompt
    text = app.screen.get_selected_text() or typed.selected_text
    if text:
        put_on_clipboard(app, text, f"{len(text)} characters")
    elif app.listener.phase == "answering":
        app.listener.stop()
    else:
        app.listener.hint("nothing is selected; Ctrl+Q leaves")


def copy_answer(app: SpecchatApp, what: str | None) -> None:
    """Copy the last answer, one of its code blocks, or everything."""
    answers = [message.text for message in app.session.messages if message.role == "assistant"]
    if not answers:
        app.incoming.hint("there is no answer to copy yet")
        return
    words = (what or "answer").lower().split()
    if words == ["answer"]:
        put_on_clipboard(app, answers[-1], "the last answer")
    elif words == ["all"]:
        said = [f"{'>' if each.role == 'user' else ''} {each.text}".strip() for each in app.session.messages]
        put_on_clipboard(app, "\n\n".join(said), "the conversation")
    elif words[0] == "code":
        _copy_code(app, answers, words[1:])
    else:
        raise CommandError(f"/copy is answer, code, code N or all, not “{what}”")


def _copy_code(app: SpecchatApp, answers: list[str], words: list[str]) -> None:
    """Copy a block of the last answer that has code; choose where there are several."""
    blocks = next((found for text in reversed(answers) if (found := code_blocks(text))), [])
    if not blocks:
        app.incoming.hint("there is no code block in these answers")
    elif words:
        if not words[0].isdecimal() or not 1 <= int(words[0]) <= len(blocks):
            raise CommandError(f"the answer has {len(blocks)} code blocks, and no block “{words[0]}”")
        put_on_clipboard(app, blocks[int(words[0]) - 1], f"code block {words[0]}")
    elif len(blocks) == 1:
        put_on_clipboard(app, blocks[0], "the code block")
    else:
        choices = [
            Choice(
                block, (block.strip().splitlines() or [""])[0][:60], f"{len(block.splitlines())} lines", block
            )
            for block in blocks
        ]

        def picked(result: Picked | None) -> None:
            app.prompt.focus()
            if result is not None:
                put_on_clipboard(app, result.value, "the code block")

        app.push_screen(Picker("Copy a code block", choices), picked)


def code_blocks(text: str) -> list[str]:
    """The code of each fence in a Markdown text."""
    return [found["code"] for found in _FENCE.finditer(text)]


def put_on_clipboard(app: SpecchatApp, text: str, what: str) -> None:
    """Copy a text, and say where it went."""
    copied = copy(text, app.copy_to_clipboard, os.environ, sys.platform)
    app.listener.hint(f"{what} copied to {copied.how}" if copied.certain else f"{what}: {copied.how}")


def external_editor(app: SpecchatApp, _value: object) -> None:
    """Write the prompt in an editor."""
    text = "" if app.prompt.text.strip() == "/editor" else app.prompt.text
    result = edit(text, editor_command(app.settings.editor, os.environ), app.suspend)
    if isinstance(result, EditorProblem):
        app.say(result.message, "error")
        return
    app.prompt.put(result.rstrip("\n"))
    app.prompt.focus()


def attach_file(app: SpecchatApp, name: str | None) -> None:
    """Put a file into the prompt, by its name."""
    if not name:
        raise CommandError("/file takes the path of a text file")
    path = Path(name).expanduser()
    if not path.exists():
        # As a shell would take it: in quotes, or with escaped spaces.
        with contextlib.suppress(ValueError):
            words = shlex.split(name)
            path = Path(words[0]).expanduser() if len(words) == 1 else path
    try:
        found = attach(path)
    except AttachmentError as error:
        app.say(str(error), "error")
        return
    app.prompt.clear()
    app.prompt.mention(as_mention(str(path)))
    app.incoming.hint(f"{found.name} goes along with the prompt ({len(found.text):,} characters)")
