"""Text from strangers on the screens that open over the chat: names, titles, errors, what is found."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from textual import events
from textual.pilot import Pilot
from textual.widgets import Select

from specchat.app.decoding.stats import AnswerStats
from specchat.app.events import Died, Failed, Finished, Loaded, LoadProgress, Piece, PrefillProgress, Progress
from specchat.app.history import IN_MEMORY, History
from specchat.app.requests import AnswerOptions, Drafting, LoadOptions
from specchat.app.settings import ChatSettings
from specchat.tui.app import SpecchatApp
from specchat.tui.commands import adjusting, models, talk
from specchat.tui.screens.comparing import ComparingScreen
from specchat.tui.screens.parameters import ParametersScreen
from specchat.tui.screens.picker import Picker
from specchat.tui.side_by_side import Contender
from tests.hostile_text import SEQUENCES, hostile_text
from tests.tui.scripted_engine import DRAFT, TARGET, ScriptedEngine, chat, ready, wait_until
from tests.tui.test_screen_harmless import harmless_screen

MARKUP = "[@click=app.quit]B[/][link=http://x]y[/link][red][/][b"
THIRD = len(SEQUENCES) // 3 + 1
ALL = ["a".join(SEQUENCES[at * THIRD : (at + 1) * THIRD]) for at in range(3)]
PAIR = LoadOptions("big.gguf", "small.gguf")
texts = st.lists(hostile_text(), min_size=3, max_size=3)


def drawn(app: SpecchatApp) -> str:
    """What stands on the screen."""
    update = app.screen._compositor.render_full_update()
    return "\n".join("".join(segment.text for segment in line) for line in update.strips)


async def harmless(pilot: Pilot, app: SpecchatApp) -> None:
    await pilot.pause()
    assert harmless_screen(app)


@asynccontextmanager
async def opened(**more: object) -> AsyncIterator[tuple[Pilot, SpecchatApp, ScriptedEngine]]:
    engine = ScriptedEngine()
    app = chat(engine, **more)
    async with app.run_test(size=(90, 26)) as pilot:
        await ready(pilot)
        yield pilot, app, engine


async def compared(one: str, two: str, three: str) -> None:
    """A comparison in which every name, text and reason is from a stranger."""
    async with opened() as (pilot, app, engine):
        screen = ComparingScreen(
            app,
            (Contender(one, Drafting(), PAIR), Contender(two, Drafting())),
            loaded=PAIR, title=three, prompt=one, system=two, options=AnswerOptions(),
            choose=lambda screen, side: screen.hint(three), seeds=lambda: 1,
        )  # fmt: skip
        app.push_screen(screen)
        app.listener = screen
        await harmless(pilot, app)
        if screen._submit(f"{one}x") or not screen.contest.busy:
            screen._submit("x")
        stats = replace(AnswerStats(), target_passes=2, state="plain", reason=two)
        names = replace(TARGET, name=one, quantization=two), replace(DRAFT, name=three)
        for event in (
            LoadProgress("target", two, 0.5),
            Loaded(*names, 4096, 2, (three,), (one, two), "plain", three),
            PrefillProgress("target", 1, 2, 0),
            Progress((Piece(one, "target"), Piece(two, "accepted"), *(Piece(c, "target") for c in three)),
                     stats, 1.0, 5, 4096),
            Finished("stop", f"{one}\n{two}\n{three}", (1, 2), 3, 0, stats, 9, 4096),
            Loaded(names[0], None, 4096, 2, (), (), "plain", one),
            Failed(f"{two}\n{three}"),
        ):  # fmt: skip
            engine.say(event)
            app.look()
            await harmless(pilot, app)
        screen.action_compare_left()
        await harmless(pilot, app)
        screen.action_origin()
        engine.say(Died(three))
        app.look()
        await harmless(pilot, app)


async def chosen(folder: Path, one: str, two: str, three: str) -> None:
    """Lists, dialogs and fields in which every title, name, message and preset is from a stranger."""
    history = History(IN_MEMORY)
    for text in (one, two, three):
        kept = history.begin(three)
        message = history.add(kept, None, "user", f"word {one}{two}")
        history.add(kept, message, "assistant", f"{three} word", mark="stopped", pair=two)
        history.rename(kept, f"{text}z")
    presets = {f"{MARKUP}{name}": {"system": two} for name in (one, two, three)}
    settings = ChatSettings(presets=presets, model_folders=(folder,))  # type: ignore[arg-type]
    async with opened(history=history, settings=settings) as (pilot, app, _):
        talk.chats(app, None)
        await harmless(pilot, app)
        assert isinstance(app.screen, Picker)
        app.screen.query_one("#picker-filter").value = "word"  # type: ignore[attr-defined]
        await harmless(pilot, app)
        assert len(app.screen.shown) == 6
        await pilot.press("escape")
        talk.open_conversation(app, 2)
        await harmless(pilot, app)
        for title in (one, MARKUP):
            talk.rename(app, title or "x")
            talk.delete(app, None)
            await harmless(pilot, app)
            await pilot.press("escape")
        assert MARKUP in drawn(app)

        adjusting.parameters(app, None)
        await pilot.pause()
        assert isinstance(app.screen, ParametersScreen)
        app.screen._say(two)
        select = app.screen.query_one("#preset-load", Select)
        select.value = next(iter(presets))
        await harmless(pilot, app)
        select.expanded = True
        await harmless(pilot, app)
        assert "[@click=app.quit]B[/]" in drawn(app)
        for key in ("escape", "escape"):
            await pilot.press(key)
        adjusting.preset(app, None)
        await harmless(pilot, app)
        await pilot.press("escape")

        models.pick_target(app, None)
        await wait_until(pilot, lambda: isinstance(app.screen, Picker) and "cannot be used" in drawn(app))
        await harmless(pilot, app)
        await pilot.press("escape")
        app.post_message(events.Paste(one + two + three))
        await harmless(pilot, app)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Files with the names that strangers give them; none is a model."""
    (tmp_path / "models").mkdir()
    unusable = {0: None, ord("/"): None, 0xD800: None, 0xDC1B: None}
    for number, start in enumerate(range(0, len(SEQUENCES), 9)):
        name = f"{number}{''.join(SEQUENCES[start : start + 9]).translate(unusable)[:50]}\udcff"
        (tmp_path / "models" / f"{name}.gguf").write_bytes(b"GGUF\x1b[2J")
    return tmp_path / "models"


def test_each_known_sequence_is_harmless_on_every_other_screen(folder: Path):
    asyncio.run(compared(*ALL))
    asyncio.run(chosen(folder, *ALL))


@settings(max_examples=1, deadline=None, phases=(Phase.generate,))
@given(texts)
def test_no_name_or_text_is_anything_but_text_in_a_comparison(hostile: list[str]):
    asyncio.run(compared(*hostile))
