"""The prompt, its keys and the commands typed into it."""

from __future__ import annotations

import pytest
from textual import events

from specchat.app.events import Cancel
from specchat.app.requests import Turn
from tests.tui.scripted_engine import (
    ScriptedEngine,
    chat,
    ready,
    seen,
    type_in,
    wait_until,
)


async def test_enter_sends_and_ctrl_j_makes_a_new_line():
    engine = ScriptedEngine()
    app = chat(engine)
    async with app.run_test(size=(120, 40)) as pilot:
        await ready(pilot)
        for key in ("ctrl+j", "shift+enter", "alt+enter"):
            await pilot.press("a", key)
        await pilot.press("b", "enter")
        assert engine.last_ask.turns[-1].text == "a\na\na\nb"
        assert app.prompt.text == ""


async def test_an_empty_prompt_is_not_sent():
    engine = ScriptedEngine()
    app = chat(engine)
    async with app.run_test(size=(120, 40)) as pilot:
        await ready(pilot)
        await pilot.press("space", "enter")
        assert engine.asks == []


async def test_a_pasted_text_of_several_lines_is_not_sent():
    engine = ScriptedEngine()
    app = chat(engine)
    async with app.run_test(size=(120, 40)) as pilot:
        await ready(pilot)
        app.post_message(events.Paste("one\r\ntwo\nthree\n"))
        await wait_until(pilot, lambda: app.prompt.text == "one\ntwo\nthree\n")
        assert engine.asks == []


async def test_the_prompt_grows_to_eight_lines():
    engine = ScriptedEngine()
    app = chat(engine)
    async with app.run_test(size=(120, 40)) as pilot:
        await ready(pilot)
        assert app.prompt.size.height == 1
        app.prompt.insert("\n".join("abc"))
        await wait_until(pilot, lambda: app.prompt.size.height == 3)
        app.prompt.insert("\n" * 20)
        await wait_until(pilot, lambda: app.prompt.size.height == 8)


async def test_up_brings_back_earlier_prompts_and_down_what_was_being_typed():
    engine = ScriptedEngine(loads=False)
    app = chat(engine)
    async with app.run_test(size=(120, 40)) as pilot:
        await type_in(pilot, "/temp 0")
        await type_in(pilot, "/spec off")
        await pilot.press(*"new", "up")
        assert app.prompt.text == "/spec off"
        await pilot.press("up")
        assert app.prompt.text == "/temp 0"
        await pilot.press("up")
        assert app.prompt.text == "/temp 0"
        await pilot.press("down", "down")
        assert app.prompt.text == "new"


async def test_up_inside_a_text_of_several_lines_moves_the_cursor():
    engine = ScriptedEngine(loads=False)
    app = chat(engine)
    async with app.run_test(size=(120, 40)) as pilot:
        await type_in(pilot, "/temp 0")
        await type_in(pilot, "one\ntwo", "up")
        assert app.prompt.text == "one\ntwo"
        assert app.prompt.cursor_location[0] == 0
        await pilot.press("down")
        assert app.prompt.cursor_location[0] == 1


async def test_the_placeholder_says_the_keys():
    app = chat(ScriptedEngine())
    async with app.run_test(size=(140, 40)) as pilot:
        await pilot.pause()
        assert "Enter sends, Ctrl+J" in str(app.prompt.placeholder)
        await pilot.resize_terminal(60, 24)
        await wait_until(pilot, lambda: len(str(app.prompt.placeholder)) < 55)


@pytest.mark.parametrize(
    ("typed", "says"),
    [
        ("/help", "/draft-max X"),
        ("/temp 0.5", "Temperature 0.5 from the next answer on."),
        ("/temp", "Temperature: 0.8"),
        ("/spec always", "always made"),
        ("/spec", "Speculate: auto"),
        ("/draft-max 7", "Longest draft 7 from the next answer on"),
        ("/draft-max", "Longest draft: auto"),
        ("/system", "No system prompt."),
        ("/theme blue", "/theme is dark, light"),
        ("/nope", "There is no /nope."),
        ("/temp boiling", "/temp is a number from 0"),
    ],
)
async def test_a_command_answers_and_is_not_sent(typed, says):
    engine = ScriptedEngine()
    app = chat(engine)
    async with app.run_test(size=(120, 60)) as pilot:
        await ready(pilot)
        await type_in(pilot, typed)
        assert says in seen(app)
        assert engine.asks == []
        assert app.prompt.text == ""


async def test_what_commands_change_goes_with_the_next_prompt():
    engine = ScriptedEngine()
    app = chat(engine)
    async with app.run_test(size=(120, 60)) as pilot:
        await ready(pilot)
        for typed in ("/temp 0", "/spec off", "/draft-max 2", "/system Rhyme."):
            await type_in(pilot, typed)
        await type_in(pilot, "/system")
        assert "System prompt: Rhyme." in seen(app)
        await type_in(pilot, "//go")
        ask = engine.last_ask
        assert ask.turns == (Turn("system", "Rhyme."), Turn("user", "/go"))
        assert ask.options.sampling.temperature == 0
        assert ask.options.drafting.speculate == "off"
        assert ask.options.drafting.draft_max == 2
        engine.finish("Oh.")
        await ready(pilot)
        await type_in(pilot, "/system none")
        await type_in(pilot, "again")
        assert engine.last_ask.turns[0] == Turn("user", "/go")


async def test_clear_begins_a_new_conversation():
    engine = ScriptedEngine()
    app = chat(engine)
    async with app.run_test(size=(120, 40)) as pilot:
        await ready(pilot)
        await type_in(pilot, "first")
        engine.finish("answer")
        await ready(pilot)
        await type_in(pilot, "/clear")
        assert "first" not in seen(app)
        await type_in(pilot, "second")
        assert engine.last_ask.turns == (Turn("user", "second"),)


async def test_clear_during_an_answer_stops_it_first():
    engine = ScriptedEngine()
    app = chat(engine)
    async with app.run_test(size=(120, 40)) as pilot:
        await ready(pilot)
        await type_in(pilot, "first")
        engine.write("text")
        await wait_until(pilot, lambda: "text" in seen(app))
        await type_in(pilot, "/clear")
        assert engine.told[-1] == Cancel()
        assert "first" in seen(app)
        engine.finish("text", reason="cancelled")
        await ready(pilot)
        assert "first" not in seen(app)
        assert app.session.turns == ()


@pytest.mark.parametrize("way", ["/quit", "ctrl+q"])
@pytest.mark.parametrize("when", ["loading", "answering"])
async def test_leaving_is_possible_at_any_time(way, when):
    engine = ScriptedEngine(loads=when != "loading")
    app = chat(engine)
    async with app.run_test(size=(120, 40)) as pilot:
        if when == "answering":
            await ready(pilot)
            await type_in(pilot, "x")
        if way == "/quit":
            await type_in(pilot, "/quit")
        else:
            await pilot.press(way)
        await pilot.pause()
        assert app.return_value == 0


async def test_keys_act_in_the_order_in_which_they_are_typed():
    engine = ScriptedEngine()
    app = chat(engine)
    async with app.run_test(size=(120, 40)) as pilot:
        await ready(pilot)
        for key, character in (("a", "a"), ("ctrl+j", "\n"), ("b", "b"), ("enter", "\r"), ("c", "c")):
            app.post_message(events.Key(key, character))
        await wait_until(pilot, lambda: app.prompt.text == "c")
        assert engine.last_ask.turns[-1].text == "a\nb"
