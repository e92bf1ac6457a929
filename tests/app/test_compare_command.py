"""`specchat compare` as a user or a script meets it: real processes, tiny real models."""

import json
import os
import pty
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from specchat.app.compare_command import as_json, as_text
from specchat.app.comparison import Comparison, rows_of
from specchat.app.recommending import recommend
from tests.app.made_rows import LOOKUP, PLAIN, answered, contender
from tests.app.test_cli import specchat
from tests.pseudo_terminals import all_that_is_shown
from tests.tiny_models import TinyPair, write_tiny_model

KEYS = {
    "date", "machine", "build", "settings", "contenders", "rows", "costs", "answers", "recommendations",
    "complete", "unrest", "seconds",
}  # fmt: skip
QUICK = ("-t", 1, "-c", 512, "-n", 12, "--repeats", 1, "--kinds", "code", "story")


def compare(pair: TinyPair, *words: object) -> subprocess.CompletedProcess[str]:
    return specchat("compare", "-m", pair.target, "-md", pair.draft, *QUICK, *words)


def test_json_alone_is_on_stdout_with_the_documented_keys(tiny_pair: TinyPair):
    done = compare(tiny_pair, "--json")
    assert done.returncode == 0
    told = json.loads(done.stdout)
    assert set(told) == KEYS
    assert "NaN" not in done.stdout
    assert told["complete"] is True
    assert [one["drafts"] for one in told["contenders"]] == ["none", "lookup", "both"]
    assert {row["kind"] for row in told["rows"]} == {"code", "story", None}
    plain = next(row for row in told["rows"] if row["contender"] == 0)
    assert (plain["speedup"], plain["acceptance_rate"]) == (None, None)
    assert told["settings"]["max_tokens"] == 12
    assert told["settings"]["temperature"] == 0


def test_the_table_has_every_contender_and_what_to_use(tiny_pair: TinyPair):
    done = compare(tiny_pair)
    assert done.returncode == 0
    for word in ("plain", "lookup", "0.115M F32", "code", "story", "tokens at temperature 0", "Tiny"):
        assert word in done.stdout
    assert max(map(len, done.stdout.splitlines())) <= 80
    assert re.search("^(Use|Plain decoding is best)", done.stdout, re.MULTILINE)
    assert done.stderr.count("tokens/s") == 6
    assert "\x1b" not in done.stdout + done.stderr


def test_settings_of_answers_do_not_count_and_those_of_models_do(
    tiny_pair: TinyPair, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    file = tmp_path / "config.toml"
    file.write_text(
        f"[models]\ntarget = '{tiny_pair.target}'\ndraft = '{tiny_pair.draft}'\nctx-size = 256\nthreads = 1\n"
        "[answers]\ntemp = 0.5\nmax-tokens = 3\nsystem = 'x'\n[drafting]\nspeculate = 'off'\n"
    )
    done = specchat("compare", "--config", file, "--kinds", "story", "--repeats", 1, "-n", 10, "--json")
    settings = json.loads(done.stdout)["settings"]
    assert (settings["temperature"], settings["max_tokens"], settings["speculate"]) == (0, 10, "auto")
    assert (settings["ctx_size"], settings["threads"]) == (256, 1)
    assert len(json.loads(done.stdout)["contenders"]) == 3
    monkeypatch.setenv("SPECCHAT_CONFIG", str(file))
    alone = specchat("compare", "-m", tiny_pair.target, "--kinds", "story", "--repeats", 1, "-n", 3, "--json")
    assert [one["name"] for one in json.loads(alone.stdout)["contenders"]] == ["plain", "lookup"]


def test_own_prompts_are_asked(tiny_pair: TinyPair, tmp_path: Path):
    file = tmp_path / "mine.jsonl"
    file.write_text('{"kind": "mail", "prompt": "hello"}\n{"kind": "verse", "prompt": "roses"}\n')
    done = specchat("compare", "-m", tiny_pair.target, "-t", 1, "-n", 5, "--repeats", 1, "--prompts", file)
    assert done.returncode == 0
    assert "mail" in done.stdout
    assert "verse" in done.stdout


def test_a_comparison_is_remembered_for_the_chat_unless_the_machine_was_not_at_rest(
    tiny_pair: TinyPair, tmp_path: Path
):
    told = json.loads(compare(tiny_pair, "--json").stdout)
    (kept,) = tmp_path.rglob("measured.json")
    remembered = any(key.startswith("recommended draft") for key in json.loads(kept.read_text()))
    assert remembered is (told["complete"] and told["unrest"] is None)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["-m", "missing.gguf"], "missing.gguf"),
        ([], "-m/--target"),
        (["-m", "TARGET", "-md", "missing.gguf"], "missing.gguf"),
        (["-m", "TARGET", "-md", "ALIEN"], "alien.gguf cannot draft"),
        (["-m", "TARGET", "--prompts", "missing.txt"], "missing.txt"),
        (["-m", "TARGET", "--kinds", "poem"], "'poem'"),
        (["-m", "TARGET", "--report", "missing/x.html"], "x.html"),
        (["-m", "TARGET", "--png", "."], "cannot be written"),
        (["-m", "TARGET", "--time-limit", "0"], "seconds"),
        (["-m", "TARGET", "--repeats", "0"], "whole number"),
        (["-m", "TARGET", "--speculate", "off"], "nothing to compare"),
        (["-m", "TARGET", "-md", "DRAFT", "--drafter", "lookup"], "uses no draft"),
        (["-m", "TARGET", "--drafter", "model"], "needs drafts"),
    ],
)
def test_bad_usage_is_one_line_and_exit_code_two(
    tiny_pair: TinyPair, tmp_path: Path, words: list[str], said: str
):
    files = {"TARGET": tiny_pair.target, "DRAFT": tiny_pair.draft}
    if "ALIEN" in words:
        files["ALIEN"] = write_tiny_model(tmp_path / "alien.gguf", extra_tokens=500)
    done = specchat("compare", *(files.get(word, word) for word in words))
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.count("\n") == 1
    assert said in done.stderr


def test_a_prompt_that_does_not_fit_fails_in_one_line(tiny_pair: TinyPair, tmp_path: Path):
    file = tmp_path / "long.txt"
    file.write_text("x" * 900)
    done = specchat("compare", "-m", tiny_pair.target, "-t", 1, "-c", 256, "--prompts", file)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (1, "", 1)
    assert "prompt 1 of yours" in done.stderr


def started(pair: TinyPair, *words: object) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "specchat.tui.entry", "compare", "-m", str(pair.target), "-md",
         str(pair.draft), "-t", "1", "-n", "60", "--repeats", "1000", *map(str, words)],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip


@pytest.mark.parametrize("as_json", [False, True])
def test_ctrl_c_prints_what_there_is_and_exits_with_130(tiny_pair: TinyPair, as_json: bool):
    process = started(tiny_pair, *(["--json"] if as_json else []))
    assert process.stderr is not None
    while "tokens/s" not in process.stderr.readline():
        assert process.poll() is None
    process.send_signal(signal.SIGINT)
    stdout, stderr = process.communicate(timeout=30)
    assert process.returncode == 130
    assert "Traceback" not in stderr
    if as_json:
        assert json.loads(stdout)["complete"] is False
    else:
        assert "Not all was measured." in stdout


def test_a_person_sees_what_is_answered_and_how_long_it_will_take(tiny_pair: TinyPair):
    """On a terminal the state is drawn anew in place, and gone at the end; the result is on stdout alone."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "specchat.tui.entry", "compare", "-m", str(tiny_pair.target),
         *map(str, QUICK), "--json"],
        stdout=subprocess.PIPE, stderr=theirs, env={**os.environ, "TERM": "xterm"},
    )  # fmt: skip
    os.close(theirs)
    seen = all_that_is_shown(ours)
    stdout, _ = process.communicate(timeout=30)
    assert json.loads(stdout)["complete"] is True
    for words in (b"loading Tiny", b"lookup answers", b"left; Ctrl+C stops", b"speed-up"):
        assert words in seen


def made() -> Comparison:
    """A comparison with figures that are easily recognised."""
    contenders = (PLAIN, LOOKUP, contender("small", memory=1_500_000_000))
    answers = [
        answered(at, rate * (1 + prompt / 10), kind, prompt, ttft_s=0.5, drafted=20 * at, accepted=9 * at,
                 tokens_per_pass=1.0 + at / 4, target_passes=10)
        for kind in ("code", "story")
        for prompt in range(2)
        for at, rate in enumerate((10.0, 11.0, 17.3))
    ]  # fmt: skip
    rows = rows_of(contenders, answers)
    settings: dict[str, object] = {"tokens_per_answer": 12, "temperature": 0.0}
    return Comparison("", (), "", settings, contenders, rows, (), tuple(answers),
                      recommend(contenders, rows, ()), True, 5.0)  # fmt: skip


def test_the_table_and_the_json_show_the_same_figures():
    comparison = made()
    told: dict[str, Any] = json.loads(json.dumps(as_json(comparison), allow_nan=False))
    printed = as_text(comparison)
    lines = printed.splitlines()
    for row in told["rows"]:
        mine = [line for line in lines if line.startswith(row["name"])]
        if row["speedup"] is not None:
            assert any(f"{row['speedup']['median']:.2f}x" in line for line in mine)
        if row["kind"] is None:
            (figures,) = [line for line in mine if "MB" in line]
            assert f"{row['tokens_per_second']['median']:.1f}" in figures
            assert f"{row['tokens_per_pass']:.2f}" in figures
            rate = row["acceptance_rate"]
            assert ("-" if rate is None else f"{rate:.0%}") in figures.split()
    assert told["recommendations"][0]["sentence"] in printed.replace("\n", " ")


def test_twelve_kinds_and_long_names_fit_eighty_columns():
    contenders = (PLAIN, contender("a-draft-with-quite-a-long-name-of-its-own-q4_k_m"))
    answers = [answered(at, 10.0 + at, f"kind number {n}") for n in range(12) for at in (0, 1)]
    rows = rows_of(contenders, answers)
    settings: dict[str, object] = {"tokens_per_answer": 12, "temperature": 0.0}
    comparison = Comparison("", (), "", settings, contenders, rows, (), tuple(answers), (), True, 5.0)
    printed = as_text(comparison)
    assert max(map(len, printed.splitlines())) <= 80
    assert printed.count("1.10x") == 13
