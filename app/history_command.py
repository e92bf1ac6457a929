"""`specchat history`: conversations that were kept, listed, searched, exported and deleted."""

from __future__ import annotations

import argparse
import contextlib
import io
import sys
from collections.abc import Callable, Sequence
from datetime import datetime
from pathlib import Path
from typing import cast

from rich.cells import set_cell_size

from ..models.gguf_layout import shown
from ..models.text import printable
from .exit_codes import DONE, UNUSABLE
from .exporting import export_json, export_markdown
from .history import TITLE_CELLS, Conversation, History, HistoryError, default_path
from .history_search import HIT, HIT_END
from .options import Parser

_MOST_ROWS = 10_000


def history_command(prog: str, words: Sequence[str]) -> int:
    """Do what the words say; returns the exit code."""
    parser = Parser(prog=prog, description="Conversations that the chat has kept.")
    parser.add_argument(
        "--file", type=Path, default=default_path(), help="another history than the chat's own"
    )
    commands = parser.add_subparsers(required=True, metavar="COMMAND", parser_class=Parser)
    _add(commands, _list, "list", "all conversations, the newest first")
    _add(commands, _search, "search", "messages that hold all these words").add_argument("words", nargs="+")
    export = _add(commands, _export, "export", "a conversation on stdout, as Markdown")
    export.add_argument("id", type=_id, help="as the list has it")
    export.add_argument("--json", action="store_true", help="all its branches, as JSON")
    _add(commands, _delete, "delete", "forget a conversation").add_argument(
        "id", type=_id, help="as the list has it"
    )
    options = parser.parse_args(words)
    with contextlib.suppress(AttributeError):
        cast("io.TextIOWrapper", sys.stdout).reconfigure(errors="replace")
    if not options.file.exists():
        print(f"{prog}: nothing has been kept in {shown(options.file)} yet", file=sys.stderr)
        return DONE if options.work in (_list, _search) else UNUSABLE
    try:
        with contextlib.closing(History(options.file)) as history:
            options.work(history, options)
    except HistoryError as error:
        parser.exit(UNUSABLE, f"{prog}: {error}\n")
    return DONE


def _add(
    commands: argparse._SubParsersAction[Parser],  # pyright: ignore[reportPrivateUsage]
    work: Callable[[History, argparse.Namespace], None],
    name: str,
    what: str,
) -> Parser:
    parser = commands.add_parser(name, help=what, description=f"{what[0].upper()}{what[1:]}.")
    parser.set_defaults(work=work)
    return parser


def _list(history: History, _options: argparse.Namespace) -> None:
    for conversation in history.conversations(limit=_MOST_ROWS):
        _print(_row(conversation))


def _search(history: History, options: argparse.Namespace) -> None:
    for hit in history.search(" ".join(options.words)):
        _print(_row(hit.conversation))
        _print(f"      {' '.join(hit.snippet.replace(HIT, '').replace(HIT_END, '').split())}")


def _export(history: History, options: argparse.Namespace) -> None:
    conversation = history.get(options.id)
    if options.json:
        _print(export_json(conversation, history.messages(options.id)))
    else:
        _print(export_markdown(conversation, history.branch(options.id)), end="")


def _delete(history: History, options: argparse.Namespace) -> None:
    conversation = history.get(options.id)
    history.delete(options.id)
    print(f"deleted: {printable(conversation.title)}", file=sys.stderr)


def _row(conversation: Conversation) -> str:
    said = datetime.fromtimestamp(conversation.updated).strftime("%Y-%m-%d %H:%M")
    title = set_cell_size(conversation.title, TITLE_CELLS)
    return f"{conversation.id:>5}  {said}  {conversation.turns:>4} messages  {title}".rstrip()


def _print(text: str, end: str = "\n") -> None:
    """Print as it is into a file or a pipe, and to a terminal without what would steer it."""
    print(printable(text) if sys.stdout.isatty() else text, end=end)


def _id(word: str) -> int:
    if not word.isascii() or not word.isdigit() or len(word) > 18:
        raise argparse.ArgumentTypeError(f"{word!r} is not the number of a conversation")
    return int(word)
