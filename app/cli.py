"""The command line: what was asked, in which words, and what the exit code says.

Parsing imports neither the screen nor llama.cpp, so `--help` and a wrong word are answered at once.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, MutableMapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, TypeVar

from .decoding.settings import Sampling
from .exit_codes import DONE, UNUSABLE
from .option_values import answer_options, load_options, log_file
from .options import Parser
from .parsers import COMMANDS, PROG, chat_parser
from .requests import AnswerOptions, LoadOptions
from .settings import ChatSettings, SettingsFile, Value, all_settings, chat_settings, in_force
from .settings_file import chosen_path, read_settings
from .terminal import show, show_json_text, show_path, tell_failure, write_anything

if TYPE_CHECKING:
    from .process import EngineProcess

Result = TypeVar("Result")

_LONGEST_PROMPT = 4_194_304
"""Bytes from standard input: more than contexts hold, and few enough to be told so in seconds."""


class OpenChat(Protocol):
    """Opens the screen on an engine; it is handed in, since nothing here may know the screen."""

    def __call__(
        self,
        engine: EngineProcess,
        load: LoadOptions | None,
        answer: AnswerOptions,
        system: str | None,
        notice: str,
        chat: ChatSettings,
        go_on: bool,
    ) -> int:
        """Chat until the user leaves; returns the exit code.

        Nobody named a model if `load` is `None`; `go_on` opens the last conversation.
        """
        ...


def main(words: Sequence[str], open_chat: OpenChat) -> int:
    """Do what the words of the command line say; returns the exit code."""
    _unset_what_is_empty(os.environ)
    write_anything()
    name, rest = (words[0], words[1:]) if words else ("", words)
    if name == "run":
        return _run(rest)
    if name == "demo":
        return _demo(rest, open_chat)
    if name == "inspect":
        return _inspect(rest)
    if name == "pull":
        from .pull_command import pull_command

        return pull_command(COMMANDS["pull"](), rest)
    if name == "compare":
        return _compare(rest)
    if name == "doctor":
        return _doctor(rest)
    if name == "derive":
        return _derive(rest)
    if name == "history":
        from .history_command import history_command

        return history_command(COMMANDS["history"](), rest)
    if name == "config":
        return _config(rest)
    if name == "completion":
        return _completion(rest)
    if name and not name.startswith("-"):
        *others, last = COMMANDS
        Parser(prog=PROG).error(
            f"a model is named with --target: {PROG} --target {name}"
            if name.endswith(".gguf")
            else f"there is no command {name!r}; there are {', '.join(others)} and {last}"
        )
    return _chat(words, open_chat)


def _unset_what_is_empty(environment: MutableMapping[str, str]) -> None:
    """Forget empty variables of the Hugging Face library, which takes them for an address or a folder."""
    for name in ("HF_ENDPOINT", "HF_HOME", "HF_HUB_CACHE"):
        if not environment.get(name, "unset").strip():
            del environment[name]


def _chat(words: Sequence[str], open_chat: OpenChat) -> int:
    parser = chat_parser()
    options, values, file = _settled(parser, words)
    load = load_options(parser, options) if options.target is not None else None
    return _open_chat(parser, options, load, open_chat, chat_settings(values, file))


def _run(words: Sequence[str]) -> int:
    parser = COMMANDS["run"]()
    options, _, file = _settled(parser, words)
    if options.target is None:
        in_file = f", or target under [models] in {file.path}" if file.path is not None else ""
        parser.error(f"a model is needed: -m/--target{in_file}")
    if options.prompt is None:
        parser.error("a prompt is needed: -p TEXT, or -p - to read it from standard input")
    return _answer_once(parser, options, load_options(parser, options), options.prompt)


def _demo(words: Sequence[str], open_chat: OpenChat) -> int:
    from .demo import DEMO_NOTICE, DEMO_PROMPT, DEMO_REPEAT_PENALTY, demo_model

    parser = COMMANDS["demo"]()
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
        # How the chat looks is the user's own; what it does is the demo's.
        _, values, file = _settled(parser, words)
        return _open_chat(parser, options, load, open_chat, chat_settings(values, file), DEMO_NOTICE)
    if options.max_tokens is None:
        options.max_tokens = 256
    return _answer_once(parser, options, load, options.prompt or DEMO_PROMPT)


def _inspect(words: Sequence[str]) -> int:
    parser = COMMANDS["inspect"]()
    options = parser.parse_args(words)
    from .inspecting import inspect
    from .processor import this_processor

    target, *others = options.files
    wanted = LoadOptions(
        target=target,
        ctx_size=options.ctx_size,
        cache_type_k=options.cache_type_k,
        cache_type_v=options.cache_type_v,
    )
    return inspect(wanted, others, this_processor(), options.json, parser.prog)


def _doctor(words: Sequence[str]) -> int:
    parser = COMMANDS["doctor"]()
    options = parser.parse_args(words)
    from .doctor import Surroundings, doctor

    return _or_exit(parser, lambda: doctor(options.target, options.threads, options.json, Surroundings()))


def _compare(words: Sequence[str]) -> int:
    parser = COMMANDS["compare"]()
    options, _, _ = _settled(parser, words)
    # How models are loaded is a matter of settings; what they are asked is said here or built in.
    said = parser.parse_args(words)
    said.target = said.draft = None
    if said.targets is None:
        said.targets = [options.target] if options.target else []
        said.drafts = said.drafts or ([options.draft] if options.draft else [])
    said.drafts = [draft for draft in said.drafts or () if draft]
    if not said.targets:
        parser.error("a model is needed: -m/--target")
    load = replace(load_options(parser, options), target="", draft=None)
    answer, log = answer_options(parser, said), log_file(parser, said)
    from .crash_report import settings_of
    from .guarded import Called, guarded
    from .model_commands import compare

    models = (*said.targets, *said.drafts)
    settings = {**settings_of(load, answer), "models": models}
    called = Called(parser.prog, models, log, settings, (said.system or "",), said.debug)
    return guarded(compare, (load, answer, log, said), called)


def _derive(words: Sequence[str]) -> int:
    parser = COMMANDS["derive"]()
    options = parser.parse_args(words)
    from .guarded import Called, guarded
    from .model_commands import derive

    called = Called(parser.prog, (options.model,), settings=vars(options), debug=options.debug)
    return guarded(derive, (words,), called)


def _config(words: Sequence[str]) -> int:
    from .config_command import as_json, as_toml, unknown_variables, write_template

    parser = COMMANDS["config"]()
    options = parser.parse_args(words)
    path = chosen_path(options.config, options.no_config, os.environ)
    if options.path or options.init:
        if path is None:
            parser.error("with --no-config there is no settings file")
        if options.init:
            _or_exit(parser, lambda: write_template(path, all_settings()))
        show_path(path)
        return DONE
    _, values, file = _settled(parser, words)
    written = (as_json if options.json else as_toml)(all_settings(), values, file, Path.cwd())
    (show_json_text if options.json else show)(written)
    for line in unknown_variables(all_settings(), os.environ):
        tell_failure(parser.prog, line)
    return DONE


def _completion(words: Sequence[str]) -> int:
    options = COMMANDS["completion"]().parse_args(words)
    from .completion import script

    show(script(options.shell), end="")
    return DONE


def _settled(
    parser: Parser, words: Sequence[str]
) -> tuple[argparse.Namespace, dict[str, Value], SettingsFile]:
    """The options, where no flag says them as the environment, the settings file or the default has it."""
    known, not_said = all_settings(), object()
    # argparse leaves alone what the namespace has already: what is not said stays `not_said`.
    options = parser.parse_args(words, argparse.Namespace(**{setting.dest: not_said for setting in known}))
    flags = {name: value for name, value in vars(options).items() if value is not not_said}
    path = chosen_path(options.config, options.no_config, os.environ)

    def settle() -> tuple[argparse.Namespace, dict[str, Value], SettingsFile]:
        file = read_settings(path, known)
        values = in_force(known, flags, os.environ, file)
        vars(options).update({name: said.value for name, said in values.items()})
        return options, values, file

    return _or_exit(parser, settle)


def _open_chat(
    parser: Parser,
    options: argparse.Namespace,
    load: LoadOptions | None,
    open_chat: OpenChat,
    chat: ChatSettings,
    notice: str = "",
) -> int:
    if not _at_a_terminal():
        parser.error('the chat needs a terminal; for one answer on stdout use specchat run -p "..."')
    answer, log = answer_options(parser, options), log_file(parser, options)
    from .process import EngineProcess

    go_on = getattr(options, "go_on", False)
    chat = replace(chat, debug=options.debug)
    return open_chat(EngineProcess(log), load, answer, options.system, notice, chat, go_on)


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
        piped = sys.stdin.buffer.read(_LONGEST_PROMPT + 1)
        if len(piped) > _LONGEST_PROMPT:
            parser.error(f"standard input has more than {_LONGEST_PROMPT:,} bytes: give a part of it")
        prompt = piped.decode("utf-8", errors="replace")
    if not prompt.strip():
        parser.error("the prompt is empty")
    from .crash_report import settings_of
    from .guarded import Called, guarded
    from .model_commands import answer_once

    models = (load.target, load.draft) if load.draft else (load.target,)
    said = (prompt, options.system or "")
    called = Called(parser.prog, models, log, settings_of(load, answer), said, options.debug)
    return guarded(answer_once, (load, answer, prompt, log, parser.prog, options), called)


def _or_exit(parser: Parser, work: Callable[[], Result]) -> Result:
    """The work's result, or one line on stderr and exit code 2 for what the user can mend."""
    from ..models.errors import SpecchatError

    try:
        return work()
    except SpecchatError as error:
        parser.exit(UNUSABLE, f"{parser.prog}: {error}\n")
