"""However a chat is ended from outside, what was said is in its history, the answer under way as well."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pexpect
import psutil
import pytest

from specchat.app.history import History, Message
from tests.tiny_models import write_tiny_model


def begin(folder: Path) -> tuple[pexpect.spawn, History]:
    """A chat that is in the middle of a long answer, and a connection of our own to its history."""
    model = write_tiny_model(folder / "tiny.gguf")
    words = ["--target", str(model), "--history", str(folder / "history.db"), "--speculate", "off", "-t", "1"]
    chat = pexpect.spawn(
        sys.executable,
        ["-m", "specchat.tui.entry", *words],
        env={**os.environ, "TERM": "xterm-256color"},
        dimensions=(30, 100),
        timeout=30,
    )
    chat.expect("ready")
    chat.send("tell me of tigers\r")
    return chat, History(folder / "history.db")


def last_message(history: History) -> Message | None:
    conversation = history.latest()
    return history.branch(conversation)[-1] if conversation is not None else None


def until_something_is_kept(chat: pexpect.spawn, history: History) -> Message:
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        chat.read_nonblocking(100_000, timeout=1)
        message = last_message(history)
        if message is not None and message.role == "assistant":
            return message
    raise AssertionError("nothing of the answer was kept")


BUSY = """
import asyncio
from specchat.tui.ending import end_by_signals

async def work():
    end_by_signals(None)
    print("busy", flush=True)
    while True:
        pass

asyncio.run(work())
"""

ENDED = """
import asyncio, signal
from specchat.tui.ending import end_by_signals

async def work():
    end_by_signals(None)

asyncio.run(work())
signal.raise_signal(signal.SIGTERM)
"""


def test_a_chat_that_does_not_come_to_it_is_ended_by_the_second_signal():
    with subprocess.Popen([sys.executable, "-c", BUSY], stdout=subprocess.PIPE) as chat:
        assert chat.stdout is not None
        assert chat.stdout.readline() == b"busy\n"
        chat.terminate()
        with pytest.raises(subprocess.TimeoutExpired):
            chat.wait(0.3)
        chat.terminate()
        assert chat.wait(10) == -signal.SIGTERM


def test_after_the_chat_a_signal_ends_the_process():
    ended = subprocess.run([sys.executable, "-c", ENDED], stderr=subprocess.PIPE, timeout=10, check=False)
    assert (ended.returncode, ended.stderr) == (-signal.SIGTERM, b"")


@pytest.mark.parametrize("how", ["SIGTERM", "SIGHUP", "hang up", "SIGKILL"])
def test_what_was_said_is_kept_however_the_chat_is_ended(tmp_path: Path, how: str):
    chat, history = begin(tmp_path)
    engines = psutil.Process(chat.pid).children(recursive=True)
    kept = until_something_is_kept(chat, history)
    assert kept.mark == "cut off"
    if how == "hang up":
        os.close(chat.child_fd)
        os.waitpid(chat.pid, 0)
    else:
        chat.kill(getattr(signal, how))
        chat.expect(pexpect.EOF)
        chat.wait()
        ended = (chat.exitstatus, chat.signalstatus)
        assert ended == {"SIGTERM": (143, None), "SIGHUP": (129, None), "SIGKILL": (None, 9)}[how]
    found = last_message(history)
    assert found is not None
    assert found.text.startswith(kept.text)
    assert found.mark == ("cut off" if how == "SIGKILL" else "stopped")
    assert len(history.messages(history.latest() or 0)) == 2
    assert not psutil.wait_procs(engines, timeout=10)[1]
