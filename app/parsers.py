"""The parser of each command: what can be said on the command line."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping

from .known_models import known_models
from .options import (
    FILE,
    GGUF,
    Number,
    Parser,
    add_answer_options,
    add_chat_settings,
    add_compare_options,
    add_config_options,
    add_context_options,
    add_memory_check,
    add_model_options,
    add_run_options,
    add_threads_option,
    options_of,
)

PROG = "specchat"
VERSION = "0.1.0"

_threads = Number(int, "a whole number from 1 to 512", lambda value: 1 <= value <= 512)
_whole = Number(int, "a whole number", lambda _: True)
_seconds = Number(float, "a number of seconds above 0", lambda value: 0 < value < float("inf"))
_share = Number(float, "a number from 0 to 1", lambda value: 0 <= value <= 1)

SHELLS = ("bash", "zsh", "fish")


def _pair(word: str) -> str:
    """The name of a known pair, in the case that it is listed in.

    Raises:
        argparse.ArgumentTypeError: there is none; the message has the nearest names.
    """
    names = [known.key for known in known_models()]
    if word.lower() in names:
        return word.lower()
    from difflib import get_close_matches

    nearest = get_close_matches(word.lower(), names, n=3, cutoff=0.4)
    meant = f"perhaps {', '.join(nearest)}; " if nearest else ""
    raise argparse.ArgumentTypeError(f"there is no pair {word!a}; {meant}specchat pull --pairs lists all")


def chat_parser() -> Parser:
    """The chat, which is what happens without a command."""
    parser = Parser(
        prog=PROG,
        description="Chat with a local GGUF model in the terminal; a small draft model makes it faster, "
        "and changes nothing else.",
        epilog="commands: specchat run (one answer on stdout), specchat inspect (files and pairs, from the "
        "headers), specchat pull (models from the Hugging Face hub), specchat compare (which draft pays "
        "here, measured), specchat derive (a draft out of a model's file), specchat doctor (what a report of "
        "a bug needs), specchat history (what was said), "
        "specchat demo (a small packaged model), specchat config (the settings in force), specchat "
        "completion (for your shell). Each has its own --help.",
    )
    add_model_options(parser)
    add_answer_options(parser)
    add_chat_settings(parser)
    add_config_options(parser)
    parser.add_argument(
        "-C", "--continue", dest="go_on", action="store_true", help="go on with the last conversation"
    )
    parser.add_argument("--version", action="version", version=f"{PROG} {VERSION}")
    return parser


def run_parser() -> Parser:
    """One answer."""
    parser = Parser(
        prog=f"{PROG} run",
        description="Answer one prompt: the answer on stdout, the figures on stderr.",
    )
    add_model_options(parser)
    add_answer_options(parser)
    add_run_options(parser)
    add_config_options(parser)
    return parser


def demo_parser() -> Parser:
    """The packaged model."""
    parser = Parser(
        prog=f"{PROG} demo",
        description="Chat with the small packaged model, drafted from the text so far (repeat penalty 1.1 "
        "unless another is given). Without a terminal, or with -p, answer once, at temperature 0 and without "
        "a penalty: a built-in prompt asks for an edit of a given text. Of your settings only [chat], [keys] "
        "and presets count here.",
    )
    add_model_options(parser)
    add_answer_options(parser)
    add_run_options(parser)
    add_config_options(parser)
    parser.set_defaults(drafter="lookup", temp=None, repeat_penalty=None)
    return parser


def inspect_parser() -> Parser:
    """Files, and the pairs they make."""
    parser = Parser(
        prog=f"{PROG} inspect",
        description="Say what GGUF files are and what memory they take, from the headers. Of several, the "
        "first is taken as the target, and each other is judged as its draft.",
    )
    parser.add_argument("files", nargs="+", metavar=GGUF, help="a model: a target, then drafts")
    add_context_options(parser.add_argument_group("memory").add_argument)
    parser.add_argument("--json", action="store_true", help="one JSON object on stdout")
    return parser


def doctor_parser() -> Parser:
    """The machine and what is installed."""
    parser = Parser(
        prog=f"{PROG} doctor",
        description="Say what a report of a bug needs: versions, what llama.cpp was built for, how fast "
        "memory and passes are here, a test of passes in a process of its own, folders, the terminal. "
        "The exit code is 1 where something failed. Nothing of your conversations is shown.",
    )
    parser.add_argument("-m", "--target", metavar=GGUF, help="a model to test with (default: the demo's)")
    add_threads_option(parser.add_argument)
    parser.add_argument("--json", action="store_true", help="one JSON object on stdout")
    return parser


def pull_parser() -> Parser:
    """Models from the hub."""
    parser = Parser(
        prog=f"{PROG} pull",
        description="Fetch models from the Hugging Face hub into its shared cache, whole, and print where "
        "each (its first part) is. What was cut off goes on where it stopped. --target and --draft take the "
        "same names. HF_TOKEN, HF_ENDPOINT, HF_HUB_OFFLINE, HF_HUB_CACHE and HF_HOME are honoured.",
    )
    parser.add_argument(
        "names", nargs="*", metavar="NAME",
        help="owner/name:Q4_K_M (that quantization), owner/name (the one most people want: Q4_K_M, else "
        "Q4_0, else the nearest), owner/name/file.gguf, or the address of either on the hub; several are "
        "fetched in turn",
    )  # fmt: skip
    parser.add_argument("--pairs", action="store_true", help="list targets with drafts that are known to fit")
    parser.add_argument(
        "--pair", metavar="NAME", type=_pair, choices=[known.key for known in known_models()],
        help="fetch one of those pairs",
    )  # fmt: skip
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    return parser


def compare_parser() -> Parser:
    """Pairs, measured."""
    parser = Parser(
        prog=f"{PROG} compare",
        description="Measure what drafts are worth here: plain decoding, the text so far, and each draft "
        "answer the same prompts one after another. Prints a table and what to use. Of your settings only "
        "[models] count: what is asked is the same for everybody.",
    )
    add_model_options(parser, several=True)
    add_answer_options(parser)
    add_compare_options(parser)
    add_config_options(parser)
    parser.set_defaults(temp=0.0, max_tokens=160)
    defaults = {
        "temp": "temperature; 0 always takes the likeliest token (default: 0)",
        "max_tokens": "the most tokens of an answer (default: 160)",
    }
    for _, option in options_of(parser):
        option.help = defaults.get(option.dest, option.help)
    return parser


def derive_parser() -> Parser:
    """A draft out of a model's own file."""
    parser = Parser(
        prog=f"{PROG} derive",
        description="Make a draft from a model's own file: in a quicker quantization, or without some of its "
        "layers, or both. It is kept in the cache folder and named by its recipe; what is there already is "
        "never overwritten. Its path alone goes to stdout, what was measured to stderr.",
    )
    parser.add_argument("model", metavar=GGUF, help="the file to make it from")
    parser.add_argument(
        "--quant", metavar="TYPE",
        help="requantize: Q4_0, Q8_0, Q4_K_M, ...; auto measures which is quickest on this machine",
    )  # fmt: skip
    parser.add_argument(
        "--output-type", metavar="TYPE",
        help="with --quant, the type of the output matrix (default: as llama.cpp mixes it)",
    )  # fmt: skip
    parser.add_argument(
        "--skip-layers", metavar="LIST",
        help="leave out these layers, counted from 0 (4,9-12); auto searches which",
    )  # fmt: skip
    parser.add_argument(
        "-o",
        "--output",
        metavar=FILE,
        help="the draft's file, or a folder for it (default: the cache folder)",
    )
    parser.add_argument(
        "--search-time", type=_seconds, default=240.0, metavar="S",
        help="seconds that the search for layers takes (default: 240); Ctrl+C ends it with the best so far",
    )  # fmt: skip
    parser.add_argument(
        "--agreement", type=_share, default=0.85, metavar="X",
        help="with --quant auto, the share of tokens to guess as the file itself does (default: 0.85)",
    )  # fmt: skip
    parser.add_argument(
        "-t", "--threads", type=_threads, default=0, metavar="N",
        help="threads (default: one per physical core)",
    )  # fmt: skip
    parser.add_argument(
        "-ngl", "--gpu-layers", type=_whole, default=-1, metavar="N",
        help="layers on the GPU while measuring (default: all, if there is one)",
    )  # fmt: skip
    add_memory_check(parser.add_argument)
    parser.add_argument(
        "--json", action="store_true", help="one JSON object on stdout: path, recipe, figures"
    )
    parser.add_argument(
        "--debug", action="store_true", help="show tracebacks; reports of crashes hold what was said"
    )
    return parser


def history_parser() -> Parser:
    """Conversations that were kept."""
    parser = Parser(
        prog=f"{PROG} history",
        description="Conversations that the chat has kept: list them, search for words that were said, "
        "export one to stdout (the branch in view as Markdown, all branches with --json), delete one.",
    )
    parser.add_argument(
        "action", nargs="?", default="list", choices=("list", "search", "export", "delete"),
        help="what to do (default: list); delete asks nothing",
    )  # fmt: skip
    parser.add_argument("words", nargs="*", help="the words to search for, or the number of a conversation")
    parser.add_argument("--json", action="store_true", help="one JSON object on stdout")
    parser.add_argument("--file", metavar="FILE", help="another history than the chat's own")
    return parser


def config_parser() -> Parser:
    """The settings."""
    parser = Parser(
        prog=f"{PROG} config",
        description="Print the settings in force and where each comes from, as a settings file would "
        "say them. A flag goes before its variable (SPECCHAT_TEMP, ...), and that before the settings file.",
    )
    group = parser.add_argument_group("what to print").add_mutually_exclusive_group()
    group.add_argument("--path", action="store_true", help="only where the settings file is")
    group.add_argument(
        "--init", action="store_true", help="write a settings file to fill in, if there is none"
    )
    group.add_argument("--json", action="store_true", help="one JSON object: values and sources")
    add_model_options(parser)
    add_answer_options(parser)
    add_config_options(parser)
    return parser


def completion_parser() -> Parser:
    """Completion for a shell."""
    parser = Parser(
        prog=f"{PROG} completion",
        description="Print a script that completes specchat's commands, options and files. "
        "bash: source <(specchat completion bash) in ~/.bashrc. "
        "zsh: specchat completion zsh > a folder of $fpath/_specchat. "
        "fish: specchat completion fish > ~/.config/fish/completions/specchat.fish.",
    )
    parser.add_argument("shell", choices=SHELLS, help="your shell")
    return parser


COMMANDS: Mapping[str, Callable[[], Parser]] = {
    "run": run_parser,
    "inspect": inspect_parser,
    "pull": pull_parser,
    "compare": compare_parser,
    "doctor": doctor_parser,
    "derive": derive_parser,
    "history": history_parser,
    "demo": demo_parser,
    "config": config_parser,
    "completion": completion_parser,
}
"""The parser of each command by its name; the chat's is `chat_parser`."""
