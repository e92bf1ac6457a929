"""What the screen says of the conversation: what the model still sees, what is kept, what comes first."""

from __future__ import annotations

from pathlib import Path

import pytest

from specchat.app.catalog import FoundModel
from specchat.app.decoding.stats import AnswerStats
from specchat.app.events import Died, Finished, Load
from specchat.app.history import History
from specchat.app.requests import Turn
from specchat.app.settings import ChatSettings
from specchat.tui.app import SpecchatApp
from specchat.tui.transcript.entries import ContextEntry, PromptEntry
from tests.tui.scripted_engine import LOADED, ScriptedEngine, chat, ready, seen, type_in, wait_until


async def exchange(pilot, app: SpecchatApp, engine: ScriptedEngine, prompt: str, **more) -> None:
    await type_in(pilot, prompt)
    await wait_until(pilot, lambda: app.session.phase == "answering")
    used = more.pop("used", 100)
    engine.say(Finished("stop", f"to {prompt}", (1,), 10, more.pop("dropped", 0), AnswerStats(), used, 1000))
    await ready(pilot)


def seen_from(app: SpecchatApp) -> str:
    """The prompt that stands under the line."""
    entries = app.transcript.entries
    (line,) = [place for place, entry in enumerate(entries) if isinstance(entry, ContextEntry)]
    below = entries[line + 1]
    assert isinstance(below, PromptEntry)
    return below.text


async def test_a_line_says_from_where_on_the_model_sees_the_talk():
    engine = ScriptedEngine()
    app = chat(engine)
    async with app.run_test(size=(120, 40)) as pilot:
        await ready(pilot)
        await exchange(pilot, app, engine, "one")
        await exchange(pilot, app, engine, "two")
        assert "no longer fit" not in seen(app)
        await exchange(pilot, app, engine, "three", dropped=2)
        assert "2 messages above no longer fit the context" in seen(app)
        assert seen_from(app) == "two"
        await exchange(pilot, app, engine, "four", dropped=4)
        assert seen_from(app) == "three"
        await type_in(pilot, "/new")
        assert "no longer fit" not in seen(app)


async def test_a_context_that_is_nearly_full_is_told_once():
    engine = ScriptedEngine()
    app = chat(engine)
    async with app.run_test(size=(120, 40)) as pilot:
        await ready(pilot)
        await exchange(pilot, app, engine, "one", used=799)
        assert "% full" not in seen(app)
        await exchange(pilot, app, engine, "two", used=810)
        await exchange(pilot, app, engine, "three", used=850)
        assert seen(app).count("The context is 81 % full (810 of 1,000 tokens)") == 1
        assert "85 % full" not in seen(app)


async def test_a_conversation_that_is_gone_on_with_is_seen_as_it_was(tmp_path: Path):
    history = History(tmp_path / "h.db")
    engine = ScriptedEngine()
    app = chat(engine, history=history)
    async with app.run_test(size=(120, 40)) as pilot:
        await ready(pilot)
        await exchange(pilot, app, engine, "one")
        await exchange(pilot, app, engine, "two")
    engine = ScriptedEngine()
    again = chat(engine, history=History(tmp_path / "h.db"), resume=1)
    async with again.run_test(size=(120, 40)) as pilot:
        await ready(pilot)
        assert "to one" in seen(again)
        await exchange(pilot, again, engine, "three")
        assert [turn.text for turn in engine.last_ask.turns] == ["one", "to one", "two", "to two", "three"]
        assert engine.last_ask.turns[1] == Turn("assistant", "to one", (1,))
        again.prompt.clear()
        await pilot.press("up", "up")
        assert again.prompt.text == "two"


async def test_a_prompt_that_was_never_answered_is_shown_so_and_can_be_answered(tmp_path: Path):
    history = History(tmp_path / "h.db")
    conversation = history.begin()
    history.add(conversation, None, "user", "killed while I waited")
    engine = ScriptedEngine()
    app = chat(engine, history=history, resume=conversation)
    async with app.run_test(size=(120, 40)) as pilot:
        await ready(pilot)
        assert "no answer yet; F5 answers it" in seen(app)
        await pilot.press("f5")
        await wait_until(pilot, lambda: app.session.phase == "answering")
        assert engine.last_ask.turns == (Turn("user", "killed while I waited"),)
        engine.finish("now then")
        await ready(pilot)
        assert "no answer yet" not in seen(app)


async def test_where_the_history_cannot_be_written_the_chat_says_so_once_and_goes_on(tmp_path: Path):
    history = History(tmp_path / "h.db")
    engine = ScriptedEngine()
    app = chat(engine, history=history)
    async with app.run_test(size=(120, 40)) as pilot:
        await ready(pilot)
        history.close()
        await exchange(pilot, app, engine, "one")
        await exchange(pilot, app, engine, "two")
        assert seen(app).count("This is not being saved") == 1
        assert "to two" in seen(app)


PACKAGED = FoundModel(Path("/somewhere/small.gguf"), "Small", "demo", 90_000_000, 0.0)


async def test_without_a_model_the_first_screen_takes_a_prompt_and_says_who_answers(monkeypatch):
    monkeypatch.setattr("specchat.tui.commands.models.models_here", lambda app: [PACKAGED])
    engine = ScriptedEngine()
    app = chat(engine, load=None)
    async with app.run_test(size=(120, 40)) as pilot:
        await wait_until(pilot, lambda: "Type and press Enter: Small answers." in seen(app))
        assert app.prompt.has_focus
        assert engine.told == []
        await type_in(pilot, "hello")
        await wait_until(pilot, lambda: bool(engine.asks))
        loads = [told for told in engine.told if isinstance(told, Load)]
        assert [load.options.target for load in loads] == ["/somewhere/small.gguf"]
        assert engine.last_ask.turns == (Turn("user", "hello"),)


async def test_without_any_model_on_the_disk_a_prompt_leads_to_the_downloads(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("specchat.tui.commands.models.models_here", lambda app: [])
    engine = ScriptedEngine()
    app = chat(engine, load=None)
    async with app.run_test(size=(120, 40)) as pilot:
        await wait_until(pilot, lambda: "No model was named" in seen(app))
        await type_in(pilot, "hello")
        await wait_until(pilot, lambda: len(app.screen_stack) == 2)
        assert any("download" in choice.detail for choice in app.screen.shown)
        await pilot.press("escape")
        await wait_until(pilot, lambda: len(app.screen_stack) == 1)
        assert app.prompt.text == "hello", "what was typed is still there"


async def test_an_answer_that_is_asked_for_again_before_the_models_are_there_comes_when_they_are(
    tmp_path: Path,
):
    history = History(tmp_path / "h.db")
    conversation = history.begin()
    history.add(conversation, None, "user", "who answers me?")
    engine = ScriptedEngine(loads=False)
    app = chat(engine, history=history, resume=conversation)
    async with app.run_test(size=(120, 40)) as pilot:
        await wait_until(pilot, lambda: bool(engine.told))
        await pilot.press("f5")
        assert engine.asks == []
        assert app.session.phase == "loading"
        engine.say(LOADED)
        await wait_until(pilot, lambda: len(engine.asks) == 1)
        engine.write("half an ans")
        engine.say(Died("gone"))
        await wait_until(pilot, lambda: app.session.phase == "dead")
        await pilot.press("f5")
        await wait_until(pilot, lambda: engine.starts == 2)
        engine.say(LOADED)
        await wait_until(pilot, lambda: len(engine.asks) == 2)


async def test_what_there_is_of_an_answer_is_kept_when_the_user_leaves(tmp_path: Path):
    engine = ScriptedEngine()
    app = chat(engine, history=History(tmp_path / "h.db"))
    async with app.run_test(size=(120, 40)) as pilot:
        await ready(pilot)
        await type_in(pilot, "go")
        await wait_until(pilot, lambda: app.session.phase == "answering")
        engine.write("half an ans")
        await wait_until(pilot, lambda: "half an ans" in seen(app))
        await pilot.press("ctrl+q")
    (_, answer) = History(tmp_path / "h.db").messages(1)
    assert (answer.text, answer.mark) == ("half an ans", "stopped")


async def test_settings_of_the_screen_that_mean_nothing_are_said():
    keys = {"regen": "f10", "continue": "f7"}
    app = chat(ScriptedEngine(), settings=ChatSettings(theme="nosuch", keys=keys))
    async with app.run_test(size=(120, 40)) as pilot:
        await ready(pilot)
        assert "no theme “nosuch”" in seen(app)
        assert "no action “regen”; the nearest is “regenerate”" in seen(app)
        assert "“f7” is the key of “continue” and of “edit”" in seen(app)


async def test_other_keys_do_what_they_are_set_to_and_the_help_says_so():
    app = chat(ScriptedEngine(), settings=ChatSettings(keys={"panel": "f12"}))
    async with app.run_test(size=(120, 40)) as pilot:
        await ready(pilot)
        await pilot.press("f9")
        assert app.panel.display
        await pilot.press("f12")
        assert not app.panel.display
        await pilot.press("f1")
        assert "(f12)" in seen(app)
