"""Without a pull no socket is opened, whatever is done; and what is left behind is its owner's alone."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from tests.tiny_models import TinyPair, write_tiny_pair
from tests.tui.test_end_to_end import Terminal

HOOK = Path(__file__).parent / "no_network"

EACH_IN_TURN = """
import json, os, sys
os.umask(0)
from specchat.app.cli import main
codes = []
for words in json.loads(sys.argv[1]):
    try:
        codes.append(main(words, None))
    except SystemExit as end:
        codes.append(end.code)
    print(f"-- {words[0]}: {codes[-1]}", flush=True)
sys.exit(any(codes))
"""


@pytest.fixture
def tries(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Forbids all processes that are started to use a network; what they tried is in this file."""
    file = tmp_path / "tries"
    for variable in ("HF_HUB_OFFLINE", "HF_HUB_DISABLE_TELEMETRY", "DO_NOT_TRACK"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("NETWORK_TRIES", str(file))
    monkeypatch.setenv(
        "PYTHONPATH", os.pathsep.join([str(HOOK), os.environ.get("PYTHONPATH", "")]).rstrip(":")
    )
    return file


def exposed(tmp_path: Path) -> list[str]:
    """What of specchat's own lies where others may read it."""
    found: list[str] = []
    for home in ("xdg_config_home", "xdg_data_home", "xdg_state_home", "xdg_cache_home"):
        own = tmp_path / home / "specchat"
        for path in (own, *own.rglob("*")):
            # What lies in a folder that others cannot enter is out of their reach.
            if path.exists() and stat.S_IMODE(path.stat().st_mode) & 0o077 and path.suffix != ".gguf":
                found.append(f"{path} {stat.S_IMODE(path.stat().st_mode):o}")
    return found


@pytest.mark.parametrize(
    "code",
    [
        "import socket; socket.create_connection(('127.0.0.1', 9))",
        "import socket; socket.socket(socket.AF_INET6)",
        "import urllib.request; urllib.request.urlopen('http://huggingface.co')",
        "import subprocess, sys; "
        "subprocess.run([sys.executable, '-c', 'import socket; socket.getaddrinfo(\"x\", 1)'])",
    ],
)
def test_a_socket_would_be_seen(tries: Path, code: str):
    subprocess.run([sys.executable, "-c", code], capture_output=True, check=False)
    assert "socket." in tries.read_text()


def test_a_pipe_between_processes_is_no_network(tries: Path):
    code = "import asyncio, multiprocessing; multiprocessing.Pipe(); asyncio.run(asyncio.sleep(0))"
    subprocess.run([sys.executable, "-c", code], check=True)
    assert not tries.exists()


@pytest.mark.timeout(180)
def test_no_command_opens_a_socket_or_leaves_anything_to_others(
    tries: Path, tmp_path: Path, tiny_pair: TinyPair
):
    target, draft = str(tiny_pair.target), str(tiny_pair.draft)
    prompts = tmp_path / "prompts.txt"
    prompts.write_text("tell me of tigers")
    commands = [
        ["run", "-m", target, "-md", draft, "-p", "hi", "-n", "8", "--log-file", str(tmp_path / "run.log")],
        ["inspect", target, draft],
        ["derive", draft, "--quant", "Q8_0"],
        ["compare", "-m", target, "-md", draft, "--prompts", str(prompts), "-n", "8", "--repeats", "1",
         "--time-limit", "20", "--report", str(tmp_path / "r.html"), "--png", str(tmp_path / "r.png")],
        ["config", "--init"],
        ["config"],
        ["completion", "bash"],
        ["history"],
        ["doctor", "--target", target],
    ]  # fmt: skip
    done = subprocess.run(
        [sys.executable, "-c", EACH_IN_TURN, json.dumps(commands)],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    assert [words[0] for words in commands] == [
        line.split()[1].rstrip(":") for line in done.stdout.splitlines() if line.startswith("-- ")
    ]
    assert not tries.exists(), tries.read_text()
    assert exposed(tmp_path) == []
    assert stat.S_IMODE((tmp_path / "run.log").stat().st_mode) == 0o600
    assert "fetch(" not in (tmp_path / "r.html").read_text()


@pytest.mark.timeout(180)
def test_the_chat_opens_no_socket_and_leaves_nothing_to_others(tries: Path, tmp_path: Path):
    pair = write_tiny_pair(tmp_path)
    before = os.umask(0)
    try:
        screen = Terminal(
            "-m", str(pair.target), "-md", str(pair.draft), "-n", "8", "-c", "512",
            "--log-file", str(tmp_path / "chat.log"),
        )  # fmt: skip
    finally:
        os.umask(before)
    try:
        screen.sees("Enter sends", "ready")
        screen.type("tell me of tigers", "enter")
        screen.sees("8 tokens", "ready")
        screen.type("/preset save mine", "enter")
        screen.type("/model", "enter")  # lists what is here, and what could be downloaded
        screen.sees("Tiny")
        screen.type("", "esc", "ctrl+q")
        assert screen.ends() == 0
    finally:
        screen.kill()
    assert not tries.exists(), tries.read_text()
    assert (tmp_path / "xdg_data_home/specchat/history.db").exists()
    assert exposed(tmp_path) == []
    assert stat.S_IMODE((tmp_path / "chat.log").stat().st_mode) == 0o600
