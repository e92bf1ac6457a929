"""What answers add up to."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from specchat.app.comparison import Answered, Row, Spread, rows_of, settled
from tests.app.made_rows import LOOKUP, PLAIN, answered, contender, model, row

DRAFT = contender("small")
CONTENDERS = (PLAIN, LOOKUP, DRAFT)


def found(rows: tuple[Row, ...], contender: int, kind: str | None) -> Row:
    (one,) = [row for row in rows if (row.contender, row.kind) == (contender, kind)]
    return one


@given(st.lists(st.floats(0.1, 100.0), min_size=1, max_size=9))
def test_a_spread_holds_its_values(values: list[float]):
    spread = Spread.of(values)
    assert spread is not None
    assert (spread.low, spread.high, spread.count) == (min(values), max(values), len(values))
    assert spread.low <= spread.median <= spread.high


def test_nothing_has_no_spread():
    assert Spread.of([]) is None


def test_each_answer_is_set_against_the_plain_one_to_the_same_prompt():
    answers = [answered(0, 10.0), answered(2, 20.0), answered(0, 20.0, prompt=1), answered(2, 20.0, prompt=1),
               answered(0, 5.0, repeat=1), answered(2, 20.0, repeat=1)]  # fmt: skip
    rows = rows_of(CONTENDERS, answers)
    assert found(rows, 2, "code").speedup == Spread(2.0, 1.0, 4.0, 3)
    assert found(rows, 0, "code").speedup is None


def test_each_target_has_its_own_plain_answers():
    other = model("huge")
    contenders = (PLAIN, DRAFT, contender("p2", "none", other), contender("s2", target=other))
    answers = [answered(0, 10.0), answered(1, 20.0), answered(2, 1.0), answered(3, 3.0)]
    rows = rows_of(contenders, answers)
    assert [found(rows, index, "code").speedup for index in (1, 3)] == [Spread(2.0, 2.0, 2.0, 1),
                                                                      Spread(3.0, 3.0, 3.0, 1)]  # fmt: skip


def test_kinds_weigh_alike_however_many_answers_they_have():
    answers = [answered(0, 1.0, "code"), answered(2, 4.0, "code")]
    answers += [answered(at, 1.0, "story", prompt) for prompt in range(9) for at in (0, 2)]
    assert found(rows_of(CONTENDERS, answers), 2, None).speedup == Spread(pytest.approx(2.0), 1.0, 4.0, 2)


def test_what_is_counted_in_tokens_is_added_up():
    answers = [
        answered(2, 1.0, drafted=10, accepted=5, tokens_per_pass=2.0, target_passes=10,
                 accepted_by_position=(4, 1), tested_by_position=(6, 4)),
        answered(2, 1.0, "story", drafted=2, accepted=1, tokens_per_pass=1.0, target_passes=30,
                 accepted_by_position=(1,), tested_by_position=(2,)),
    ]  # fmt: skip
    whole = found(rows_of(CONTENDERS, answers), 2, None)
    assert (whole.drafted, whole.accepted, whole.acceptance_rate) == (12, 6, 0.5)
    assert whole.tokens_per_pass == pytest.approx(50 / 40)
    assert (whole.accepted_by_position, whole.tested_by_position) == ((5, 1), (8, 4))


def test_where_nothing_was_drafted_there_is_no_speed_up_and_it_counts_as_one():
    answers = [answered(0, 1.0, "code"), answered(2, 4.0, "code", drafted=1)]
    answers += [answered(0, 1.0, "story"), answered(2, 1.9, "story", drafted=0)]
    rows = rows_of(CONTENDERS, answers)
    assert found(rows, 2, "story").speedup is None
    assert found(rows, 2, None).speedup == Spread(pytest.approx(2.0), 1.0, 4.0, 2)
    assert found(rows_of(CONTENDERS, answers[2:]), 2, None).speedup is None


def test_what_was_not_measured_is_none():
    (kind, whole) = rows_of(CONTENDERS, [answered(2, None, drafted=0)])
    for one in (kind, whole):
        assert (one.tokens_per_second, one.speedup, one.ttft_s, one.tokens_per_pass) == (None,) * 4
        assert one.acceptance_rate is None
    assert rows_of(CONTENDERS, []) == ()


answers_of_any_kind = st.lists(
    st.builds(
        answered,
        contender=st.integers(0, 2),
        rate=st.none() | st.floats(0.1, 1000.0),
        kind=st.sampled_from(["code", "json", "story"]),
        prompt=st.integers(0, 2),
        repeat=st.integers(0, 1),
        ttft_s=st.none() | st.floats(0.0, 10.0),
        drafted=st.just(0),
    ),
    unique_by=lambda one: (one.contender, one.kind, one.prompt, one.repeat),
)


@given(answers_of_any_kind)
def test_every_figure_lies_between_the_least_and_the_largest_that_was_measured(answers: list[Answered]):
    rows = rows_of(CONTENDERS, answers)
    for one in rows:
        mine = [a for a in answers if a.contender == one.contender and one.kind in (None, a.kind)]
        rates = [a.stats.tokens_per_second for a in mine if a.stats.tokens_per_second]
        if one.tokens_per_second is None:
            assert not rates
        else:
            assert min(rates) <= one.tokens_per_second.median <= max(rates)
        if one.speedup is not None:
            assert 0 < one.speedup.low <= one.speedup.median <= one.speedup.high
    together = {one.contender for one in rows if one.kind is None}
    assert together == {one.contender for one in answers}


@given(answers_of_any_kind)
def test_the_order_of_answers_does_not_matter(answers: list[Answered]):
    def by_who(rows: tuple[Row, ...]) -> dict[tuple[int, str | None], Spread | None]:
        return {(one.contender, one.kind): one.speedup for one in rows if one.kind is not None}

    assert by_who(rows_of(CONTENDERS, answers)) == by_who(rows_of(CONTENDERS, answers[::-1]))


@pytest.mark.parametrize(("was", "now", "still"), [(1.0, 1.02, True), (1.0, 1.05, False), (1.0, 0.95, False)])
def test_figures_have_settled_when_no_median_moves_any_more(was: float, now: float, still: bool):
    before, after = ([row(2, "code", Spread.of([value]))] for value in (was, now))
    assert settled(before, after) is still


def test_a_figure_that_is_new_has_not_settled():
    assert not settled([], [row(2, "code", Spread.of([1.0]))])
    assert settled([], [row(0, "code", None)])
