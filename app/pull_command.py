"""`specchat pull`: models from the Hugging Face hub, by name or in known pairs."""

from __future__ import annotations

import contextlib
import io
import json
import shlex
import sys
from collections.abc import Sequence
from typing import Any, cast

from ..models.errors import SpecchatError
from ..models.repository import HubName, parse_name
from .byte_counts import bytes_text
from .exit_codes import DONE, FAILED, INTERRUPTED
from .known_models import HubFile, Known, known_models
from .options import Parser
from .pulling import Pulled, pull
from .terminal import show, tell, tell_failure


def pull_command(parser: Parser, words: Sequence[str]) -> int:
    """Do what the words say; returns the exit code."""
    options = parser.parse_args(words)
    if sum((bool(options.names), options.pair is not None, options.pairs)) != 1:
        parser.error("one of these is needed: names of models, --pair NAME, or --pairs")
    with contextlib.suppress(AttributeError):
        # A path is to come out with the bytes that it has.
        cast("io.TextIOWrapper", sys.stdout).reconfigure(errors="surrogateescape")
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
        names = chat_with = [HubName(file.repository, file.file) for file in known.files]
        lookup = known.draft is None
    return _pull(parser, names, _chat_line(chat_with, lookup), options.json)


def _pull(parser: Parser, names: Sequence[HubName], chat_line: str, as_json: bool) -> int:
    from .pull_progress import shown_on

    try:
        with shown_on(sys.stderr) as watch:
            pulled = pull(names, watch)
    except SpecchatError as error:
        tell_failure(parser.prog, error)
        return FAILED
    except KeyboardInterrupt:
        tell_failure(parser.prog, "stopped; what has come is kept, and the next pull goes on from there")
        return INTERRUPTED
    for model in pulled:
        if model.problem:
            tell_failure(parser.prog, f"it is here, but {model.problem}")
    usable = not any(model.problem for model in pulled)
    if as_json:
        told = {"models": [_as_json(model) for model in pulled], "chat": chat_line if usable else None}
        show(json.dumps(told, indent=2))
        return DONE
    if chat_line and usable:
        tell(f"to chat: {chat_line}")
    for model in pulled:
        show(str(model.paths[0]))
    return DONE


def _name(parser: Parser, word: str) -> HubName:
    name = parse_name(word)
    if name is None:
        parser.error(
            f"{word!a} names nothing on the hub; give owner/name, owner/name:Q4_K_M or owner/name/file.gguf"
        )
    return name


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
        show(json.dumps({"pairs": [_pair_json(known) for known in pairs]}, indent=2))
        return
    commands = [_pair_command(known) for known in pairs]
    width = max(map(len, commands))
    show(f"{'to fetch it':<{width}}  {'target':>8}  {'draft':>8}  {'share':>5}  licence")
    for known, command in zip(pairs, commands, strict=True):
        target = bytes_text(known.target.size_bytes)
        draft = bytes_text(known.draft.size_bytes) if known.draft else "-"
        share = f"{known.share:.0%}" if known.draft else "-"
        show(f"{command:<{width}}  {target:>8}  {draft:>8}  {share:>5}  {known.licence}")


def _pair_command(known: Known) -> str:
    return f"specchat pull --pair {known.key}"


def _pair_json(known: Known) -> dict[str, Any]:
    return {
        "name": known.key,
        "title": known.name,
        "target": _file_json(known.target),
        "draft": _file_json(known.draft) if known.draft else None,
        "share": known.share if known.draft else None,
        "command": _pair_command(known),
    }


def _file_json(file: HubFile) -> dict[str, Any]:
    return {
        "repository": file.repository,
        "file": file.file,
        "size_bytes": file.size_bytes,
        "licence": file.licence,
    }
