"""A conversation on a scripted engine: loading, answers, figures."""

from __future__ import annotations

import asyncio

import pytest

from specchat.app.decoding.stats import AnswerStats
from specchat.app.events import Cancel, Failed, Load, Loaded, LoadProgress, Piece, PrefillProgress, Progress
from specchat.app.requests import LoadOptions, Turn
from specchat.tui.widgets.status import Keys
from tests.tui.scripted_engine import (
    DRAFT,
    LOADED,
    TARGET,
    ScriptedEngine,
    chat,
    loading,
    ready,
    seen,
    type_in,
    wait_until,
)

MEASURED = AnswerStats(
    ttft_s=0.42,
    tokens_per_second=12.0,
    completion_tokens=40,
    target_passes=16,
    tokens_per_pass=2.5,
    drafted=36,
    accepted=24,
    accepted_by_position=(12, 8, 4),
    tested_by_position=(16, 12, 8),
    baseline_tokens_per_second=8.0,
    state="drafting",
    reason="expected 1.5x",
)


async def test_the_screen_is_there_before_the_models_and_takes_typing():
    engine = ScriptedEngine(loads=False)
    app = chat(engine)
    async with app.run_test(size=(120, 40)) as pilot:
        assert app.prompt.has_focus
        await pilot.press(*"hi")
        assert app.prompt.text == "hi"
        await wait_until(pilot, lambda: engine.told == [Load(LoadOptions("big.gguf", "small.gguf"))])
        assert engine.starts == 1
        assert "not loaded" in app.state.text
        assert "- tok/s · accepted - · speed-up - · context -" in app.figures.text


async def test_loading_shows_a_bar_for_each_model_and_then_what_is_loaded():
    engine = ScriptedEngine(loads=False)
    app = chat(engine)
    async with app.run_test(size=(120, 40)) as pilot:
        await loading(pilot, engine)
        engine.say(LoadProgress("target", TARGET.name, 1.0), LoadProgress("draft", DRAFT.name, 0.25))
        await wait_until(pilot, lambda: "25 %" in seen(app))
        assert "100 %" in seen(app)
        assert "loading the draft" in app.state.text
        warning = "The draft has 38 % of the target's bytes."
        engine.say(Loaded(TARGET, DRAFT, 4096, 2, ("CPU",), (warning,), "drafting", "up to 4 tokens"))
        await ready(pilot)
        text = seen(app)
        for part in ("Big 1.5B", "Q4_K_M", "1.12 GB", "1.5B parameters", "Small 0.5B", "Q4_0"):
            assert part in text
        assert "4,096 tokens · 2 threads · CPU" in text
        assert "! " + warning in text
        assert "━" not in text
        assert "drafting  up to 4 tokens" in app.state.text
        assert "Big 1.5B" in app.panel.text


async def test_a_prompt_submitted_while_loading_is_sent_when_loaded():
    engine = ScriptedEngine(loads=False)
    app = chat(engine)
    async with app.run_test(size=(120, 40)) as pilot:
        await type_in(pilot, "early")
        assert "waits for the models" in seen(app)
        assert engine.asks == []
        engine.say(LOADED)
        await wait_until(pilot, lambda: len(engine.asks) == 1)
        assert engine.last_ask.turns == (Turn("user", "early"),)
        assert "waits for the models" not in seen(app)


async def test_esc_takes_a_waiting_prompt_back():
    engine = ScriptedEngine(loads=False)
    app = chat(engine)
    async with app.run_test(size=(120, 40)) as pilot:
        await type_in(pilot, "early")
        await type_in(pilot, "second")
        assert "waiting already" in app.state.text
        app.prompt.clear()
        await pilot.press("escape")
        assert app.prompt.text == "early"
        assert "early" not in seen(app)
        engine.say(LOADED)
        await ready(pilot)
        assert engine.asks == []


async def test_an_answer_streams_and_stays():
    engine = ScriptedEngine()
    app = chat(engine, system="Be brief.")
    async with app.run_test(size=(120, 40)) as pilot:
        await ready(pilot)
        await type_in(pilot, "Say it")
        assert engine.last_ask.turns == (Turn("system", "Be brief."), Turn("user", "Say it"))
        engine.say(PrefillProgress("target", 5, 20, 0))
        await wait_until(pilot, lambda: "reading the prompt, 5 of 20" in app.state.text)
        engine.write("Some **bo")
        await wait_until(pilot, lambda: "Some **bo" in seen(app))
        assert "answering" in app.state.text
        engine.write("ld** text.")
        await wait_until(pilot, lambda: "Some bold text." in seen(app))
        engine.finish("Some **bold** text.", ids=(4, 5, 6), stats=MEASURED)
        await ready(pilot)
        assert "40 tokens · 12.0 tok/s · 67 % accepted · 1.50×" in seen(app)
        await type_in(pilot, "Again")
        assert engine.last_ask.turns[1:] == (
            Turn("user", "Say it"),
            Turn("assistant", "Some **bold** text.", (4, 5, 6)),
            Turn("user", "Again"),
        )


async def test_the_final_text_is_the_engines_whatever_was_streamed():
    engine = ScriptedEngine()
    app = chat(engine)
    async with app.run_test(size=(120, 40)) as pilot:
        await ready(pilot)
        await type_in(pilot, "x")
        engine.write("```py\nprint(1)\n```")
        engine.finish("```py\nprint(2)\n```\n\nDone.")
        await ready(pilot)
        assert "print(2)" in seen(app)
        assert "print(1)" not in seen(app)
        assert "Done." in seen(app)


async def test_the_panel_shows_the_figures_as_they_are_measured():
    engine = ScriptedEngine()
    app = chat(engine)
    async with app.run_test(size=(140, 45)) as pilot:
        await ready(pilot)
        assert "- tok/s" in app.panel.text
        assert "100 %" not in app.panel.text
        await type_in(pilot, "x")
        engine.say(Progress((Piece("a", "target"),), MEASURED, 13.5, 1024, 4096))
        await wait_until(pilot, lambda: "13.5 tok/s" in app.panel.text)
        text = app.panel.text
        assert "1.50×" in text
        assert "67 %" in text
        assert "24 of 36" in text
        assert "2.50" in text
        assert "8.0 tok/s" in text
        assert "420 ms" in text
        assert "1,024 of 4,096" in text
        assert "25 %" in text
        lines = [line.split() for line in text.splitlines()]
        positions = [(line[0], line[-2]) for line in lines if line and line[0] in "123" and line[-1] == "%"]
        assert positions == [("1", "75"), ("2", "67"), ("3", "50")]
        assert "▅" in text or "█" in text
        assert "expected 1.5x" in app.state.text


async def test_a_context_that_fills_up_is_said_in_words():
    engine = ScriptedEngine()
    app = chat(engine)
    async with app.run_test(size=(140, 45)) as pilot:
        await ready(pilot)
        await type_in(pilot, "x")
        engine.say(Progress((Piece("a", "target"),), MEASURED, 13.5, 3600, 4096))
        await wait_until(pilot, lambda: "nearly full" in app.panel.text)
        engine.finish("a", reason="context", dropped_turns=2)
        await ready(pilot)
        assert "the context is full" in seen(app)


async def test_a_refresh_touches_only_the_lines_that_changed():
    engine = ScriptedEngine()
    app = chat(engine)
    async with app.run_test(size=(140, 45)) as pilot:
        await ready(pilot)
        await type_in(pilot, "x")
        engine.say(Progress((Piece("a", "target"),), MEASURED, 13.5, 1024, 4096))
        await wait_until(pilot, lambda: "13.5 tok/s" in app.panel.text)
        drawn = app.panel.drawn_lines
        app.panel.draw()
        assert app.panel.drawn_lines == drawn
        app.panel.context(1025, 4096)
        app.panel.draw()
        assert app.panel.drawn_lines == drawn + 1


async def test_esc_stops_the_answer_and_keeps_it():
    engine = ScriptedEngine()
    app = chat(engine)
    async with app.run_test(size=(120, 40)) as pilot:
        await ready(pilot)
        await type_in(pilot, "x")
        engine.write("half an ans")
        await wait_until(pilot, lambda: "half an ans" in seen(app))
        await pilot.press("escape")
        assert engine.told[-1] == Cancel()
        assert "stopping" in app.state.text
        await pilot.press("escape")
        assert engine.told.count(Cancel()) == 1
        engine.finish("half an ans", reason="cancelled")
        await ready(pilot)
        assert "■ stopped" in seen(app)
        assert app.session.turns[-1] == Turn("assistant", "half an ans", (1, 2))


async def test_an_answer_stopped_before_its_first_token_leaves_no_turn():
    engine = ScriptedEngine()
    app = chat(engine)
    async with app.run_test(size=(120, 40)) as pilot:
        await ready(pilot)
        await type_in(pilot, "x")
        await pilot.press("escape")
        engine.finish("", reason="cancelled", ids=())
        await ready(pilot)
        assert app.session.turns == ()
        assert "not kept in the conversation" in seen(app)


@pytest.mark.parametrize("way", ["regenerate", "edit"])
@pytest.mark.parametrize("end", ["stopped", "failed"])
async def test_where_nothing_comes_of_a_new_version_the_one_before_is_in_view_again(way: str, end: str):
    engine = ScriptedEngine()
    app = chat(engine)
    async with app.run_test(size=(120, 40)) as pilot:
        await ready(pilot)
        await type_in(pilot, "tell me")
        engine.finish("a long tale")
        await ready(pilot)
        if way == "regenerate":
            await pilot.press("f5")
        else:
            await pilot.press("f7")
            await type_in(pilot, " more")
        await wait_until(pilot, lambda: len(engine.asks) == 2)
        assert "a long tale" not in seen(app)
        if end == "failed":
            engine.say(Failed("no pass"))
        else:
            engine.finish("", reason="cancelled", ids=())
        await ready(pilot)
        assert "a long tale" in seen(app)
        assert "as it was before" in seen(app)
        assert "not kept" not in seen(app)
        assert [turn.text for turn in app.session.turns] == ["tell me", "a long tale"]


async def test_esc_without_an_answer_goes_back_to_the_end():
    engine = ScriptedEngine()
    app = chat(engine)
    async with app.run_test(size=(100, 24)) as pilot:
        await ready(pilot)
        await type_in(pilot, "/help")
        await pilot.press("pageup")
        assert not app.transcript.following
        await pilot.press("escape")
        await wait_until(pilot, lambda: app.transcript.following)
        assert app.prompt.has_focus


async def test_a_second_prompt_during_an_answer_stays_in_the_prompt():
    engine = ScriptedEngine()
    app = chat(engine)
    async with app.run_test(size=(120, 40)) as pilot:
        await ready(pilot)
        await type_in(pilot, "one")
        await type_in(pilot, "two")
        assert app.prompt.text == "two"
        assert "Esc stops the answer first" in app.state.text
        assert len(engine.asks) == 1


async def test_the_notice_and_the_footer_are_shown():
    app = chat(ScriptedEngine(), notice="This is the packaged model.")
    async with app.run_test(size=(120, 40)) as pilot:
        await ready(pilot)
        assert "This is the packaged model." in seen(app)
        footer = app.query_one("#keys").text
        for part in (
            "Enter send",
            "Ctrl+J new line",
            "Esc stop",
            "F2 chats",
            "Ctrl+P actions",
            "F1 help",
            "Ctrl+Q quit",
        ):
            assert part in footer
        await pilot.press("f1")
        assert "/regen" in seen(app)


async def test_no_key_of_the_footer_is_cut():
    app = chat(ScriptedEngine())
    async with app.run_test(size=(160, 24)) as pilot:
        await ready(pilot)
        whole = app.query_one("#keys").text
        assert whole.endswith("F3 parameters")
        keys = whole.split("  ")
        margins = 160 - app.query_one(Keys).room
        for count in range(2, len(keys), 3):
            shown = "  ".join(keys[:count])
            await pilot.resize_terminal(margins + len(shown), 24)
            assert app.query_one("#keys").text == shown
            await pilot.resize_terminal(margins + len(shown) - 1, 24)
            assert app.query_one("#keys").text == "  ".join(keys[: count - 1])
        await pilot.resize_terminal(160, 24)
        assert app.query_one("#keys").text == whole


async def test_the_screen_looks_at_the_engine_by_itself():
    engine = ScriptedEngine()
    app = chat(engine, delays=(0.05, 0.05, 0.05))
    async with app.run_test(size=(120, 40)) as pilot:
        while app.session.phase != "ready":
            await asyncio.sleep(0.01)
        await type_in(pilot, "x")
        engine.finish("by itself")
        while app.session.phase != "ready":
            await asyncio.sleep(0.01)
        assert "by itself" in seen(app)
