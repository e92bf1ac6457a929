"""`specchat pull` as a person or a script meets it: real processes, a small hub on this machine."""

from __future__ import annotations

import json
import os
import pty
import resource
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

import pytest

from specchat.app import cli
from specchat.app.known_models import known_models
from tests.app.hub_server import COMMIT, Hub
from tests.tiny_models import write_tiny_model

REPOSITORY = "makers/tiny-GGUF"
NAME = f"{REPOSITORY}:F32"


@pytest.fixture
def home(hub: Hub, tmp_path: Path) -> Mapping[str, str]:
    """The environment of a user whose hub holds one tiny model that answers."""
    hub.file, hub.content = "tiny-F32.gguf", write_tiny_model(tmp_path / "tiny.gguf").read_bytes()
    kept = {name: value for name, value in os.environ.items() if not name.startswith("HF_")}
    return {**kept, "HF_ENDPOINT": hub.url, "HF_HUB_CACHE": str(tmp_path / "cache"), "NO_PROXY": "*"}


def start(words: tuple[str, ...], environment: Mapping[str, str], **how: object) -> subprocess.Popen[str]:
    streams = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **how}
    return subprocess.Popen(
        [sys.executable, "-m", "specchat.tui.entry", *words],
        env=dict(environment), stdin=subprocess.DEVNULL, text=True, **streams,
    )  # fmt: skip


def specchat(*words: str, env: Mapping[str, str], **how: object) -> subprocess.CompletedProcess[str]:
    process = start(words, env, **how)
    stdout, stderr = process.communicate(timeout=60)
    return subprocess.CompletedProcess(words, process.returncode, stdout, stderr)


def failed(*words: str, env: Mapping[str, str], code: int = 1, **how: object) -> str:
    """The one line that is said."""
    done = specchat("pull", *words, env=env, **how)
    assert (done.returncode, done.stdout) == (code, "")
    [*_, line] = done.stderr.splitlines()
    assert line.startswith("specchat pull: ")
    assert "Traceback" not in done.stderr
    return line.removeprefix("specchat pull: ")


class Told(NamedTuple):
    """What came of a command in this process."""

    code: object
    stdout: str
    stderr: str


@pytest.fixture
def pull(home: Mapping[str, str], capsys: pytest.CaptureFixture[str]) -> Callable[..., Told]:
    """Runs the command in this process, whose hub is the same one."""

    def run(*words: str) -> Told:
        try:
            code: object = cli.main(["pull", *words], no_chat)
        except SystemExit as ended:
            code = ended.code
        return Told(code, *capsys.readouterr())

    return run


def no_chat(*_: object) -> int:
    raise AssertionError("no chat was asked for")


def one_line(told: Told, code: int = 1) -> str:
    """The one line that is said."""
    assert (told.code, told.stdout) == (code, "")
    assert told.stderr.startswith("specchat pull: ")
    line = told.stderr.removeprefix("specchat pull: ").removesuffix("\n")
    assert line.isprintable()
    return line


Pull = Callable[..., Told]


def in_cache(home: Mapping[str, str], repository: str = REPOSITORY) -> Path:
    folder = f"models--{repository.replace('/', '--')}"
    return Path(home["HF_HUB_CACHE"]) / folder / "snapshots" / COMMIT


def test_the_path_alone_is_on_stdout_and_what_happens_on_stderr(hub: Hub, home: Mapping[str, str]):
    done = specchat("pull", REPOSITORY, env=home)
    path = in_cache(home) / "tiny-F32.gguf"
    assert (done.returncode, done.stdout) == (0, f"{path}\n")
    assert path.read_bytes() == hub.content
    first, *_, last = done.stderr.splitlines()
    assert first.startswith("tiny-F32.gguf: 0 MB of ")
    assert last == f"to chat: specchat -m {REPOSITORY}"


def test_what_was_pulled_is_loaded_by_the_same_name(home: Mapping[str, str]):
    run = ("run", "-m", NAME, "-p", "hi", "-n", "3", "-t", "1", "--speculate", "off", "--json")
    before = specchat(*run, env=home)
    assert before.returncode == 2
    assert before.stderr.rstrip("\n").endswith(f"fetch it with: specchat pull {NAME}")
    assert specchat("pull", NAME, env=home).returncode == 0
    offline = {**home, "HF_ENDPOINT": "http://127.0.0.1:9"}
    assert json.loads(specchat(*run, env=offline).stdout)["completion_tokens"] == 3


def test_a_target_and_its_draft_are_pulled_with_one_command(home: Mapping[str, str]):
    done = specchat("pull", NAME, "makers/twin-GGUF/tiny-F32.gguf", env=home)
    assert done.stdout.splitlines() == [
        str(in_cache(home) / "tiny-F32.gguf"),
        str(in_cache(home, "makers/twin-GGUF") / "tiny-F32.gguf"),
    ]
    assert done.stderr.endswith(f"to chat: specchat -m {NAME} -md makers/twin-GGUF/tiny-F32.gguf\n")


def test_json_is_one_object(hub: Hub, cache: Path, pull: Pull):
    done = pull(NAME, "--json")
    path = str(cache / "models--makers--tiny-GGUF" / "snapshots" / COMMIT / "tiny-F32.gguf")
    assert json.loads(done.stdout) == {
        "models": [
            {
                "name": NAME, "repository": REPOSITORY, "path": path, "files": [path],
                "size_bytes": len(hub.content), "problem": None,
            }
        ],
        "chat": f"specchat -m {NAME}",
        "problem": None,
    }  # fmt: skip


def test_what_is_no_chat_model_is_fetched_and_said(hub: Hub, cache: Path, pull: Pull):
    hub.content = b"no GGUF at all"
    done = pull(NAME)
    assert done.code == 1
    assert Path(done.stdout.rstrip("\n")).read_bytes() == hub.content
    assert "specchat pull: it is here, but what arrived is a text file, no GGUF: " in done.stderr
    assert "to chat" not in done.stderr


@pytest.mark.parametrize("name", ["makers/other", f"{REPOSITORY}:Q4_0"])
def test_json_is_an_object_where_it_fails_as_well(pull: Pull, name: str):
    done = pull(name, "--json")
    told = json.loads(done.stdout)
    assert (done.code, told["models"], told["chat"]) == (1, [], None)
    assert done.stderr == f"specchat pull: {told['problem']}\n"


def test_json_of_what_is_no_chat_model_has_its_path_and_the_problem(hub: Hub, pull: Pull):
    hub.content = b"GGUF and no more"
    done = pull(NAME, "--json")
    told = json.loads(done.stdout)
    assert (done.code, told["chat"], told["models"][0]["problem"]) == (1, None, told["problem"])
    assert Path(told["models"][0]["path"]).read_bytes() == hub.content


def test_an_address_of_the_hub_in_use_is_taken(hub: Hub, pull: Pull, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("HF_ENDPOINT", hub.url)
    done = pull(f"{hub.url}/{REPOSITORY}/blob/main/tiny-F32.gguf")
    assert (done.code, Path(done.stdout.rstrip("\n")).name) == (0, "tiny-F32.gguf")


def test_ctrl_c_keeps_what_came_and_the_next_pull_goes_on(hub: Hub, home: Mapping[str, str]):
    hub.hold = threading.Event()
    process = start(("pull", NAME), home)
    cache, half = Path(home["HF_HUB_CACHE"]), len(hub.content) // 2
    until = time.monotonic() + 30
    while not any(path.stat().st_size for path in cache.rglob("*.incomplete")):
        assert time.monotonic() < until, process.poll()
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    stdout, stderr = process.communicate(timeout=20)
    hub.hold.set()
    assert (process.returncode, stdout) == (130, "")
    assert stderr.splitlines()[-1] == (
        "specchat pull: stopped; what has come is kept, and the next pull goes on from there"
    )
    [partial] = cache.rglob("*.incomplete")
    kept = partial.stat().st_size
    assert 0 < kept <= half

    hub.hold = None
    assert specchat("pull", NAME, env=home).returncode == 0
    assert hub.fetches[-1].range == f"bytes={kept}-"


def test_a_person_sees_a_bar(hub: Hub, home: Mapping[str, str]):
    screen, stderr = pty.openpty()
    with os.fdopen(screen, "rb", 0) as seen:
        process = start(("pull", NAME), {**home, "TERM": "xterm", "COLUMNS": "100"}, stderr=stderr)
        os.close(stderr)
        shown = b""
        try:
            while piece := seen.read(4096):
                shown += piece
        except OSError:
            pass  # how a terminal says that nobody writes to it any more
        stdout, _ = process.communicate(timeout=60)
    assert stdout == f"{in_cache(home) / 'tiny-F32.gguf'}\n"
    assert "━".encode() in shown
    assert b"tiny-F32.gguf" in shown


# What goes wrong -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("makers/other", "has no repository makers/other, or it is private"),
        (f"{REPOSITORY}/other.gguf", f"{REPOSITORY} has no file other.gguf; it has tiny-F32.gguf"),
        (f"{REPOSITORY}:Q4_0", f"{REPOSITORY} has no Q4_0; it has F32"),
    ],
)
def test_what_is_not_there_is_one_line_and_exit_code_one(pull: Pull, name: str, words: str):
    assert words in one_line(pull(name))


def test_gated_and_missing_are_told_apart_and_a_wrong_token_from_both(hub: Hub, pull: Pull):
    hub.refusal = (403, {"X-Error-Code": "GatedRepo"})
    assert f"{REPOSITORY} is gated: accept its terms on" in one_line(pull(NAME))
    hub.refusal = (401, {"X-Error-Message": "Invalid credentials in Authorization header"})
    assert "does not know the token" in one_line(pull(NAME))


def test_no_network_is_one_line_and_exit_code_one(home: Mapping[str, str]):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{taken.getsockname()[1]}"
        told = failed(NAME, env={**home, "HF_ENDPOINT": url})
    assert told == f"{url} cannot be reached; check the network, then fetch {REPOSITORY} again"


def test_offline_finds_what_is_there_and_says_what_is_not(hub: Hub, home: Mapping[str, str]):
    offline = {**home, "HF_HUB_OFFLINE": "1"}
    first = specchat("pull", NAME, env=home)
    hub.seen.clear()
    assert specchat("pull", REPOSITORY, env=offline).stdout == first.stdout
    assert "HF_HUB_OFFLINE forbids fetching it" in failed(f"{REPOSITORY}:Q4_0", env=offline)
    assert hub.seen == []


def test_the_cache_may_lie_in_hf_home(home: Mapping[str, str], tmp_path: Path):
    moved = {name: value for name, value in home.items() if name != "HF_HUB_CACHE"}
    done = specchat("pull", NAME, env={**moved, "HF_HOME": str(tmp_path / "elsewhere")})
    assert done.stdout.startswith(str(tmp_path / "elsewhere" / "hub" / "models--makers--tiny-GGUF"))


def test_a_file_that_cannot_be_written_whole_is_one_line(hub: Hub, home: Mapping[str, str]):
    limit = len(hub.content) // 2

    def no_larger_files() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))

    told = failed(NAME, env=home, preexec_fn=no_larger_files)
    assert told == "tiny-F32.gguf cannot be kept: File too large; check HF_HUB_CACHE and its disk"
    assert specchat("pull", NAME, env=home).returncode == 0


@pytest.mark.parametrize("name", ["HF_ENDPOINT", "HF_HOME", "HF_HUB_CACHE"])
def test_an_empty_variable_is_as_none(name: str, monkeypatch: pytest.MonkeyPatch, pull: Pull):
    monkeypatch.setenv(name, "")
    assert pull(NAME).code == 0
    assert name not in os.environ


def test_a_disk_without_room_is_one_line_before_anything_comes(hub: Hub, pull: Pull):
    hub.size = 10**18
    assert "are to come; free some, or set HF_HUB_CACHE" in one_line(pull(NAME))
    assert hub.fetches == []


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((), "names of models, --pair NAME, or --pairs"),
        (("tiny",), "'tiny' names nothing on the hub; give owner/name"),
        (("a/b\x1b[2J",), "names nothing on the hub"),
        ((NAME, "--pairs"), "one of these, not several: "),
        ((NAME, "--pair", "qwen3-4b"), "one of these, not several: "),
        (("--pairs", "--pair", "qwen3-4b"), "one of these, not several: "),
        (("--pair", "qwen3-40b"), "no pair 'qwen3-40b'; perhaps qwen3-4b, "),
        (("--pair", "*"), "no pair '*'; specchat pull --pairs lists all"),
        (("https://example.org/makers/tiny-GGUF",), "names nothing on the hub"),
    ],
)
def test_bad_usage_is_one_line_and_exit_code_two(pull: Pull, words: tuple[str, ...], said: str):
    assert said in one_line(pull(*words), code=2)


# Pairs -----------------------------------------------------------------------------------------


def test_pairs_are_listed_by_the_name_that_fetches_them(pull: Pull):
    listed = pull("--pairs")
    assert (listed.code, listed.stderr) == (0, "")
    lines = listed.stdout.splitlines()
    assert max(map(len, lines)) <= 80
    rows = {words[0]: words[1:] for line in lines[1:] if (words := line.split()) and line[0] != " "}
    assert {known.key for known in known_models()} <= set(rows)
    assert rows["qwen2.5-coder-7b"] == ["4.68", "GB", "429", "MB", "9%", "Apache-2.0"]
    assert "to fetch one: specchat pull --pair NAME" in lines
    told = json.loads(pull("--pairs", "--json").stdout)["pairs"]
    assert [pair["name"] for pair in told] == [known.key for known in known_models()]
    assert told[0]["command"] == "specchat pull --pair smollm2-1.7b"


def test_large_drafts_are_marked_and_a_missing_one_is_explained(pull: Pull):
    lines = pull("--pairs").stdout.splitlines()
    marked = {line.split()[0] for line in lines if "%*" in line}
    assert marked == {known.key for known in known_models() if known.share > 0.2}
    told = json.loads(pull("--pairs", "--json").stdout)["pairs"]
    assert {pair["name"] for pair in told if pair["large_draft"]} == marked
    assert any(line.startswith("*  a large draft: it pays only where") for line in lines)
    assert any(line.startswith("-  no small model is known to fit: the text so far drafts") for line in lines)


def test_a_pair_is_pulled_with_one_command_that_says_how_to_chat(hub: Hub, pull: Pull):
    [known] = [known for known in known_models() if known.key == "qwen3-1.7b"]
    assert known.draft is not None
    hub.repository, hub.twin = known.target.repository, known.draft.repository
    hub.others = {known.target.file: hub.content, known.draft.file: hub.content}
    done = pull("--pair", "Qwen3-1.7B")
    assert [Path(line).name for line in done.stdout.splitlines()] == [known.target.file, known.draft.file]
    assert done.stderr.startswith(
        "Qwen3 1.7B, 1.50 GB: Apache-2.0\nits draft has 36% of the target's bytes: "
    )
    assert done.stderr.endswith(
        "to chat: specchat -m unsloth/Qwen3-1.7B-GGUF/Qwen3-1.7B-Q4_K_M.gguf "
        "-md unsloth/Qwen3-0.6B-GGUF/Qwen3-0.6B-Q4_K_M.gguf\n"
    )


def test_a_target_without_a_draft_is_chatted_with_by_lookup(hub: Hub, pull: Pull):
    hub.repository, hub.others = "ggml-org/SmolLM3-3B-GGUF", {"SmolLM3-Q4_K_M.gguf": hub.content}
    done = pull("--pair", "smollm3-3b")
    assert done.stderr.endswith(
        "to chat: specchat -m ggml-org/SmolLM3-3B-GGUF/SmolLM3-Q4_K_M.gguf --drafter lookup\n"
    )
