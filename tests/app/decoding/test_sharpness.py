import numpy as np

from specchat.app.decoding.sampling import Distribution
from specchat.app.decoding.sharpness import POWERS, LearnedSharpness

Q = Distribution(np.array([1, 2, 3]), np.array([0.5, 0.3, 0.2]))
P = Q.sharpened(POWERS[2])
"""A target that is surer than its draft, and of the same order."""


def test_a_draft_less_sure_than_its_target_is_sharpened():
    learned = LearnedSharpness()
    assert learned(0.5) == POWERS[0]
    for _ in range(20):
        learned.observe(0.5, P, Q)
    assert learned(0.5) == POWERS[2]
    assert learned(0.9) == POWERS[0]


def test_a_draft_as_sure_as_its_target_is_left_as_it_is():
    learned = LearnedSharpness()
    for _ in range(20):
        learned.observe(0.5, Q, Q)
    assert learned(0.5) == 1.0


def test_where_the_target_is_certain_the_drafts_likeliest_token_is_taken():
    learned = LearnedSharpness()
    for _ in range(20):
        learned.observe(0.5, Distribution.certain(1), Q)
    assert learned(0.5) == POWERS[-1] == np.inf
