"""Every action of the registry, by its key or its command, on the screen."""

from __future__ import annotations

import contextlib
import json
import stat
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path

import pytest
from textual.pilot import Pilot
from textual.widgets import Input, OptionList, Select, TextArea

from specchat.app.events import Cancel, Load
from specchat.app.requests import LoadOptions, Turn
from specchat.tui import texts, themes
from specchat.tui.app import SpecchatApp
from specchat.tui.registry import ACTIONS, BY_NAME
from specchat.tui.screens.comparing import ComparingScreen
from specchat.tui.screens.picker import Picker
from tests.tiny_models import write_tiny_model
from tests.tui.scripted_engine import LOADED, ScriptedEngine, chat, ready, seen, type_in, wait_until

Check = Callable[[Pilot, SpecchatApp, ScriptedEngine], Awaitable[None]]
CHECKS: dict[str, Check] = {}


def check(*names: str):
    def take(function: Check) -> Check:
        CHECKS.update(dict.fromkeys(names, function))
        return function

    return take


async def exchange(pilot: Pilot, app: SpecchatApp, engine: ScriptedEngine, prompt: str, answer: str, **more):
    """A prompt and its whole answer."""
    await type_in(pilot, prompt)
    await answered(pilot, app, engine, answer, **more)


async def answered(pilot: Pilot, app: SpecchatApp, engine: ScriptedEngine, answer: str, **more):
    await wait_until(pilot, lambda: app.session.phase == "answering")
    engine.write(answer)
    engine.finish(answer, **more)
    await ready(pilot)


async def picking(pilot: Pilot, app: SpecchatApp) -> Picker:
    await wait_until(pilot, lambda: isinstance(app.screen, Picker))
    await pilot.pause()
    assert isinstance(app.screen, Picker)
    return app.screen


async def back(pilot: Pilot, app: SpecchatApp) -> None:
    await wait_until(pilot, lambda: len(app.screen_stack) == 1)
    assert app.prompt.has_focus


def rows(picker: Picker) -> list[str]:
    return [choice.content.plain for choice in picker.shown]


@check("submit")
async def _submit(pilot, app, engine):
    await type_in(pilot, "hello", "enter")
    await wait_until(pilot, lambda: bool(engine.asks))
    assert engine.last_ask.turns == (Turn("user", "hello"),)


@check("newline")
async def _newline(pilot, app, engine):
    await type_in(pilot, "one", "ctrl+j")
    await type_in(pilot, "two", "alt+enter")
    assert app.prompt.text == "one\ntwo\n"


@check("complete")
async def _complete(pilot, app, engine):
    await pilot.press(*"/reg")
    await wait_until(pilot, lambda: "/regen" in app.query_one("#suggestions").text)
    await pilot.press("tab")
    assert app.prompt.text == "/regen"
    app.prompt.clear()
    await pilot.press(*"/theme pa")
    await pilot.press("tab")
    assert app.prompt.text == "/theme paper"
    app.prompt.clear()
    Path("notes.md").write_text("x")
    await pilot.press(*"see @not")
    await pilot.press("tab")
    assert app.prompt.text == "see @notes.md "
    app.prompt.clear()
    folder = Path("my notes/of May")
    folder.mkdir(parents=True)
    (folder / "first.txt").write_text("the word is plum")
    await pilot.press(*"see @my", "tab", *"of", "tab", *"f", "tab")
    assert app.prompt.text == 'see @"my notes/of May/first.txt" '
    assert "first.txt (16 bytes)" in app.read_prompt(app.prompt.text).files
    app.prompt.clear()
    await pilot.press(*"/file my", "tab", "tab", "tab", "enter")
    assert app.prompt.text == '@"my notes/of May/first.txt" '
    app.prompt.clear()
    await pilot.press("/")
    offered = app.query_one("#suggestions")
    await wait_until(pilot, lambda: "and more" in offered.text)
    await pilot.press(*"reg")
    await wait_until(pilot, lambda: "and more" not in offered.text and "/regen" in offered.text)


@check("earlier", "later")
async def _recall(pilot, app, engine):
    await exchange(pilot, app, engine, "first", "1")
    await pilot.press("up")
    assert app.prompt.text == "first"
    await pilot.press("down")
    assert app.prompt.text == ""


@check("page_up", "page_down", "to_start", "to_end", "end")
async def _scroll(pilot, app, engine):
    await exchange(pilot, app, engine, "long", "\n\n".join(f"line {n}" for n in range(100)))
    bottom = app.transcript.scroll_y
    await pilot.press("pageup")
    await wait_until(pilot, lambda: app.transcript.scroll_y < bottom)
    middle = app.transcript.scroll_y
    await pilot.press("pagedown")
    await wait_until(pilot, lambda: app.transcript.scroll_y > middle)
    await pilot.press("ctrl+home")
    await wait_until(pilot, lambda: app.transcript.scroll_y == 0)
    await pilot.press("ctrl+end")
    await wait_until(pilot, lambda: app.transcript.scroll_y == bottom)
    await pilot.press("ctrl+home")
    await wait_until(pilot, lambda: app.transcript.scroll_y == 0)
    await pilot.press("end")
    await wait_until(pilot, lambda: app.transcript.scroll_y == bottom)


@check("stop")
async def _stop(pilot, app, engine):
    await type_in(pilot, "go")
    await wait_until(pilot, lambda: app.session.phase == "answering")
    engine.write("half an ans")
    await pilot.press("escape")
    assert engine.told[-1] == Cancel()
    engine.finish("half an ans", reason="cancelled")
    await ready(pilot)
    assert app.session.messages[-1].mark == "stopped"
    assert "■ stopped" in seen(app)


@check("regenerate", "version", "version_before")
async def _regenerate(pilot, app, engine):
    await exchange(pilot, app, engine, "tell me", "first try")
    assert "version" not in seen(app)
    await pilot.press("f5")
    await answered(pilot, app, engine, "second try")
    assert engine.last_ask.turns == (Turn("user", "tell me"),)
    assert "second try" in seen(app)
    assert "first try" not in seen(app)
    assert seen(app).count("version 2 of 2") == 1
    await pilot.press("ctrl+up")
    await wait_until(pilot, lambda: "first try" in seen(app))
    assert "version 1 of 2" in app.state.text
    assert "version 1 of 2" in "\n".join(line.text for line in app.transcript.entries[-1].lines)
    await pilot.press("ctrl+up")
    assert "no other that way" in app.state.text
    await pilot.press("ctrl+down")
    await wait_until(pilot, lambda: "second try" in seen(app))
    await type_in(pilot, "/version prev")
    await wait_until(pilot, lambda: "first try" in seen(app))


@check("continue")
async def _continue(pilot, app, engine):
    await exchange(pilot, app, engine, "count", "one, two", reason="length")
    await pilot.press("f6")
    await wait_until(pilot, lambda: app.session.phase == "answering")
    assert engine.last_ask.turns[-1] == Turn("assistant", "one, two", (1, 2))
    engine.write(", three")
    engine.finish(", three", ids=(3, 4))
    await ready(pilot)
    assert app.session.turns[-1] == Turn("assistant", "one, two, three", (1, 2, 3, 4))
    assert "one, two, three" in seen(app)
    assert "longest answer" not in seen(app)
    kept = app.session.history.branch(app.session.conversation)
    assert [each.text for each in kept] == ["count", "one, two, three"]


@check("edit")
async def _edit(pilot, app, engine):
    await pilot.press("f7")
    assert "no prompt to change yet" in app.state.text
    await exchange(pilot, app, engine, "first", "1")
    await type_in(pilot, "/edit 2")
    assert "there is one prompt to edit" in seen(app)
    await exchange(pilot, app, engine, "second", "2")
    await type_in(pilot, "/edit 2")
    assert app.prompt.text == "first"
    app.incoming.rest()  # the hint's seconds are over
    assert texts.EDITING in app.state.text
    await pilot.press("escape")
    assert (app.prompt.text, app.session.editing) == ("", None)
    await pilot.press("f7")
    assert app.prompt.text == "second"
    await type_in(pilot, " thoughts")
    assert "Esc stops" in app.state.text, "what the hint said is done"
    await answered(pilot, app, engine, "3")
    assert [turn.text for turn in engine.last_ask.turns] == ["first", "1", "second thoughts"]
    assert "2" not in seen(app).split("second thoughts")[1].splitlines()
    await pilot.press("ctrl+up")
    await wait_until(pilot, lambda: [each.text for each in app.session.messages][-2:] == ["second", "2"])
    await pilot.press("ctrl+down")
    await wait_until(pilot, lambda: app.session.messages[-1].text == "3")


@check("new")
async def _new(pilot, app, engine):
    await exchange(pilot, app, engine, "old", "old answer")
    await pilot.press("ctrl+n")
    assert "old answer" not in seen(app)
    await exchange(pilot, app, engine, "new", "new answer")
    assert engine.last_ask.turns == (Turn("user", "new"),)
    assert len(app.session.history.conversations()) == 2


@check("chats")
async def _chats(pilot, app, engine):
    await exchange(pilot, app, engine, "about tigers", "stripes")
    await type_in(pilot, "/new")
    await exchange(pilot, app, engine, "about whales", "blubber")
    await pilot.press("f2")
    picker = await picking(pilot, app)
    assert ["whales" in row for row in rows(picker)] == [True, False]
    await pilot.press(*"stripes")
    await wait_until(pilot, lambda: any("tigers" in row for row in rows(picker)))
    await pilot.press("enter")
    await back(pilot, app)
    await wait_until(pilot, lambda: "stripes" in seen(app))
    await exchange(pilot, app, engine, "and their cubs?", "small")
    assert [turn.text for turn in engine.last_ask.turns] == ["about tigers", "stripes", "and their cubs?"]
    await pilot.press("f2")
    picker = await picking(pilot, app)
    await pilot.press(*"whales")
    await wait_until(pilot, lambda: ["whales" in row for row in rows(picker)] == [True])
    await pilot.press("escape")
    await back(pilot, app)
    await type_in(pilot, "/chats blubber")
    picker = await picking(pilot, app)
    assert "whales" in rows(picker)[0]
    await pilot.press("delete")
    await wait_until(pilot, lambda: "Keep it" in rows(app.screen)[0])
    await pilot.press("down", "enter")
    await wait_until(pilot, lambda: len(app.session.history.conversations()) == 1)


@check("rename")
async def _rename(pilot, app, engine):
    await exchange(pilot, app, engine, "hello", "hi")
    await type_in(pilot, "/rename A greeting")
    assert "Title: A greeting" in seen(app)
    assert app.session.history.conversations()[0].title == "A greeting"


@check("delete")
async def _delete(pilot, app, engine):
    await exchange(pilot, app, engine, "hello", "hi")
    await type_in(pilot, "/delete")
    await picking(pilot, app)
    await pilot.press("enter")
    await back(pilot, app)
    assert len(app.session.history.conversations()) == 1, "the first choice keeps it"
    await type_in(pilot, "/delete")
    await picking(pilot, app)
    await pilot.press("down", "enter")
    await back(pilot, app)
    assert app.session.history.conversations() == []
    assert app.session.messages == []


@check("export")
async def _export(pilot, app, engine):
    await exchange(pilot, app, engine, "hello there", "hi `x`")
    await type_in(pilot, "/export")
    assert "Written to" in seen(app)
    (page,) = Path.cwd().glob("*.md")
    assert "hi `x`" in page.read_text()
    await type_in(pilot, "/export")
    assert "is there already" in seen(app)
    await type_in(pilot, "/export pdf talk")
    assert "md or json, not “pdf”" in seen(app)
    await type_in(pilot, "/export json talk.json")
    assert json.loads(Path("talk.json").read_text())["messages"][0]["text"] == "hello there"


@check("copy")
async def _copy(pilot, app, engine):
    await pilot.press("ctrl+c")
    assert "nothing is selected" in app.state.text
    app.prompt.insert("some words")
    app.prompt.select_all()
    await pilot.press("ctrl+c")
    assert app.clipboard == "some words"
    assert "OSC 52" in app.state.text


@check("copy_answer")
async def _copy_answer(pilot, app, engine):
    answer = "Text.\n\n```python\nprint(1)\n```\n\nand\n\n~~~\nplain\n~~~\n"
    await exchange(pilot, app, engine, "code", answer)
    await pilot.press("f8")
    assert app.clipboard == answer
    await type_in(pilot, "/copy code 2")
    assert app.clipboard == "plain\n"
    await type_in(pilot, "/copy code")
    picker = await picking(pilot, app)
    assert "print(1)" in rows(picker)[0]
    await pilot.press("enter")
    await back(pilot, app)
    assert app.clipboard == "print(1)\n"
    await type_in(pilot, "/copy all")
    assert app.clipboard.startswith("> code")


@check("editor")
async def _editor(pilot, app, engine):
    script = Path("editor.sh").absolute()
    script.write_text('#!/bin/sh\nprintf " and more" >> "$1"\n')
    script.chmod(script.stat().st_mode | stat.S_IXUSR)
    app.settings = app.settings.__class__(editor=str(script))
    app.suspend = contextlib.nullcontext
    app.prompt.insert("a start")
    await pilot.press("ctrl+g")
    assert app.prompt.text == "a start and more"


@check("file")
async def _file(pilot, app, engine):
    Path("data.csv").write_text("a,b\n1,2\n")
    await type_in(pilot, "/file data.csv")
    assert app.prompt.text == "@data.csv "
    await exchange(pilot, app, engine, "what is it?", "a table")
    sent = engine.last_ask.turns[0].text
    assert sent.startswith("@data.csv what is it?")
    assert "a,b\n1,2\n" in sent
    assert "with data.csv" in seen(app)
    assert "1,2" not in seen(app)
    await type_in(pilot, "/file nothing.txt")
    assert "no file" in seen(app)


@check("parameters")
async def _parameters(pilot, app, engine):
    await pilot.press("f3")
    await wait_until(pilot, lambda: len(app.screen_stack) == 2)
    screen = app.screen
    screen.query_one("#parameter-temp", Input).value = "9"
    await pilot.press("ctrl+s")
    assert "from 0" in str(screen.query_one("#parameters-say").render())
    screen.query_one("#parameter-temp", Input).value = "0.25"
    screen.query_one("#parameter-drafter", Select).value = "lookup"
    screen.query_one("#parameter-system", TextArea).text = "Be brief."
    screen.query_one("#preset-name", Input).value = "terse"
    screen.query_one("#preset-name", Input).focus()
    await pilot.press("enter")
    assert app.presets.names() == ["terse"]
    await pilot.press("ctrl+s")
    await back(pilot, app)
    await exchange(pilot, app, engine, "x", "y")
    assert engine.last_ask.options.sampling.temperature == 0.25
    assert engine.last_ask.options.drafting.drafter == "lookup"
    assert engine.last_ask.turns[0] == Turn("system", "Be brief.")
    assert app.session.messages[-1].record["options"]["sampling"]["temperature"] == 0.25
    await pilot.press("f3")
    await wait_until(pilot, lambda: len(app.screen_stack) == 2)
    await pilot.press("escape")
    await back(pilot, app)


@check("preset")
async def _preset(pilot, app, engine):
    await type_in(pilot, "/preset")
    assert "no presets yet" in seen(app)
    await type_in(pilot, "/temp 0.1")
    await type_in(pilot, "/preset save cool")
    await type_in(pilot, "/temp 1.5")
    await type_in(pilot, "/preset cool")
    assert app.session.options.sampling.temperature == 0.1
    await type_in(pilot, "/temp 1.5")
    await type_in(pilot, "/preset")
    await picking(pilot, app)
    await pilot.press("enter")
    await back(pilot, app)
    assert app.session.options.sampling.temperature == 0.1
    await type_in(pilot, "/preset warm")
    assert "there is no preset “warm”" in seen(app)


@check("system")
async def _system(pilot, app, engine):
    await type_in(pilot, "/system You are terse.")
    await exchange(pilot, app, engine, "x", "y")
    assert engine.last_ask.turns[0] == Turn("system", "You are terse.")
    await type_in(pilot, "/system none")
    assert app.session.system == ""


PARAMETERS = {
    "temp": ("0,5", lambda o: o.sampling.temperature, 0.5),
    "top-k": ("7", lambda o: o.sampling.top_k, 7),
    "top-p": ("0.5", lambda o: o.sampling.top_p, 0.5),
    "min-p": ("0.2", lambda o: o.sampling.min_p, 0.2),
    "repeat-penalty": ("1.2", lambda o: o.sampling.repeat_penalty, 1.2),
    "repeat-last-n": ("32", lambda o: o.sampling.repeat_last_n, 32),
    "seed": ("42", lambda o: o.sampling.seed, 42),
    "max-tokens": ("99", lambda o: o.max_tokens, 99),
    "spec": ("off", lambda o: o.drafting.speculate, "off"),
    "drafter": ("model", lambda o: o.drafting.drafter, "model"),
    "draft-max": ("8", lambda o: o.drafting.draft_max, 8),
    "strict": ("on", lambda o: o.drafting.strict, True),
}


def _parameter(name: str) -> None:
    typed, read, value = PARAMETERS[name]

    @check(f"set_{name}")
    async def _(pilot, app, engine):
        await type_in(pilot, f"/{name} {typed}")
        await exchange(pilot, app, engine, "x", "y")
        assert read(engine.last_ask.options) == value
        await type_in(pilot, f"/{name}")
        assert BY_NAME[f"set_{name}"].help
        await type_in(pilot, f"/{name} nonsense")
        assert f"/{name} is" in seen(app)
        assert read(app.session.options) == value


for each in PARAMETERS:
    _parameter(each)


@check("target")
async def _target(pilot, app, engine):
    await type_in(pilot, "/model nonsense.gguf")
    assert "nonsense.gguf" in seen(app)
    assert app.session.phase == "ready", "what is loaded stays"
    other = str(write_tiny_model(Path("other.gguf")))
    await type_in(pilot, f"/model {other}")
    await ready(pilot)
    loads = [told for told in engine.told if isinstance(told, Load)]
    assert (loads[-1].options.target, loads[-1].options.draft) == (other, None)
    await pilot.press("f4")
    picker = await picking(pilot, app)
    assert any("download" in row for row in rows(picker))
    await pilot.press("escape")
    await back(pilot, app)
    hidden = Path(".hidden")  # where no list looks by itself
    hidden.mkdir()
    for name in ("one.gguf", "two.gguf"):
        path = str(write_tiny_model(hidden / name).absolute())
        engine.say(replace(LOADED, target=replace(LOADED.target, path=path), draft=None))
        await wait_until(pilot, lambda path=path: app.session.loaded.target.path == path)
    await pilot.press("f4")
    picker = await picking(pilot, app)
    listed = {choice.value: choice.current for choice in picker.shown[:2]}
    assert listed == {str((hidden / "one.gguf").absolute()): False, path: True}
    await pilot.press("escape")
    await back(pilot, app)


@check("draft")
async def _draft(pilot, app, engine):
    await exchange(pilot, app, engine, "before", "kept")
    await type_in(pilot, "/draft none")
    await ready(pilot)
    loads = [told for told in engine.told if isinstance(told, Load)]
    assert (loads[-1].options.target, loads[-1].options.draft) == ("big.gguf", None)
    await exchange(pilot, app, engine, "after", "2")
    assert [turn.text for turn in engine.last_ask.turns] == ["before", "kept", "after"]
    app.load = LoadOptions(str(write_tiny_model(Path("target.gguf"))))
    await type_in(pilot, f"/draft {write_tiny_model(Path('strange.gguf'), extra_tokens=900)}")
    assert "cannot draft here" in seen(app)
    draft = str(write_tiny_model(Path("draft.gguf"), noise=0.1))
    await type_in(pilot, f"/draft {draft}")
    await ready(pilot)
    assert [told for told in engine.told if isinstance(told, Load)][-1].options.draft == draft
    await type_in(pilot, "/draft")
    picker = await picking(pilot, app)
    assert rows(picker)[0].startswith("No draft")
    assert sum(choice.current for choice in picker.shown) <= 1
    await pilot.press("escape")
    await back(pilot, app)


@check("compare", "compare_left", "compare_right", "compare_back")
async def _compare(pilot, app, engine):
    await exchange(pilot, app, engine, "hello", "hi")
    await type_in(pilot, "/compare lookup")
    await wait_until(pilot, lambda: isinstance(app.screen, ComparingScreen))
    screen = app.screen
    assert screen.prompt.text == "hello"
    for key, side in (("f3", 0), ("f4", 1)):
        await pilot.press(key)
        picker = await picking(pilot, app)
        assert "No draft" in rows(picker)[0]
        await pilot.press("enter")
        await wait_until(pilot, lambda: app.screen is screen)
        assert screen.contest.contenders[side].drafting.speculate == "off"
    await pilot.press("enter")
    await wait_until(pilot, lambda: len(engine.asks) == 2)
    await pilot.press("escape")
    assert engine.told[-1] == Cancel()
    engine.finish("", reason="cancelled", ids=())
    await wait_until(pilot, lambda: screen.phase == "ready")
    await pilot.press("escape")
    await back(pilot, app)
    assert [message.text for message in app.session.messages] == ["hello", "hi"]


@check("restart")
async def _restart(pilot, app, engine):
    await pilot.press("ctrl+r")
    assert "the engine is running" in app.state.text


@check("palette")
async def _palette(pilot, app, engine):
    await pilot.press("ctrl+p")
    picker = await picking(pilot, app)
    assert len(picker.shown) == len([action for action in ACTIONS if action.run is not None])
    await pilot.press(*"panel")
    await pilot.press("enter")
    await back(pilot, app)
    assert not app.panel.display
    await pilot.press("ctrl+p")
    await picking(pilot, app)
    await pilot.press(*"told first")
    await pilot.press("enter")
    await back(pilot, app)
    assert app.prompt.text == "/system "


@check("origin")
async def _origin(pilot, app, engine):
    await exchange(pilot, app, engine, "x", "**bold**")
    assert "**bold**" not in seen(app)
    await pilot.press("ctrl+o")
    assert "**bold**" in seen(app)


@check("thoughts")
async def _thoughts(pilot, app, engine):
    await type_in(pilot, "why?")
    await wait_until(pilot, lambda: app.session.phase == "answering")
    engine.write("<think>\n")
    engine.write("let me see")
    await wait_until(pilot, lambda: "thinking, " in seen(app))
    assert "let me see" not in seen(app)
    engine.write("\n</think>\n\nBecause.")
    await wait_until(pilot, lambda: "Because." in seen(app))
    await pilot.press("ctrl+t")
    assert "let me see" in seen(app)
    engine.finish("<think>\nlet me see\n</think>\n\nBecause.")
    await ready(pilot)
    assert "let me see" in seen(app)
    await pilot.press("ctrl+t")
    assert "let me see" not in seen(app)
    assert "is folded away" in app.state.text
    assert "▸ thought for" in seen(app)
    assert "Because." in seen(app)


@check("panel")
async def _panel(pilot, app, engine):
    assert app.panel.display
    await pilot.press("f9")
    assert not app.panel.display
    assert app.figures.display
    await pilot.press("f9")
    assert app.panel.display


@check("theme")
async def _theme(pilot, app, engine):
    for name, theme in themes.BY_NAME.items():
        await type_in(pilot, f"/theme {name}")
        assert app.theme == theme.name
    await type_in(pilot, "/theme")
    picker = await picking(pilot, app)
    assert [choice.value for choice in picker.shown if choice.current] == [list(themes.BY_NAME)[-1]]
    assert len(picker.shown) == len(themes.BY_NAME)
    await pilot.press(*"dusk", "enter")
    await back(pilot, app)
    assert app.theme == "specchat-dusk"


@check("help")
async def _help(pilot, app, engine):
    view = app.transcript
    for asked in (lambda: pilot.press("f1"), lambda: type_in(pilot, "/help")):
        await asked()
        told = " ".join(seen(app).split())
        assert all(action.help in told for action in ACTIONS)
        begins = view.entries[-1].lines[0]
        await wait_until(pilot, lambda begins=begins: view.line_at(view.scroll_offset.y) is begins)


@check("leave")
async def _leave(pilot, app, engine):
    await pilot.press("ctrl+q")
    await wait_until(pilot, lambda: app.return_value == 0)


def test_every_action_of_the_registry_is_tested():
    assert set(CHECKS) == set(BY_NAME)


@pytest.mark.parametrize("name", dict.fromkeys(CHECKS.values()), ids=lambda one: one.__name__.strip("_"))
async def test_an_action_does_what_it_says(name: Check, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    for variable in ("DISPLAY", "WAYLAND_DISPLAY", "WSL_DISTRO_NAME"):
        monkeypatch.delenv(variable, raising=False)
    engine = ScriptedEngine()
    app = chat(engine)
    async with app.run_test(size=(120, 40)) as pilot:
        await ready(pilot)
        await name(pilot, app, engine)


async def test_the_list_takes_the_mouse(tmp_path: Path):
    engine = ScriptedEngine()
    app = chat(engine)
    async with app.run_test(size=(120, 40)) as pilot:
        await ready(pilot)
        await type_in(pilot, "/theme")
        picker = await picking(pilot, app)
        await pilot.click(picker.query_one(OptionList), offset=(3, 1))
        await back(pilot, app)
        assert app.theme == list(themes.BY_NAME.values())[1].name
