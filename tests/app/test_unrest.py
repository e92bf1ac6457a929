"""Figures that contradict each other say that the machine was not at rest."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from specchat.app.comparison import PassCosts, Spread
from specchat.app.unrest import falling, unrest
from tests.app.made_rows import TARGET, row


def costs(**seconds: float) -> tuple[PassCosts, ...]:
    return (PassCosts(TARGET, {int(size[1:]): each for size, each in seconds.items()}, {}),)


def test_a_larger_pass_that_took_far_less_is_told():
    said = unrest((), costs(n1=5.0, n2=0.6, n4=0.7))
    assert said is not None
    assert "a pass over 2 tokens took 0.12 times one over 1" in said


def test_of_passes_too_short_to_be_timed_nothing_is_told():
    assert unrest((), costs(n1=0.0015, n2=0.0001)) is None


def test_a_quick_target_hides_nothing_of_a_slow_one_beside_it():
    assert unrest((), (*costs(n1=0.0015, n2=0.001), *costs(n1=5.0, n2=0.6))) is not None


def test_a_staircase_is_no_unrest():
    assert unrest((), costs(n1=1.0, n2=1.7, n3=2.3, n4=1.8, n8=2.0)) is None


@pytest.mark.parametrize(
    ("clock", "told"), [(1.0, False), (1.25, False), (0.8, False), (1.9, True), (0.5, True)]
)
def test_clock_and_counted_passes_that_differ_much_are_told(clock: float, told: bool):
    rows = [row(1, "code", Spread(clock, clock, clock, 1), counted=1.0)]
    assert (unrest(rows, ()) is not None) is told


@given(st.dictionaries(st.integers(1, 32), st.floats(0.01, 10.0), min_size=1))
def test_costs_that_never_fall_are_believed(seconds: dict[int, float]):
    rising = dict(zip(sorted(seconds), sorted(seconds.values()), strict=True))
    assert falling(rising) is None
