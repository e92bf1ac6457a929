"""The loop is exact: proved on tiny pairs that the real llama.cpp runs."""

from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from specchat.app.decoding.drafters import Drafter, ModelDrafter
from specchat.app.decoding.lookup import HitRates, LookupDrafter, TextIndex
from specchat.app.decoding.pacing import FixedPacing, PlainPacing
from specchat.app.decoding.sampling import Sampler, Sampling
from specchat.app.decoding.stats import Round
from specchat.models.errors import PassError
from specchat.models.llama import Context, Model
from tests.app.decoding.scripted import (
    GREEDY,
    Ending,
    EveryRound,
    Recited,
    plain,
    rounds,
    tokens_of,
)
from tests.fresh_rows import fresh_row
from tests.tiny_models import END_OF_TURN, EXACT


def model_drafter(draft: Context, prompt: list[int], sampling: Sampling = GREEDY, seed: int = 0):
    draft.truncate(0)
    return ModelDrafter(draft, prompt, Sampler(sampling), np.random.default_rng(seed))


def drafters(
    contexts: tuple[Context, Context], prompt: list[int], sampling: Sampling = GREEDY
) -> Iterator[Drafter]:
    yield model_drafter(contexts[1], prompt, sampling)
    yield LookupDrafter(TextIndex(), prompt, HitRates())


def test_two_hundred_random_prompts_are_answered_as_without_a_draft(contexts: tuple[Context, Context]):
    numbers = np.random.default_rng(17)
    tested = accepted = 0
    for _ in range(200):
        prompt = numbers.integers(0, 256, numbers.integers(1, 40)).tolist()
        expected = plain(contexts[0], prompt, max_tokens=25)
        for drafter in drafters(contexts, prompt):
            done = list(rounds(contexts[0], EveryRound(drafter, 4), prompt, max_tokens=25))
            assert expected == tokens_of(done)
            tested += sum(one.tested for one in done)
            accepted += sum(one.accepted for one in done)
    # The comparison means something only where drafts were refused and accepted.
    assert 0.1 < accepted / tested < 0.9


@pytest.mark.parametrize("draft_max", [1, 2, 7, 16, 32])
def test_every_draft_length_gives_the_plain_answer(contexts: tuple[Context, Context], draft_max: int):
    prompt = [5, 99, 5, 99, 5]
    expected = plain(contexts[0], prompt)
    for drafter in drafters(contexts, prompt):
        assert expected == tokens_of(rounds(contexts[0], EveryRound(drafter, draft_max), prompt))


def test_a_repeat_penalty_sees_the_drafted_prefix(contexts: tuple[Context, Context]):
    sampling = Sampling(temperature=0.0, repeat_penalty=1.8)
    numbers = np.random.default_rng(18)
    changed = 0
    for _ in range(25):
        prompt = numbers.integers(0, 256, 4).tolist()
        expected = plain(contexts[0], prompt, sampling)
        changed += expected != plain(contexts[0], prompt)
        for drafter in drafters(contexts, prompt, sampling):
            assert expected == tokens_of(rounds(contexts[0], EveryRound(drafter, 4), prompt, sampling))
        # A draft of the whole answer is accepted only by rows that see what was drafted before them.
        done = list(rounds(contexts[0], Recited([expected[:9], expected[10:19]]), prompt, sampling))
        assert [9, 9] == [one.accepted for one in done[:2]]
        assert expected == tokens_of(done)
    assert changed > 15


@settings(deadline=None, max_examples=60)
@given(
    prompt=st.lists(st.integers(0, 255), min_size=1, max_size=12),
    right=st.lists(st.integers(0, 6), min_size=1, max_size=5),
)
def test_after_every_round_the_cache_is_that_of_a_fresh_context(
    models: tuple[Model, Model], prompt: list[int], right: list[int]
):
    """Each round proposes so many right tokens, then wrong ones: any accept length is met."""
    target = Context(models[0], size=256, threads=1, chunk=256, **EXACT)
    answer = plain(target, prompt)
    proposals: list[list[int]] = []
    at = 0
    for length in right:
        wrong = (answer[at + length] + 1) % 256
        proposals.append([*answer[at : at + length], wrong, wrong])
        at += length + 1
    text = list(prompt)
    for done, length in zip(rounds(target, Recited(proposals), prompt), right, strict=False):
        text += [emitted.token for emitted in done.emitted]
        assert length == done.accepted
        assert text[:-1] == target.tokens
        found = target.decode([text[-1]], 1)[0].copy()
        np.testing.assert_allclose(found, fresh_row(target, text), atol=2e-5)
        target.truncate(len(text) - 1)
    target.close()


def test_after_every_round_both_caches_hold_what_was_accepted(contexts: tuple[Context, Context]):
    target, draft = contexts
    text = [3, 1, 4, 1, 5]
    pacing = EveryRound(model_drafter(draft, text), 4)
    for done in rounds(target, pacing, list(text)):
        text += [emitted.token for emitted in done.emitted]
        assert text[:-1] == target.tokens[: len(text)]
        assert text[: len(draft.tokens)] == draft.tokens


def test_where_a_token_came_from_is_told(contexts: tuple[Context, Context]):
    answer = plain(contexts[0], [1, 2, 3])
    wrong = (answer[3] + 1) % 256
    pacing = Recited([answer[:2], [wrong], []])
    first, second, third = [
        done for done, _ in zip(rounds(contexts[0], pacing, [1, 2, 3]), range(3), strict=False)
    ]
    assert [emitted.origin for emitted in first.emitted] == ["accepted", "accepted", "target"]
    assert [emitted.origin for emitted in second.emitted] == ["correction"]
    assert [emitted.origin for emitted in third.emitted] == ["target"]


def test_tokens_behind_a_refused_one_were_proposed_but_not_tested(contexts: tuple[Context, Context]):
    answer = plain(contexts[0], [1, 2, 3])
    wrong = (answer[1] + 1) % 256
    pacing = Recited([[answer[0], wrong, 9, 9]])
    going = rounds(contexts[0], pacing, [1, 2, 3])
    done = next(going)
    assert (done.proposed, done.tested, done.accepted) == (4, 2, 1)
    assert (done.leaves_tested, done.leaf_accepted) == (0, False)
    assert pacing.verified == [2]


@pytest.mark.parametrize("drafts", [[], [3], [2, 1, 5], [9], [1, 1, 1]])
def test_nothing_after_the_end_stays_in_cache_or_text(contexts: tuple[Context, Context], drafts: list[int]):
    prompt = [1, 2, 3]
    answer = plain(contexts[0], prompt)
    end = answer[5]
    stop = answer.index(end)
    proposals, at = [], 0
    for length in drafts:
        proposals.append(answer[at : at + length])
        at += length + 1
    pacing = Recited(proposals)
    done = list(rounds(Ending(contexts[0], end), pacing, prompt))
    assert answer[:stop] == tokens_of(done)
    assert done[-1].finish == "stop"
    assert [*prompt, *answer[:stop]] == contexts[0].tokens
    assert answer[:stop] == pacing.observed


def test_a_draft_that_ends_the_answer_is_accepted_and_counted(contexts: tuple[Context, Context]):
    prompt = [1, 2, 3]
    answer = plain(contexts[0], prompt)
    (done,) = rounds(Ending(contexts[0], answer[0]), Recited([answer[:4]]), prompt)
    assert (done.tested, done.accepted, done.finish, done.emitted) == (1, 1, "stop", ())


@pytest.mark.parametrize("max_tokens", [1, 2, 5, 6, 7])
def test_the_budget_is_met_exactly(contexts: tuple[Context, Context], max_tokens: int):
    answer = plain(contexts[0], [1, 2, 3])
    pacing = Recited([answer[:4], answer[5:9]])
    done = list(rounds(contexts[0], pacing, [1, 2, 3], max_tokens=max_tokens))
    assert answer[:max_tokens] == tokens_of(done)
    assert done[-1].finish == "length"


@pytest.mark.parametrize("size", [4, 5, 9, 16])
def test_the_context_is_filled_to_its_end_and_no_further(models: tuple[Model, Model], size: int):
    target, other = (Context(models[0], size=cells, threads=1, chunk=64) for cells in (size, 64))
    draft = Context(models[1], size=size, threads=1, chunk=64)
    prompt = [1, 2, 3]
    done = list(rounds(target, EveryRound(model_drafter(draft, prompt), 4), prompt, max_tokens=None))
    found = tokens_of(done)
    assert done[-1].finish == "context"
    assert len(prompt) + len(found) == size + 1
    assert plain(other, prompt, max_tokens=len(found)) == found
    for context in (target, other, draft):
        context.close()


def test_a_cancel_is_seen_before_the_next_round(contexts: tuple[Context, Context]):
    seen: list[Round] = []
    for done in rounds(contexts[0], PlainPacing(""), [1, 2, 3], cancelled=lambda: len(seen) == 3):
        seen.append(done)
    assert [done.finish for done in seen] == [None, None, None, "cancelled"]
    assert len(tokens_of(seen)) == 3
    assert len(contexts[0].tokens) == 5


@pytest.mark.parametrize("after", [0, 1, 3])
def test_an_abandoned_loop_leaves_both_caches_true(contexts: tuple[Context, Context], after: int):
    target, draft = contexts
    prompt = [1, 2, 3]
    going = rounds(target, EveryRound(model_drafter(draft, prompt), 4), prompt)
    text = prompt + [emitted.token for _ in range(after) for emitted in next(going).emitted]
    going.close()
    assert text[: len(target.tokens)] == target.tokens
    assert text[: len(draft.tokens)] == draft.tokens


def test_a_round_that_fails_in_the_middle_leaves_both_caches_true(contexts: tuple[Context, Context]):
    """It fails on the third token tested, when some of its draft has been accepted already."""
    target, draft = contexts
    prompt = [1, 2, 3]
    calls = iter(range(100))

    def fails(p, q, token, draws) -> int:
        if next(calls) == 2:
            raise PassError("no more")
        return token

    with pytest.raises(PassError):
        list(rounds(target, EveryRound(model_drafter(draft, prompt), 4), prompt, accept=fails))
    assert target.tokens == [1, 2]
    assert draft.tokens == prompt[: len(draft.tokens)]
    # And both go on as if nothing had been.
    expected = plain(target, prompt)
    drafter = ModelDrafter(draft, prompt, Sampler(GREEDY), np.random.default_rng(0))
    assert expected == tokens_of(rounds(target, EveryRound(drafter, 4), prompt))


def test_a_pass_that_fails_leaves_what_was_accepted_before_it(contexts: tuple[Context, Context]):
    target = contexts[0]
    answer = plain(target, [1, 2, 3])
    pacing = Recited([answer[:4], [100_000]])
    going = rounds(target, pacing, [1, 2, 3])
    next(going)
    with pytest.raises(PassError):
        next(going)
    assert [1, 2, 3, *answer[:4]] == target.tokens
    assert pacing.forgotten == 1


def test_the_same_seed_gives_the_same_text(contexts: tuple[Context, Context]):
    sampling = Sampling(temperature=1.0, seed=5)

    def sampled(seed: int) -> list[int]:
        contexts[1].truncate(0)
        draws = np.random.default_rng(seed)
        drafter = ModelDrafter(contexts[1], [1, 2, 3], Sampler(sampling), draws)
        return tokens_of(rounds(contexts[0], EveryRound(drafter, 4), [1, 2, 3], sampling, draws=draws))

    assert sampled(5) == sampled(5)
    assert sampled(5) != sampled(6)


def test_a_fixed_length_leaves_its_first_round_plain(contexts: tuple[Context, Context]):
    pacing = FixedPacing([model_drafter(contexts[1], [1, 2, 3])], 3, 0.0, "why")
    done = list(rounds(contexts[0], pacing, [1, 2, 3], max_tokens=20))
    assert [one.proposed for one in done[:3]] == [0, 3, 3]
    assert {"why"} == {one.reason for one in done}


def test_the_seconds_of_the_rounds_add_up_to_the_whole(contexts: tuple[Context, Context]):
    done = list(rounds(contexts[0], PlainPacing(""), [1, 2, 3], max_tokens=5))
    # The clock ticks once at the start and once a round, by one.
    assert [one.wall_s for one in done[:-1]] == [1.0] * 5


def test_the_end_of_turn_token_of_the_tiny_models_ends_generation(models: tuple[Model, Model]):
    assert models[0].ends_generation(END_OF_TURN)
    assert not models[0].ends_generation(65)
