import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from specchat.app.decoding.acceptance import acceptance_chance, residual, speculative
from specchat.app.decoding.sampling import Distribution

VOCABULARY = 8


@st.composite
def distributions(draw: st.DrawFn) -> Distribution:
    tokens = draw(st.lists(st.integers(0, VOCABULARY - 1), min_size=1, max_size=VOCABULARY, unique=True))
    weights = np.array(draw(st.lists(st.floats(0.001, 1), min_size=len(tokens), max_size=len(tokens))))
    order = np.argsort(-weights)
    return Distribution(np.array(tokens)[order], (weights / weights.sum())[order])


def dense(distribution: Distribution) -> np.ndarray:
    row = np.zeros(VOCABULARY)
    row[distribution.tokens] = distribution.probabilities
    return row


@given(p=distributions(), q=distributions())
def test_the_residual_is_what_the_target_has_over_the_draft(p: Distribution, q: Distribution):
    over = np.maximum(dense(p) - dense(q), 0)
    expected = over / over.sum() if over.sum() > 0 else dense(p)
    np.testing.assert_allclose(dense(residual(p, q)), expected, atol=1e-12)


@given(p=distributions(), q=distributions())
def test_accepted_and_replaced_tokens_together_are_distributed_as_the_target(
    p: Distribution, q: Distribution
):
    kept = np.minimum(dense(p), dense(q))
    together = kept + (1 - kept.sum()) * dense(residual(p, q))
    np.testing.assert_allclose(together, dense(p), atol=1e-9)


@given(p=distributions(), q=distributions())
def test_the_chance_of_acceptance_is_what_the_two_have_in_common(p: Distribution, q: Distribution):
    """Token by token: that it is drawn from the draft, times that it is then accepted."""
    expected = sum(
        q.probability(token) * min(1.0, p.probability(token) / q.probability(token))
        for token in q.tokens.tolist()
    )
    assert acceptance_chance(p, q) == pytest.approx(expected)


@given(p=distributions(), q=distributions(), seed=st.integers(0, 2**32))
def test_a_refused_token_is_never_its_own_replacement(p: Distribution, q: Distribution, seed: int):
    token = q.draw(np.random.default_rng(seed).random())
    draws = np.random.default_rng(seed)
    accepted = draws.random() * q.probability(token) < p.probability(token)
    stands = speculative(p, q, token, np.random.default_rng(seed))
    assert accepted == (stands == token) or dense(residual(p, q))[token] > 0
    assert p.probability(stands) > 0


@given(p=distributions(), token=st.integers(0, VOCABULARY - 1))
def test_a_certain_proposal_leaves_the_target_without_it(p: Distribution, token: int):
    rest = dense(p)
    rest[token] = 0
    expected = rest / rest.sum() if rest.sum() > 0 else dense(p)
    np.testing.assert_allclose(dense(residual(p, Distribution.certain(token))), expected, atol=1e-12)


def test_two_certain_distributions_agree_or_the_target_wins():
    draws = np.random.default_rng(0)
    assert speculative(Distribution.certain(4), Distribution.certain(4), 4, draws) == 4
    assert speculative(Distribution.certain(4), Distribution.certain(5), 5, draws) == 4


@pytest.mark.parametrize("certain", [False, True])
def test_a_token_is_accepted_as_often_as_the_rule_says(certain: bool):
    p = Distribution(np.array([0, 1, 2]), np.array([0.5, 0.3, 0.2]))
    q = Distribution.certain(1) if certain else Distribution(np.array([1, 0]), np.array([0.6, 0.4]))
    draws = np.random.default_rng(1)
    stood = sum(speculative(p, q, 1, draws) == 1 for _ in range(20_000))
    assert stood / 20_000 == pytest.approx(0.3 if certain else 0.5, abs=0.015)
