from itertools import product

import numpy as np
import pytest

from specchat.app.decoding.calibration import BANDS, Calibration, StopTable, Successions, band

CHANCES = np.array([0.3, 0.6, 0.95])
SUCCESSIONS = np.array([[0.6, 0.3, 0.1], [0.3, 0.4, 0.3], [0.1, 0.2, 0.7]])


def expectimax(
    target_s: list[float], draft_s: float, rate: float, drafted: int, survival: float, last: int,
    chances: np.ndarray = CHANCES,
) -> float:  # fmt: skip
    """The best that drafting one more token can bring, over every way that the confidences may fall."""
    longest = len(target_s) - 2
    if drafted == longest:
        return 0.0
    value = -rate * draft_s
    for now, chance in enumerate(chances):
        survives = survival * chance
        dearer = rate * (target_s[drafted + 2] - target_s[drafted + 1])
        further = expectimax(target_s, draft_s, rate, drafted + 1, survives, now, chances)
        value += SUCCESSIONS[last, now] * max(0.0, survives - dearer + max(0.0, further))
    return value


RISING = [0.0, 1.0, 1.2, 1.4, 1.6, 1.8]
FLAT = [0.0, 1.0, 1.0, 1.0, 1.0, 1.0]
STAIRCASE = [0.0, 1.0, 1.47, 1.91, 1.66, 1.97]
"""Kernels that work in fours: T(3) is above T(4)."""


@pytest.mark.parametrize("target_s", [RISING, FLAT, STAIRCASE])
@pytest.mark.parametrize("draft_s", [0.0, 0.1, 0.4])
@pytest.mark.parametrize("rate", [0.0, 1.0, 2.0])
def test_the_stop_table_is_what_trying_every_course_gives(target_s: list[float], draft_s: float, rate: float):
    table = StopTable(np.array(target_s), draft_s, rate, CHANCES, SUCCESSIONS)
    for drafted, last, survival in product(range(4), range(3), (1.0, 0.7, 0.31, 0.1)):
        expected = expectimax(target_s, draft_s, rate, drafted, survival, last)
        # Between the survivals that the table knows it takes the line.
        assert table.value(drafted, survival, last) == pytest.approx(expected, abs=0.035)


def test_a_pass_of_three_that_is_dearer_than_one_of_four_is_drafted_through():
    sure = np.full((3, 3), 1 / 3)
    table = StopTable(np.array(STAIRCASE), 0.1, 1.0, np.full(3, 0.8), sure)
    short = StopTable(np.array(STAIRCASE[:4]), 0.1, 1.0, np.full(3, 0.8), sure)
    # With one token drafted a second does not pay for itself, but on the way to a third it does.
    assert short.value(1, 0.5, 0) < 0 < table.value(1, 0.5, 0)


def test_where_time_is_worth_nothing_everything_is_drafted():
    table = StopTable(np.array(RISING), 5.0, 0.0, CHANCES, SUCCESSIONS)
    assert all(table.value(drafted, 0.05, last) > 0 for drafted in range(4) for last in range(3))


def test_where_a_draft_pass_costs_more_than_a_token_is_worth_nothing_is_drafted():
    table = StopTable(np.array(RISING), 1.01, 1.0, CHANCES, SUCCESSIONS)
    assert all(table.value(drafted, 1.0, last) < 0 for drafted in range(3, 4) for last in range(3))
    table = StopTable(np.array(RISING), 9.0, 1.0, CHANCES, SUCCESSIONS)
    assert all(table.value(drafted, 1.0, last) < 0 for drafted in range(4) for last in range(3))


def test_behind_the_longest_draft_one_more_is_worth_nothing():
    for longest in (1, 4, 32):
        table = StopTable(np.ones(longest + 2), 0.01, 1.0, CHANCES, SUCCESSIONS)
        assert table.value(longest - 1, 1.0, 2) > 0
        assert table.value(longest, 1.0, 2) == 0.0


def test_the_less_a_draft_is_likely_to_stand_the_less_one_more_token_is_worth():
    table = StopTable(np.array(RISING), 0.1, 1.0, CHANCES, SUCCESSIONS)
    values = [table.value(1, survival, 1) for survival in np.linspace(1.0, 0.0, 60)]
    assert values == sorted(values, reverse=True)
    assert np.isfinite(values).all()


@pytest.mark.parametrize(("confidence", "expected"), [(-0.1, 0), (0.0, 0), (0.2, 1), (0.65, 4), (1.0, 8)])
def test_every_confidence_has_a_band(confidence: float, expected: int):
    assert band(confidence) == expected < BANDS


def test_a_calibration_begins_at_the_confidence_itself():
    for confidence in (0.25, 0.43, 0.58, 0.75, 0.87):
        assert Calibration().chance(confidence) == pytest.approx(confidence, abs=0.08)


def test_a_calibration_learns_what_a_confidence_is_worth_here_and_only_there():
    calibration = Calibration()
    others = calibration.chance(0.3), calibration.chance(0.97)
    for _ in range(200):
        calibration.observe(0.75, 0.4)
    assert calibration.chance(0.7) == calibration.chance(0.79) == pytest.approx(0.4, abs=0.02)
    assert (calibration.chance(0.3), calibration.chance(0.97)) == others
    assert calibration.chances[band(0.75)] == calibration.chance(0.75)


def test_a_calibration_forgets_what_was_long_ago():
    calibration = Calibration()
    for chance in (1.0, 0.0):
        for _ in range(500):
            calibration.observe(0.5, chance)
    assert calibration.chance(0.5) < 0.05


def test_successions_learn_what_confidence_follows_on_what():
    successions = Successions()
    assert successions.chances.sum(axis=1) == pytest.approx(np.ones(BANDS))
    successions.last = band(0.1)
    for _ in range(100):
        successions.observe([0.99, 0.1] * 4)
    assert successions.chances[band(0.1), band(0.99)] > 0.7
    assert successions.chances[band(0.99), band(0.1)] > 0.7
    assert successions.chances.sum(axis=1) == pytest.approx(np.ones(BANDS))
