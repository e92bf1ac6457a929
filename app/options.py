"""The options that commands share."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import NoReturn

from ..models.built_in_templates import BUILT_IN_TEMPLATES
from .decoding.settings import Sampling
from .exit_codes import UNUSABLE
from .requests import MAX_DRAFT, Drafting
from .terminal import one_line


class Parser(argparse.ArgumentParser):
    """argparse, with errors that fit on one line, and options that may stand among the arguments."""

    def parse_args(  # pyright: ignore[reportIncompatibleMethodOverride] (argparse has overloads)
        self, args: Sequence[str] | None = None, namespace: argparse.Namespace | None = None
    ) -> argparse.Namespace:
        """What the words say; argparse alone takes arguments only where they stand together."""
        words, said = sys.argv[1:] if args is None else args, namespace or argparse.Namespace()
        # After a "--" no word is an option, which argparse forgets where it takes them apart.
        return super().parse_args(words, said) if "--" in words else self.parse_intermixed_args(words, said)

    def error(self, message: str) -> NoReturn:
        """End with exit code 2."""
        self.exit(UNUSABLE, f"{self.prog}: {message} (see {self.prog} --help)\n")

    def exit(self, status: int = 0, message: str | None = None) -> NoReturn:
        """End with this exit code, after one line on stderr that may quote what a stranger wrote."""
        super().exit(status, f"{one_line(message)}\n" if message else None)


@dataclass(frozen=True)
class Number:
    """The type of an option that is a number; called with a word, it gives the number."""

    kind: type[int] | type[float]
    what: str
    fits: Callable[[float], bool]

    def __call__(self, word: str) -> float:
        """The number that the word says.

        Raises:
            argparse.ArgumentTypeError: it says none, or one that does not fit.
        """
        try:
            value = self.kind(word)
        except ValueError:
            value = None
        if value is None or not self.fits(value):
            raise argparse.ArgumentTypeError(f"{word!r} is not {self.what}")
        return value


GGUF, FILE, FOLDER = "GGUF", "FILE", "FOLDER"
"""What an option that names a file shows in its help; shells and the settings file go by it too."""


def options_of(parser: argparse.ArgumentParser) -> Iterator[tuple[str | None, argparse.Action]]:
    """The parser's options and arguments, each with the title of its group."""
    # argparse has no public way to list them; these names have stood since it exists.
    for group in parser._action_groups:  # pyright: ignore[reportPrivateUsage]
        for action in group._group_actions:  # pyright: ignore[reportPrivateUsage]
            yield group.title, action


def add_model_options(parser: argparse.ArgumentParser, *, several: bool = False) -> None:
    """Which models, and how they are loaded; `several` makes lists of them, `targets` and `drafts`."""
    group = parser.add_argument_group("models")
    target = "the model that answers: a file, or a name as specchat pull takes it"
    draft = "a small model of the same family that drafts"
    if several:
        group.add_argument(
            "-m", "--target", dest="targets", action="append", metavar=GGUF, help=f"{target}; may be repeated"
        )
        group.add_argument(
            "-md", "--draft", dest="drafts", action="append", metavar=GGUF, help=f"{draft}; may be repeated"
        )
    else:
        group.add_argument("-m", "--target", metavar=GGUF, help=target)
        group.add_argument("-md", "--draft", metavar=GGUF, help=draft)
    add_context_options(group.add_argument)
    add_threads_option(group.add_argument)
    group.add_argument(
        "-ngl",
        "--gpu-layers",
        type=_whole,
        default=-1,
        metavar="N",
        help="target layers on the GPU (default: all, if there is one)",
    )
    group.add_argument(
        "-ngld",
        "--gpu-layers-draft",
        type=_whole,
        default=-1,
        metavar="N",
        help="draft layers on the GPU (default: all, if there is one)",
    )
    group.add_argument(
        "-fa",
        "--flash-attn",
        choices=("auto", "on", "off"),
        default="auto",
        help="flash attention (default: auto)",
    )
    group.add_argument(
        "--chat-template",
        metavar=FILE,
        help=f"a jinja file, or {' or '.join(BUILT_IN_TEMPLATES)}, in place of the model's own chat template",
    )
    group.add_argument("--log-file", metavar=FILE, help="where llama.cpp's log goes")
    add_memory_check(group.add_argument)


def add_memory_check(add: Callable[..., argparse.Action]) -> None:
    """Whether memory is to be looked at first; `add` is the `add_argument` of a parser or a group."""
    check = add(
        "--memory-check",
        action=argparse.BooleanOptionalAction,
        help="refuse models that would take more memory than is available; --no-memory-check loads them all "
        "the same",
    )
    check.default = True  # set here, or argparse would write it behind the help


def add_context_options(add: Callable[..., object]) -> None:
    """How large a context is and what its cache is made of; `add` is the `add_argument` of a group."""
    add(
        "-c",
        "--ctx-size",
        type=_context,
        default=0,
        metavar="N",
        help="tokens of context (default: 8192, or what the model was trained for if less)",
    )
    types = ("f32", "f16", "bf16", "q8_0", "q5_1", "q5_0", "q4_1", "q4_0")
    add(
        "-ctk",
        "--cache-type-k",
        choices=types,
        default="f16",
        metavar="TYPE",
        help=f"type of the K cache: {', '.join(types)} (default: f16)",
    )
    add(
        "-ctv",
        "--cache-type-v",
        choices=types,
        default="f16",
        metavar="TYPE",
        help="type of the V cache (default: f16)",
    )


def add_threads_option(add: Callable[..., object]) -> None:
    """How many threads a pass uses; `add` is the `add_argument` of a group."""
    add(
        "-t",
        "--threads",
        type=_threads,
        default=0,
        metavar="N",
        help="threads (default: one per physical core)",
    )


def add_answer_options(parser: argparse.ArgumentParser) -> None:
    """Sampling and drafting."""
    sampling, drafting = Sampling(), Drafting()
    group = parser.add_argument_group("answers")
    group.add_argument("--system", metavar="TEXT", help="the system prompt")
    group.add_argument(
        "-n",
        "--max-tokens",
        type=_count,
        metavar="N",
        help="the most tokens of an answer (default: until it ends or the context is full)",
    )
    group.add_argument(
        "--temp",
        type=_at_least_zero,
        default=sampling.temperature,
        metavar="X",
        help=f"temperature; 0 always takes the likeliest token (default: {sampling.temperature})",
    )
    group.add_argument(
        "--top-k",
        type=_natural,
        default=sampling.top_k,
        metavar="N",
        help=f"sample among the N likeliest; 0 = all (default: {sampling.top_k})",
    )
    group.add_argument(
        "--top-p",
        type=_share,
        default=sampling.top_p,
        metavar="X",
        help=f"sample among the likeliest that hold this much (default: {sampling.top_p})",
    )
    group.add_argument(
        "--min-p",
        type=_share,
        default=sampling.min_p,
        metavar="X",
        help=f"leave out what is less likely than X times the likeliest (default: {sampling.min_p})",
    )
    group.add_argument(
        "--repeat-penalty",
        type=_penalty,
        default=sampling.repeat_penalty,
        metavar="X",
        help="make the last 64 tokens less likely; 1 = off (default: 1)",
    )
    group.add_argument(
        "-s",
        "--seed",
        type=_natural,
        metavar="N",
        help="draw the same way again (default: a new seed for each answer)",
    )
    group = parser.add_argument_group("drafting")
    group.add_argument(
        "--speculate",
        choices=("auto", "always", "off"),
        default=drafting.speculate,
        help="auto drafts what is expected to pay by what passes cost and drafts are worth here "
        "(default: auto)",
    )
    group.add_argument(
        "--drafter",
        choices=("model", "lookup", "both"),
        default=drafting.drafter,
        help="draft with the draft model, from the text so far, or with what promises more (default: both)",
    )
    group.add_argument(
        "--draft-max",
        type=_draft_length,
        default=drafting.draft_max,
        metavar="N",
        help=f"the most tokens of one draft, 1 to {MAX_DRAFT} (default: as many as pay; 4 with "
        "--speculate always)",
    )
    group.add_argument(
        "--draft-p-min",
        type=_share,
        default=drafting.draft_p_min,
        metavar="X",
        help="with --speculate always, stop a draft before a token that the drafter gives less than this "
        "(default: 0.5)",
    )
    group.add_argument(
        "--draft-sampling",
        choices=("auto", "sampled", "argmax"),
        default=drafting.draft_sampling,
        help="above temperature 0, draw the draft's tokens, take its likeliest, or what is measured to be "
        "accepted more (default: auto)",
    )
    strict = group.add_argument(
        "--strict",
        action=argparse.BooleanOptionalAction,
        help="at temperature 0 bit for bit the plain text: only passes that are found to round like single "
        "ones here",
    )
    strict.default = drafting.strict  # set here, or argparse would write it behind the help
    parser.add_argument(
        "--debug", action="store_true", help="show tracebacks; reports of crashes hold what was said"
    )


def add_run_options(parser: argparse.ArgumentParser) -> None:
    """What a single answer is asked and reported with."""
    group = parser.add_argument_group("one answer")
    group.add_argument(
        "-p", "--prompt", metavar="TEXT", help="the prompt, or - to read it from standard input"
    )
    group.add_argument("--json", action="store_true", help="one JSON object on stdout: text, ids, figures")
    group.add_argument("--verify", action="store_true",
                       help="answer plain and drafted, and report the first difference beside the kernels' "
                       "own noise (with --temp 0)")  # fmt: skip


def add_compare_options(parser: argparse.ArgumentParser) -> None:
    """What contenders are asked, for how long, and where the report goes."""
    group = parser.add_argument_group("comparison")
    group.add_argument(
        "--prompts",
        metavar=FILE,
        help="your own prompts: texts between lines of ---, or JSON lines with kind and prompt",
    )
    group.add_argument(
        "--kinds",
        nargs="+",
        metavar="KIND",
        help="only these kinds of prompt (built in: code, json, edit, explanation, story)",
    )
    group.add_argument(
        "--repeats",
        type=_count,
        default=3,
        metavar="N",
        help="answer each prompt N times at the most; fewer where the figures settle (default: 3)",
    )
    group.add_argument(
        "--time-limit",
        type=_seconds,
        default=540.0,
        metavar="SECONDS",
        help="be done within this: fewer prompts, then shorter answers, where it is short (default: 540)",
    )
    group.add_argument("--report", metavar=FILE, help="write a page with charts (HTML)")
    group.add_argument("--png", metavar=FILE, help="write a picture of the charts")
    group.add_argument("--json", action="store_true", help="one JSON object on stdout in place of the table")


def add_chat_settings(parser: argparse.ArgumentParser) -> None:
    """How the chat looks and where it finds things: for the settings file and the environment, not flags."""
    group = parser.add_argument_group("chat")
    group.add_argument("--theme", metavar="NAME", default="dark", help="the colours (default: dark)")
    panel = group.add_argument(
        "--panel", action=argparse.BooleanOptionalAction, help="show the live panel (default: true)"
    )
    panel.default = True
    group.add_argument(
        "--history",
        metavar=FILE,
        help="the file that keeps conversations, or false for none (default: in the user's data folder)",
    )
    group.add_argument(
        "--no-history", dest="history", action="store_const", const=False, help="keep nothing of what is said"
    )
    group.add_argument(
        "--model-folders", nargs="*", metavar=FOLDER, default=[], help="folders with models to choose from"
    )
    group.add_argument(
        "--editor", metavar="COMMAND", help="what opens a long prompt (default: $VISUAL or $EDITOR)"
    )


def add_config_options(parser: argparse.ArgumentParser) -> None:
    """Which file the settings come from."""
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--config", metavar=FILE, help="another settings file than the user's own")
    which.add_argument("--no-config", action="store_true", help="read no settings file")


_context = Number(int, "a whole number from 64 on", lambda value: value >= 64)
_threads = Number(int, "a whole number from 1 to 512", lambda value: 1 <= value <= 512)
_penalty = Number(float, "a number above 0, at most 10", lambda value: 0 < value <= 10)
_whole = Number(int, "a whole number", lambda _: True)
_count = Number(int, "a whole number from 1 on", lambda value: value >= 1)
_natural = Number(int, "a whole number from 0 on", lambda value: value >= 0)
_draft_length = Number(int, f"a whole number from 1 to {MAX_DRAFT}", lambda value: 1 <= value <= MAX_DRAFT)
_seconds = Number(float, "a number of seconds from 1 on", lambda value: 1 <= value < float("inf"))
_at_least_zero = Number(float, "a number from 0 on", lambda value: 0 <= value < float("inf"))
_share = Number(float, "a number from 0 to 1", lambda value: 0 <= value <= 1)
