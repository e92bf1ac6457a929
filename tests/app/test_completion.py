"""Completion scripts, driven in the shells that are here."""

import shlex
import shutil
import subprocess
from pathlib import Path

import pytest

from specchat.app.completion import script
from specchat.app.options import options_of
from specchat.app.parsers import COMMANDS, SHELLS, chat_parser
from tests.app.test_cli import specchat


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Some models, some other files, a folder."""
    there = tmp_path / "files"
    (there / "more models").mkdir(parents=True)
    for name in ("a b.gguf", "q4.gguf", "notes.txt", "t.jinja", "more models/x.gguf"):
        (there / name).touch()
    return there


def in_bash(folder: Path, *words: str) -> list[str]:
    """What bash offers for the last of the words, as readline splits them."""
    line = f"COMP_WORDS=({shlex.join(words)}); COMP_CWORD={len(words) - 1}; _specchat"
    done = subprocess.run(
        ["bash", "--norc", "-c", f'{script("bash")}\n{line}\nprintf "%s\\n" "${{COMPREPLY[@]}}"'],
        cwd=folder, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert done.stderr == ""
    return sorted(done.stdout.splitlines()) if done.stdout.strip() else []


def in_fish(folder: Path, line: str) -> list[str]:
    """What fish offers at the end of the line, without its descriptions."""
    done = subprocess.run(
        ["fish", "--no-config", "-c", f"{script('fish')}\ncomplete -C {shlex.quote(line)}"],
        cwd=folder, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert done.stderr == ""
    return sorted(offer.split("\t")[0] for offer in done.stdout.splitlines())


def flags_of(name: str) -> list[str]:
    parser = COMMANDS[name]() if name else chat_parser()
    return sorted(flag for _, action in options_of(parser) for flag in action.option_strings)


needs_bash = pytest.mark.skipif(shutil.which("bash") is None, reason="no bash here")
needs_zsh = pytest.mark.skipif(shutil.which("zsh") is None, reason="no zsh here")
needs_fish = pytest.mark.skipif(shutil.which("fish") is None, reason="no fish here")


@pytest.mark.parametrize("shell", SHELLS)
def test_the_command_prints_the_script(shell: str):
    done = specchat("completion", shell)
    assert (done.returncode, done.stdout, done.stderr) == (0, script(shell), "")


def test_another_shell_is_one_line_and_exit_code_two():
    done = specchat("completion", "tcsh")
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)


@pytest.mark.parametrize("shell", SHELLS)
@pytest.mark.parametrize("name", ["", *COMMANDS])
def test_every_command_and_option_is_in_every_script(shell: str, name: str):
    for flag in flags_of(name):
        assert flag.lstrip("-") in script(shell)
    assert name in script(shell)


@needs_bash
@pytest.mark.parametrize("name", ["", *COMMANDS])
def test_bash_offers_all_options_of_a_command(folder: Path, name: str):
    assert in_bash(folder, "specchat", *([name] if name else []), "-") == flags_of(name)


@needs_bash
def test_bash_offers_commands_first_and_only_first(folder: Path):
    assert in_bash(folder, "specchat", "co") == ["compare", "completion", "config"]
    assert set(COMMANDS) < set(in_bash(folder, "specchat", ""))
    assert in_bash(folder, "specchat", "--strict", "co") == []
    assert in_bash(folder, "specchat", "completion", "") == ["bash", "fish", "zsh"]


@needs_bash
def test_bash_offers_choices(folder: Path):
    assert in_bash(folder, "specchat", "run", "--drafter", "") == ["both", "lookup", "model"]
    assert in_bash(folder, "specchat", "-fa", "o") == ["off", "on"]
    assert in_bash(folder, "specchat", "--cache-type-k", "=", "q8") == ["q8_0"]
    assert in_bash(folder, "specchat", "--drafter", "=") == ["both", "lookup", "model"]


@needs_bash
@pytest.mark.parametrize("before", [["-m"], ["run", "-md"], ["inspect"], ["inspect", "x.gguf"], ["-m", "="]])
def test_bash_offers_models_and_folders_where_a_model_belongs(folder: Path, before: list[str]):
    assert in_bash(folder, "specchat", *before, "") == ["a b.gguf", "more models", "q4.gguf"]
    assert in_bash(folder, "specchat", *before, "more models/") == ["more models/x.gguf"]


@needs_bash
def test_bash_offers_files_for_a_file_and_nothing_for_a_number(folder: Path):
    everything = ["a b.gguf", "more models", "notes.txt", "q4.gguf", "t.jinja"]
    assert in_bash(folder, "specchat", "--chat-template", "") == everything
    assert in_bash(folder, "specchat", "run", "--temp", "") == []


@needs_zsh
def test_zsh_reads_the_script(tmp_path: Path):
    path = tmp_path / "_specchat"
    path.write_text(script("zsh"))
    subprocess.run(["zsh", "-f", "-n", path], check=True)
    check = "autoload -Uz compinit; compinit -u -D; source $1; [[ $_comps[specchat] == _specchat ]]"
    subprocess.run(["zsh", "-f", "-c", check, "zsh", path], check=True, cwd=tmp_path)


@needs_fish
def test_fish_offers_commands_options_choices_and_models(folder: Path):
    assert in_fish(folder, "specchat co") == ["compare", "completion", "config"]
    assert in_fish(folder, "specchat run co") == []
    assert in_fish(folder, "specchat completion ") == ["bash", "fish", "zsh"]
    assert in_fish(folder, "specchat run --drafter ") == ["both", "lookup", "model"]
    assert set(flags_of("run")) & {"--verify", "--json"} <= set(in_fish(folder, "specchat run --"))
    assert "--verify" not in in_fish(folder, "specchat --")
    offered = in_fish(folder, "specchat -m ")
    assert {"q4.gguf", "more models/"} <= {name.replace("\\ ", " ") for name in offered}
    assert "q4.gguf" in in_fish(folder, "specchat inspect ")
    assert in_fish(folder, "specchat run --temp ") == []
