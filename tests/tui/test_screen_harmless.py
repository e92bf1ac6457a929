"""Text from strangers on the screen: what is written to the terminal is Textual's and nobody else's."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest
from hypothesis import Phase, example, given, settings
from hypothesis import strategies as st
from rich.segment import Segment
from textual.color import Color

from specchat.app.events import Failed, Loaded, LoadProgress
from specchat.app.history import IN_MEMORY, History
from specchat.app.settings import ChatSettings
from specchat.tui.app import SpecchatApp
from specchat.tui.completion import Completion
from specchat.tui.harmless import HarmlessLines
from specchat.tui.screens.picker import Choice, Picker
from specchat.tui.transcript.markdown import markdown_rows
from specchat.tui.widgets.suggestions import Suggestions
from tests.hostile_text import SEQUENCES, hostile_text, is_harmless
from tests.tui.scripted_engine import DRAFT, LOADED, TARGET, ScriptedEngine, chat, loading, seen, wait_until

OWN = r"\x1b\[[0-9;]*[mH]"
"""Colours, and where the cursor goes."""


def harmless_screen(app: SpecchatApp) -> bool:
    """Whether all that is seen could be written to a terminal, and no text has a link or an action."""
    update = app.screen._compositor.render_full_update()
    segments = [segment for line in update.strips for strip in line for segment in strip]
    meta = [segment.style.meta for segment in segments if segment.style]
    assert not [each for each in meta if "@click" in each]
    assert not [segment for segment in segments if segment.style and segment.style.link]
    written = update.render_segments(app.console)
    return is_harmless(written, OWN) and "\x1b[5;31m" not in written


async def talk(texts: list[str]) -> None:
    """A conversation in which every text that comes from outside is one of these."""
    first, second, third = texts
    engine = ScriptedEngine(loads=False)
    app = chat(engine, history=History(IN_MEMORY), settings=ChatSettings(theme=first), notice=second)
    async with app.run_test(size=(110, 40)) as pilot:
        await loading(pilot, engine)
        target, draft = replace(TARGET, name=first, quantization=third), replace(DRAFT, name=second)
        engine.say(LoadProgress("target", first, 0.5), LoadProgress("draft", second, 0.5))
        await wait_until(pilot, lambda: app.frames > 1)
        assert harmless_screen(app)
        engine.say(Loaded(target, draft, 4096, 2, (third,), (first, second), "drafting", third))
        await wait_until(pilot, lambda: app.session.phase == "ready")
        assert harmless_screen(app)

        app.prompt.insert("\x1b[2J\x9b2J\u202e\x07x")
        app.query_one(Suggestions).offer([Completion(first, 0, first, second)])
        await pilot.pause()
        assert harmless_screen(app)
        app._submit(first + "x")
        await wait_until(pilot, lambda: bool(engine.asks))
        for view in ("markdown", "origin"):
            app.transcript.view = view
            for piece in (first, "<think>\n", second, "</think>", third, *third):
                engine.write(piece)
            app.look()
            await pilot.pause()
            assert harmless_screen(app)
        engine.finish(f"{first}\n\n{second}\n\n{third}")
        await wait_until(pilot, lambda: not app.session.busy)
        assert harmless_screen(app)

        engine.say(Failed(third))
        app.say(first, "error")
        app.incoming.hint(second)
        app.push_screen(
            Picker(first, [Choice(1, second, third), Choice(2, third, usable=False)], empty=first)
        )
        await pilot.pause()
        assert harmless_screen(app)
        await pilot.press(*"zzzzq")
        assert harmless_screen(app)


@settings(max_examples=2, deadline=None, phases=(Phase.generate,))
@given(st.lists(hostile_text(), min_size=3, max_size=3))
def test_no_text_from_outside_reaches_the_terminal_as_anything_but_text(texts: list[str]):
    asyncio.run(talk(texts))


def test_each_known_sequence_is_harmless_everywhere_on_the_screen():
    third = len(SEQUENCES) // 3 + 1
    asyncio.run(talk(["a".join(SEQUENCES[at * third : (at + 1) * third]) for at in range(3)]))


async def test_markup_in_names_is_shown_and_not_obeyed():
    engine = ScriptedEngine(loads=False)
    app = chat(engine)
    async with app.run_test(size=(110, 40)) as pilot:
        await loading(pilot, engine)
        engine.say(replace(LOADED, target=replace(TARGET, name="[@click=app.bell]B[/] [bold]")))
        await wait_until(pilot, lambda: app.session.phase == "ready")
        assert "[@click=app.bell]B[/] [bold]" in seen(app)
        assert harmless_screen(app)


@pytest.mark.parametrize(
    "source", ["&#27;[2J", "[&#x9b;](x)", "![&#27;](&#x202e;)", "| a |\n|--|\n| &#27; |", "# &#27;"]
)
def test_what_markdown_spells_out_is_no_control_character(source: str):
    assert all(is_harmless(row.content.plain) for row in markdown_rows(source, 60))


@given(hostile_text())
@settings(max_examples=100)
def test_rows_of_markdown_are_harmless(source: str):
    rows = markdown_rows(source.replace("\x1b", "&#27;").replace("\x9b", "&#155;"), 60)
    assert not any("\x1b" in row.content.plain or "\x9b" in row.content.plain for row in rows)


@given(hostile_text())
@example("a" + "\u0301" * 30 + "b" + "\u00ad" * 30 + "\u1160" * 30)
@example("\u200d" * 9 + "00")
def test_what_is_taken_out_of_a_line_leaves_every_cell_where_it_is(text: str):
    (kept,) = HarmlessLines().apply([Segment(text)], Color(0, 0, 0))
    assert kept.cell_length == Segment(text).cell_length
    assert is_harmless(kept.text)
