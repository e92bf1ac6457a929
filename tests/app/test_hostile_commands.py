"""Commands with names and texts from strangers: harmless at a terminal, whole in a pipe, valid as JSON."""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from specchat.app.cli import main
from specchat.app.doctor import Surroundings, doctor
from specchat.app.history import History, default_path
from specchat.app.processor import Processor
from specchat.app.sharing import without_home
from specchat.app.terminal import json_text, show_json, show_path, tell_traceback, write_anything
from specchat.tui import entry
from tests.app.failing_self_tests import leaving
from tests.app.hub_server import Hub
from tests.app.test_harmless_output import screens
from tests.hostile_text import SEQUENCES, hostile_text, is_harmless
from tests.tiny_models import write_tiny_model

HOSTILE = "".join(SEQUENCES)
FOLDER = "a\x1b[2J\u202e\x9b[@click=app.bell]<b>\u0301\udcff\nb"
SCRIPT = "</script><script>alert(1)</script>[red]"
OWN = r"\x1b\[[0-9;?]*[A-Za-z]|\r"
"""What bars and lines that are drawn again move the cursor by."""


@dataclass(frozen=True)
class Said:
    """What a command has printed, at a terminal and into pipes."""

    code: object
    out: str
    err: str
    piped: bytes

    @property
    def told(self) -> dict[str, object]:
        """The JSON in the pipe; that at the terminal says the same."""
        assert json.loads(self.out).keys() == json.loads(self.piped).keys()
        return json.loads(self.piped)


def said(*words: object) -> Said:
    """What a command prints, in which nothing steers a terminal."""
    out, err = at_a_terminal(*words)
    code, through_pipe = in_a_pipe(*words)
    return Said(code, out, err, through_pipe)


def at_a_terminal(*words: object) -> tuple[str, str]:
    """What a command shows, harmlessly."""
    with screens() as (out, err), contextlib.suppress(SystemExit):
        main([str(word) for word in words], None)  # type: ignore[arg-type]
    assert is_harmless(out.getvalue())
    assert is_harmless(err.getvalue(), OWN)
    assert not re.search(r"\x1b\[(2J|5;31m|6n)", err.getvalue())
    return out.getvalue(), err.getvalue()


def in_a_pipe(*words: object) -> tuple[object, bytes]:
    """The exit code, and the bytes that come through."""
    code: object = None
    with piped() as pipe:
        try:
            code = main([str(word) for word in words], None)  # type: ignore[arg-type]
        except SystemExit as ended:
            code = ended.code
    return code, pipe()


@contextlib.contextmanager
def piped(encoding: str = "utf-8"):
    """Standard output as Python opens it for a pipe, and what has come through it."""
    into = io.TextIOWrapper(io.BytesIO(), encoding=encoding)
    with contextlib.redirect_stdout(into), contextlib.redirect_stderr(io.StringIO()):
        yield lambda: (into.flush(), into.buffer.getvalue())[1]  # type: ignore[attr-defined]


def as_json_has_it(value: object) -> object:
    """The value; two halves of a character that stand together are one in JSON."""
    return json.loads(json.dumps(value))


@pytest.fixture
def models(tmp_path: Path) -> tuple[Path, Path]:
    """A target and a draft whose folder, names and strings are from strangers."""
    folder = tmp_path / FOLDER
    try:
        folder.mkdir()
    except OSError:
        pytest.skip("this file system takes only UTF-8 as names")
    name = HOSTILE.encode("utf-8", "ignore").decode().replace("\0", "") + SCRIPT
    target = write_tiny_model(folder / "t\x1b]0;t\x07\x9b\u0301<script>.gguf", name=name)
    return target, write_tiny_model(folder / "d\u202e\udcff[red].gguf", name=name, noise=0.1)


@pytest.mark.usefixtures("in_this_process")
def test_models_with_hostile_names_are_inspected_and_derived_from(models: tuple[Path, Path]):
    target, draft = models
    assert said("inspect", target, draft).code == 0
    told = said("inspect", target, draft, "--json").told
    assert [one["path"] for one in told["models"]] == [str(target), str(draft)]  # type: ignore[index, union-attr]

    made = said("derive", draft, "--quant", "Q8_0", "-t", 1, "-o", draft.parent)
    assert made.code == 0
    path = draft.parent / "d\u202e\udcff[red].Q8_0.gguf"
    assert made.piped == bytes(path) + b"\n"
    assert said("derive", draft, "--quant", "Q8_0", "-t", 1, "-o", draft.parent, "--json").told[
        "path"
    ] == str(path)
    assert said("inspect", path).code == 0
    assert said("derive", target, "--skip-layers", "9", "-t", 1).code == 2


@pytest.mark.usefixtures("in_this_process")
def test_a_comparison_of_hostile_names_and_prompts_is_harmless(models: tuple[Path, Path], tmp_path: Path):
    target, draft = models
    prompts = tmp_path / "p\u202e.jsonl"
    prompts.write_text(json.dumps({"kind": f"\x1b[2J\u202e{SCRIPT}", "prompt": "\x1b[2J\ud800"}) + "\n")
    words = ("compare", "-m", target, "-md", draft, "-t", 1, "-c", 256, "-n", 3, "--repeats", 1)
    words = (*words, "--prompts", prompts, "--no-config")
    table, _ = at_a_terminal(*words)
    assert SCRIPT[:9] in table
    code, told = in_a_pipe(*words, "--json")
    assert code == 0
    assert json.loads(told)["contenders"][0]["target"]["path"] == str(target)
    assert is_harmless(told.decode())


def test_conversations_of_strangers_are_listed_found_and_exported():
    with contextlib.closing(History(default_path())) as history:
        kept = history.begin(HOSTILE)
        prompt = history.add(kept, None, "user", f"word {HOSTILE}")
        history.add(kept, prompt, "assistant", HOSTILE, mark="stopped", pair=HOSTILE, record={"x": HOSTILE})
        history.rename(kept, f"{HOSTILE} t")
    for words in (("list",), ("search", "word"), ("export", "1")):
        assert said("history", *words).code == 0
    told = said("history", "export", 1, "--json").told
    text = HOSTILE.encode("utf-8", "replace").decode()
    assert told["messages"][0]["text"] == f"word {text}"  # type: ignore[index]
    assert told["messages"][1]["record"] == as_json_has_it({"x": HOSTILE})  # type: ignore[index]
    assert said("history", "delete", 1).code == 2  # it was deleted at the terminal


def test_settings_of_strangers_are_shown_as_a_file_that_says_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    file = tmp_path / FOLDER
    file.write_text(
        '[answers]\nsystem = "\\u001b[2J\\u202e\\u009b"\n[keys]\n"\\u001b[2J" = "\\u202e"\n'
        '[presets."\\u009b[red]"]\nsystem = "\\u001b]0;t\\u0007"\n'
    )
    monkeypatch.setenv("SPECCHAT_\x1b[2J\u202e", "x")
    shown = said("config", "--config", file)
    assert "\ufffd" not in shown.out
    assert shown.out.encode() == shown.piped
    told = said("config", "--config", file, "--json").told
    assert told["answers"]["system"]["value"] == "\x1b[2J\u202e\x9b"  # type: ignore[index]
    assert said("config", "--config", file, "--path").piped == bytes(file) + b"\n"


def test_the_doctor_tells_of_hostile_surroundings_harmlessly(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    home = tmp_path / FOLDER
    monkeypatch.setattr(Path, "home", lambda: home)
    hostile = HOSTILE.replace("\0", "")
    for name in ("XDG_CONFIG_HOME", "XDG_CACHE_HOME"):
        monkeypatch.setenv(name, str(home / name))
    environment = {**os.environ, "TERM": hostile, "TERM_PROGRAM": hostile, "SPECCHAT_CONFIG": str(home)}
    processor = Processor(hostile, frozenset({hostile}))
    surroundings = Surroundings(environment, lambda: processor, leaving)
    with screens() as (out, _):
        doctor(None, 1, True, surroundings)
    assert is_harmless(out.getvalue())
    told = json.loads(out.getvalue())
    assert told["terminal"]["TERM"] == as_json_has_it(hostile)
    assert told["folders"]["settings"]["path"].startswith("~")


def test_a_home_is_left_out_however_json_writes_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    for name in ('a"b\\c', "zoë", FOLDER):
        monkeypatch.setattr(Path, "home", lambda name=name: tmp_path / name)
        for steering in ("", "\x1b"):
            text = json_text({"path": f"{tmp_path / name}/x", "more": steering})
            assert json.loads(without_home(text))["path"] == "~/x"


@pytest.mark.parametrize("name", ["\x1b[2J\n.gguf", "a\x9b/x\u202e.gguf", "q\u0301" * 30 + ".gguf"])
def test_files_that_a_hub_lists_are_told_harmlessly(name: str, hub: Hub, cache: Path):
    hub.file, hub.content = name, b"GGUF\x1b[2J"
    hub.others = {f"{name}-Q4_0.gguf": b"GGUF", "[red]\x1b-Q8_0.gguf": b"GGUF"}
    for words in ((f"{hub.repository}:{SCRIPT}\x1b",), ("--json", hub.repository)):
        assert said("pull", *words).code in (1, 2)


@pytest.mark.parametrize("status", [401, 404, 500])
def test_what_a_hub_says_of_an_error_is_told_harmlessly(status: int, hub: Hub, cache: Path):
    hub.refusal = status, {"X-Error-Message": "\x1b[2J\x9b[red]", "X-Error-Code": "\x1b]0;t\x07"}
    done = said("pull", f"{hub.repository}/x.gguf")
    assert done.code == 1
    assert done.err.count("\n") == 1


@settings(max_examples=40)
@given(hostile_text())
def test_json_is_harmless_and_loses_nothing(text: str):
    value = {text: [text, {"x": text}]}
    for indent in (None, 2):
        written = json_text(value, indent=indent)
        assert is_harmless(written)
        assert json.loads(written) == as_json_has_it(value)
        written.encode()


def test_json_of_any_language_is_as_people_read_it():
    assert json_text({"text": "中文 é 👨\u200d👩\u200d👧"}) == '{"text": "中文 é 👨\u200d👩\u200d👧"}'


@settings(max_examples=40)
@given(st.binary(min_size=1).filter(lambda name: b"\0" not in name))
def test_a_path_comes_out_with_its_bytes(name: bytes):
    with piped() as pipe:
        show_path(Path("/x") / os.fsdecode(name))
        assert pipe() == bytes(Path("/x") / os.fsdecode(name)) + b"\n"


def test_what_an_encoding_has_no_character_for_does_not_end_a_command():
    for printed in (print, show_path):
        with piped("ascii") as pipe:
            write_anything()
            printed(Path("é中\ud800"))
            assert pipe() == b"???\n"


@pytest.mark.parametrize("encoding", ["ascii", "cp1252", "utf-8"])
def test_json_loses_nothing_where_an_encoding_has_no_character_for_it(encoding: str):
    text = "é 中 👨\u200d👩"
    with contextlib.closing(History(default_path())) as history:
        history.add(history.begin(text), None, "user", text)
    for words, place in ((("history", "export", "1", "--json"), "system"), (("config", "--json"), "answers")):
        with piped(encoding) as pipe, pytest.MonkeyPatch.context() as patch:
            patch.setenv("SPECCHAT_SYSTEM", text)
            main(words, None)  # type: ignore[arg-type]
            told = json.loads(pipe().decode(encoding))[place]
            assert text in (told, told["system"]["value"] if isinstance(told, dict) else "")
    with piped(encoding) as pipe:
        show_json({text: "\ud800"})
        assert json.loads(pipe().decode(encoding)) == {text: "\ud800"}


@settings(max_examples=20)
@given(hostile_text())
def test_a_traceback_keeps_its_lines_and_steers_no_terminal(text: str):
    with screens() as (_, err):
        try:
            raise RuntimeError(text)
        except RuntimeError as error:
            tell_traceback(error)
    shown = err.getvalue()
    assert is_harmless(shown)
    assert shown.startswith("Traceback (most recent call last):\n  File ")
    assert f"line {sys._getframe().f_lineno - 6}, in " in shown
    assert "\nRuntimeError" in shown


@pytest.mark.parametrize("kind", [RuntimeError, OSError])
def test_debug_shows_an_error_that_quotes_a_stranger_harmlessly(
    kind: type[Exception], monkeypatch: pytest.MonkeyPatch
):
    def fails(*_: object) -> int:
        raise kind(HOSTILE)

    monkeypatch.setattr("specchat.app.cli.main", fails)
    monkeypatch.setattr(sys, "argv", ["specchat", "run", "--debug"])
    with screens() as (_, err):
        assert entry.main() == 1
    assert is_harmless(err.getvalue())
    assert f"{kind.__name__}: " in err.getvalue()
    assert ", in fails\n" in err.getvalue()
