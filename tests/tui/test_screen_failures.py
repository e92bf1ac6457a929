"""What goes wrong: it is said, nothing is lost, and there is a way on."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest

from specchat.app.decoding.stats import AnswerStats
from specchat.app.events import Died, Event, Failed, Finished, Load, LoadProgress
from specchat.app.history import IN_MEMORY, History
from specchat.app.requests import AnswerOptions, Drafting, LoadOptions, Turn
from specchat.app.settings import ChatSettings
from specchat.tui.app import SpecchatApp, run_chat
from tests.tui.scripted_engine import LOADED, ScriptedEngine, chat, loading, ready, seen, type_in, wait_until

REFUSED = "small.gguf cannot draft for big.gguf: token 17 differs"
KILLED = "The engine was killed by signal 11 (SIGSEGV)."


@pytest.mark.parametrize("way", ["ctrl+r", "prompt"])
async def test_a_failed_load_says_why_and_can_be_tried_again(way):
    engine = ScriptedEngine(loads=False)
    app = chat(engine)
    async with app.run_test(size=(120, 30)) as pilot:
        await loading(pilot, engine)
        engine.say(LoadProgress("target", "Big", 0.5), Failed(REFUSED))
        await wait_until(pilot, lambda: app.session.phase == "unloaded")
        assert REFUSED in seen(app)
        assert "✗" in "".join(line.strip.text for e in app.transcript.entries for line in e.lines)
        assert "Ctrl+R tries again" in app.state.text
        assert "F4 chooses another model" in seen(app)
        if way == "ctrl+r":
            await pilot.press("ctrl+r")
        else:
            await type_in(pilot, "hello")
        assert engine.told == [Load(LoadOptions("big.gguf", "small.gguf"))] * 2
        assert engine.starts == 1
        engine.say(LOADED)
        await wait_until(pilot, lambda: app.session.phase in ("ready", "answering"))
        assert [ask.turns[-1].text for ask in engine.asks] == (["hello"] if way == "prompt" else [])


async def test_a_prompt_that_waited_for_a_load_that_failed_can_be_sent_again():
    engine = ScriptedEngine(loads=False)
    app = chat(engine)
    async with app.run_test(size=(120, 30)) as pilot:
        await type_in(pilot, "hello")
        engine.say(Failed(REFUSED))
        await wait_until(pilot, lambda: app.session.phase == "unloaded")
        assert app.prompt.text == "hello"


async def test_a_failed_answer_is_kept_as_far_as_it_came():
    engine = ScriptedEngine()
    app = chat(engine)
    async with app.run_test(size=(120, 30)) as pilot:
        await ready(pilot)
        await type_in(pilot, "x")
        engine.write("so far")
        engine.say(Failed("llama.cpp could not run a pass."))
        await ready(pilot)
        assert "so far" in seen(app)
        assert "■ failed" in seen(app)
        assert "llama.cpp could not run a pass." in seen(app)
        assert app.session.turns == (Turn("user", "x"), Turn("assistant", "so far"))
        await type_in(pilot, "next")
        assert len(engine.asks) == 2


async def test_an_answer_is_saved_every_two_seconds_while_it_is_written(tmp_path: Path):
    engine = ScriptedEngine()
    history, other = History(tmp_path / "history.db"), History(tmp_path / "history.db")
    app = chat(engine, history=history)

    def in_the_file() -> str:
        message = other.branch(other.latest() or 0)[-1]
        return message.text if message.role == "assistant" else ""

    async with app.run_test(size=(120, 30)) as pilot:
        await ready(pilot)
        await type_in(pilot, "x")
        app.incoming.draw(100.0)
        assert in_the_file() == ""
        for now, piece, kept in (
            (101.9, "a", ""),
            (102.0, "b", "ab"),
            (103.9, "c", "ab"),
            (104.1, "d", "abcd"),
        ):
            engine.write(piece)
            app.listener.take(engine.drain()[0])
            app.incoming.draw(now)
            assert in_the_file() == kept
        engine.finish("abcd, and the end")
        await ready(pilot)
        assert in_the_file() == "abcd, and the end"


async def test_a_prompt_that_could_not_be_answered_comes_back_with_up():
    engine = ScriptedEngine()
    app = chat(engine)
    async with app.run_test(size=(120, 30)) as pilot:
        await ready(pilot)
        await type_in(pilot, "far too long")
        engine.say(Failed("The prompt has 5000 tokens, the context 4096."))
        await ready(pilot)
        assert "5000 tokens" in seen(app)
        assert app.session.turns == ()
        await pilot.press("up")
        assert app.prompt.text == "far too long"


@pytest.mark.parametrize("way", ["ctrl+r", "prompt"])
async def test_an_engine_that_dies_during_an_answer_loses_nothing(way):
    engine = ScriptedEngine()
    app = chat(engine)
    async with app.run_test(size=(120, 40)) as pilot:
        await ready(pilot)
        await type_in(pilot, "one")
        engine.finish("first answer")
        await ready(pilot)
        await type_in(pilot, "two")
        engine.write("half of the second")
        await wait_until(pilot, lambda: "half of the second" in seen(app))
        engine.say(Died(KILLED))
        await wait_until(pilot, lambda: app.session.phase == "dead")
        text = seen(app)
        assert "half of the second" in text
        assert "■ cut off" in text
        assert KILLED in text
        assert "Ctrl+R" in app.state.text
        assert "not loaded" in app.state.text
        if way == "ctrl+r":
            await pilot.press("ctrl+r")
            await ready(pilot)
            await type_in(pilot, "three")
        else:
            await type_in(pilot, "three")
        await wait_until(pilot, lambda: len(engine.asks) == 3)
        assert engine.starts == 2
        assert engine.last_ask.turns == (
            Turn("user", "one"),
            Turn("assistant", "first answer", (1, 2)),
            Turn("user", "two"),
            Turn("assistant", "half of the second"),
            Turn("user", "three"),
        )


async def test_an_engine_that_dies_before_the_first_token_gives_the_prompt_back():
    engine = ScriptedEngine()
    app = chat(engine)
    async with app.run_test(size=(120, 30)) as pilot:
        await ready(pilot)
        await type_in(pilot, "one")
        engine.say(Died(KILLED))
        await wait_until(pilot, lambda: app.session.phase == "dead")
        assert "■ no answer" in seen(app)
        assert app.session.turns == ()


async def test_an_engine_that_dies_while_idle_or_loading_is_noticed():
    engine = ScriptedEngine(loads=False)
    app = chat(engine)
    async with app.run_test(size=(120, 30)) as pilot:
        await loading(pilot, engine)
        engine.say(Died(KILLED))
        await wait_until(pilot, lambda: app.session.phase == "dead")
        engine._loads = True
        await pilot.press("ctrl+r")
        await ready(pilot)
        engine.say(Died(KILLED))
        await wait_until(pilot, lambda: app.session.phase == "dead")
        assert seen(app).count(KILLED) == 2


async def test_clear_is_carried_out_though_the_engine_dies_instead_of_stopping():
    engine = ScriptedEngine()
    app = chat(engine)
    async with app.run_test(size=(120, 30)) as pilot:
        await ready(pilot)
        await type_in(pilot, "one")
        engine.write("text")
        await type_in(pilot, "/clear")
        engine.say(Died(KILLED))
        await wait_until(pilot, lambda: app.session.phase == "dead")
        assert "one" not in [line.text for e in app.transcript.entries for line in e.lines]
        assert KILLED in seen(app)
        assert app.session.turns == ()


async def test_an_engine_that_cannot_start_is_said_and_can_be_tried_again():
    engine = ScriptedEngine()
    engine.start_error = OSError("no memory")
    app = chat(engine)
    async with app.run_test(size=(120, 30)) as pilot:
        await wait_until(pilot, lambda: app.session.phase == "dead")
        assert "could not be started: no memory" in seen(app)
        engine.start_error = None
        await pilot.press("ctrl+r")
        await ready(pilot)


async def test_an_engine_that_cannot_be_told_anything_counts_as_gone():
    engine = ScriptedEngine()
    app = chat(engine)
    async with app.run_test(size=(120, 30)) as pilot:
        await ready(pilot)
        engine.send_error = BrokenPipeError("broken pipe")
        await type_in(pilot, "x")
        assert app.session.phase == "dead"
        assert "broken pipe" in seen(app)


async def test_ctrl_r_leaves_a_running_engine_alone():
    engine = ScriptedEngine()
    app = chat(engine)
    async with app.run_test(size=(120, 30)) as pilot:
        await ready(pilot)
        await pilot.press("ctrl+r")
        assert engine.starts == 1
        assert "the engine is running" in app.state.text


async def test_late_events_of_an_answer_that_is_over_are_ignored():
    engine = ScriptedEngine()
    app = chat(engine)
    async with app.run_test(size=(120, 30)) as pilot:
        await ready(pilot)
        engine.write("ghost")
        engine.say(Finished("stop", "ghost", (), 1, 0, AnswerStats(), 1, 2))
        app.look()
        assert "ghost" not in seen(app)
        assert app.session.turns == ()


def test_run_chat_closes_the_engine_and_returns_the_exit_code(monkeypatch):
    engine = ScriptedEngine()
    monkeypatch.setattr(SpecchatApp, "run", lambda self: 0)
    assert run_chat(engine, LoadOptions("t.gguf"), AnswerOptions(), history=History(IN_MEMORY)) == 0
    assert engine.closed


def test_run_chat_closes_the_engine_when_the_screen_fails(monkeypatch):
    def fail(self):
        raise RuntimeError

    engine = ScriptedEngine()
    monkeypatch.setattr(SpecchatApp, "run", fail)
    with pytest.raises(RuntimeError):
        run_chat(engine, LoadOptions("t.gguf"), AnswerOptions(), history=History(IN_MEMORY))
    assert engine.closed


def test_a_chat_whose_models_never_loaded_ends_with_code_two_and_says_why_once_more(monkeypatch, capsys):
    def leave(self: SpecchatApp) -> int:
        self.session.refused = REFUSED
        return 0

    monkeypatch.setattr(SpecchatApp, "run", leave)
    assert run_chat(ScriptedEngine(), LoadOptions("t.gguf"), AnswerOptions(), history=History(IN_MEMORY)) == 2
    assert capsys.readouterr().err == f"specchat: {REFUSED}\n"


async def test_a_load_that_succeeds_at_last_is_no_longer_held_against_the_chat():
    engine = ScriptedEngine(loads=False)
    app = chat(engine)
    async with app.run_test(size=(120, 30)) as pilot:
        await loading(pilot, engine)
        engine.say(Failed(REFUSED))
        await wait_until(pilot, lambda: app.session.refused == REFUSED)
        await pilot.press("ctrl+r")
        engine.say(LOADED)
        await wait_until(pilot, lambda: app.session.phase == "ready")
        assert app.session.refused is None


async def test_the_load_knows_what_the_first_answer_will_be_drafted_with():
    engine = ScriptedEngine()
    options = AnswerOptions(drafting=Drafting(drafter="lookup"))
    app = SpecchatApp(engine, LoadOptions("t.gguf"), options, history=History(IN_MEMORY))
    async with app.run_test(size=(120, 30)) as pilot:
        await ready(pilot)
        assert Load(LoadOptions("t.gguf"), options.drafting) in engine.told


# What should not have happened.


def reports() -> list[str]:
    return [path.read_text() for path in Path(os.environ["XDG_STATE_HOME"]).rglob("crash-*.txt")]


async def test_an_engine_that_dies_leaves_a_report_without_what_was_said_and_says_where():
    engine = ScriptedEngine()
    app = chat(engine)
    async with app.run_test(size=(120, 40)) as pilot:
        await ready(pilot)
        await type_in(pilot, "my own secret question")
        engine.write("an answer that nobody else may read")
        engine.say(
            Died(KILLED, ("GGML_ASSERT(x) failed", "prompt: my own secret question", "nobody else may"))
        )
        await wait_until(pilot, lambda: app.session.phase == "dead")
        assert "a report that you may send is in" in seen(app)
        assert KILLED in seen(app)
    (report,) = reports()
    assert KILLED in report
    assert "GGML_ASSERT(x) failed" in report
    assert '"target": "big.gguf"' in report
    assert "secret" not in report
    assert "nobody else" not in report


async def test_an_error_inside_the_engine_leaves_a_report_and_a_refusal_none():
    engine = ScriptedEngine()
    app = chat(engine)
    async with app.run_test(size=(120, 40)) as pilot:
        await ready(pilot)
        await type_in(pilot, "x")
        engine.say(Failed("the prompt is 900 tokens and the context holds 512"))
        await ready(pilot)
        assert reports() == []
        await type_in(pilot, "x")
        engine.say(Failed("something went wrong", ("  File engine.py, line 3", "KeyError: 3")))
        await ready(pilot)
        assert "a report that you may send is in" in seen(app)
    (report,) = reports()
    assert "KeyError: 3" in report


@pytest.mark.parametrize("debug", [False, True])
def test_an_error_of_the_screen_is_one_line_and_a_report_and_no_traceback(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, debug: bool
):
    monkeypatch.setenv("TERM", "xterm-256color")
    engine = ScriptedEngine()
    history = History(IN_MEMORY)
    conversation = history.begin()
    history.add(conversation, None, "user", "my own secret question")

    def fails() -> list[Event]:
        raise RuntimeError("cannot draw 'my own secret question'")

    monkeypatch.setattr(engine, "drain", fails)
    monkeypatch.setattr(SpecchatApp, "run", lambda app: asyncio.run(run_headless(app)))
    code = run_chat(
        engine, LoadOptions("t.gguf"), AnswerOptions(), history=history, resume=conversation,
        settings=ChatSettings(debug=debug),
    )  # fmt: skip
    assert code == 1
    assert engine.closed
    out, err = capsys.readouterr()
    assert "Traceback" not in out + err
    (line,) = [line for line in err.splitlines() if line.strip()]
    assert "RuntimeError" in line
    assert "crash-" in line
    (report,) = reports()
    assert "test_screen_failures.py" in report
    assert ("secret" in report) is debug


async def run_headless(app: SpecchatApp) -> object:
    return await app.run_async(headless=True)
