import json

import pytest

from specchat.app.decoding.calibration import band
from specchat.app.decoding.costs import Costs
from specchat.app.decoding.learned import Learned


def test_the_rate_is_that_of_plain_decoding_until_something_is_known():
    learned = Learned(Costs({1: 0.5, 2: 0.6}, 0.1))
    assert [learned.rate(region) for region in range(3)] == pytest.approx([2.0] * 3)


def test_the_rate_of_a_region_is_that_of_its_rounds():
    learned = Learned(Costs({1: 0.5, 2: 0.6, 4: 0.8}, 0.1))
    for _ in range(200):
        learned.count(1, 4, 4, 3)
    assert learned.rate(1) == pytest.approx(4 / (0.8 + 0.3), rel=0.02)
    assert (learned.rate(0), learned.rate(2)) == pytest.approx((2.0, 2.0))


def test_time_is_worth_what_plain_decoding_gives_at_the_least():
    learned = Learned(Costs({1: 0.5, 2: 0.6, 4: 0.8}, 0.1))
    for _ in range(200):
        learned.count(1, 1, 4, 3)
    assert learned.rate(1) == pytest.approx(2.0)


@pytest.mark.parametrize(("confidence", "region"), [(0.3, 0), (0.85, 1), (0.97, 1), (0.995, 2)])
def test_a_region_is_told_by_the_last_drafted_token(confidence: float, region: int):
    learned = Learned(Costs({1: 0.5}, None))
    learned.successions.last = band(confidence)
    assert learned.region == region


def test_what_was_learned_comes_through_json_unchanged():
    learned = Learned(Costs({1: 0.5, 2: 0.6}, 0.1))
    for _ in range(30):
        learned.costs.observe_target(4, 0.9)
        learned.calibration.observe(0.7, 0.0)
        learned.hits.observe(3, True, False, False)
    again = Learned.restored(json.loads(json.dumps(learned.state())))
    assert again.calibration.chance(0.7) == learned.calibration.chance(0.7) < 0.3
    assert again.hits.rate(3, True, False) == learned.hits.rate(3, True, False)
    assert again.costs.target(4).tolist() == pytest.approx(learned.costs.target(4).tolist())
    assert again.costs.draft == learned.costs.draft


@pytest.mark.parametrize(
    "state",
    [
        {},
        {"target_s": 3, "draft_s": 1, "arrays": []},
        {"target_s": {"1": 0.5}, "draft_s": 0.1, "arrays": [[1]]},
    ],
)
def test_a_state_of_another_version_is_refused(state: dict):
    with pytest.raises((KeyError, TypeError, ValueError, AttributeError)):
        Learned.restored(state)
