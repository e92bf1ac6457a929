"""Whose turn it is in a comparison, what counts, and how it comes out."""

from __future__ import annotations

from dataclasses import replace

import pytest

from specchat.app.decoding.settings import Sampling
from specchat.app.decoding.stats import AnswerStats
from specchat.app.events import Ask, Cancel, Died, Failed, Finished, Load
from specchat.app.requests import AnswerOptions, Drafting, LoadOptions, Turn
from specchat.tui.side_by_side import SideBySide, as_loaded, first_difference, lookup_alone, plain, with_draft
from tests.tui.scripted_engine import LOADED

PAIR = LoadOptions("big.gguf", "small.gguf")
OTHER = replace(PAIR, draft="other.gguf")
TURNS = (Turn("user", "hello"),)
GREEDY = AnswerOptions(Sampling(temperature=0.0))
DRAFTING = Drafting()


def finished(rate: float | None = 10.0, ids: tuple[int, ...] = (1, 2, 3), drafted: int = 6, reason="stop"):
    return Finished(reason, "text", ids, 5, 0, AnswerStats(tokens_per_second=rate, drafted=drafted), 8, 100)


def contest(left=None, right=None) -> SideBySide:
    return SideBySide(left or with_draft("Small", PAIR, DRAFTING), right or plain(DRAFTING), PAIR)


def play(match: SideBySide, left: Finished, right: Finished, options: AnswerOptions = GREEDY) -> list[int]:
    """A whole round; the sides in the order in which they were asked."""
    order: list[int] = []
    command = match.begin(TURNS, options, 7)
    while isinstance(command, Load):
        assert isinstance(match.take(LOADED), Ask)
        order.append(match.turn)
        command = match.take((left, right)[match.turn])
    return order


def test_one_side_answers_at_a_time_and_each_is_loaded_and_asked_as_it_drafts():
    match = contest(right=with_draft("Other", OTHER, DRAFTING))
    assert match.begin(TURNS, GREEDY, 7) == Load(PAIR, DRAFTING)
    assert match.take(LOADED) == Ask(TURNS, GREEDY, afresh=True)
    assert match.busy
    assert match.take(finished()) == Load(OTHER, DRAFTING)
    assert match.take(LOADED) == Ask(TURNS, GREEDY, afresh=True)
    assert match.loaded == OTHER
    assert match.take(finished()) is None
    assert not match.busy


def test_a_side_without_a_draft_model_loads_nothing_else():
    match = contest(left=with_draft("Other", OTHER, DRAFTING), right=plain(DRAFTING))
    match.begin(TURNS, GREEDY, 7)
    match.take(LOADED)
    load = match.take(finished())
    assert load == Load(OTHER, replace(DRAFTING, speculate="off")), "what is loaded stays loaded"
    asked = match.take(LOADED)
    assert isinstance(asked, Ask)
    assert asked.options.drafting.speculate == "off"


def test_the_side_that_goes_first_changes():
    match = contest()
    assert [play(match, finished(), finished()) for _ in range(3)] == [[0, 1], [1, 0], [0, 1]]


def test_runs_add_up_to_medians_until_the_prompt_or_a_side_changes():
    match = contest()
    for rate in (10.0, 30.0, 20.0):
        play(match, finished(rate), finished(rate / 2))
    assert (match.median(0), match.median(1)) == (20.0, 10.0)
    assert match.verdict()[0] == (
        "The left side is 2.00× as fast: 20.0 against 10.0 tok/s, medians of 3 runs each."
    )
    play(match, finished(8.0), finished(8.1), replace(GREEDY, max_tokens=5))
    assert match.verdict()[0] == "Both are about as fast: 8.1 against 8.0 tok/s, one run each."
    match.change(1, lookup_alone(DRAFTING))
    assert match.verdict() == ("", "")


@pytest.mark.parametrize(
    ("left", "right", "says"),
    [
        (
            finished(ids=(1, 2, 3)),
            finished(ids=(1, 2, 3)),
            "The texts are equal, token for token (3 tokens).",
        ),
        (finished(ids=(1, 2, 3)), finished(ids=(1, 9, 3)), "The texts differ from token 2 on"),
        (finished(ids=(1, 2, 3)), finished(ids=(1, 2)), "The texts differ from token 3 on"),
    ],
)
def test_at_temperature_0_the_texts_are_compared_token_for_token(left, right, says):
    match = contest()
    play(match, left, right)
    assert match.verdict()[1].startswith(says)


def test_above_temperature_0_both_sides_draw_with_the_same_seed():
    match = contest()
    match.begin(TURNS, AnswerOptions(), 7)
    first = match.take(LOADED)
    match.take(finished())
    second = match.take(LOADED)
    assert first.options.sampling.seed == second.options.sampling.seed == 7
    match.take(finished())
    assert "draws its own text" in match.verdict()[1]
    match.begin(TURNS, AnswerOptions(), 8)
    assert match.take(LOADED).options.sampling.seed == 8
    assert len(match.rounds) == 1, "another seed is another run of the same"
    own = AnswerOptions(Sampling(seed=3))
    match.stop()
    match.take(finished(reason="cancelled"))
    match.begin(TURNS, own, 9)
    assert match.take(LOADED).options.sampling.seed == 3


@pytest.mark.parametrize("rates", [(None, 10.0), (10.0, None)])
def test_an_answer_too_short_for_a_speed_says_so(rates):
    match = contest()
    play(match, finished(rates[0]), finished(rates[1]))
    assert "too short" in match.verdict()[0]


def test_where_nothing_was_drafted_no_side_is_called_faster():
    match = contest()
    play(match, finished(9.0, drafted=0), finished(7.0, drafted=0))
    assert match.verdict()[0].startswith("Nothing was drafted on either side")


def test_a_round_that_is_stopped_does_not_count():
    match = contest()
    match.begin(TURNS, GREEDY, 7)
    match.take(LOADED)
    assert match.stop() == Cancel()
    assert match.stop() is None
    assert match.take(finished(reason="cancelled")) is None
    assert (match.busy, match.rounds, match.loaded) == (False, [], PAIR)


@pytest.mark.parametrize(("event", "loaded"), [(LOADED, OTHER), (Failed("loading was stopped"), None)])
def test_a_load_that_is_stopped_asks_nothing_and_it_is_known_what_is_loaded(event, loaded):
    match = contest(left=with_draft("Other", OTHER, DRAFTING))
    match.begin(TURNS, GREEDY, 7)
    assert match.stop() == Cancel()
    assert match.take(event) is None
    assert (match.busy, match.loaded) == (False, loaded)


def test_a_draft_that_cannot_be_loaded_leaves_the_other_side_its_turn():
    match = contest(left=with_draft("Other", OTHER, DRAFTING))
    match.begin(TURNS, GREEDY, 7)
    assert match.take(Failed("no")) == Load(PAIR, replace(DRAFTING, speculate="off"))
    assert isinstance(match.take(LOADED), Ask)
    assert match.take(finished()) is None
    assert (match.rounds, match.busy) == ([], False)


def test_an_engine_that_dies_ends_it():
    match = contest()
    match.begin(TURNS, GREEDY, 7)
    match.take(Died("killed"))
    assert (match.phase, match.turn, match.loaded) == ("dead", None, None)


@pytest.mark.parametrize(
    ("drafting", "draft", "name"),
    [
        (Drafting(), True, "Small 0.5B Q4_0"),
        (Drafting(speculate="off"), True, "Small 0.5B Q4_0"),
        (Drafting(), False, "lookup alone, no draft model"),
        (Drafting(drafter="model"), False, "plain, no draft"),
        (Drafting(speculate="off"), False, "plain, no draft"),
    ],
)
def test_what_is_loaded_is_asked_as_it_drafts(drafting: Drafting, draft: bool, name: str):
    loaded = LOADED if draft else replace(LOADED, draft=None)
    found = as_loaded(loaded, PAIR, drafting)
    assert found.name == name
    assert (found.drafting.speculate != "off") == (name != "plain, no draft")


def test_the_first_difference_is_the_first_token_that_only_one_has():
    assert first_difference((1, 2), (1, 2)) is None
    assert first_difference((1, 2), (1, 3)) == 1
    assert first_difference((), (1,)) == 0
