import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from specchat.app.decoding.sampling import Distribution, Sampler, Sampling, likeliest

OPEN = Sampling(temperature=1.0, top_k=0, top_p=1.0, min_p=0.0)


def rows(size: int) -> st.SearchStrategy[np.ndarray]:
    return arrays.arrays(np.float32, size, elements=st.floats(-20, 20, width=32))


def reference(logits: np.ndarray, settings: Sampling) -> dict[int, float]:
    """The chain as its definition reads, over the whole vocabulary, slowly."""
    values = logits.astype(np.float64)
    order = sorted(range(len(values)), key=lambda token: (-values[token], token))
    if settings.top_k:
        order = order[: settings.top_k]

    def softmax(tokens: list[int], temperature: float) -> list[float]:
        weights = [np.exp((values[token] - values[tokens[0]]) / temperature) for token in tokens]
        return [weight / sum(weights) for weight in weights]

    if settings.top_p < 1:
        kept, mass = [], 0.0
        for token, share in zip(order, softmax(order, 1.0), strict=True):
            kept.append(token)
            mass += share
            if mass >= settings.top_p:
                break
        order = kept
    if settings.min_p:
        best = softmax(order, 1.0)[0]
        order = [
            token
            for token, share in zip(order, softmax(order, 1.0), strict=True)
            if share >= settings.min_p * best
        ]
    return dict(zip(order, softmax(order, settings.temperature), strict=True))


@given(row=rows(1000), count=st.integers(1, 1000))
def test_the_likeliest_are_those_of_a_full_sort(row: np.ndarray, count: int):
    expected = np.argsort(-row, kind="stable")[:count]
    assert expected.tolist() == likeliest(row, count).tolist()


@pytest.mark.parametrize("size", [1, 2, 255, 256, 257, 3000])
@pytest.mark.parametrize("count", [1, 2, 10, 40])
def test_the_likeliest_of_any_vocabulary_size(size: int, count: int):
    row = np.random.default_rng(size).standard_normal(size).astype(np.float32)
    assert np.argsort(-row, kind="stable")[:count].tolist() == likeliest(row, min(count, size)).tolist()


@pytest.mark.parametrize("top_k", [0, 1, 7, 40])
@pytest.mark.parametrize("top_p", [0.3, 0.95, 1.0])
@pytest.mark.parametrize("min_p", [0.0, 0.05])
@pytest.mark.parametrize("temperature", [0.3, 1.0, 1.7])
def test_the_chain_is_its_definition(top_k: int, top_p: float, min_p: float, temperature: float):
    settings = Sampling(temperature=temperature, top_k=top_k, top_p=top_p, min_p=min_p)
    row = np.random.default_rng(5).normal(0, 3, 700).astype(np.float32)
    found = Sampler(settings).distribution(row, [])
    expected = reference(row, settings)
    assert list(expected) == found.tokens.tolist()
    np.testing.assert_allclose(found.probabilities, list(expected.values()), rtol=1e-5)


def test_a_nucleus_wider_than_the_first_head_is_found_without_top_k():
    row = np.zeros(5000, np.float32)
    settings = Sampling(temperature=1.0, top_k=0, top_p=0.4999, min_p=0.0)
    assert Sampler(settings).distribution(row, []).tokens.size == 2500


@given(row=rows(300), temperature=st.floats(0.1, 3))
def test_a_distribution_sums_to_one_and_falls(row: np.ndarray, temperature: float):
    found = Sampler(Sampling(temperature=temperature)).distribution(row, [])
    assert found.probabilities.sum() == pytest.approx(1.0)
    assert (np.diff(found.probabilities) <= 1e-12).all()


@given(row=rows(300))
def test_temperature_zero_is_certain_of_the_argmax(row: np.ndarray):
    found = Sampler(Sampling(temperature=0.0)).distribution(row, [])
    assert [int(np.argmax(row))] == found.tokens.tolist()
    assert found.probabilities.tolist() == [1.0]


def test_the_repeat_penalty_divides_positive_logits_and_multiplies_negative_ones():
    row = np.array([2.0, -2.0, 1.0], np.float32)
    sampler = Sampler(Sampling(temperature=0.0, repeat_penalty=4.0))
    assert sampler.adjusted(row, [0, 1, 1]).tolist() == [0.5, -8.0, 1.0]
    assert row.tolist() == [2.0, -2.0, 1.0]
    assert sampler.distribution(row, [0, 1, 1]).tokens.tolist() == [2]


def test_the_repeat_penalty_forgets_what_is_too_long_ago():
    row = np.array([2.0, 1.0], np.float32)
    sampler = Sampler(Sampling(repeat_penalty=4.0, repeat_last_n=2))
    assert sampler.adjusted(row, [0, 1, 1]).tolist() == [2.0, 0.25]


def test_without_a_penalty_no_row_is_copied():
    row = np.zeros(10, np.float32)
    assert Sampler(OPEN).adjusted(row, [1, 2]) is row


def test_draws_follow_the_cumulative_distribution():
    distribution = Distribution(np.array([7, 3, 5]), np.array([0.5, 0.3, 0.2]))
    assert [distribution.draw(u) for u in (0.0, 0.49, 0.5, 0.79, 0.81, 0.999999)] == [7, 7, 3, 3, 5, 5]


def test_a_draw_at_the_very_end_stays_inside_despite_rounding():
    distribution = Distribution(np.array([1, 2]), np.array([0.5, 0.4999999999]))
    assert distribution.draw(0.99999999999) == 2


def test_a_token_that_was_left_out_has_probability_zero():
    assert Distribution(np.array([7]), np.array([1.0])).probability(8) == 0.0


def test_an_outlook_says_how_sure_a_row_is_among_its_ten_likeliest():
    row = np.zeros(2000, np.float32)
    greedy = Sampler(Sampling(temperature=0.0))
    assert greedy.outlook(row, []).chances.tolist() == pytest.approx([0.1] * 10)
    row[3] = 50
    outlook = greedy.outlook(row, [])
    assert outlook.tokens[0] == 3
    assert outlook.chances[0] == pytest.approx(1.0)
    assert outlook.tokens.size == outlook.chances.size == 10


@pytest.mark.parametrize("temperature", [0.0, 0.4, 1.0, 2.5])
@pytest.mark.parametrize("top_k", [0, 1, 5, 10, 40])
@pytest.mark.parametrize("top_p", [0.5, 1.0])
def test_an_outlooks_distribution_is_that_of_the_chain(temperature: float, top_k: int, top_p: float):
    sampler = Sampler(Sampling(temperature, top_k=top_k, top_p=top_p, min_p=0.02, repeat_penalty=1.3))
    row = np.random.default_rng(5).normal(0, 3, 700).astype(np.float32)
    history = np.argsort(-row)[:5].tolist()
    expected, outlook = sampler.distribution(row, history), sampler.outlook(row, history)
    assert expected.tokens.tolist() == outlook.distribution.tokens.tolist()
    np.testing.assert_allclose(outlook.distribution.probabilities, expected.probabilities)
    assert outlook.tokens.tolist() == np.argsort(-sampler.adjusted(row, history))[:10].tolist()


@given(row=rows(300), temperature=st.sampled_from([0.0, 1.0]), penalty=st.sampled_from([1.0, 1.5]))
def test_an_outlooks_chances_are_at_temperature_one_and_after_penalties(
    row: np.ndarray, temperature: float, penalty: float
):
    sampler = Sampler(Sampling(temperature=temperature, repeat_penalty=penalty))
    outlook = sampler.outlook(row, [7, 8])
    adjusted = np.sort(sampler.adjusted(row, [7, 8]).astype(np.float64))[::-1][:10]
    weights = np.exp(adjusted - adjusted[0])
    np.testing.assert_allclose(outlook.chances, weights / weights.sum(), rtol=1e-6)


def test_an_outlook_on_a_vocabulary_smaller_than_ten_has_all_of_it():
    outlook = Sampler(OPEN).outlook(np.array([0.0, 2.0, 1.0], np.float32), [])
    assert outlook.tokens.tolist() == [1, 2, 0]
    assert outlook.chances.sum() == pytest.approx(1.0)


@given(row=rows(50), power=st.sampled_from([1.0, 1.6, 3.0, 17.0, np.inf]))
def test_a_sharpened_distribution_sums_to_one_and_keeps_the_order(row: np.ndarray, power: float):
    own = Sampler(OPEN).distribution(row / 4, [])
    sharp = own.sharpened(power)
    assert sharp.probabilities.sum() == pytest.approx(1.0)
    assert sharp.tokens.tolist() == own.tokens[: sharp.tokens.size].tolist()
    assert (np.diff(sharp.probabilities) <= 1e-12).all()
    assert sharp.probabilities[0] >= own.probabilities[0] - 1e-12


def test_sharpening_raises_to_a_power():
    own = Distribution(np.array([4, 2]), np.array([0.6, 0.4]))
    assert own.sharpened(2.0).probabilities.tolist() == pytest.approx([0.36 / 0.52, 0.16 / 0.52])
    assert own.sharpened(1.0) is own
    assert own.sharpened(np.inf).tokens.tolist() == [4]
