import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from specchat.app.decoding.drafters import FirstOf, LookupDrafter, ModelDrafter, NoDrafter
from specchat.app.decoding.sampling import Sampler, Sampling
from specchat.models.llama import Context

GREEDY = Sampler(Sampling(temperature=0.0))


def scanned(text: list[int], limit: int, longest: int = 4, shortest: int = 2) -> tuple[int, ...]:
    """What a lookup has to propose, by scanning the whole text."""
    for length in range(longest, shortest - 1, -1):
        for start in range(len(text) - length - 1, -1, -1):
            if length < len(text) and text[start : start + length] == text[-length:]:
                going_on = list(text)
                for place in range(limit):
                    going_on.append(going_on[start + length + place])
                return tuple(going_on[len(text) :])
    return ()


@given(text=st.lists(st.integers(0, 3), max_size=60), cut=st.integers(0, 60), limit=st.integers(1, 9))
def test_a_lookup_proposes_what_a_scan_of_the_text_finds(text: list[int], cut: int, limit: int):
    drafter = LookupDrafter(text[:cut])
    for token in text[cut:]:
        drafter.observe([token])
    assert scanned(text, limit) == drafter.propose(limit).tokens


def test_a_lookup_goes_on_in_a_loop():
    assert LookupDrafter([1, 2, 3, 1, 2, 3, 1, 2, 3]).propose(7).tokens == (1, 2, 3, 1, 2, 3, 1)


def test_a_lookup_is_certain_of_what_it_proposes():
    proposal = LookupDrafter([1, 2, 3, 1, 2]).propose(1)
    assert [q.tokens.tolist() for q in proposal.distributions] == [[3]]
    assert [q.probabilities.tolist() for q in proposal.distributions] == [[1.0]]


def test_the_first_drafter_with_a_proposal_is_taken():
    both = FirstOf(NoDrafter(), LookupDrafter([5, 6, 7, 5, 6]))
    assert both.propose(1).tokens == (7,)
    both.observe([8])
    assert both.propose(3).tokens == ()


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
    drafter = ModelDrafter(context, text, GREEDY, np.random.default_rng(0))
    assert tuple(expected) == drafter.propose(5).tokens


@given(kept=st.integers(0, 5), wrong=st.integers(0, 255))
def test_a_model_drafts_on_from_what_was_kept(kept: int, wrong: int, models):
    context = Context(models[1], size=64, threads=1, chunk=64)
    text = [10, 20, 30, 40]
    drafter = ModelDrafter(context, text, GREEDY, np.random.default_rng(0))
    proposed = drafter.propose(5).tokens
    now = [*text, *proposed[:kept], wrong]
    drafter.observe(now[4:])
    assert now[: len(context.tokens)] == context.tokens
    found = drafter.propose(4).tokens
    assert tuple(greedy_continuation(context, now, 4)) == found
    context.close()


def test_a_draft_stops_at_a_token_it_doubts(contexts: tuple[Context, Context]):
    _, context = contexts
    sure = ModelDrafter(context, [1, 2, 3], GREEDY, np.random.default_rng(0), p_min=0.0)
    assert len(sure.propose(6).tokens) == 6
    context.truncate(0)
    doubting = ModelDrafter(context, [1, 2, 3], GREEDY, np.random.default_rng(0), p_min=1.0)
    assert doubting.propose(6).tokens == ()


def test_a_sampled_draft_gives_the_distribution_each_token_was_drawn_from(
    contexts: tuple[Context, Context],
):
    _, context = contexts
    sampler = Sampler(Sampling(temperature=1.5, top_k=5, top_p=1.0, min_p=0.0))
    proposal = ModelDrafter(context, [1, 2, 3], sampler, np.random.default_rng(0)).propose(4)
    assert len(proposal.tokens) == len(proposal.distributions) == 4
    assert all(
        q.probability(token) > 0 and q.tokens.size == 5
        for token, q in zip(proposal.tokens, proposal.distributions, strict=True)
    )


def test_an_argmax_draft_is_certain_at_any_temperature(contexts: tuple[Context, Context]):
    _, context = contexts
    sampler = Sampler(Sampling(temperature=1.0, top_k=5))
    drafter = ModelDrafter(context, [1, 2, 3], sampler, np.random.default_rng(0), argmax=True)
    proposal = drafter.propose(4)
    assert [q.tokens.size for q in proposal.distributions] == [1] * 4
    assert tuple(greedy_continuation(context, [1, 2, 3], 4)) == proposal.tokens


def test_a_draft_ends_at_the_end_of_its_context(models):
    context = Context(models[1], size=8, threads=1, chunk=64)
    drafter = ModelDrafter(context, [1, 2, 3, 4, 5, 6], GREEDY, np.random.default_rng(0))
    assert len(drafter.propose(9).tokens) == 3
    assert len(context.tokens) == 8
    context.close()


def test_a_token_the_draft_does_not_have_is_never_fed_to_it(contexts: tuple[Context, Context]):
    _, context = contexts
    drafter = ModelDrafter(context, [1, 2, 3], GREEDY, np.random.default_rng(0))
    drafter.observe([context.model.vocabulary_size + 5])
    assert drafter.propose(4).tokens == ()


def test_a_draft_far_behind_catches_up_a_pass_at_a_time(contexts: tuple[Context, Context]):
    _, context = contexts
    text = np.random.default_rng(3).integers(0, 256, 3 * context.chunk + 5).tolist()
    drafter = ModelDrafter(context, text, GREEDY, np.random.default_rng(0))
    held = []
    while not (proposal := drafter.propose(2)).tokens:
        held.append(len(context.tokens))
    assert held == [context.chunk, 2 * context.chunk, 3 * context.chunk]
    assert tuple(greedy_continuation(context.fresh(512), text[-60:], 2))  # the tiny model runs
    assert len(proposal.tokens) == 2


@pytest.mark.parametrize("drafter", [NoDrafter(), LookupDrafter([1, 2])])
def test_drafters_without_a_model_spend_no_passes(drafter):
    drafter.propose(4)
    assert drafter.pass_s == 0
