"""A long chat in one process: nothing grows, caches stay true, and the file holds what was said."""

from pathlib import Path

import pytest

from tests.soak_report import GROWTH, SETTLED
from tests.soaking import Soak

TURNS = 1000


@pytest.mark.timeout(300)
def test_a_long_chat_does_not_grow_keeps_its_caches_true_and_loses_nothing(tmp_path: Path):
    soak = Soak(tmp_path, seed=3)
    soak.begin()
    while soak.report.turns < TURNS:
        soak.turn()
    report = soak.end()
    assert report.settled is not None
    assert report.most is not None
    assert report.growth < GROWTH, report.told()
    assert report.most.files == report.settled.files
    assert report.most.threads == report.settled.threads
    assert report.turns == TURNS > SETTLED
    seen = {
        "asked", "answered again", "gone on with", "prompt changed", "version changed", "conversation opened",
        "draft swapped", "load stopped", "parameters changed", "older turns left out", "ended: cancelled",
        "ended: context", "ended: length", "ended: refused", "ended: stop", "kept so far",
    }  # fmt: skip
    assert seen <= {name for name, count in report.done.items() if count}
