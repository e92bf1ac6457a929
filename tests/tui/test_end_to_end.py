"""The whole program in a real terminal, on a real pair: what a person types, and what they then see."""

from __future__ import annotations

import contextlib
import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pexpect
import pyte
import pytest

from tests.tiny_models import TinyPair, write_tiny_pair

COLUMNS, LINES = 120, 40
KEYS = {
    "enter": "\r", "esc": "\x1b", "f2": "\x1bOQ", "f5": "\x1b[15~", "f7": "\x1b[18~", "ctrl+q": "\x11",
    "ctrl+up": "\x1b[1;5A",
}  # fmt: skip


class Terminal:
    """A terminal that the program runs in."""

    def __init__(self, *words: str) -> None:
        # The size is said twice: what the variables say goes before what the terminal has.
        size = {"COLUMNS": str(COLUMNS), "LINES": str(LINES)}
        environment = {**os.environ, **size, "TERM": "xterm-256color", "COLORTERM": "truecolor"}
        self._child = pexpect.spawn(
            sys.executable, ["-m", "specchat.tui.entry", *words], env=environment, dimensions=(LINES, COLUMNS)
        )
        self._screen = pyte.Screen(COLUMNS, LINES)
        self._stream = pyte.ByteStream(self._screen)

    @property
    def text(self) -> str:
        return "\n".join(line.rstrip() for line in self._screen.display)

    def look(self, seconds: float = 0.1) -> None:
        with contextlib.suppress(pexpect.TIMEOUT, pexpect.EOF):
            self._stream.feed(self._child.read_nonblocking(100_000, timeout=seconds))

    def sees(self, *parts: str, seconds: float = 30.0) -> None:
        """Wait until all of these stand on the screen."""
        self._wait(lambda: all(part in self.text for part in parts), f"no {parts}", seconds)

    def sees_no(self, part: str, seconds: float = 30.0) -> None:
        self._wait(lambda: part not in self.text, f"still {part!r}", seconds)

    def _wait(self, true, otherwise: str, seconds: float) -> None:
        deadline = time.monotonic() + seconds
        while not true():
            assert time.monotonic() < deadline, f"{otherwise} on:\n{self.text}"
            self.look()

    def type(self, text: str, *keys: str) -> None:
        self._child.send(text)
        for key in keys:
            self._child.send(KEYS[key])

    def ends(self, seconds: float = 10.0) -> int | None:
        """Wait until the program has ended; its exit code."""
        self._child.expect(pexpect.EOF, timeout=seconds)
        self._child.close()
        return self._child.exitstatus

    def kill(self) -> None:
        self._child.close(force=True)


@pytest.fixture
def pair(tmp_path: Path) -> TinyPair:
    return write_tiny_pair(tmp_path)


@pytest.fixture
def terminals(pair: TinyPair) -> Iterator:
    opened: list[Terminal] = []

    def start(*words: str) -> Terminal:
        words = ("-m", str(pair.target), "-md", str(pair.draft), "-n", "24", "--temp", "0", *words)
        opened.append(Terminal(*words))
        return opened[-1]

    yield start
    for terminal in opened:
        terminal.kill()


@pytest.mark.timeout(180)
def test_a_day_with_the_chat(terminals):
    """Chat, stop, regenerate, edit, quit, resume, search."""
    screen = terminals("-c", "2048")
    screen.sees("Enter sends", "ready")
    screen.type("tell me of tigers", "enter")
    screen.sees("❯ tell me of tigers", "24 tokens", "tok/s")
    screen.sees("ready")

    screen.type("/max-tokens none", "enter")
    screen.type("go on for ever", "enter")
    screen.sees("answering, Esc stops")
    screen.type("", "esc")
    screen.sees("■ stopped")

    screen.type("/max-tokens 8", "enter")
    screen.type("", "f5")
    screen.sees("■ the longest answer that was asked for  8 tokens", "ready")
    screen.sees_no("■ stopped")
    screen.type("", "ctrl+up")
    screen.sees("version 1 of 2", "■ stopped")

    screen.type("", "f7")
    screen.sees("Enter sends it on a branch of its own")
    screen.type(" or not", "enter")
    screen.sees("❯ go on for ever or not", "■ the longest answer that was asked for  8 tokens", "ready")
    screen.type("", "ctrl+q")
    assert screen.ends() == 0

    again = terminals("--continue")
    again.sees("❯ tell me of tigers", "❯ go on for ever or not", "ready")
    again.type("/new", "enter")
    again.sees_no("tigers")
    again.type("a talk about whales", "enter")
    again.sees("24 tokens")
    again.sees("ready")
    again.type("/chats tigers", "enter")
    again.sees("Conversations", "tell me of tigers")
    again.type("", "enter")
    again.sees("❯ tell me of tigers")
    again.sees_no("whales")
    again.type("/quit", "enter")
    assert again.ends() == 0
