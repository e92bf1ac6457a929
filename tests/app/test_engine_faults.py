"""What fails under the engine: an answer does without its draft, or ends early; the next one works."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import asdict

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from specchat.app.clocks import steady
from specchat.app.decoding.settings import Sampling
from specchat.app.engine import Engine
from specchat.app.events import Ask, Event, Failed, Finished, Load, Loaded, Progress
from specchat.app.reporting import answer_json, figures
from specchat.app.requests import Drafting, LoadOptions, Turn
from specchat.models.llama import Context
from tests.app.driven import HELLO, Driven, options
from tests.faulty import Faulty
from tests.tiny_models import TinyPair

LONG = (Turn("user", "hello there, " * 20),)


@pytest.fixture
def faulty(monkeypatch: pytest.MonkeyPatch) -> Faulty:
    return Faulty(monkeypatch)


def contexts(driven: Driven) -> tuple[Context, Context]:
    pair = driven.engine.pair
    assert pair is not None
    assert pair.draft is not None
    return pair.target.context, pair.draft.context


def must_hold(driven: Driven, prompt_tokens: int, said: tuple[int, ...]) -> None:
    """The caches hold the prompt and what was said of the answer, and nothing else."""
    target, draft = driven.cached()
    assert list(said)[: len(target) - prompt_tokens] == target[prompt_tokens:]
    assert draft == target[: len(draft)]


@pytest.mark.parametrize("after", [0, 2, 9])
@pytest.mark.parametrize("turns", [HELLO, LONG], ids=["short", "long"])
def test_a_draft_that_fails_in_its_prefill_or_later_changes_no_token_and_is_told(
    driven: Driven, faulty: Faulty, turns: tuple[Turn, ...], after: int
):
    expected = driven.ask(turns, options(40, speculate="off"))
    faulty.arm(contexts(driven)[1], "refused", after)
    finished = driven.ask(turns, options(40, drafter="model"))
    assert faulty.happened
    assert finished.token_ids == expected.token_ids
    assert finished.stats.state == "plain"
    assert finished.stats.reason.startswith("the draft failed and is left alone for the rest of this answer")
    assert "the draft failed" in figures(finished)
    assert finished.stats.completion_tokens == 40
    assert finished.stats.drafted == sum(finished.stats.tested_by_position)
    must_hold(driven, finished.prompt_tokens, finished.token_ids)
    # The next answer is drafted again, and says the same.
    again = driven.ask(turns, options(40, drafter="model"))
    assert again.token_ids == expected.token_ids
    assert (again.stats.state, again.stats.accepted > 0) == ("drafting", True)


def test_a_draft_that_fails_while_passes_are_timed_anew_is_left_alone(
    driven: Driven, faulty: Faulty, monkeypatch: pytest.MonkeyPatch
):
    faulty.arm(contexts(driven)[1], "refused", 0)
    asked = options(20, Sampling(0.0, seed=3), speculate="auto")
    monkeypatch.setattr(driven.engine._answerer._pacers, "_measured", None)
    finished = driven.ask(HELLO, asked)
    assert faulty.happened
    assert len(finished.token_ids) == 20
    assert "the draft failed" in finished.stats.reason


@pytest.mark.parametrize("kind", ["refused", "half done", "truncation"])
@pytest.mark.parametrize("after", [1, 7])
@pytest.mark.parametrize("drafter", ["model", "both"])
def test_a_target_that_fails_leaves_all_that_was_decided_and_the_next_turn_works(
    driven: Driven, faulty: Faulty, drafter: str, kind: str, after: int
):
    asked = options(24, drafter=drafter)
    whole = driven.ask(HELLO, asked)
    for context in contexts(driven):
        context.truncate(0)
    faulty.arm(contexts(driven)[0], kind, after)
    driven.events.clear()
    driven.engine.ask(Ask(HELLO, asked))
    assert faulty.happened
    failed = driven.events[-1]
    told = driven.of(Progress)
    if not isinstance(failed, Failed):
        # A cache that was lost at the answer's last round is read again by the next one.
        assert kind == "truncation"
        return
    assert "llama.cpp" in failed.message
    said = "".join(piece.text for progress in told for piece in progress.pieces)
    assert whole.text.startswith(said.rstrip("\ufffd"))
    if told:
        assert told[-1].stats.completion_tokens >= len(told) > 0
    # What was said is gone on with as if nothing had been, though its ids were never told.
    turns = (*HELLO, Turn("assistant", said), Turn("user", "go on"))
    answer = driven.ask(turns, asked)
    driven.engine.ask(Ask(turns, asked, afresh=True))
    afresh = driven.events[-1]
    assert isinstance(afresh, Finished)
    assert answer.token_ids == afresh.token_ids
    assert whole.token_ids == driven.ask(HELLO, asked).token_ids


def test_all_that_was_decided_before_a_failure_is_told(driven: Driven, faulty: Faulty):
    """Rounds are told together every 40 ms, and a failure does not wait for that."""
    whole = driven.ask(HELLO, options(40, speculate="off"))
    for context in contexts(driven):
        context.truncate(0)
    faulty.arm(contexts(driven)[0], "refused", 21)  # one pass reads the prompt, each of 20 gives a token
    driven.events.clear()
    driven.engine.ask(Ask(HELLO, options(40, speculate="off")))
    said = "".join(piece.text for progress in driven.of(Progress) for piece in progress.pieces)
    assert driven.of(Progress)[-1].stats.completion_tokens == 20
    target = contexts(driven)[0].model
    assert b"".join(map(target.piece, whole.token_ids[:20])).decode("utf-8", "replace") == said


# Clocks ----------------------------------------------------------------------------------------

moves = st.sampled_from([0.0, 0.0, 1e-6, 1e-3, 0.02, -1e-3, -3600.0, -1e9, 90.0, 1e7])


@settings(max_examples=25)
@given(st.lists(moves, min_size=1, max_size=50))
def test_a_steady_clock_never_runs_backwards_and_goes_on_after_a_step_back(steps: list[float]):
    readings = [0.0]
    for step in steps:
        readings.append(readings[-1] + step)
    clock = steady(iter(readings).__next__)
    told = [clock() for _ in steps]
    assert told == sorted(told)
    assert told[-1] == pytest.approx(sum(step for step in steps if step > 0), rel=1e-6, abs=1e-3)


def finite(value: object) -> bool:
    if isinstance(value, dict):
        return all(map(finite, value.values()))
    if isinstance(value, list | tuple):
        return all(map(finite, value))
    return not isinstance(value, float) or (math.isfinite(value) and value >= 0.0)


def ticking(steps: list[float]) -> Callable[[], float]:
    """A clock that moves by these steps, again and again."""
    now, index = 1e10, 0

    def clock() -> float:
        nonlocal now, index
        now += steps[index % len(steps)]
        index += 1
        return now

    return clock


@settings(deadline=None, max_examples=6)
@given(st.lists(moves, min_size=1, max_size=12), st.sampled_from(["auto", "always"]))
def test_whatever_the_clock_does_figures_are_finite_and_the_text_is_the_same(
    tiny_pair: TinyPair, steps: list[float], speculate: str
):
    events: list[Event] = []
    engine = Engine(events.append, clock=ticking(steps))
    load = LoadOptions(str(tiny_pair.target), str(tiny_pair.draft), ctx_size=512, threads=1)
    engine.load(Load(load, Drafting(speculate=speculate)))
    assert isinstance(events[-1], Loaded), events[-1]
    texts = set[str]()
    for asked in (options(24, speculate=speculate), options(24, speculate="off")):
        engine.ask(Ask(HELLO, asked))
        finished = events[-1]
        assert isinstance(finished, Finished), finished
        texts.add(finished.text)
        assert finished.stats.target_passes > 0
        assert engine.pair is not None
        told = answer_json(finished, engine.pair, asked, ())
        assert finite(told["stats"]), told["stats"]
        json.dumps(told, allow_nan=False)
        figures(finished)
    for progress in [event for event in events if isinstance(event, Progress)]:
        assert finite(asdict(progress.stats))
        assert finite(progress.live_tokens_per_second)
    assert len(texts) == 1
    engine.close()
