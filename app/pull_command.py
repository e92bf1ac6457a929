"""`specchat pull`: models from the Hugging Face hub, by name or in known pairs."""

from __future__ import annotations

import contextlib
import os
import shlex
import sys
import textwrap
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import urlsplit

from ..models.errors import SpecchatError
from ..models.repository import HubName, parse_address, parse_name
from .byte_counts import bytes_text
from .exit_codes import DONE, FAILED, INTERRUPTED
from .known_models import HubFile, Known, known_models
from .options import Parser
from .parsers import PROG
from .pulling import Pulled, pull
from .terminal import show, show_json, show_path, tell, tell_failure


def pull_command(parser: Parser, words: Sequence[str]) -> int:
    """Do what the words say; returns the exit code."""
    options = parser.parse_args(words)
    asked = sum((bool(options.names), options.pair is not None, options.pairs))
    if asked != 1:
        needed = "one of these, not several" if asked else "one of these is needed"
        parser.error(f"{needed}: names of models, --pair NAME, or --pairs")
    if options.pairs:
        _print_pairs(known_models(), options.json)
        return DONE
    if options.pair is None:
        names = [_name(parser, word) for word in options.names]
        chat_with = names if len(names) <= 2 else []
        lookup = False
    else:
        [known] = [known for known in known_models() if known.key == options.pair]
        tell(f"{known.name}, {bytes_text(known.size_bytes)}: {known.licence}")
        if known.large_draft:
            large = f"its draft has {known.share:.0%} of the target's bytes"
            tell(f"{large}: it pays only where passes over several tokens are cheap")
        names = chat_with = [HubName(file.repository, file.file) for file in known.files]
        lookup = known.draft is None
    return _pull(parser, names, _chat_line(chat_with, lookup), options.json)


def _pull(parser: Parser, names: Sequence[HubName], chat_line: str, as_json: bool) -> int:
    from .pull_progress import shown_on

    try:
        with shown_on(sys.stderr) as watch:
            pulled = pull(names, watch)
    except (SpecchatError, KeyboardInterrupt) as error:
        stopped = isinstance(error, KeyboardInterrupt)
        problem = (
            "stopped; what has come is kept, and the next pull goes on from there" if stopped else str(error)
        )
        tell_failure(parser.prog, problem)
        if as_json:
            _print_json((), "", problem)
        return INTERRUPTED if stopped else FAILED
    problems = [model.problem for model in pulled if model.problem]
    for problem in problems:
        tell_failure(parser.prog, f"it is here, but {problem}")
    if as_json:
        _print_json(pulled, chat_line, problems[0] if problems else "")
    else:
        if chat_line and not problems:
            tell(f"to chat: {chat_line}")
        for model in pulled:
            show_path(model.paths[0])
    # What cannot be chatted with is fetched all the same, but a script is not to go on with it.
    return FAILED if problems else DONE


def _print_json(pulled: Sequence[Pulled], chat_line: str, problem: str) -> None:
    told = {
        "models": [_as_json(model) for model in pulled],
        "chat": chat_line if chat_line and not problem else None,
        "problem": problem or None,
    }
    show_json(told, indent=2)


def _name(parser: Parser, word: str) -> HubName:
    name = parse_address(word, _hosts(os.environ)) or parse_name(word)
    if name is None:
        parser.error(
            f"{word!a} names nothing on the hub; give owner/name, owner/name:Q4_K_M or owner/name/file.gguf"
        )
    return name


def _hosts(environment: Mapping[str, str]) -> set[str]:
    """Where addresses of models lead that are copied from a browser."""
    hosts = {"huggingface.co", "hf.co"}
    with contextlib.suppress(ValueError):
        hosts.add(urlsplit(environment.get("HF_ENDPOINT", "")).netloc.lower())
    return hosts - {""}


def _chat_line(names: Sequence[HubName], lookup: bool) -> str:
    """The command that chats with a target and its draft."""
    flags = zip(("-m", "-md"), names, strict=False)
    words = ["specchat", *(word for flag, name in flags for word in (flag, str(name)))]
    return shlex.join(words + (["--drafter", "lookup"] if lookup else [])) if names else ""


def _as_json(model: Pulled) -> dict[str, Any]:
    return {
        "name": str(model.name),
        "repository": model.name.repository,
        "path": str(model.paths[0]),
        "files": [str(path) for path in model.paths],
        "size_bytes": model.size_bytes,
        "problem": model.problem or None,
    }


# Pairs -----------------------------------------------------------------------------------------


def _print_pairs(pairs: Sequence[Known], as_json: bool) -> None:
    if as_json:
        show_json({"pairs": [_pair_json(known) for known in pairs]}, indent=2)
        return
    width = max(len(known.key) for known in pairs)
    show(f"{'NAME':<{width}}  {'target':>8}  {'draft':>8}  {'share':>5}   licence")
    for known in pairs:
        target = bytes_text(known.target.size_bytes)
        draft = bytes_text(known.draft.size_bytes) if known.draft else "-"
        share = f"{known.share:.0%}" if known.draft else "-"
        mark = "*" if known.large_draft else " "
        row = f"{known.key:<{width}}  {target:>8}  {draft:>8}  {share:>5}{mark}  "
        show(textwrap.fill(known.licence, 80, initial_indent=row, subsequent_indent=" " * len(row)))
    show(f"\nto fetch one: {PROG} pull --pair NAME")
    if any(known.large_draft for known in pairs):
        show("*  a large draft: it pays only where passes over several tokens are cheap")
    if any(known.draft is None for known in pairs):
        show("-  no small model is known to fit: the text so far drafts (--drafter lookup)")


def _pair_command(known: Known) -> str:
    return f"{PROG} pull --pair {known.key}"


def _pair_json(known: Known) -> dict[str, Any]:
    return {
        "name": known.key,
        "title": known.name,
        "target": _file_json(known.target),
        "draft": _file_json(known.draft) if known.draft else None,
        "share": known.share if known.draft else None,
        "large_draft": known.large_draft,
        "command": _pair_command(known),
    }


def _file_json(file: HubFile) -> dict[str, Any]:
    return {
        "repository": file.repository,
        "file": file.file,
        "size_bytes": file.size_bytes,
        "licence": file.licence,
    }
