"""The search for layers to leave out, by itself: what it expects, and that it finds what is best."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from specchat.app.interrupt import Stopped
from specchat.app.layer_search import RelativeCosts, Trial, best, expected, search_layers
from specchat.app.requests import MAX_DRAFT

LINE = [0.0, *(1.0 + 0.05 * n for n in range(MAX_DRAFT + 1))]
"""Passes over several tokens that cost little more than one."""
STEEP = [float(n) for n in range(MAX_DRAFT + 2)]


def costs(target: list[float] = LINE, layers: int = 8) -> RelativeCosts:
    return RelativeCosts(target, layers, 0.2, 1.0)


def trial(*texts: str, skipped: tuple[int, ...] = (1,), pass_ratio: float = 0.5) -> Trial:
    return Trial(skipped, tuple(tuple(mark == "x" for mark in text) for text in texts), pass_ratio)


class Model:
    """Layers whose absence spoils a share of the guesses each, and the tries of them."""

    def __init__(self, lost: list[float], tokens: int = 400) -> None:
        self.lost, self.tokens = np.array(lost), tokens
        self.tried: list[tuple[int, ...]] = []
        self.random = np.random.default_rng(5)

    def try_out(self, skipped: tuple[int, ...]) -> Trial:
        self.tried.append(skipped)
        chance = float(np.exp(-self.lost[list(skipped)].sum()))
        right = tuple((self.random.random(self.tokens) < chance).tolist())
        kept = len(self.lost) - len(skipped)
        return Trial(skipped, (right,), 0.2 + 0.8 * kept / len(self.lost))

    def goes_on(self) -> bool:
        return len(self.tried) < 60


def test_drafting_is_counted_round_by_round():
    # One token at a time. The first text takes two rounds: "x" and the token behind it, then "-". The second
    # takes three: "-", then "x" and the "-" behind it, then "x" and the "x" behind it.
    known = RelativeCosts([0.0, 1.0, 1.1], 8, 0.2, 1.0)
    found = expected(trial("xx-", "-x-xx"), known)
    assert (found.length, found.tokens_per_pass) == (1, 8 / 5)
    assert found.acceptance == 3 / 5
    assert found.speedup == pytest.approx(8 / (5 * (known.draft(7) + 1.1)))


def test_where_all_is_guessed_the_longest_drafts_are_best_and_where_nothing_is_the_shortest():
    cheap = RelativeCosts(LINE, 8, 0.0, 0.1)
    perfect, useless = expected(trial("x" * 400), cheap), expected(trial("-" * 400), cheap)
    assert perfect.acceptance == 1.0
    assert perfect.length > 8
    assert perfect.speedup > 2.0
    assert (useless.length, useless.acceptance, useless.tokens_per_pass) == (1, 0.0, 1.0)
    assert useless.speedup < 1.0


def test_what_costs_as_much_as_decoding_never_pays():
    assert expected(trial("x" * 400), costs(STEEP)).speedup < 1.0


@given(st.lists(st.booleans(), min_size=1, max_size=200), st.floats(0.05, 1.0))
def test_more_guesses_never_give_less(right: list[bool], share: float):
    better = [guess or index % 2 == 0 for index, guess in enumerate(right)]
    known = RelativeCosts(LINE, 8, 0.0, share)
    figures = [expected(Trial((1,), (tuple(marks),), share), known) for marks in (right, better)]
    assert figures[0].speedup <= figures[1].speedup + 1e-9
    assert all(0.0 <= figure.acceptance <= 1.0 and figure.tokens_per_pass >= 1.0 for figure in figures)


def test_a_draft_pass_lies_on_a_line_through_what_was_measured():
    known = costs()
    assert known.draft(8) == pytest.approx(1.0)
    assert known.draft(4) == pytest.approx(0.6)
    for kept, ratio in ((6, 0.9), (4, 0.7), (2, 0.5), (6, 0.9), (4, 0.7), (2, 0.5)):
        known.observe(kept, ratio)
    assert known.draft(4) == pytest.approx(0.7, abs=0.03)


def test_a_layer_that_does_nothing_is_found():
    layers = [0.7, 0.5, 0.6, 0.0, 0.5, 0.6, 0.8, 0.9]
    known = costs()
    trials = search_layers(8, Model(layers).try_out, known, np.random.default_rng(0), Model(layers).goes_on)
    assert best(trials[:30], known).skipped == (3,)


def test_it_comes_close_to_the_best_of_all_sets_with_a_part_of_the_trials():
    lost = [1.2, 0.9, 0.3, 0.02, 0.25, 0.04, 0.2, 0.03, 0.5, 0.7]
    model, known = Model(lost), costs(layers=10)
    trials = search_layers(10, model.try_out, known, np.random.default_rng(1), model.goes_on)
    found = best(trials, known)

    def truly(skipped: tuple[int, ...]) -> float:
        return expected(Model(lost, 20_000).try_out(skipped), known).speedup

    everything = [set_ for size in range(1, 6) for set_ in combinations(range(10), size)]
    assert len(trials) < len(everything) / 8
    assert truly(found.skipped) > 0.95 * max(map(truly, [(3,), (3, 7), (3, 5, 7), (3, 5, 6, 7)]))


def test_no_set_is_tried_twice_and_none_is_everything_or_nothing():
    model = Model([0.1, 0.2, 0.3])
    search_layers(3, model.try_out, costs(layers=3), np.random.default_rng(0), lambda: True)
    assert len(set(model.tried)) == len(model.tried) <= 6
    assert all(0 < len(skipped) < 3 for skipped in model.tried)


def test_a_model_of_one_layer_has_nothing_to_leave_out():
    assert (
        search_layers(1, Model([0.1]).try_out, costs(layers=1), np.random.default_rng(0), lambda: True) == []
    )


def test_stopping_keeps_what_was_tried_and_without_anything_is_told():
    model = Model([0.1] * 8)

    def tires(skipped: tuple[int, ...]) -> Trial:
        if len(model.tried) == 3:
            raise Stopped
        return model.try_out(skipped)

    assert len(search_layers(8, tires, costs(), np.random.default_rng(0), lambda: True)) == 3
    with pytest.raises(Stopped):
        search_layers(8, tires, costs(), np.random.default_rng(0), lambda: True)


def test_without_time_one_set_is_tried_all_the_same():
    trials = search_layers(8, Model([0.1] * 8).try_out, costs(), np.random.default_rng(0), lambda: False)
    assert len(trials) == 1
