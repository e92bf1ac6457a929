"""`specchat history`: conversations that were kept, listed, searched, exported and deleted.

As JSON, a list and what a search found are one object:

    {"format": 1, "conversations": [{"id", "title", "updated", "messages", "pair"}, ...]}

A search adds to each the id of the `message` and what was `found` in it; of `messages` there is the number.
"""

from __future__ import annotations

import argparse
import contextlib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from rich.cells import set_cell_size

from ..models.gguf_layout import shown
from .clocks import date_and_time
from .exit_codes import DONE, UNUSABLE
from .exporting import FORMAT, export_json, export_markdown, utc
from .history import TITLE_CELLS, Conversation, History, HistoryError, default_path
from .history_search import HIT, HIT_END
from .options import Parser
from .terminal import json_text, one_line, show, show_json_text, tell, tell_failure

_MOST_ROWS = 10_000


def history_command(parser: Parser, words: Sequence[str]) -> int:
    """Do what the words say; returns the exit code."""
    options = parser.parse_args(words)
    if options.action in ("export", "delete"):
        options.id = _id(parser, options)
    elif options.action == "search" and not options.words:
        parser.error("search takes the words to look for")
    elif options.action == "list" and options.words:
        parser.error("list takes nothing after it")
    path = Path(options.file) if options.file else default_path()
    if not path.exists():
        tell_failure(parser.prog, f"nothing has been kept in {shown(path)} yet")
        if options.action not in ("list", "search"):
            return UNUSABLE
        if options.json:
            _show_json([])
        return DONE
    try:
        with contextlib.closing(History(path)) as history:
            _ACTIONS[options.action](history, options)
    except HistoryError as error:
        parser.exit(UNUSABLE, f"{parser.prog}: {error}\n")
    return DONE


def _list(history: History, options: argparse.Namespace) -> None:
    conversations = history.conversations(limit=_MOST_ROWS)
    if options.json:
        _show_json([_facts(conversation) for conversation in conversations])
        return
    for conversation in conversations:
        show(_row(conversation))


def _search(history: History, options: argparse.Namespace) -> None:
    hits = history.search(" ".join(options.words))
    if not hits:
        tell("nothing that was said has these words")
    found = [" ".join(hit.snippet.replace(HIT, "").replace(HIT_END, "").split()) for hit in hits]
    if options.json:
        _show_json(
            [
                {**_facts(hit.conversation), "message": hit.message, "found": text}
                for hit, text in zip(hits, found, strict=True)
            ]
        )
        return
    for hit, text in zip(hits, found, strict=True):
        show(_row(hit.conversation))
        show(f"      {text}")


def _export(history: History, options: argparse.Namespace) -> None:
    conversation = history.get(options.id)
    if options.json:
        show_json_text(export_json(conversation, history.messages(options.id)))
    else:
        show(export_markdown(conversation, history.branch(options.id)), end="")


def _delete(history: History, options: argparse.Namespace) -> None:
    conversation = history.get(options.id)
    history.delete(options.id)
    tell(f"deleted: {conversation.title}")


def _facts(conversation: Conversation) -> dict[str, object]:
    return {
        "id": conversation.id,
        "title": conversation.title,
        "updated": utc(conversation.updated),
        "messages": conversation.turns,
        "pair": conversation.pair,
    }


def _show_json(conversations: list[dict[str, object]]) -> None:
    show_json_text(json_text({"format": FORMAT, "conversations": conversations}))


def _row(conversation: Conversation) -> str:
    said = date_and_time(conversation.updated)
    title = set_cell_size(one_line(conversation.title), TITLE_CELLS)
    return f"{conversation.id:>5}  {said}  {conversation.turns:>4} messages  {title}".rstrip()


def _id(parser: Parser, options: argparse.Namespace) -> int:
    word = options.words[0] if len(options.words) == 1 else ""
    if not word.isascii() or not word.isdigit() or len(word) > 18:
        parser.error(f"{options.action} takes the number of a conversation, as the list has it")
    return int(word)


_ACTIONS: Mapping[str, Callable[[History, argparse.Namespace], None]] = {
    "list": _list,
    "search": _search,
    "export": _export,
    "delete": _delete,
}
