"""`specchat derive` on real tiny models, through the command line."""

import functools
import json
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from specchat.app import derive_command as command
from specchat.app.deriving import default_folder
from specchat.app.interrupt import Interrupt
from specchat.app.parsers import derive_parser
from specchat.app.quant_search import find_fastest
from specchat.models.derived import Recipe, ranges
from specchat.models.gguf_file import read_header
from tests.models.gguf_writing import write_gguf
from tests.tiny_models import write_tiny_model


@pytest.fixture
def source(tmp_path: Path) -> Path:
    return write_tiny_model(tmp_path / "tiny.gguf", layers=4, idle_layers=(2,), extra_tokens=5)


def names() -> list[str]:
    """What is in the folder of drafts."""
    return [path.name for path in default_folder().iterdir()]


def derive(*words: object) -> int:
    return command.derive_command(derive_parser(), [*map(str, words), "-t", "1", "-ngl", "0"])


def test_the_path_alone_is_on_stdout_and_the_rest_on_stderr(source: Path, capsys: pytest.CaptureFixture[str]):
    assert derive(source, "--quant", "q8_0", "--skip-layers", "1-2") == 0
    out, err = capsys.readouterr()
    path = default_folder() / "tiny.Q8_0.skip-1-2.gguf"
    assert out == f"{path}\n"
    assert err.startswith("made: tiny.gguf as Q8_0 without layers 1-2, ")
    header = read_header(path)
    assert (header.quantization, header.block_count) == ("Q8_0", 2)
    before = (path.stat().st_ino, path.stat().st_mtime_ns)
    assert derive(source, "--quant", "Q8_0", "--skip-layers", "2,1") == 0
    out, err = capsys.readouterr()
    assert out == f"{path}\n"
    assert err.startswith("was made before: tiny.gguf as Q8_0 without layers 1-2, ")
    assert (path.stat().st_ino, path.stat().st_mtime_ns) == before


def test_json_is_all_there_is_on_stdout(source: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    assert derive(source, "--skip-layers", "0", "-o", tmp_path / "mine.gguf", "--json") == 0
    told = json.loads(capsys.readouterr().out)
    assert told["path"] == str(tmp_path / "mine.gguf")
    assert (told["recipe"], told["reused"], told["layers"], told["quantizations"]) == (
        "skip-0", False, None, None,
    )  # fmt: skip
    assert told["source"]["layers"] == 4
    assert told["size_bytes"] == (tmp_path / "mine.gguf").stat().st_size


@pytest.mark.parametrize(
    ("words", "why"),
    [
        ([], "say what to make"),
        (["--quant", "Q9"], "there is no quantization 'Q9' to make; there are F16, "),
        (["--quant", "IQ1_S"], "there is no quantization 'IQ1_S'"),
        (["--output-type", "Q4_0", "--skip-layers", "1"], "--output-type goes with --quant TYPE"),
        (["--quant", "auto", "--output-type", "Q4_0"], "chooses the output matrix, too"),
        (["--quant", "Q4_0", "--output-type", "Q9"], "'Q9' is no type of output matrix"),
        (["--skip-layers", "4-2"], "takes numbers and ranges, 4,9-12, or auto: the range 4-2 runs backwards"),
        (["--skip-layers", "auto", "--search-time", "0"], "'0' is not a number of seconds above 0"),
    ],
)
def test_bad_usage_is_one_line_and_exit_code_two(
    source: Path, capsys: pytest.CaptureFixture[str], words: list[str], why: str
):
    with pytest.raises(SystemExit) as left:
        derive(source, *words)
    assert left.value.code == 2
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert why in err


@pytest.mark.parametrize(
    ("skipped", "why"), [("3-5", "has layers 0-3, and no 4-5"), ("0-3", "these are all 4 layers")]
)
def test_layers_that_cannot_go_are_one_line_and_exit_code_two(
    source: Path, capsys: pytest.CaptureFixture[str], skipped: str, why: str
):
    assert derive(source, "--skip-layers", skipped) == 2
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert why in err
    assert not default_folder().exists()


def test_what_is_no_model_or_cannot_be_pruned_is_exit_code_two(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    assert derive(tmp_path / "none.gguf", "--quant", "Q4_0") == 2
    assert "does not exist" in capsys.readouterr().err
    assert derive(write_gguf(tmp_path / "g.gguf", architecture="gemma3"), "--skip-layers", "auto") == 2
    assert "in the architecture gemma3" in capsys.readouterr().err


def test_what_cannot_be_written_is_exit_code_one(
    source: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    (tmp_path / "mine.gguf").write_bytes(b"mine")
    assert derive(source, "--quant", "Q8_0", "-o", tmp_path / "mine.gguf") == 1
    (tmp_path / "file").write_bytes(b"mine")
    assert derive(source, "--quant", "Q8_0", "-o", tmp_path / "file/below") == 1
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 2)
    assert (tmp_path / "mine.gguf").read_bytes() == b"mine"


@pytest.mark.parametrize("output", ["file", "file/below", "/dev/full"])
def test_what_is_no_folder_is_said_to_be_none(
    source: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], output: str
):
    (tmp_path / "file").write_bytes(b"mine")
    assert derive(source, "--quant", "Q8_0", "-o", tmp_path / output) == 1
    assert capsys.readouterr().err == (
        f"specchat derive: {tmp_path / output} is no folder; name another with -o\n"
    )


@pytest.mark.parametrize("same", [True, False])
def test_what_another_process_made_meanwhile_is_taken_if_it_is_the_same(
    source: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, same: bool
):
    write = command.write

    def meanwhile(*asked: Any) -> Path:
        made = write(*asked)
        path = default_folder() / "tiny.Q8_0.gguf"
        path.write_bytes(made.read_bytes() if same else b"mine")
        return made

    monkeypatch.setattr(command, "write", meanwhile)
    assert derive(source, "--quant", "Q8_0") == (0 if same else 1)
    out, err = capsys.readouterr()
    assert out == (f"{default_folder() / 'tiny.Q8_0.gguf'}\n" if same else "")
    assert ("was made before: " if same else "is there and is no draft that specchat made") in err
    assert names() == ["tiny.Q8_0.gguf"]


def test_a_draft_that_got_larger_is_said_to_be(source: Path, capsys: pytest.CaptureFixture[str]):
    derive(source, "--quant", "Q8_0")
    assert "larger" not in capsys.readouterr().err
    derive(default_folder() / "tiny.Q8_0.gguf", "--quant", "F16")
    assert "It is larger than what it was made from" in capsys.readouterr().err


def test_a_search_finds_the_layer_that_does_nothing(source: Path, capsys: pytest.CaptureFixture[str]):
    assert derive(source, "--skip-layers", "auto", "--search-time", "100", "--json") == 0
    out, err = capsys.readouterr()
    found = json.loads(out)
    best, *others = found["layers"]["tried"]
    assert 2 in best["skipped"]
    alone = next(one for one in [best, *others] if one["skipped"] == [2])
    assert alone["agreement"] > 0.98
    assert all(one["agreement"] < 0.98 for one in [best, *others] if one is not alone)
    assert Path(found["path"]).name == f"tiny.skip-{ranges(best['skipped'])}.gguf"
    assert read_header(Path(found["path"])).block_count == 4 - len(best["skipped"])
    assert len(err.splitlines()) == len(found["layers"]["tried"]) + 3
    assert names() == [Path(found["path"]).name]


def test_the_quickest_type_is_measured_and_the_table_says_how(
    source: Path, capsys: pytest.CaptureFixture[str]
):
    assert derive(source, "--quant", "auto", "--agreement", "0.3", "--json") == 0
    out, err = capsys.readouterr()
    found = json.loads(out)
    measured = found["quantizations"]["measured"]
    assert len(measured) >= 5
    assert len({one["recipe"] for one in measured}) == len(measured)
    assert all(0.0 <= one["agreement"] <= 1.0 and one["speedup"] > 0 for one in measured)
    chosen = found["quantizations"]["chosen"]
    quick = [one["speedup"] for one in measured if one["recipe"] != chosen]
    assert quick == sorted(quick, reverse=True)
    assert chosen in (None, measured[0]["recipe"])
    lines = err.splitlines()
    assert lines[0].split() == ["quantization", "size", "a", "pass", "speed", "prefill", "agreement"]
    assert all(any(line.startswith(f"{one['recipe']} ") for line in lines) for one in measured)
    kept = [f"tiny.{chosen}.gguf"] if chosen else []
    assert (names(), found["recipe"]) == (kept, chosen)


def test_where_nothing_agrees_enough_the_file_is_used_as_it_is(
    source: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    few = functools.partial(find_fastest, candidates=[Recipe("Q4_0", "Q4_0"), Recipe("Q4_0")])
    monkeypatch.setattr(command, "find_fastest", few)
    assert derive(source, "--quant", "auto", "--agreement", "1") == 0
    out, err = capsys.readouterr()
    assert out == f"{source}\n"
    assert "the file is used as it is" in err
    assert names() == []


def test_ctrl_c_gives_the_best_so_far(
    source: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    class Impatient(Interrupt):
        """Comes when the second set of layers is tried."""

        def check(self) -> None:
            if default_folder().exists() and capsys_lines() >= 2:
                signal.raise_signal(signal.SIGINT)
            super().check()

    seen: list[str] = []

    def capsys_lines() -> int:
        seen.extend(capsys.readouterr().err.splitlines())
        return sum(line.startswith("  ") for line in seen)

    monkeypatch.setattr(command, "Interrupt", Impatient)
    assert derive(source, "--skip-layers", "auto") == 130
    path = Path(capsys.readouterr().out.strip())
    assert read_header(path).block_count < 4
    assert names() == [path.name]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_a_program_that_is_ended_in_its_search_leaves_nothing_half(source: Path, number: int):
    running = subprocess.Popen(
        [sys.executable, "-m", "specchat.tui.entry", "derive", str(source), "--quant", "auto", "-t", "1"],
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    deadline = time.monotonic() + 60
    while not list(default_folder().glob(".specchat-*/*.gguf")) and time.monotonic() < deadline:
        time.sleep(0.01)
    running.send_signal(number)
    out, err = running.communicate(timeout=60)
    assert not list(default_folder().glob("*.gguf")) or number == signal.SIGINT
    if number == signal.SIGINT:
        assert running.returncode == 130, err
        assert not list(default_folder().glob(".specchat-*"))
        assert "Traceback" not in err
        return
    assert out == ""
    assert derive(source, "--quant", "Q8_0") == 0
    assert names() == ["tiny.Q8_0.gguf"]
