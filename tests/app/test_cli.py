"""The command line as a user or a script meets it: real processes, real tiny models."""

import io
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from specchat.app import cli
from specchat.app.parsers import COMMANDS
from specchat.app.process import EngineProcess
from specchat.app.requests import AnswerOptions, LoadOptions
from specchat.app.settings import ChatSettings
from specchat.models.locate import packaged_demo_model
from tests.tiny_models import TinyPair, write_tiny_model

JSON_KEYS = {
    "text", "token_ids", "finish_reason", "prompt_tokens", "completion_tokens", "stats", "pair", "settings",
}  # fmt: skip
STATS_KEYS = {
    "ttft_s", "tokens_per_second", "target_passes", "plain_passes", "drafted", "accepted",
    "acceptance_rate", "accepted_by_position", "tested_by_position", "tokens_per_pass",
    "target_s", "draft_s", "overhead_s",
    "baseline_tokens_per_second", "speedup", "state", "reason",
}  # fmt: skip


def specchat(*words: object, stdin: str | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "specchat.tui.entry", *map(str, words)],
        input=stdin, stdin=subprocess.DEVNULL if stdin is None else None,
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip


def run(pair: TinyPair, *words: object, stdin: str | None = None) -> subprocess.CompletedProcess[str]:
    return specchat(
        "run", "-m", pair.target, "-md", pair.draft, "-t", 1, "-n", 20, "--temp", 0, *words, stdin=stdin
    )


def test_the_answer_alone_is_on_stdout_and_the_figures_on_stderr(tiny_pair: TinyPair):
    told = json.loads(run(tiny_pair, "-p", "hello", "--json").stdout)
    done = run(tiny_pair, "-p", "hello")
    assert done.returncode == 0
    assert done.stdout.rstrip("\n") == told["text"].rstrip("\n")
    assert "20 tokens" in done.stderr


def test_an_empty_name_of_a_draft_to_compare_is_none(capfd: pytest.CaptureFixture[str]):
    words = ["compare", "--no-config", "-m", "none.gguf", "-md", "", "--drafter", "lookup"]
    assert cli.main(words, lambda *_: 0) == 2
    assert "none.gguf does not exist" in capfd.readouterr().err


def test_json_is_one_object_with_the_documented_keys(tiny_pair: TinyPair):
    done = run(tiny_pair, "-p", "hello", "--json", "--speculate", "always", "--draft-p-min", 0)
    told = json.loads(done.stdout)
    assert set(told) == JSON_KEYS
    assert set(told["stats"]) == STATS_KEYS
    assert told["finish_reason"] == "length"
    assert told["completion_tokens"] == len(told["token_ids"]) == 20
    assert sum(told["stats"]["accepted_by_position"]) == told["stats"]["accepted"]


def test_a_figure_that_was_not_measured_is_null(tiny_pair: TinyPair):
    told = json.loads(run(tiny_pair, "-p", "hello", "--json", "--speculate", "off").stdout)
    assert told["stats"]["acceptance_rate"] is None
    assert told["stats"]["drafted"] == 0
    one = json.loads(run(tiny_pair, "-p", "hello", "--json", "-n", 1).stdout)
    assert one["stats"]["tokens_per_second"] is None
    assert one["stats"]["speedup"] is None


def test_plain_and_drafted_give_the_same_token_ids(tiny_pair: TinyPair):
    plain, drafted = (
        json.loads(run(tiny_pair, "-p", "hello", "--json", "--draft-p-min", 0, "--speculate", how).stdout)
        for how in ("off", "always")
    )
    assert plain["token_ids"] == drafted["token_ids"]
    assert drafted["stats"]["accepted"] > 0


def test_a_prompt_can_come_from_standard_input(tiny_pair: TinyPair):
    assert run(tiny_pair, "-p", "-", stdin="hello").stdout == run(tiny_pair, "-p", "hello").stdout


@pytest.mark.parametrize(
    ("piped", "said"),
    [
        (b" " * 4_194_304, "the prompt is empty"),
        (b" " * 5_000_000, "standard input has more than 4,194,304 bytes"),
        (b"\xff", "none.gguf does not exist"),
    ],
    ids=["as much as is read", "more", "no UTF-8"],
)
def test_standard_input_is_read_to_a_bound_whatever_it_is(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], piped: bytes, said: str
):
    stream = io.BytesIO(piped)
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(stream))
    try:
        ended = cli.main(["run", "--no-config", "-m", "none.gguf", "-p", "-"], lambda *_: 0)
    except SystemExit as exits:
        ended = exits.code
    assert ended == 2
    assert stream.tell() <= 4_194_305
    told = capfd.readouterr()
    assert said in told.err
    assert not told.out


def test_verify_compares_plain_and_drafted(tiny_pair: TinyPair):
    done = run(tiny_pair, "-p", "hello", "--json", "--verify", "--speculate", "always", "--draft-p-min", 0)
    told = json.loads(done.stdout)
    assert done.returncode == 0
    assert told["verify"]["equal"] is True
    assert told["verify"]["tokens_compared"] == 20
    assert told["verify"]["drafted"] > 0
    assert "plain and drafted are equal" in done.stderr


def test_verify_above_temperature_zero_is_refused(tiny_pair: TinyPair):
    done = run(tiny_pair, "-p", "hello", "--verify", "--temp", 0.5)
    assert (done.returncode, done.stdout) == (2, "")


def test_the_chat_is_never_opened_without_a_terminal(tiny_pair: TinyPair):
    done = specchat("-m", tiny_pair.target)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.count("\n") == 1
    assert "needs a terminal" in done.stderr


class Opened(NamedTuple):
    """What the screen is handed."""

    engine: EngineProcess
    load: LoadOptions | None
    answer: AnswerOptions
    system: str | None
    notice: str
    chat: ChatSettings
    go_on: bool


def opened(monkeypatch: pytest.MonkeyPatch, *words: str) -> Opened:
    """The chat opened with these words, at a terminal."""
    monkeypatch.setattr(cli, "_at_a_terminal", lambda: True)
    handed: list[Opened] = []

    def open_chat(*given: Any) -> int:
        handed.append(Opened(*given))
        return 0

    assert cli.main(words, open_chat) == 0
    return handed[0]


def test_a_chat_without_a_model_is_opened_with_none_to_load(monkeypatch: pytest.MonkeyPatch):
    assert opened(monkeypatch).load is None
    assert opened(monkeypatch, "-m", "").load is None


def test_the_chat_is_opened_with_the_settings(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    path = tmp_path / "config.toml"
    path.write_text(
        "[models]\ntarget = 'q4.gguf'\nthreads = 3\n[answers]\ntemp = 0.5\nsystem = 'Be brief.'\n"
        "[drafting]\nstrict = true\n[chat]\npanel = false\n[keys]\nstop = 'f9'\n[presets.calm]\ntemp = 0\n"
    )
    monkeypatch.setenv("SPECCHAT_CONFIG", str(path))
    monkeypatch.setenv("SPECCHAT_THREADS", "2")
    chat = opened(monkeypatch, "--temp", "0.25", "--no-strict")
    assert chat.load == LoadOptions(str(tmp_path / "q4.gguf"), threads=2)
    assert (chat.answer.sampling.temperature, chat.answer.drafting.strict) == (0.25, False)
    assert (chat.system, chat.chat.panel) == ("Be brief.", False)
    assert (chat.chat.keys, chat.chat.presets) == ({"stop": "f9"}, {"calm": {"temp": 0.0}})
    assert opened(monkeypatch, "--no-config", "-m", "x").chat == ChatSettings()
    demo = opened(monkeypatch, "demo")
    assert (demo.load and demo.load.threads, demo.system, demo.chat.panel) == (0, None, False)
    assert demo.answer.sampling.temperature == 0.8


def test_the_system_prompt_is_part_of_the_prompt(tiny_pair: TinyPair):
    short = json.loads(run(tiny_pair, "-p", "hello", "--json").stdout)
    long = json.loads(run(tiny_pair, "-p", "hello", "--json", "--system", "be brief").stdout)
    assert long["prompt_tokens"] == short["prompt_tokens"] + len("system\nbe brief\n") + 2


def text_file(folder: Path) -> Path:
    path = folder / "notes.gguf"
    path.write_text("this is no model\n" * 20)
    return path


def truncated_file(folder: Path) -> Path:
    whole = write_tiny_model(folder / "whole.gguf").read_bytes()
    path = folder / "truncated.gguf"
    path.write_bytes(whole[: len(whole) - 1000])
    return path


def embedding_file(folder: Path) -> Path:
    return write_tiny_model(folder / "embedding.gguf", architecture="bert")


UNUSABLE = {
    "missing": lambda folder: folder / "missing.gguf",
    "directory": lambda folder: folder,
    "text": text_file,
    "truncated": truncated_file,
    "embedding": embedding_file,
}


@pytest.mark.parametrize("role", ["--target", "--draft"])
@pytest.mark.parametrize("kind", UNUSABLE)
def test_an_unusable_file_is_one_clear_line_and_exit_code_two(
    tiny_pair: TinyPair, tmp_path: Path, kind: str, role: str
):
    path = UNUSABLE[kind](tmp_path)
    models = {"--target": tiny_pair.target, "--draft": tiny_pair.draft} | {role: path}
    done = specchat("run", *(word for pair in models.items() for word in pair), "-p", "hello")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.count("\n") == 1
    assert path.name in done.stderr
    assert "Traceback" not in done.stderr


def test_a_pair_that_cannot_work_is_one_line_and_exit_code_two(tiny_pair: TinyPair, tmp_path: Path):
    other = write_tiny_model(tmp_path / "other.gguf", extra_tokens=200)
    done = specchat("run", "-m", tiny_pair.target, "-md", other, "-p", "hello")
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert "259" in done.stderr


@pytest.mark.parametrize(
    "words",
    [
        ["run", "-m", "x.gguf"],
        ["run", "-p", "hi"],
        ["run", "-m", "x.gguf", "-p", ""],
        ["run", "-m", "x.gguf", "-p", "hi", "--temp", "warm"],
        ["run", "-m", "x.gguf", "-p", "hi", "--draft-max", "99"],
        ["run", "-m", "x.gguf", "-p", "hi", "--speculate", "always"],
        ["run", "-m", "x.gguf", "-p", "hi", "--temp", "0", "--verify"],
        ["run", "-m", "x.gguf", "-p", "hi", "--chat-template", "missing.jinja"],
        ["run", "-m", "x.gguf", "-p", "hi", "-t", "999999"],
        ["run", "-m", "x.gguf", "-p", "hi", "--repeat-penalty", "1e300"],
        ["run", "-m", "x.gguf", "-p", "hi", "--log-file", "/dev/null/log"],
        ["run", "-m", "x.gguf", "-p", "hi", "--chat-template", os.devnull],
        ["--targets"],
        ["model.gguf"],
        ["chat"],
        ["inspect"],
        ["inspect", "x.gguf", "-c", "few"],
        ["inspect", "missing.gguf"],
        ["doctor", "-m", "missing.gguf"],
        ["completion"],
        ["run", "-m", "x.gguf", "-p", "hi", "--config", "missing.toml"],
        ["config", "--config", "x.toml", "--no-config"],
        ["config", "--path", "--init"],
    ],
)
def test_bad_usage_is_one_line_and_exit_code_two(words: list[str]):
    done = specchat(*words)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.count("\n") == 1


def test_a_prompt_too_long_fails_with_both_numbers(tiny_pair: TinyPair):
    done = run(tiny_pair, "-p", "x" * 600, "-c", 256)
    assert done.returncode == 1
    assert "619 tokens" in done.stderr
    assert "256" in done.stderr


def test_ctrl_c_keeps_the_answer_so_far_and_exits_with_130(tiny_pair: TinyPair):
    process = subprocess.Popen(
        [sys.executable, "-m", "specchat.tui.entry", "run", "-m", str(tiny_pair.target), "-t", "1",
         "-c", "100000", "-p", "hello"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    assert process.stdout is not None
    first = process.stdout.read(1)  # the answer has begun
    process.send_signal(signal.SIGINT)
    rest, told = process.communicate(timeout=20)
    assert process.returncode == 130
    assert first + rest.rstrip()
    assert b"stopped by you" in told
    assert b"Traceback" not in told


def test_ctrl_c_while_the_prompt_is_awaited_exits_with_130_and_no_traceback(
    tiny_pair: TinyPair, tmp_path: Path
):
    log = tmp_path / "log"
    process = subprocess.Popen(
        [sys.executable, "-m", "specchat.tui.entry", "run", "-m", str(tiny_pair.target), "-p", "-",
         "--log-file", str(log)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    while not log.exists():  # the log is opened just before the prompt is read
        assert process.poll() is None
        time.sleep(0.005)
    process.send_signal(signal.SIGINT)
    stdout, stderr = process.communicate(timeout=20)
    assert (process.returncode, stdout, stderr) == (130, "", "")


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_closed_streams_are_nowhere_to_read_from_or_write_to(tiny_pair: TinyPair, closed: str):
    command = f"{sys.executable} -m specchat.tui.entry run -m {tiny_pair.target} -t 1 -n 5 -p hello"
    done = subprocess.run(
        f"{command} {closed}",
        shell=True, capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert done.returncode == 0
    assert "Traceback" not in done.stderr
    assert "tokens/s" not in done.stdout
    assert bool(done.stdout) == (">&-" not in closed.replace("2>&-", ""))


def test_an_empty_closed_standard_input_is_an_empty_prompt(tiny_pair: TinyPair):
    done = subprocess.run(
        f"{sys.executable} -m specchat.tui.entry run -m {tiny_pair.target} -p - <&-",
        shell=True, capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert "the prompt is empty" in done.stderr


def test_the_version_is_the_packages():
    project = (Path(__file__).parent.parent.parent / "pyproject.toml").read_text()
    assert f'version = "{specchat("--version").stdout.split()[-1]}"' in project


def test_an_output_that_nobody_reads_ends_without_a_traceback(tiny_pair: TinyPair):
    done = subprocess.run(
        f"{sys.executable} -m specchat.tui.entry inspect {tiny_pair.target} | true",
        shell=True, capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert "Traceback" not in done.stderr


def test_a_reader_that_leaves_ends_the_answer_without_a_traceback(tiny_pair: TinyPair):
    done = subprocess.run(
        f"{sys.executable} -m specchat.tui.entry run -m {tiny_pair.target} -t 1 -p hello -n 1500 | head -c 1",
        shell=True, capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("name", ["history", "inspect", "pull", "derive"])
def test_options_may_stand_anywhere_among_the_arguments(name: str):
    arguments = {"history": ["search", "two", "words"], "derive": ["a.gguf"]}.get(name, ["a.gguf", "b.gguf"])
    read = vars(COMMANDS[name]().parse_args(["--json", *arguments]))
    assert read["json"] is True
    for place in range(1, len(arguments) + 1):
        words = [*arguments[:place], "--json", *arguments[place:]]
        assert vars(COMMANDS[name]().parse_args(words)) == read, words


def test_after_two_dashes_no_word_is_an_option():
    assert COMMANDS["inspect"]().parse_args(["--json", "--", "-c", "--json"]).files == ["-c", "--json"]


def test_inspect_describes_a_file_and_judges_a_pair(tiny_pair: TinyPair):
    done = specchat("inspect", tiny_pair.target, tiny_pair.draft)
    assert done.returncode == 0
    assert "fits, but" in done.stdout
    assert "100%" in done.stdout
    assert "F32" in done.stdout


def test_help_is_quick_and_loads_neither_screen_nor_engine():
    for words in (["--help"], ["run", "--help"], ["demo", "--help"], ["inspect", "--help"],
                  ["doctor", "--help"], ["config", "--help"], ["completion", "--help"]):  # fmt: skip
        code = (
            "import sys; sys.argv = ['specchat', *sys.argv[1:]]\n"
            "from specchat.tui.entry import main\n"
            "try:\n    main()\nexcept SystemExit as end:\n    assert end.code == 0\n"
            "heavy = {'textual', 'llama_cpp', 'numpy', 'gguf', 'jinja2', 'rich'} & set(sys.modules)\n"
            "assert not heavy, heavy"
        )
        done = subprocess.run(
            [sys.executable, "-c", code, *words], capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        assert "usage: specchat" in done.stdout


def test_the_demo_answers_once_where_there_is_no_terminal():
    packaged_demo_model()  # installed for the tests: `make test` puts it there
    done = specchat("demo", "-n", 60)
    assert done.returncode == 0
    assert "neighbo" in done.stdout.lower()
    assert "tokens/s" in done.stderr


def test_the_demo_takes_a_prompt_and_a_number_of_tokens():
    told = json.loads(specchat("demo", "-p", "Say hello.", "-n", 8, "--json").stdout)
    assert 0 < told["completion_tokens"] <= 8
    assert told["pair"]["target"]["quantization"] == "Q4_1"


def test_every_command_is_the_same_from_any_folder(tmp_path: Path, tiny_pair: TinyPair):
    done = subprocess.run(
        [sys.executable, "-m", "specchat.tui.entry", "inspect", os.path.relpath(tiny_pair.target, tmp_path)],
        cwd=tmp_path, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0


def test_going_on_with_the_last_conversation_is_handed_to_the_screen(monkeypatch: pytest.MonkeyPatch):
    assert opened(monkeypatch, "-C").go_on
    assert opened(monkeypatch, "--continue").go_on
    assert not opened(monkeypatch).go_on
