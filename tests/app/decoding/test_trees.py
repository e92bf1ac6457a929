"""Drafts that are trees: chains with other choices beside some of their tokens, on real tiny models."""

from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from specchat.app.decoding.drafters import ModelDrafter
from specchat.app.decoding.pacing import Leaf
from specchat.app.decoding.sampling import Sampler, Sampling
from specchat.app.decoding.stats import Tally
from specchat.models.errors import PassError
from specchat.models.llama import Context, Model
from tests.app.decoding.scripted import (
    GREEDY,
    Ending,
    EveryRound,
    Leaves,
    Recited,
    own_leaves,
    plain,
    random_leaves,
    rounds,
    tokens_of,
)
from tests.fresh_rows import fresh_row
from tests.tiny_models import EXACT

PROMPT = [1, 2, 3]


@pytest.fixture
def target(models: tuple[Model, Model]) -> Iterator[Context]:
    """A target whose passes may have eight branches."""
    context = Context(models[0], size=256, threads=1, chunk=64, branches=8, **EXACT)
    yield context
    context.close()


@pytest.fixture
def draft(models: tuple[Model, Model]) -> Iterator[Context]:
    context = Context(models[1], size=256, threads=1, chunk=64, **EXACT)
    yield context
    context.close()


def drafting(
    draft: Context, prompt: list[int], length: int, leaves: Leaves, sampling: Sampling = GREEDY
) -> EveryRound:
    draft.truncate(0)
    drafter = ModelDrafter(draft, prompt, Sampler(sampling), np.random.default_rng(0))
    return EveryRound(drafter, length, leaves)


def test_many_prompts_are_answered_as_without_a_draft(target: Context, draft: Context):
    numbers = np.random.default_rng(19)
    tested = accepted = random_accepted = 0
    for _ in range(30):
        prompt = numbers.integers(0, 256, numbers.integers(1, 40)).tolist()
        expected = plain(target, prompt)
        for length in (1, 4):
            done = list(rounds(target, drafting(draft, prompt, length, own_leaves(6)), prompt))
            assert expected == tokens_of(done)
            tested += sum(one.leaves_tested for one in done)
            accepted += sum(one.leaf_accepted for one in done)
        # Of the answer's own tokens leaves drawn at random are accepted now and then.
        leaves = random_leaves(7, numbers, expected)
        done = list(rounds(target, drafting(draft, prompt, 3, leaves), prompt))
        assert expected == tokens_of(done)
        random_accepted += sum(one.leaf_accepted for one in done)
    assert 0.1 < accepted / tested < 0.9
    assert random_accepted > 5


@pytest.mark.parametrize("place", [0, 1, 2])
def test_a_leaf_that_is_accepted_gives_one_more_token_for_nothing(target: Context, place: int):
    answer = plain(target, PROMPT)
    wrong = [(token + 1) % 256 for token in answer]
    chain = [*answer[:place], *wrong[place:4]]
    leaves = [
        Leaf(place, (answer[place] + 2) % 256),
        Leaf(place + 1 if place < 2 else 0, answer[place + 1]),
        Leaf(place, answer[place]),
        Leaf(place, (answer[place] + 3) % 256),
    ]
    pacing = Recited([chain], [leaves])
    done = next(rounds(target, pacing, PROMPT))
    assert tokens_of([done]) == answer[: place + 2]
    assert [one.origin for one in done.emitted] == [*["accepted"] * (place + 1), "target"]
    assert (done.accepted, done.tested, done.leaf_accepted) == (place, place + 1, True)
    # The first leaf was tested and refused, the third was accepted, the fourth is behind it; the second
    # stands beside another token.
    assert done.leaves_tested == 2
    assert done.proposed == 8
    assert pacing.verified == [place + 1]
    tally = Tally(0.0)
    tally.add(done)
    stats = tally.stats(None)
    assert stats.tested_by_position == (*[1] * place, 3)
    assert stats.accepted_by_position == (1,) * (place + 1)
    assert (stats.drafted, stats.accepted, stats.completion_tokens) == (place + 3, place + 1, place + 2)


def test_leaves_that_are_all_refused_are_counted_as_tested(target: Context):
    answer = plain(target, PROMPT)
    wrong = [[(token + more) % 256 for token in answer] for more in (1, 2, 3)]
    leaves = [Leaf(1, wrong[1][1]), Leaf(1, wrong[2][1]), Leaf(0, wrong[1][0])]
    done = next(rounds(target, Recited([[answer[0], wrong[0][1]]], [leaves]), PROMPT))
    assert tokens_of([done]) == answer[:2]
    assert [one.origin for one in done.emitted] == ["accepted", "correction"]
    assert (done.accepted, done.tested, done.leaves_tested, done.leaf_accepted) == (1, 2, 2, False)
    tally = Tally(0.0)
    tally.add(done)
    assert tally.stats(None).tested_by_position == (1, 3)
    assert tally.stats(None).accepted_by_position == (1, 0)


def test_beside_a_chain_that_is_accepted_no_leaf_is_tested(target: Context):
    answer = plain(target, PROMPT)
    leaves = [Leaf(place, (answer[place] + 1) % 256) for place in (0, 1, 2)]
    done = next(rounds(target, Recited([answer[:3]], [leaves]), PROMPT))
    assert tokens_of([done]) == answer[:4]
    assert (done.accepted, done.leaves_tested, done.leaf_accepted) == (3, 0, False)


@settings(deadline=None, max_examples=40)
@given(
    prompt=st.lists(st.integers(0, 255), min_size=1, max_size=12),
    shape=st.lists(
        st.tuples(st.integers(0, 4), st.integers(0, 2), st.integers(0, 3)), min_size=1, max_size=5
    ),
)
def test_after_every_round_the_cache_is_that_of_a_fresh_context(
    models: tuple[Model, Model], prompt: list[int], shape: list[tuple[int, int, int]]
):
    """Rounds of so many right tokens, then wrong ones, with or without the right one as the n-th leaf."""
    target = Context(models[0], size=256, threads=1, chunk=256, branches=8, **EXACT)
    answer = plain(target, prompt)
    chains: list[list[int]] = []
    leaves: list[list[Leaf]] = []
    at = 0
    for right, behind, rank in shape:
        place = at + right
        wrong = [(answer[place] + more) % 256 for more in (1, 2, 3)]
        chains.append([*answer[at:place], *wrong[:1] * (1 + behind)])
        beside = [Leaf(right, token) for token in wrong[1:]]
        if rank < 3:  # a third as the right one where there is room for it, and none at 3
            beside.insert(rank, Leaf(right, answer[place]))
        leaves.append([Leaf(0, wrong[1]), *beside])
        if right == 0:
            leaves[-1].pop(0)
        at = place + 1 + (rank < 3)
    text = list(prompt)
    for done, (right, _, rank) in zip(rounds(target, Recited(chains, leaves), prompt), shape, strict=False):
        text += [emitted.token for emitted in done.emitted]
        assert (done.accepted, done.leaf_accepted) == (right, rank < 3)
        assert text[:-1] == target.tokens
        found = target.decode([text[-1]], 1)[0].copy()
        np.testing.assert_allclose(found, fresh_row(target, text), atol=2e-5)
        target.truncate(len(text) - 1)
    assert text[len(prompt) :] == answer[: len(text) - len(prompt)]
    target.close()


def test_after_every_round_both_caches_hold_what_was_accepted(target: Context, draft: Context):
    text = [3, 1, 4, 1, 5]
    accepted = 0
    for done in rounds(target, drafting(draft, text, 3, own_leaves(5)), list(text)):
        text += [emitted.token for emitted in done.emitted]
        accepted += done.leaf_accepted
        assert text[:-1] == target.tokens[: len(text)]
        assert text[: len(draft.tokens)] == draft.tokens
    assert accepted > 1


@pytest.mark.parametrize("place", [0, 2])
def test_a_leaf_that_ends_the_answer_stays_in_neither_cache_nor_text(target: Context, place: int):
    answer = plain(target, PROMPT)
    assert answer[place] not in answer[:place]
    chain = [*answer[:place], *[(answer[place] + 1) % 256] * 2]
    pacing = Recited([chain], [[Leaf(place, (answer[place] + 2) % 256), Leaf(place, answer[place])]])
    (done,) = rounds(Ending(target, answer[place]), pacing, PROMPT)
    assert done.finish == "stop"
    assert tokens_of([done]) == answer[:place] == pacing.observed
    assert (done.leaves_tested, done.leaf_accepted) == (2, True)
    assert target.tokens == [*PROMPT, *answer[:place]]
    row = target.decode([9], 1)[0].copy()
    np.testing.assert_allclose(row, fresh_row(target, [*PROMPT, *answer[:place], 9]), atol=2e-5)


def test_an_end_in_the_chain_leaves_nothing_of_the_leaves(target: Context):
    answer = plain(target, PROMPT)
    leaves = [Leaf(place, (answer[place] + 1) % 256) for place in range(4)]
    (done,) = rounds(Ending(target, answer[2]), Recited([answer[:4]], [leaves]), PROMPT)
    assert (done.finish, done.accepted, done.tested, done.leaves_tested) == ("stop", 3, 3, 0)
    assert tokens_of([done]) == answer[:2]
    assert target.tokens == [*PROMPT, *answer[:2]]


def test_a_leaf_whose_own_next_token_ends_the_answer_is_kept(target: Context):
    answer = plain(target, PROMPT)
    pacing = Recited([[(answer[0] + 1) % 256]], [[Leaf(0, answer[0])]])
    (done,) = rounds(Ending(target, answer[1]), pacing, PROMPT)
    assert (done.finish, done.leaf_accepted, tokens_of([done])) == ("stop", True, answer[:1])
    assert target.tokens == [*PROMPT, answer[0]]


def test_a_replacement_that_ends_the_answer_ends_it_beside_leaves(target: Context):
    answer = plain(target, PROMPT)
    pacing = Recited([[(answer[0] + 1) % 256]], [[Leaf(0, (answer[0] + 2) % 256)]])
    (done,) = rounds(Ending(target, answer[0]), pacing, PROMPT)
    assert (done.finish, done.leaf_accepted, done.emitted) == ("stop", False, ())
    assert target.tokens == PROMPT


@pytest.mark.parametrize("max_tokens", [1, 2, 3, 5, 6, 7, 12])
def test_the_budget_is_met_exactly(target: Context, draft: Context, max_tokens: int):
    answer = plain(target, PROMPT)
    for length, leaves in ((1, own_leaves(2)), (3, own_leaves(7))):
        done = list(rounds(target, drafting(draft, PROMPT, length, leaves), PROMPT, max_tokens=max_tokens))
        assert answer[:max_tokens] == tokens_of(done)
        assert done[-1].finish == "length"


@pytest.mark.parametrize("size", [4, 5, 6, 9, 16])
def test_the_context_is_filled_to_its_end_and_no_further(
    models: tuple[Model, Model], draft: Context, size: int
):
    target = Context(models[0], size=size, threads=1, chunk=64, branches=8)
    other = Context(models[0], size=64, threads=1, chunk=64)
    for length in (1, 2, 4):
        pacing = drafting(draft, PROMPT, length, own_leaves(7))
        done = list(rounds(target, pacing, PROMPT, max_tokens=None))
        found = tokens_of(done)
        assert done[-1].finish == "context"
        assert len(PROMPT) + len(found) == size + 1
        assert plain(other, PROMPT, max_tokens=len(found)) == found
    target.close()
    other.close()


def test_a_repeat_penalty_sees_the_leaf_that_was_accepted(target: Context, draft: Context):
    sampling = Sampling(temperature=0.0, repeat_penalty=1.8)
    numbers = np.random.default_rng(18)
    changed = accepted = 0
    for _ in range(15):
        prompt = numbers.integers(0, 256, 4).tolist()
        expected = plain(target, prompt, sampling)
        changed += expected != plain(target, prompt)
        # Every round's chain is wrong at once, and its leaf right: each second token comes from a leaf's row.
        chains = [[(token + 1) % 256] for token in expected[::2]]
        leaves = [[Leaf(0, token)] for token in expected[::2]]
        done = list(rounds(target, Recited(chains, leaves), prompt, sampling))
        assert expected == tokens_of(done)
        assert [one.leaf_accepted for one in done[:19]] == [True] * 19
        done = list(rounds(target, drafting(draft, prompt, 3, own_leaves(6), sampling), prompt, sampling))
        assert expected == tokens_of(done)
        accepted += sum(one.leaf_accepted for one in done)
    assert changed > 9
    assert accepted > 9


def test_a_penalty_makes_a_leaf_less_likely_to_be_followed_by_itself(target: Context):
    """A text of one token over and over, which only a penalty that counts the leaf itself would end."""
    sampling = Sampling(temperature=0.0, repeat_penalty=3.0, repeat_last_n=1)
    found = 0
    for start in range(0, 256, 3):
        (first,) = plain(target, [start], sampling, max_tokens=1)
        plainly = plain(target, [start], sampling, max_tokens=2)
        without = int(np.argmax(fresh_row(target, [start, first])))
        found += without != plainly[1]
        pacing = Recited([[(first + 1) % 256]], [[Leaf(0, first)]])
        done = next(rounds(target, pacing, [start], sampling))
        assert tokens_of([done]) == plainly
    assert found > 0


@pytest.mark.parametrize("after", [1, 3])
def test_an_abandoned_loop_leaves_both_caches_true(target: Context, draft: Context, after: int):
    going = rounds(target, drafting(draft, PROMPT, 3, own_leaves(5)), PROMPT)
    text = PROMPT + [emitted.token for _ in range(after) for emitted in next(going).emitted]
    going.close()
    assert text[:-1] == target.tokens
    assert text[: len(draft.tokens)] == draft.tokens


def test_a_tree_that_the_target_refuses_leaves_both_caches_true(target: Context, draft: Context):
    """Nine branches, where eight are allowed."""
    with pytest.raises(PassError):
        list(rounds(target, drafting(draft, PROMPT, 4, own_leaves(8)), PROMPT))
    assert target.tokens == PROMPT[:-1]
    assert draft.tokens == PROMPT[: len(draft.tokens)]
    assert plain(target, PROMPT) == tokens_of(
        rounds(target, drafting(draft, PROMPT, 4, own_leaves(7)), PROMPT)
    )


def test_a_failure_between_a_tree_and_what_is_kept_of_it_drops_the_tree(target: Context):
    answer = plain(target, PROMPT)

    def fails(p, q, token, draws) -> int:
        raise PassError("no more")

    pacing = Recited([answer[:2]], [[Leaf(0, 9)]])
    with pytest.raises(PassError):
        list(rounds(target, pacing, PROMPT, accept=fails))
    assert target.tokens == PROMPT[:-1]
    assert pacing.forgotten == 1
    assert plain(target, PROMPT) == answer


def test_the_same_seed_gives_the_same_text_from_trees(target: Context, draft: Context):
    sampling = Sampling(temperature=1.0, top_k=8)

    def sampled(seed: int) -> list[int]:
        draws = np.random.default_rng(seed)
        draft.truncate(0)
        drafter = ModelDrafter(draft, PROMPT, Sampler(sampling), draws)
        pacing = EveryRound(drafter, 3, own_leaves(6))
        return tokens_of(rounds(target, pacing, PROMPT, sampling, draws=draws))

    assert sampled(5) == sampled(5) != sampled(6)
