"""Which prompt comes next, who goes first, and whether there is time."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from specchat.app.compare_plan import FEWEST_TOKENS, Group, Speed, Timetable, order, rounds


@given(st.integers(1, 8), st.integers(0, 50))
def test_over_as_many_groups_as_contenders_each_is_in_each_place_once(contenders: int, start: int):
    places = Counter(
        (who, place)
        for group in range(start, start + contenders)
        for place, who in enumerate(order(contenders, group))
    )
    assert set(places.values()) == {1}
    assert len(places) == contenders**2


def test_a_prompt_of_every_kind_comes_before_a_second_of_any():
    planned = list(rounds({"a": "xyz", "b": "x"}, repeats=2))
    told = [[(group.kind, group.prompt, group.repeat) for group in one] for one in planned]
    assert told == [
        [("a", 0, 0), ("b", 0, 0)], [("a", 1, 0)], [("a", 2, 0)],
        [("a", 0, 1), ("b", 0, 1)], [("a", 1, 1)], [("a", 2, 1)],
    ]  # fmt: skip


@given(st.dictionaries(st.text(min_size=1), st.lists(st.none(), min_size=1, max_size=4), max_size=4),
       st.integers(1, 3))  # fmt: skip
def test_every_prompt_is_answered_as_often_as_wanted(prompts: dict[str, list[None]], repeats: int):
    planned = [group for one in rounds(prompts, repeats) for group in one]
    assert len(planned) == len(set(planned)) == repeats * sum(map(len, prompts.values()))


GROUPS = (Group("a", 0, 0), Group("b", 0, 0))
LENGTHS = {("a", 0): 10, ("b", 0): 100}


@pytest.fixture
def timetable() -> Timetable:
    return Timetable([Speed(0.01, 0.1), Speed(0.02, 0.05)], LENGTHS)


def test_a_group_takes_what_its_prompt_and_its_answers_take(timetable: Timetable):
    assert timetable.seconds(GROUPS[0], 100) == pytest.approx(1.1 * (10 * 0.03 + 100 * 0.15))
    assert timetable.seconds(GROUPS[1], 100) == pytest.approx(1.1 * (100 * 0.03 + 100 * 0.15))


def test_a_first_token_takes_what_its_prompt_takes(timetable: Timetable):
    assert timetable.first_token_s(GROUPS[1], 1) == pytest.approx(2.0)


def test_a_group_that_was_answered_is_expected_to_take_as_long_again(timetable: Timetable):
    timetable.observe_group(GROUPS[0], 7.0)
    assert timetable.seconds(Group("a", 0, 1), 100) == pytest.approx(7.7)


def test_what_is_seen_moves_what_is_expected(timetable: Timetable):
    timetable.observe(0, Speed(0.01, 0.3))
    assert timetable.seconds(GROUPS[0], 100) == pytest.approx(1.1 * (10 * 0.03 + 100 * 0.25))


@given(st.integers(1, 500), st.floats(-10.0, 500.0))
def test_answers_are_as_long_as_fits_and_never_longer_than_wanted(wanted: int, seconds: float):
    timetable = Timetable([Speed(0.01, 0.1), Speed(0.02, 0.05)], LENGTHS)
    tokens = timetable.tokens(GROUPS, wanted, seconds)
    assert min(wanted, FEWEST_TOKENS) <= tokens <= wanted
    needed = sum(timetable.seconds(group, tokens) for group in GROUPS)
    assert needed <= seconds + 1e-6 or tokens == min(wanted, FEWEST_TOKENS)
    if tokens < wanted:
        assert sum(timetable.seconds(group, tokens + 1) for group in GROUPS) > seconds - 1e-6
