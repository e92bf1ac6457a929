"""How the screen looks, at fixed sizes: what these pictures show changes only when somebody means it to."""

from __future__ import annotations

import pytest

from specchat.app.decoding.stats import AnswerStats
from specchat.app.events import Piece, Progress
from specchat.app.settings import ChatSettings
from specchat.tui.screens.comparing import ComparingScreen
from tests.tui.scripted_engine import ScriptedEngine, chat, ready, type_in, wait_until

STATS = AnswerStats(
    ttft_s=0.42, tokens_per_second=12.0, completion_tokens=40, target_passes=16, tokens_per_pass=2.5,
    drafted=36, accepted=24, accepted_by_position=(12, 8, 4), tested_by_position=(16, 12, 8),
    baseline_tokens_per_second=8.0, state="drafting",
    reason="the draft model drafts, lately 1.50x the plain speed",
)  # fmt: skip

ANSWER = """\
A **suffix automaton** knows every ending of a text.

1. It grows by one state a token.
2. Its links lead to shorter endings.

```python
def longest(text: str) -> int:
    return len(text)  # nearly
```

| token | accepted |
|---|---|
| `def` | 0.98 |
"""


@pytest.fixture(autouse=True)
def _same_everywhere(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("specchat.tui.figures_view.resident", lambda pid: 123_000_000 if pid else None)
    monkeypatch.setattr("specchat.tui.commands.models.models_here", lambda app: [])


def answered(**more):
    engine = ScriptedEngine()
    app = chat(engine, **more)

    async def before(pilot) -> None:
        await ready(pilot)
        await type_in(pilot, "How does it work?")
        await wait_until(pilot, lambda: app.session.phase == "answering")
        engine.say(Progress((Piece(ANSWER, "accepted"),), STATS, 12.0, 3500, 4096))
        engine.finish(ANSWER, stats=STATS)
        await ready(pilot)
        app.incoming._hint_until = 0.0
        await pilot.pause()

    return app, before


@pytest.mark.parametrize("theme", ["dark", "light", "dusk", "paper", "contrast"])
def test_an_answer(snap_compare, theme: str):
    app, before = answered(settings=ChatSettings(theme=theme))
    assert snap_compare(app, terminal_size=(120, 40), run_before=before)


@pytest.mark.parametrize("size", [(80, 24), (60, 18), (200, 50)], ids=str)
def test_an_answer_at_other_sizes(snap_compare, size: tuple[int, int]):
    app, before = answered()
    assert snap_compare(app, terminal_size=size, run_before=before)


def test_an_answer_coloured_by_origin(snap_compare):
    app, before = answered()
    assert snap_compare(app, terminal_size=(120, 40), run_before=before, press=["ctrl+o"])


def test_the_parameters(snap_compare):
    app, before = answered()
    assert snap_compare(app, terminal_size=(120, 40), run_before=before, press=["f3"])


PLAIN = AnswerStats(
    ttft_s=0.3, tokens_per_second=8.0, completion_tokens=40, target_passes=40, tokens_per_pass=1.0,
    baseline_tokens_per_second=8.0, state="plain", reason="drafting is switched off",
)  # fmt: skip


@pytest.mark.parametrize("size", [(120, 36), (80, 24)], ids=str)
def test_a_comparison(snap_compare, size: tuple[int, int]):
    engine = ScriptedEngine()
    app = chat(engine)

    async def before(pilot) -> None:
        await ready(pilot)
        await type_in(pilot, "/temp 0")
        await type_in(pilot, "/compare")
        await wait_until(pilot, lambda: isinstance(app.screen, ComparingScreen))
        await pilot.pause()
        app.screen.prompt.put("How does it work?")
        await pilot.press("enter")
        for asks, stats in ((1, STATS), (2, PLAIN)):
            await wait_until(pilot, lambda: len(engine.asks) == asks)  # noqa: B023 (awaited here)
            half = len(ANSWER) // 2
            pieces = (Piece(ANSWER[:half], "accepted"), Piece(ANSWER[half:], "correction"))
            if stats is PLAIN:
                pieces = (Piece(ANSWER, "target"),)
            engine.say(Progress(pieces, stats, stats.tokens_per_second, 3500, 4096))
            engine.finish(ANSWER, stats=stats)
        await wait_until(pilot, lambda: app.screen.phase == "ready")
        await pilot.pause()

    assert snap_compare(app, terminal_size=size, run_before=before)


def test_the_list_of_actions(snap_compare):
    app, before = answered()
    assert snap_compare(app, terminal_size=(120, 40), run_before=before, press=["ctrl+p"])


def test_commands_are_offered_while_they_are_typed(snap_compare):
    app, before = answered()
    assert snap_compare(app, terminal_size=(100, 30), run_before=before, press=["slash", "r", "e"])
