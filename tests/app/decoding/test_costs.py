import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from specchat.app.decoding.costs import Costs

AMX = {1: 1.0, 2: 1.65, 4: 1.78, 16: 2.65}


def test_sizes_between_measured_ones_lie_on_the_line_between_them():
    target_s = Costs({1: 1.0, 2: 1.6, 4: 2.0}, 0.2).target(4)
    assert target_s.tolist() == pytest.approx([0.0, 1.0, 1.6, 1.8, 2.0])


def test_sizes_beyond_the_measured_ones_go_on_half_as_steep_as_the_last_two():
    assert Costs({1: 1.0, 2: 1.6, 4: 2.0}, 0.2).target(6).tolist()[5:] == pytest.approx([2.1, 2.2])


def test_what_lies_beyond_never_falls():
    """Kernels that work in fours may make the largest measured size cheaper than the one before it."""
    target_s = Costs({1: 1.0, 3: 1.9, 4: 1.66}, 0.2).target(32)
    assert target_s[3] > target_s[4]
    assert target_s[4:].tolist() == pytest.approx([1.66] * 29)


def test_from_one_size_alone_a_pass_costs_by_the_token():
    assert Costs({1: 0.5}, None).target(3).tolist() == pytest.approx([0.0, 0.5, 1.0, 1.25])


def test_the_table_is_the_same_whichever_length_was_asked_for_before():
    asked = Costs(AMX, 0.2)
    asked.target(32)
    assert asked.target(5).tolist() == Costs(AMX, 0.2).target(5).tolist()


def test_without_a_draft_model_a_draft_pass_costs_nothing_until_one_is_seen():
    costs = Costs(AMX, None)
    assert costs.draft == 0.0
    costs.observe_draft(0.3)
    assert costs.draft == pytest.approx(0.3)


@pytest.mark.parametrize("factor", [0.5, 2.0])
def test_a_machine_that_is_slower_for_a_while_moves_the_level_and_not_the_shape(factor: float):
    costs = Costs(AMX, 0.2)
    shape = costs.target(16) / costs.target(1)[1]
    truly = Costs(AMX, 0.2).target(16) * factor
    numbers = np.random.default_rng(0)
    for _ in range(300):
        size = int(numbers.choice([1, 2, 4]))
        costs.observe_target(size, float(truly[size]))
    assert costs.target(1)[1] == pytest.approx(factor, rel=0.05)
    np.testing.assert_allclose(costs.target(16) / costs.target(1)[1], shape, rtol=0.05)
    # A size that was not run meanwhile has moved with the others.
    assert costs.target(16)[16] == pytest.approx(2.65 * factor, rel=0.05)


def test_a_slow_machine_does_not_look_like_a_dear_size_where_one_size_is_run_most_of_the_time():
    costs = Costs(AMX, 0.2)
    for _ in range(63):
        costs.observe_target(4, 2 * 1.78)
    assert costs.target(4)[4] == pytest.approx(2 * 1.78, rel=0.02)
    assert costs.target(4)[4] / costs.target(4)[1] == pytest.approx(1.78, rel=0.25)


def test_a_size_that_is_dearer_than_was_measured_moves_the_shape_and_not_the_level():
    costs = Costs(AMX, 0.2)
    for _ in range(200):
        costs.observe_target(1, 1.0)
        costs.observe_target(4, 3.0)
    assert costs.target(1)[1] == pytest.approx(1.0, rel=0.05)
    assert costs.target(4)[4] == pytest.approx(3.0, rel=0.05)


def test_a_size_that_was_never_measured_is_taken_as_it_is_seen():
    """T(3) above T(4): no line between 2 and 4 would say so."""
    costs = Costs({1: 1.0, 2: 1.5, 4: 1.66}, 0.2)
    costs.observe_target(3, 1.91)
    assert costs.target(4).tolist() == pytest.approx([0.0, 1.0, 1.5, 1.91, 1.66])
    assert set(costs.measured()[0]) == {1, 2, 3, 4}


@pytest.mark.parametrize("size", [1, 2, 3])
@pytest.mark.parametrize("seconds", [1e-6, 100.0])
def test_one_pass_that_was_disturbed_moves_little(size: int, seconds: float):
    """Also the first pass of a size that was never measured."""
    costs = Costs(AMX, 0.2)
    before = costs.target(16)
    costs.observe_target(size, seconds)
    after = costs.target(16)
    assert (np.abs(np.log(after[1:] / before[1:])) <= 0.51).all(), after
    draft_s = costs.draft  # it follows the level that all passes share
    costs.observe_draft(seconds)
    assert costs.draft == pytest.approx(draft_s, rel=0.06)


def test_frozen_costs_never_change():
    costs = Costs(AMX, 0.2, frozen=True)
    before = costs.target(32).tolist()
    for size in (1, 2, 3, 7, 20):
        costs.observe_target(size, 9.0)
        costs.observe_draft(9.0)
    assert costs.target(32).tolist() == before
    assert costs.draft == 0.2


def test_a_clock_that_stood_still_teaches_nothing():
    costs = Costs(AMX, 0.2)
    before = costs.target(8).tolist()
    costs.observe_target(1, 0.0)
    costs.observe_target(5, 0.0)
    costs.observe_draft(0.0)
    assert (costs.target(8).tolist(), costs.draft) == (before, 0.2)


@given(
    passes=st.lists(st.tuples(st.integers(1, 33), st.floats(1e-5, 1e3)), max_size=60),
    known=st.dictionaries(st.integers(2, 33), st.floats(1e-4, 10), max_size=4),
)
def test_whatever_is_seen_costs_stay_above_zero_and_finite(passes, known):
    costs = Costs({1: 0.01} | known, 0.002)
    for size, seconds in passes:
        costs.observe_target(size, seconds)
        costs.observe_draft(seconds)
    target_s = costs.target(33)
    assert np.isfinite(target_s).all()
    assert (target_s[1:] > 0).all()
    assert 0 < costs.draft < float("inf")


def test_what_is_remembered_is_timed_again():
    """A draft pass that was remembered from a busy moment would look too dear to be ever tried again."""
    costs = Costs({1: 1.0, 2: 1.6, 8: 2.0}, 0.9)
    costs.retime({1: 0.5, 2: 0.8}, 0.1)
    assert costs.target(8)[[1, 2, 8]].tolist() == pytest.approx([0.5, 0.8, 1.0])
    assert costs.draft == pytest.approx(0.1)


def test_a_rare_plain_pass_says_what_a_plain_pass_costs():
    """Larger passes that are dearer than known would else make plain ones look dearer too."""
    costs = Costs(AMX, 0.2)
    for _ in range(200):
        for _ in range(63):
            costs.observe_target(5, 3.0)
        costs.observe_target(1, 1.0)
    assert costs.target(5)[[1, 5]].tolist() == pytest.approx([1.0, 3.0], rel=0.1)
