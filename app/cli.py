"""The command line: what was asked, in which words, and what the exit code says.

Parsing imports neither the screen nor llama.cpp, so `--help` and a wrong word are answered at once.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from typing import Protocol, TypeVar

from .decoding.settings import Sampling
from .exit_codes import UNUSABLE
from .options import (
    Parser,
    add_answer_options,
    add_model_options,
    add_run_options,
    answer_options,
    load_options,
    log_file,
)
from .process import EngineProcess
from .requests import AnswerOptions, LoadOptions

PROG = "specchat"
VERSION = "0.1.0"

Result = TypeVar("Result")


class OpenChat(Protocol):
    """Opens the screen on an engine; it is handed in, since nothing here may know the screen."""

    def __call__(
        self,
        engine: EngineProcess,
        load: LoadOptions,
        answer: AnswerOptions,
        system: str | None,
        notice: str,
    ) -> int:
        """Chat until the user leaves; returns the exit code."""
        ...


def main(words: Sequence[str], open_chat: OpenChat) -> int:
    """Do what the words of the command line say; returns the exit code."""
    if words[:1] == ["run"]:
        return _run(words[1:])
    if words[:1] == ["demo"]:
        return _demo(words[1:], open_chat)
    if words[:1] == ["inspect"]:
        return _inspect(words[1:])
    if words[:1] == ["history"]:
        from .history_command import history_command

        return history_command(f"{PROG} history", words[1:])
    if words and not words[0].startswith("-"):
        Parser(prog=PROG).error(
            f"a model is named with --target: {PROG} --target {words[0]}"
            if words[0].endswith(".gguf")
            else f"there is no command {words[0]!r}; there are run, demo, inspect and history"
        )
    return _chat(words, open_chat)


def _chat(words: Sequence[str], open_chat: OpenChat) -> int:
    parser = Parser(
        prog=PROG,
        description="Chat with a local GGUF model in the terminal; a small draft model makes it faster, "
        "and changes nothing else.",
        epilog="commands: specchat run (one answer on stdout), specchat inspect (a file or a pair, from "
        "the headers), specchat history (conversations that were kept), specchat demo (a small packaged "
        "model). Each has its own --help.",
    )
    add_model_options(parser, required=True)
    add_answer_options(parser)
    parser.add_argument("--version", action="version", version=f"{PROG} {VERSION}")
    options = parser.parse_args(words)
    return _open_chat(parser, options, load_options(parser, options), open_chat)


def _run(words: Sequence[str]) -> int:
    parser = Parser(
        prog=f"{PROG} run",
        description="Answer one prompt: the answer on stdout, the figures on stderr.",
    )
    add_model_options(parser, required=True)
    add_answer_options(parser)
    add_run_options(parser)
    options = parser.parse_args(words)
    if options.prompt is None:
        parser.error("a prompt is needed: -p TEXT, or -p - to read it from standard input")
    return _answer_once(parser, options, load_options(parser, options), options.prompt)


def _demo(words: Sequence[str], open_chat: OpenChat) -> int:
    from .demo import DEMO_NOTICE, DEMO_PROMPT, DEMO_REPEAT_PENALTY, demo_model

    parser = Parser(
        prog=f"{PROG} demo",
        description="Chat with the small packaged model, drafted from the text so far (repeat penalty 1.1 "
        "unless another is given). Without a terminal, or with -p, answer once, at temperature 0 and without "
        "a penalty: a built-in prompt asks for an edit of a given text.",
    )
    add_model_options(parser, required=False)
    add_answer_options(parser)
    add_run_options(parser)
    parser.set_defaults(drafter="lookup", temp=None, repeat_penalty=None)
    options = parser.parse_args(words)
    if options.target is None:
        options.target = str(_or_exit(parser, demo_model))
    load = load_options(parser, options)
    chatting = options.prompt is None and _at_a_terminal() and not options.json
    # One answer is the same one each time; in a chat, so small a model would soon go round in circles.
    if options.temp is None:
        options.temp = Sampling().temperature if chatting else 0.0
    if options.repeat_penalty is None:
        options.repeat_penalty = DEMO_REPEAT_PENALTY if chatting else Sampling().repeat_penalty
    if chatting:
        return _open_chat(parser, options, load, open_chat, DEMO_NOTICE)
    if options.max_tokens is None:
        options.max_tokens = 256
    return _answer_once(parser, options, load, options.prompt or DEMO_PROMPT)


def _inspect(words: Sequence[str]) -> int:
    parser = Parser(
        prog=f"{PROG} inspect",
        description="Say what a GGUF file is, and whether a draft can serve a target, from the headers.",
    )
    parser.add_argument("target", help="a GGUF file")
    parser.add_argument("draft", nargs="?", help="a GGUF file that may draft for it")
    options = parser.parse_args(words)
    from .inspecting import inspect

    return _or_exit(parser, lambda: inspect(options.target, options.draft))


def _open_chat(
    parser: Parser, options: argparse.Namespace, load: LoadOptions, open_chat: OpenChat, notice: str = ""
) -> int:
    if not _at_a_terminal():
        parser.error('the chat needs a terminal; for one answer on stdout use specchat run -p "..."')
    answer = answer_options(parser, options)
    return open_chat(EngineProcess(log_file(parser, options)), load, answer, options.system, notice)


def _at_a_terminal() -> bool:
    """Whether there is a screen: Textual reads from standard input and draws on standard error."""
    return all(stream.isatty() for stream in (sys.stdin, sys.stdout, sys.stderr))


def _answer_once(parser: Parser, options: argparse.Namespace, load: LoadOptions, prompt: str) -> int:
    answer = answer_options(parser, options)
    if options.verify and answer.sampling.temperature > 0:
        parser.error("--verify compares token by token, which only means something with --temp 0")
    if options.verify and options.drafter == "model" and options.draft is None:
        parser.error("--verify compares with a drafted answer: give --draft, or --drafter lookup")
    log = log_file(parser, options)
    if prompt == "-":
        prompt = sys.stdin.buffer.read().decode("utf-8", errors="replace")
    if not prompt.strip():
        parser.error("the prompt is empty")
    from .running import run_once

    return run_once(
        load, answer, prompt, options.system, as_json=options.json, verify=options.verify,
        log_file=log, debug=options.debug, name=parser.prog,
    )  # fmt: skip


def _or_exit(parser: Parser, work: Callable[[], Result]) -> Result:
    """The work's result, or one line on stderr and exit code 2 for what the user can mend."""
    from ..models.errors import SpecchatError

    try:
        return work()
    except SpecchatError as error:
        parser.exit(UNUSABLE, f"{parser.prog}: {error}\n")
