"""What a terminal sends: keys as they are pressed, pastes whole, and nothing that ends the reading."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from textual import events
from textual.drivers.headless_driver import HeadlessDriver
from textual.drivers.linux_driver import LinuxDriver
from textual.message import Message

from specchat.tui.terminal_input import TerminalDriver, TerminalParser, driver_for
from specchat.tui.widgets import prompt
from specchat.tui.widgets.prompt import Prompt
from tests.hostile_text import hostile_text
from tests.tui.scripted_engine import ScriptedEngine, chat, ready, seen
from tests.tui.test_screen_harmless import harmless_screen

START, END = "\x1b[200~", "\x1b[201~"
LEAVING = "\0\x1b" + "x" * 40 + "\r\x11\x03\x1b[A"
"""What Textual's own parser would type: Enter, Ctrl+Q, Ctrl+C."""


def said(messages: Iterable[Message]) -> list[tuple[str, str]]:
    """Pastes and keys, each with its text or its name."""
    return [
        ("paste", each.text) if isinstance(each, events.Paste) else ("key", each.key)
        for each in messages
        if isinstance(each, events.Paste | events.Key)
    ]


def cut(text: str, sizes: list[int]) -> list[str]:
    """The text as it may arrive: in pieces of these sizes, and the rest at once."""
    pieces: list[str] = []
    for size in sizes:
        pieces, text = [*pieces, text[:size]], text[size:]
    return [piece for piece in (*pieces, text) if piece]


@settings(max_examples=60)
@given(hostile_text().filter(lambda text: END not in text), st.lists(st.integers(1, 9), max_size=12))
def test_a_paste_is_taken_as_it_is_and_nothing_in_it_is_typed(text: str, sizes: list[int]):
    parser = TerminalParser()
    came = [
        message
        for piece in cut(f"a\x1b[A{START}{text}{LEAVING}{END}b{START}{END}", sizes)
        for message in parser.feed(piece)
    ]
    pasted = f"{text}{LEAVING}".replace("\0", "")
    assert said(came) == [("key", "a"), ("key", "up"), ("paste", pasted), ("key", "b"), ("paste", "")]


@pytest.mark.parametrize(
    ("data", "keys"),
    [
        ("\x1b", ["escape"]), ("a\x1b", ["a", "escape"]), ("\x1b[A", ["up"]), ("\x1b[20~", ["f9"]),
        ("\x11", ["ctrl+q"]), ("é\r", ["é", "enter"]),
    ],
)  # fmt: skip
@pytest.mark.parametrize("size", [1, 100])
def test_keys_are_what_textual_takes_them_for(data: str, keys: list[str], size: int):
    parser = TerminalParser()
    came = [m for at in range(0, len(data), size) for m in parser.feed(data[at : at + size])]
    came += parser.tick()
    named = [name for _, name in said(came)]
    assert [{"upper_e_acute": "é", "latin_small_letter_e_with_acute": "é"}.get(n, n) for n in named] == keys


def test_a_key_that_begins_as_a_paste_does_may_come_slowly():
    parser = TerminalParser()
    assert said([*parser.feed("\x1b[2"), *parser.tick(), *parser.feed("~")]) == [("key", "insert")]


class _Reading(TerminalDriver):
    """Reads from a pipe in place of a terminal."""

    def __init__(self, fileno: int) -> None:
        self.fileno, self.exit_event = fileno, threading.Event()
        self.came: list[Message] = []

    def process_message(self, message: Message) -> None:
        self.came.append(message)


def test_bytes_that_are_no_text_do_not_end_the_reading():
    reading, writing = os.pipe()
    driver = _Reading(reading)
    thread = threading.Thread(target=driver.run_input_thread)
    thread.start()
    os.write(writing, b"a\xff" + START.encode() + b"\x9b\xfe\x1b[2J" + END.encode() + b"b")
    deadline = time.monotonic() + 10
    while len(driver.came) < 4 and time.monotonic() < deadline:
        time.sleep(0.01)
    driver.exit_event.set()
    thread.join()
    os.close(writing)
    os.close(reading)
    assert [kind for kind, _ in said(driver.came)] == ["key", "key", "paste", "key"]
    assert said(driver.came)[2] == ("paste", "\ufffd\ufffd\x1b[2J")


def test_the_chat_reads_a_terminal_so_and_no_other_driver_is_replaced():
    assert chat(ScriptedEngine()).driver_class is TerminalDriver
    for known, expected in ((LinuxDriver, TerminalDriver), (HeadlessDriver, HeadlessDriver)):
        assert driver_for(known) is expected


FLOODS: dict[str, Any] = {
    "marks": "a" + "\u0301" * 20_000,
    "sequences": "\x1b[2J\x9b31m\x1b]52;c;aGk=\x07" * 1200,
    "lines": "x\n" * 1_500,
}


@pytest.mark.parametrize("name", FLOODS)
async def test_a_flood_is_drawn_in_part_and_sent_as_it_was_pasted(name: str):
    engine = ScriptedEngine()
    app = chat(engine)
    async with app.run_test(size=(80, 24)) as pilot:
        await ready(pilot)
        app.post_message(events.Paste(FLOODS[name]))
        await pilot.pause()
        assert harmless_screen(app)
        update = app.screen._compositor.render_full_update()
        assert len(update.render_segments(app.console)) < 20_000
        await pilot.press("enter")
        assert engine.last_ask.turns[-1].text == FLOODS[name].strip()
        await pilot.pause()
        assert harmless_screen(app)
        assert len(seen(app)) < 30_000
        assert ("characters more, which the model reads as well" in seen(app)) == (name != "marks")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("x" * (prompt.MOST_CHARACTERS + 1), "not pasted: 262,151 characters, and a prompt takes 262,144"),
        ("\u0301" * 1_000_000, "not pasted: 1,000,006 characters"),
        ("\n" * prompt.MOST_LINES, "not pasted: 20,001 lines, and a prompt takes 20,000"),
    ],
    ids=["one line", "marks", "lines"],
)
async def test_a_paste_that_is_too_long_is_not_taken_and_said_to_be(text: str, said: str):
    app = chat(ScriptedEngine())
    async with app.run_test(size=(120, 24)) as pilot:
        await ready(pilot)
        app.prompt.insert("before")
        app.post_message(events.Paste(text))
        await pilot.pause()
        assert app.query_one(Prompt).text == "before"
        assert said in app.state.text
