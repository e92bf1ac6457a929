from itertools import islice

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from specchat.app.decoding.drafters import ModelDrafter, Step, argmax
from specchat.app.decoding.sampling import Sampler, Sampling
from specchat.models.llama import Context
from tests.app.decoding.scripted import Ending
from tests.fresh_rows import fresh_row

GREEDY = Sampler(Sampling(temperature=0.0))
WARM = Sampler(Sampling(temperature=1.5, top_k=5, top_p=1.0, min_p=0.0))


def model_drafter(context: Context, text: list[int], sampler: Sampler = GREEDY, **more) -> ModelDrafter:
    return ModelDrafter(context, text, sampler, np.random.default_rng(0), **more)


def steps_of(drafter: ModelDrafter, count: int) -> list[Step]:
    return list(islice(drafter.draft(), count))


def tokens_of(drafter: ModelDrafter, count: int) -> list[int]:
    return [step.token for step in steps_of(drafter, count)]


def greedy_continuation(context: Context, text: list[int], count: int) -> list[int]:
    context.truncate(0)
    row = context.decode(text, 1)[0]
    tokens = []
    for _ in range(count):
        tokens.append(int(np.argmax(row)))
        row = context.decode([tokens[-1]], 1)[0]
    return tokens


def test_a_model_drafts_its_own_greedy_continuation(contexts: tuple[Context, Context]):
    _, context = contexts
    text = [10, 20, 30, 40]
    expected = greedy_continuation(context, text, 5)
    context.truncate(0)
    assert expected == tokens_of(model_drafter(context, text), 5)


@given(kept=st.integers(0, 5), wrong=st.integers(0, 255))
def test_a_model_drafts_on_from_what_was_kept(kept: int, wrong: int, models):
    context = Context(models[1], size=64, threads=1, chunk=64)
    text = [10, 20, 30, 40]
    drafter = model_drafter(context, text)
    proposed = tokens_of(drafter, 5)
    now = [*text, *proposed[:kept], wrong]
    drafter.observe(now[4:])
    assert now[: len(context.tokens)] == context.tokens
    # The last token proposed was not fed to the model: what is kept may be one more than its cache holds.
    assert len(context.tokens) >= 4 + min(kept, 4)
    assert greedy_continuation(context, now, 4) == tokens_of(drafter, 4)
    context.close()


def test_a_draft_that_comes_to_nothing_is_forgotten(contexts: tuple[Context, Context]):
    _, context = contexts
    drafter = model_drafter(context, [10, 20, 30, 40])
    proposed = tokens_of(drafter, 5)
    drafter.observe(())
    assert context.tokens == [10, 20, 30, 40]
    assert proposed == tokens_of(drafter, 5)


def test_a_token_is_drafted_only_when_it_is_asked_for(contexts: tuple[Context, Context]):
    _, context = contexts
    drafted = model_drafter(context, [1, 2, 3]).draft()
    assert context.tokens == []
    for count in range(3):
        next(drafted)
        assert len(context.tokens) == 3 + count


def test_the_seconds_of_drafts_are_those_of_the_passes(contexts: tuple[Context, Context]):
    _, context = contexts
    before = context.pass_s
    drafter = model_drafter(context, [1, 2, 3])
    steps_of(drafter, 3)
    assert drafter.pass_s == context.pass_s > before


def test_confidence_is_the_chance_among_the_ten_likeliest_and_others_are_the_next_two(
    contexts: tuple[Context, Context],
):
    _, context = contexts
    (step,) = steps_of(model_drafter(context, [1, 2, 3]), 1)
    row = fresh_row(context, [1, 2, 3]).astype(np.float64)
    order = np.argsort(-row)[:10]
    chances = np.exp(row[order] - row[order[0]])
    chances /= chances.sum()
    assert step.token == order[0]
    assert step.confidence == pytest.approx(chances[0], rel=1e-4)
    assert [token for token, _ in step.others] == order[1:3].tolist()
    assert [chance for _, chance in step.others] == pytest.approx(chances[1:3], rel=1e-4)


def test_a_sampled_draft_gives_the_distribution_each_token_was_drawn_from(
    contexts: tuple[Context, Context],
):
    _, context = contexts
    steps = steps_of(model_drafter(context, [1, 2, 3], WARM), 20)
    for step in steps:
        assert step.distribution.probability(step.token) > 0
        assert step.distribution is step.unsharpened
        assert step.distribution.tokens.size == 5
        assert step.token not in {token for token, _ in step.others}
        assert step.confidence >= max(chance for _, chance in step.others)
    # How sure the draft is of a place does not tell which token it drew there.
    assert any(step.chance < step.confidence for step in steps)
    assert any(step.chance == step.confidence for step in steps)


def test_a_sharpened_draft_keeps_its_own_distribution_beside_the_one_it_was_drawn_from(
    contexts: tuple[Context, Context],
):
    _, context = contexts
    asked: list[float] = []

    def sharpness(confidence: float) -> float:
        asked.append(confidence)
        return 3.0

    steps = steps_of(model_drafter(context, [1, 2, 3], WARM, sharpness=sharpness), 6)
    assert asked == [step.confidence for step in steps]
    for step in steps:
        assert step.unsharpened is not None
        expected = step.unsharpened.probabilities**3
        np.testing.assert_allclose(step.distribution.probabilities, expected / expected.sum())


def test_an_argmax_draft_is_certain_at_any_temperature(contexts: tuple[Context, Context]):
    _, context = contexts
    sampler = Sampler(Sampling(temperature=1.0, top_k=5))
    steps = steps_of(model_drafter(context, [1, 2, 3], sampler, sharpness=argmax), 4)
    assert [step.distribution.tokens.size for step in steps] == [1] * 4
    assert greedy_continuation(context, [1, 2, 3], 4) == [step.token for step in steps]


def test_a_draft_ends_at_the_end_of_its_context(models):
    context = Context(models[1], size=8, threads=1, chunk=64)
    assert len(tokens_of(model_drafter(context, [1, 2, 3, 4, 5, 6]), 9)) == 3
    assert len(context.tokens) == 8
    context.close()


def test_a_draft_ends_with_the_answer(contexts: tuple[Context, Context]):
    _, context = contexts
    expected = greedy_continuation(context, [1, 2, 3], 4)
    context.truncate(0)
    ending = Ending(context, expected[2])
    assert expected[: expected.index(expected[2]) + 1] == tokens_of(model_drafter(ending, [1, 2, 3]), 9)


def test_a_token_the_draft_does_not_have_is_never_fed_to_it(contexts: tuple[Context, Context]):
    _, context = contexts
    drafter = model_drafter(context, [1, 2, 3])
    drafter.observe([context.model.vocabulary_size + 5])
    assert tokens_of(drafter, 4) == []


def test_a_token_the_target_does_not_have_is_never_proposed(contexts: tuple[Context, Context]):
    _, context = contexts
    likeliest = greedy_continuation(context, [1, 2, 3], 1)[0]
    context.truncate(0)
    drafter = model_drafter(context, [1, 2, 3], vocabulary_size=likeliest)
    steps = steps_of(drafter, 5)
    assert all(step.token < likeliest for step in steps)
    assert all(token < likeliest for step in steps for token, _ in step.others)


def test_a_draft_far_behind_catches_up_a_pass_at_a_time(contexts: tuple[Context, Context]):
    _, context = contexts
    text = np.random.default_rng(3).integers(0, 256, 3 * context.chunk + 5).tolist()
    drafter = model_drafter(context, text)
    held = []
    assert drafter.behind == len(text) - 1
    while not (tokens := tokens_of(drafter, 2)):
        held.append(len(context.tokens))
        assert drafter.behind == len(text) - 1 - held[-1]
    assert held == [context.chunk, 2 * context.chunk, 3 * context.chunk]
    assert drafter.behind == 0
    assert tokens[0] == int(np.argmax(fresh_row(context, text)))
