"""`specchat completion`: scripts that complete commands, options and files, written from the parsers."""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from .options import FILE, FOLDER, GGUF, options_of
from .parsers import COMMANDS, PROG, chat_parser

Takes = Literal["nothing", "text", "choice", "gguf", "file", "folder"]

_CHAT = "chat"
_MODELS = ("target", "draft")
_NAMED: dict[str, Takes] = {GGUF: "gguf", FILE: "file", FOLDER: "folder"}


@dataclass(frozen=True)
class Word:
    """An option, or an argument (which has no flags), and what may stand there."""

    flags: tuple[str, ...]
    help: str
    takes: Takes
    choices: tuple[str, ...] = ()
    required: bool = False


@dataclass(frozen=True)
class CommandLine:
    """A command, and everything that can be said to it."""

    name: str
    help: str
    words: tuple[Word, ...]

    @property
    def options(self) -> list[Word]:
        """What begins with a hyphen."""
        return [word for word in self.words if word.flags]

    @property
    def arguments(self) -> list[Word]:
        """What stands for itself."""
        return [word for word in self.words if not word.flags]


def script(shell: str) -> str:
    """The completion script for bash, zsh or fish."""
    lines = [_command(_CHAT, chat_parser()), *(_command(name, make()) for name, make in COMMANDS.items())]
    return {"bash": _bash, "zsh": _zsh, "fish": _fish}[shell](lines)


def _command(name: str, parser: argparse.ArgumentParser) -> CommandLine:
    said = re.split(r"(?<=[.:]) ", parser.description or "")[0].rstrip(".:")
    return CommandLine(name, said, tuple(_word(action) for _, action in options_of(parser)))


def _word(action: argparse.Action) -> Word:
    choices = tuple(map(str, action.choices or ()))
    takes: Takes = "choice" if choices else "text"
    if action.nargs == 0:
        takes = "nothing"
    elif action.dest in _MODELS:
        takes = "gguf"
    elif isinstance(action.metavar, str):
        takes = _NAMED.get(action.metavar, takes)
    return Word(tuple(action.option_strings), action.help or "", takes, choices, action.required)


def _bash(lines: Sequence[CommandLine]) -> str:
    names = " ".join(line.name for line in lines if line.name != _CHAT)
    cases: list[str] = []
    for line in lines:
        cases += [f"        {line.name})", "            case $prev in"]
        for takes, choices, flags in _by_value(line.options):
            cases.append(f"                {'|'.join(flags)}) _specchat_value {takes} '{choices}'; return ;;")
        cases.append("            esac")
        for word in line.arguments[:1]:
            cases.append(
                f"            [[ $cur == -* ]] || {{ _specchat_value {word.takes} "
                f"'{' '.join(word.choices)}'; return; }}"
            )
        flags = " ".join(flag for word in line.options for flag in word.flags)
        also = " $names" if line.name == _CHAT else ""
        cases += [f'            _specchat_value choice "{flags}{also}" ;;']
    return f"""\
# specchat's completion for bash: source <(specchat completion bash)
_specchat_value() {{
    local reply kind=$1
    case $kind in
        choice) kind=(-W "$2") ;;
        gguf|file) kind=(-f) ;;
        folder) kind=(-d) ;;
        *) return ;;
    esac
    while IFS= read -r reply; do
        if [[ $1 != gguf || $reply == *.gguf || -d ${{reply/#\\~/$HOME}} ]]; then COMPREPLY+=("$reply"); fi
    done < <(compgen "${{kind[@]}}" -- "$cur")
    if [[ $1 != choice ]]; then compopt -o filenames 2>/dev/null; fi
}}
_specchat() {{
    local cur=${{COMP_WORDS[COMP_CWORD]}} prev=${{COMP_WORDS[COMP_CWORD-1]}} command={_CHAT}
    local names="{names}"
    COMPREPLY=()
    # --option=value comes as three words.
    if [[ $cur == = ]]; then
        cur=
    elif [[ $prev == = ]]; then
        prev=${{COMP_WORDS[COMP_CWORD-2]}}
    fi
    if (( COMP_CWORD > 1 )) && [[ " $names " == *" ${{COMP_WORDS[1]}} "* ]]; then
        command=${{COMP_WORDS[1]}}
    elif (( COMP_CWORD > 1 )); then
        names=
    fi
    case $command in
{chr(10).join(cases)}
    esac
}}
complete -F _specchat {PROG}
"""


def _by_value(options: Iterable[Word]) -> list[tuple[Takes, str, list[str]]]:
    """The options that take a value, those with the same values together."""
    groups: dict[tuple[Takes, str], list[str]] = {}
    for word in options:
        if word.takes != "nothing":
            groups.setdefault((word.takes, " ".join(word.choices)), []).extend(word.flags)
    return [(takes, choices, flags) for (takes, choices), flags in groups.items()]


def _zsh(lines: Sequence[CommandLine]) -> str:
    files = {"gguf": '_files -g "*.gguf(-.)"', "file": "_files", "folder": "_files -/", "text": " "}

    def quoted(text: str) -> str:
        return "'" + text.replace("'", "'\\''") + "'"

    def spec(word: Word) -> Iterable[str]:
        said = re.sub(r"([\[\]:\\])", r"\\\1", word.help)
        value = f"({' '.join(word.choices)})" if word.choices else files.get(word.takes, "")
        end = "" if word.takes == "nothing" else f":{word.takes}:{value}"
        if not word.flags:
            return [quoted(f"{':' if word.required else '::'}{said}:{value}")]
        others = f"({' '.join(word.flags)})"
        return [
            quoted(f"{others}{flag}{'=' if end and flag.startswith('--') else ''}[{said}]{end}")
            for flag in word.flags
        ]

    cases: list[str] = []
    for line in lines:
        pattern = "*" if line.name == _CHAT else line.name
        specs = " \\\n                ".join(one for word in line.words for one in spec(word))
        cases.append(f"        {pattern})\n            _arguments \\\n                {specs} ;;")
    cases = [*cases[1:], cases[0]]  # the chat's pattern fits everything
    commands = "\n".join(
        f"        {quoted(line.name + ':' + line.help.replace(':', ' '))}"
        for line in lines
        if line.name != _CHAT
    )
    return f"""\
#compdef {PROG}
# specchat's completion for zsh: keep it as _specchat in a folder of $fpath
_specchat() {{
    local -a known
    known=(
{commands}
    )
    if (( CURRENT == 2 )) && [[ $words[2] != -* ]]; then
        _describe command known
        return
    fi
    local command=$words[2]
    if (( $known[(I)${{command}}:*] )); then
        shift words
        (( CURRENT-- ))
    fi
    case $command in
{chr(10).join(cases)}
    esac
}}
if [[ $funcstack[1] == _specchat ]]; then
    _specchat "$@"
else
    compdef _specchat {PROG}
fi
"""


def _fish(lines: Sequence[CommandLine]) -> str:
    def quoted(text: str) -> str:
        return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"

    values = {
        "nothing": "",
        "text": " -x",
        "choice": " -x",
        "gguf": " -x -k -a '(__fish_complete_suffix .gguf)'",
        "file": " -r -F",
        "folder": " -x -a '(__fish_complete_directories)'",
    }
    names = " ".join(line.name for line in lines if line.name != _CHAT)
    told = [
        "# specchat's completion for fish: keep it as ~/.config/fish/completions/specchat.fish",
        "function __specchat_is",
        "    set -l words (commandline -opc)",
        f"    set -l command {_CHAT}",
        f"    if set -q words[2]; and contains -- $words[2] {names}",
        "        set command $words[2]",
        "    end",
        "    test $command = $argv[1]",
        "end",
        "function __specchat_has_one_word",
        "    test (count (commandline -opc)) -eq 1",
        "end",
        f"complete -c {PROG} -f",
    ]
    for line in lines:
        if line.name != _CHAT:
            told.append(
                f"complete -c {PROG} -n __specchat_has_one_word -a {line.name} -d {quoted(line.help)}"
            )
    for line in lines:
        for word in line.words:
            flags = "".join(f" {_fish_flag(flag)}" for flag in word.flags)
            choices = f" -a {quoted(' '.join(word.choices))}" if word.choices else ""
            value = values[word.takes] if word.flags else values[word.takes].replace(" -x", "")
            told.append(
                f"complete -c {PROG} -n '__specchat_is {line.name}'{flags}{value}{choices} "
                f"-d {quoted(word.help)}"
            )
    return "\n".join(told) + "\n"


def _fish_flag(flag: str) -> str:
    if flag.startswith("--"):
        return f"-l {flag[2:]}"
    return f"-s {flag[1:]}" if len(flag) == 2 else f"-o {flag[1:]}"
