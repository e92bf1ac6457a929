"""The comparison: two sides, one prompt, one engine; and the chat as it was when it is over."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from textual.pilot import Pilot

from specchat.app.decoding.settings import Sampling
from specchat.app.decoding.stats import AnswerStats
from specchat.app.events import Cancel, Died, Failed, Load, LoadProgress, PrefillProgress
from specchat.app.history import IN_MEMORY, History
from specchat.app.process import EngineProcess
from specchat.app.requests import AnswerOptions, LoadOptions, Turn
from specchat.app.settings import ChatSettings
from specchat.tui.app import SpecchatApp
from specchat.tui.screens.comparing import ComparingScreen
from specchat.tui.screens.picker import Picker
from tests.tiny_models import TinyPair, write_tiny_model
from tests.tui.scripted_engine import LOADED, ScriptedEngine, chat, ready, seen, type_in, wait_until

PAIR = LoadOptions("big.gguf", "small.gguf")
STATS = AnswerStats(
    ttft_s=0.4, tokens_per_second=12.0, tokens_per_pass=2.5, completion_tokens=3, target_passes=2,
    drafted=36, accepted=24, baseline_tokens_per_second=8.0, state="drafting", reason="lately 1.50x",
)  # fmt: skip
PLAIN = AnswerStats(
    ttft_s=0.3, tokens_per_second=8.0, tokens_per_pass=1.0, completion_tokens=3, target_passes=3,
    baseline_tokens_per_second=8.0, state="plain", reason="drafting is switched off",
)  # fmt: skip


@asynccontextmanager
async def comparing(
    command: str = "/compare", size: tuple[int, int] = (120, 36), engine: ScriptedEngine | None = None, **more
) -> AsyncIterator[tuple[Pilot, SpecchatApp, ScriptedEngine, ComparingScreen]]:
    """The screen, opened from a chat that has had one exchange."""
    engine = engine or ScriptedEngine()
    app = chat(engine, **more)
    async with app.run_test(size=size) as pilot:
        await ready(pilot)
        await type_in(pilot, "what is a leap year?")
        await wait_until(pilot, lambda: app.session.phase == "answering")
        engine.write("a year")
        engine.finish("a year")
        await ready(pilot)
        engine.told.clear()
        await type_in(pilot, command)
        await wait_until(pilot, lambda: isinstance(app.screen, ComparingScreen))
        await pilot.pause()
        screen = app.screen
        assert isinstance(screen, ComparingScreen)
        yield pilot, app, engine, screen


def text(screen: ComparingScreen, side: int) -> str:
    view = screen.sides[side]
    said = "\n".join(line.text for entry in view.transcript.entries for line in entry.lines)
    return "\n".join([view.query_one("#side-title").text, view.state.text, view.figures.text, said])


def verdict(screen: ComparingScreen) -> str:
    return screen.query_one("#verdict").text


async def answer(
    pilot: Pilot, engine: ScriptedEngine, asks: int, said: str, stats: AnswerStats = STATS, **more
):
    """Answer the n-th question."""
    await wait_until(pilot, lambda: len(engine.asks) == asks)
    engine.write(said, "accepted", stats)
    engine.finish(said, stats=stats, **more)


async def back_in_the_chat(pilot: Pilot, app: SpecchatApp) -> None:
    await wait_until(pilot, lambda: len(app.screen_stack) == 1)
    assert app.listener is app.incoming
    assert app.prompt.has_focus


async def test_both_sides_answer_the_last_prompt_one_after_the_other():
    async with comparing() as (pilot, _app, engine, screen):
        assert screen.prompt.text == "what is a leap year?"
        assert "left   Small 0.5B Q4_0" in text(screen, 0)
        assert "right  plain, no draft" in text(screen, 1)
        await pilot.press("enter")
        await wait_until(pilot, lambda: len(engine.asks) == 1)
        assert engine.last_ask.turns == (Turn("user", "what is a leap year?"),), "by itself"
        assert engine.last_ask.afresh
        assert engine.last_ask.options.drafting.speculate == "auto"
        assert "waits for the left one" in text(screen, 1)
        engine.say(PrefillProgress("target", 3, 7, 0))
        await wait_until(pilot, lambda: "reading the prompt, 3 of 7" in text(screen, 0))
        engine.write("It has ", "accepted", STATS)
        await wait_until(pilot, lambda: "It has" in text(screen, 0))
        assert len(engine.asks) == 1, "the other one waits"
        engine.write("366 days.", "correction", STATS)
        engine.finish("It has 366 days.", stats=STATS)
        await wait_until(pilot, lambda: len(engine.asks) == 2)
        assert engine.last_ask.turns == (Turn("user", "what is a leap year?"),)
        assert engine.last_ask.options.drafting.speculate == "off"
        for figure in ("12.0 tok/s", "1.50×", "67 % of 36", "2.50", "400 ms", "8.0 tok/s", "3 % of 4,096"):
            assert figure in text(screen, 0)
        assert "done" in text(screen, 0)
        await answer(pilot, engine, 2, "It has 366 days.", PLAIN)
        await wait_until(pilot, lambda: "as fast" in verdict(screen))
        assert "The left side is 1.50× as fast: 12.0 against 8.0 tok/s, one run each." in verdict(screen)
        assert screen.prompt.text == "what is a leap year?", "ready to be asked again"
        assert [type(each) for each in engine.told].count(Load) == 2


async def test_enter_again_asks_in_the_other_order_and_the_figures_add_up():
    async with comparing() as (pilot, _app, engine, screen):
        await pilot.press("enter")
        await answer(pilot, engine, 1, "x")
        await answer(pilot, engine, 2, "x", PLAIN)
        await wait_until(pilot, lambda: "one run each" in verdict(screen))
        await pilot.press("enter")
        await wait_until(pilot, lambda: len(engine.asks) == 3)
        assert engine.last_ask.options.drafting.speculate == "off", "the right one goes first"
        assert "waits for the right one" in text(screen, 0)
        await answer(pilot, engine, 3, "x", PLAIN)
        await answer(pilot, engine, 4, "x", replace(STATS, tokens_per_second=16.0))
        await wait_until(pilot, lambda: "medians of 2 runs each" in verdict(screen))
        assert "1.75× as fast: 14.0 against 8.0 tok/s" in verdict(screen)
        assert "median of 2: 14.0 tok/s" in text(screen, 0)


async def test_what_came_from_the_draft_is_coloured_until_ctrl_o():
    async with comparing() as (pilot, _app, engine, screen):
        await pilot.press("enter")
        await answer(pilot, engine, 1, "**bold**")
        await answer(pilot, engine, 2, "**bold**", PLAIN)
        await wait_until(pilot, lambda: "as fast" in verdict(screen))
        styles = [str(segment.style) for line in screen.sides[0].transcript.entries[0].lines
                  for segment in line.strip if "bold" in segment.text]  # fmt: skip
        assert any("underline" in style for style in styles)
        assert screen.query_one("#legend").display
        await pilot.press("ctrl+o")
        for side in (0, 1):
            assert "**" not in text(screen, side)
        assert not screen.query_one("#legend").display
        await pilot.press("ctrl+o")
        assert "**bold**" in text(screen, 1)


async def test_escape_stops_then_leaves_and_the_chat_goes_on():
    async with comparing() as (pilot, app, engine, screen):
        before = list(app.session.messages)
        await pilot.press("enter")
        await wait_until(pilot, lambda: len(engine.asks) == 1)
        engine.write("half an ans", stats=STATS)
        await pilot.press("escape")
        assert engine.told[-1] == Cancel()
        await pilot.press("enter")
        assert "Esc stops the answers first" in verdict(screen)
        engine.finish("half an ans", reason="cancelled", stats=STATS)
        await wait_until(pilot, lambda: screen.phase == "ready")
        assert "half an ans" in text(screen, 0)
        assert "■ stopped" in text(screen, 0)
        assert "was not asked" in text(screen, 1)
        assert len(engine.asks) == 1
        await pilot.press("escape")
        await back_in_the_chat(pilot, app)
        assert app.session.phase == "ready"
        assert engine.told.count(Load(PAIR)) == 1, "nothing else was loaded, so nothing is loaded again"
        assert app.session.messages == before
        assert len(app.session.history.branch(app.session.conversation)) == 2
        assert "half an ans" not in seen(app)
        await type_in(pilot, "and a common one?")
        await wait_until(pilot, lambda: app.session.phase == "answering")
        assert [turn.text for turn in engine.last_ask.turns] == [
            "what is a leap year?", "a year", "and a common one?",
        ]  # fmt: skip
        assert not engine.last_ask.afresh
        engine.finish("365 days")
        await ready(pilot)


async def test_keys_work_also_where_nothing_has_the_focus():
    async with comparing() as (pilot, app, _engine, screen):
        screen.set_focus(None)
        await pilot.press("ctrl+o")
        assert screen.sides[0].transcript.view == "markdown"
        screen.set_focus(None)
        await pilot.press("x")
        assert screen.prompt.has_focus
        screen.set_focus(None)
        await pilot.press("escape")
        await back_in_the_chat(pilot, app)


async def test_its_keys_may_be_set_and_one_that_is_used_twice_is_said():
    keys = {"compare_back": "f12", "compare_left": "ctrl+t"}
    async with comparing(settings=ChatSettings(keys=keys)) as (pilot, app, _engine, _screen):
        assert "“ctrl+t” is the key of “thoughts” and of “compare_left”" in seen(app)
        await pilot.press("f12")
        await back_in_the_chat(pilot, app)


async def test_escape_twice_leaves_once_the_engine_has_stopped():
    async with comparing() as (pilot, app, engine, screen):
        await pilot.press("enter")
        await wait_until(pilot, lambda: len(engine.asks) == 1)
        await pilot.press("escape", "escape")
        assert app.screen is screen, "its news are still to come"
        engine.finish("", reason="cancelled", ids=())
        await back_in_the_chat(pilot, app)
        assert app.session.phase == "ready"


async def test_another_draft_is_loaded_and_on_leaving_the_chats_own_again(tmp_path: Path):
    target, other = write_tiny_model(tmp_path / "target.gguf"), write_tiny_model(tmp_path / "other.gguf")
    load = LoadOptions(str(target), str(other.with_name("loaded.gguf")))
    async with comparing(f"/compare {other}", load=load) as (pilot, app, engine, screen):
        assert "right  Tiny F32" in text(screen, 1)
        await pilot.press("enter")
        await answer(pilot, engine, 1, "x")
        await answer(pilot, engine, 2, "x")
        await wait_until(pilot, lambda: "about as fast" in verdict(screen))
        loads = [told.options for told in engine.told if isinstance(told, Load)]
        assert loads == [load, replace(load, draft=str(other))]
        await pilot.press("escape")
        await back_in_the_chat(pilot, app)
        await ready(pilot)
        assert "is loaded again" in seen(app)
        assert [told.options for told in engine.told if isinstance(told, Load)][-1] == load


async def test_a_draft_that_cannot_be_loaded_is_said_on_its_side_and_the_other_one_answers(tmp_path: Path):
    target, other = write_tiny_model(tmp_path / "target.gguf"), write_tiny_model(tmp_path / "other.gguf")
    load = LoadOptions(str(target), "loaded.gguf")
    async with comparing(f"/compare {other}", load=load) as (pilot, _app, engine, screen):
        await pilot.press("enter")
        await wait_until(pilot, lambda: len(engine.asks) == 1)
        engine._loads = False
        engine.finish("fine", stats=STATS)
        await wait_until(pilot, lambda: isinstance(engine.told[-1], Load) and screen.contest.turn == 1)
        engine.say(
            LoadProgress("draft", "Other", 0.5), Failed("other.gguf could not be loaded: it is cut off")
        )
        await wait_until(pilot, lambda: screen.phase == "ready")
        assert "other.gguf could not be loaded: it is cut off" in text(screen, 1)
        assert "failed" in text(screen, 1)
        assert "fine" in text(screen, 0)
        assert "No result" in verdict(screen)
        await pilot.press("enter")
        engine._loads = True
        engine.say(Failed("other.gguf could not be loaded: it is cut off"))
        await wait_until(pilot, lambda: screen.contest.turn == 0)
        await wait_until(pilot, lambda: len(engine.asks) == 2)
        engine.finish("fine again", stats=STATS)
        await wait_until(pilot, lambda: "fine again" in text(screen, 0))
        assert engine.told.count(Load(load)) >= 2


@pytest.mark.parametrize("name", ["missing.gguf", "strange.gguf"])
async def test_a_file_that_cannot_draft_here_opens_nothing(name: str, tmp_path: Path):
    target = write_tiny_model(tmp_path / "target.gguf")
    write_tiny_model(tmp_path / "strange.gguf", extra_tokens=900)
    engine = ScriptedEngine()
    app = chat(engine, load=LoadOptions(str(target)))
    async with app.run_test(size=(120, 36)) as pilot:
        await ready(pilot)
        await type_in(pilot, f"/compare {tmp_path / name}")
        assert name in seen(app)
        assert len(app.screen_stack) == 1
        assert app.listener is app.incoming


async def test_an_answer_that_fails_leaves_the_other_side_its_turn():
    async with comparing() as (pilot, _app, engine, screen):
        await pilot.press("enter")
        await wait_until(pilot, lambda: len(engine.asks) == 1)
        engine.say(Failed("The prompt has 5000 tokens, the context 4096."))
        await answer(pilot, engine, 2, "well", PLAIN)
        await wait_until(pilot, lambda: screen.phase == "ready")
        assert "5000 tokens" in text(screen, 0)
        assert "well" in text(screen, 1)


async def test_an_engine_that_dies_says_so_and_the_chat_starts_it_again():
    async with comparing() as (pilot, app, engine, screen):
        await pilot.press("enter")
        await wait_until(pilot, lambda: len(engine.asks) == 1)
        engine.write("half", stats=STATS)
        engine.say(Died("the engine's process was killed by SIGSEGV"))
        await wait_until(pilot, lambda: screen.phase == "dead")
        assert "SIGSEGV" in text(screen, 0)
        assert "half" in text(screen, 0)
        assert "starts it again" in verdict(screen)
        await pilot.press("enter")
        assert len(engine.asks) == 1
        await pilot.press("escape")
        await back_in_the_chat(pilot, app)
        assert app.session.phase == "dead"
        await type_in(pilot, "still there?")
        await wait_until(pilot, lambda: len(engine.asks) == 2)
        assert engine.starts == 2


async def test_a_side_is_chosen_from_the_disk_and_the_figures_begin_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    target = write_tiny_model(tmp_path / "target.gguf")
    folder = tmp_path / "models"
    folder.mkdir()
    write_tiny_model(folder / "quick.gguf", name="Quick")
    more = {
        "load": LoadOptions(str(target), "loaded.gguf"),
        "settings": ChatSettings(model_folders=(folder,)),
    }
    engine = ScriptedEngine()
    async with comparing(engine=engine, **more) as (pilot, app, _, screen):
        app.session.loaded = replace(LOADED, target=replace(LOADED.target, path=str(target)))
        await pilot.press("enter")
        await answer(pilot, engine, 1, "x")
        await answer(pilot, engine, 2, "x", PLAIN)
        await wait_until(pilot, lambda: "as fast" in verdict(screen))
        for key, words, side, expected in (
            ("f4", "quick", 1, "right  Quick F32"),
            ("f3", "lookup", 0, "left   lookup alone"),
            ("f3", "plain decoding", 0, "left   plain, no draft"),
        ):
            await pilot.press(key)
            await wait_until(pilot, lambda: isinstance(app.screen, Picker))
            picker = app.screen
            await pilot.press(*words)
            await wait_until(pilot, lambda: len(picker.shown) == 1)  # noqa: B023 (awaited here)
            await pilot.press("enter")
            await wait_until(pilot, lambda: app.screen is screen)
            assert screen.prompt.has_focus
            assert expected in text(screen, side)
            assert "Enter asks both" in verdict(screen)
        await pilot.press("f4")
        await wait_until(pilot, lambda: isinstance(app.screen, Picker))
        await pilot.press("escape")
        assert app.screen is screen


async def test_commands_and_files_that_are_no_text_are_not_asked(tmp_path: Path):
    (tmp_path / "nothing.bin").write_bytes(b"\0\1\2\377" * 50)
    async with comparing() as (pilot, _app, engine, screen):
        for typed, says in (
            ("/regen", "commands are for the chat"),
            (f"see @{tmp_path / 'nothing.bin'}", "nothing.bin"),
        ):
            screen.prompt.put(typed)
            await pilot.press("enter")
            assert says in verdict(screen)
        assert engine.asks == []
        screen.prompt.put("//regen")
        await pilot.press("enter")
        await wait_until(pilot, lambda: len(engine.asks) == 1)
        assert engine.last_ask.turns[-1] == Turn("user", "/regen")
        await pilot.press("ctrl+c")
        assert engine.told[-1] == Cancel(), "Ctrl+C stops as in the chat"


async def test_it_waits_for_the_models_and_then_opens():
    engine = ScriptedEngine(loads=False)
    app = chat(engine)
    async with app.run_test(size=(120, 36)) as pilot:
        await wait_until(pilot, lambda: bool(engine.told))
        await type_in(pilot, "/compare lookup")
        assert len(app.screen_stack) == 1
        engine.say(LOADED)
        await wait_until(pilot, lambda: isinstance(app.screen, ComparingScreen))
        await pilot.pause()
        assert "right  lookup alone" in text(app.screen, 1)
        assert app.screen.prompt.text == ""


@pytest.mark.parametrize("size", [(120, 36), (100, 30), (80, 24), (60, 18)], ids=str)
async def test_everything_is_seen_at_every_size(size: tuple[int, int]):
    async with comparing(size=size) as (pilot, _app, engine, screen):
        await pilot.press("enter")
        await answer(pilot, engine, 1, "first words\n\nlast words")
        await answer(pilot, engine, 2, "first words\n\nlast words", PLAIN)
        await wait_until(pilot, lambda: "as fast" in verdict(screen))
        await pilot.pause()
        left, right = screen.sides
        beside = left.region.y == right.region.y
        assert beside == (size[0] >= 100)
        for each in (*screen.query("Lines"), screen.prompt, left.transcript, right.transcript):
            if each.display:
                assert each.region.height > 0, each
                assert each.region.bottom <= size[1], each
                assert each.region.right <= size[0], each
        assert "67 % of 36" in left.figures.text


async def test_it_takes_another_size_while_an_answer_comes():
    async with comparing() as (pilot, _app, engine, screen):
        await pilot.press("enter")
        await wait_until(pilot, lambda: len(engine.asks) == 1)
        engine.write("before ", "accepted", STATS)
        await pilot.resize_terminal(80, 24)
        engine.write("after", "accepted", STATS)
        await wait_until(pilot, lambda: "before after" in text(screen, 0))
        assert screen.sides[1].region.y > screen.sides[0].region.y
        await pilot.resize_terminal(140, 40)
        await pilot.pause()
        assert screen.sides[1].region.y == screen.sides[0].region.y


async def test_on_a_real_pair_both_sides_say_the_same_and_the_chat_goes_on(
    tiny_pair: TinyPair, tmp_path: Path
):
    other = write_tiny_model(tmp_path / "other.gguf", noise=0.05, name="Other")
    engine = EngineProcess()
    load = LoadOptions(str(tiny_pair.target), str(tiny_pair.draft), ctx_size=512, threads=1)
    options = AnswerOptions(Sampling(temperature=0.0), max_tokens=24)
    app = SpecchatApp(engine, load, options, history=History(IN_MEMORY), delays=(0.02, 0.02, 0.02))
    try:
        async with app.run_test(size=(120, 36)) as pilot:
            await wait_until(pilot, lambda: app.session.phase == "ready", 30)
            await type_in(pilot, "hello")
            await wait_until(pilot, lambda: len(app.session.messages) == 2, 30)
            said = app.session.messages[-1]
            for right in ("none", "lookup", str(other)):
                await type_in(pilot, f"/compare {right}")
                await wait_until(pilot, lambda: isinstance(app.screen, ComparingScreen))
                screen = app.screen
                await pilot.pause()
                for runs in (1, 2):
                    await pilot.press("enter")
                    await wait_until(pilot, lambda: len(screen.contest.rounds) == runs, 30)  # noqa: B023
                    answers = screen.contest.rounds[-1]
                    assert [each.token_ids for each in answers] == [said.token_ids] * 2
                    assert [entry.text for view in screen.sides for entry in view.transcript.entries] == (
                        [said.text] * 2
                    )
                assert "equal, token for token (24 tokens)" in verdict(screen)
                await pilot.press("escape")
                await wait_until(
                    pilot, lambda: len(app.screen_stack) == 1 and app.session.phase == "ready", 30
                )
            assert len(app.session.messages) == 2
            await type_in(pilot, "go on")
            await wait_until(pilot, lambda: len(app.session.messages) == 4, 30)
    finally:
        engine.close()
