"""Passes over token trees, on real tiny models: each row is that of the chain of a node's ancestors."""

from collections.abc import Iterator, Sequence
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from specchat.models.errors import LoadError, PassError
from specchat.models.llama import Context, Logits, Model
from specchat.models.tree_shape import TreeShape
from tests.fresh_rows import fresh_row
from tests.tiny_models import EXACT

COMB = [-1, 0, 1, 2, 0, 1, 5]
"""A chain of four, and what branches off it: one token after the first, two after the second."""


@pytest.fixture
def forest(models: tuple[Model, Model]) -> Iterator[Context]:
    """An empty context for trees of up to eight branches, exact to single precision."""
    context = Context(models[0], size=256, threads=1, chunk=64, branches=8, **EXACT)
    yield context
    context.close()


@st.composite
def trees(draw: st.DrawFn) -> tuple[list[int], list[int], list[int]]:
    """Tokens and parents of a tree of up to eight leaves, and a path in it."""
    size = draw(st.integers(1, 12))
    parents: list[int] = []
    for node in range(size):
        full = node - len(set(parents) - {-1}) >= 8  # one more leaf is one too many
        leaves = sorted(set(range(node)) - set(parents))
        parents.append(draw(st.sampled_from(leaves) if full else st.integers(-1, node - 1)))
    tokens = draw(st.lists(st.integers(0, 255), min_size=size, max_size=size))
    return tokens, parents, ancestors(parents, draw(st.integers(-1, size - 1)))


def ancestors(parents: Sequence[int], node: int) -> list[int]:
    """The path from the root to a node; none to -1."""
    return [] if node < 0 else [*ancestors(parents, parents[node]), node]


def chain_rows(
    context: Context, held: Sequence[int], tokens: Sequence[int], parents: Sequence[int]
) -> Logits:
    """What each row of a tree has to be: the last row of what is held and the node's ancestors.

    From one context that has seen neither the tree nor what is held, and forgets all after each row.
    """
    paths = [ancestors(parents, node) for node in range(len(tokens))]
    alone = context.fresh(context.size, branches=1)
    rows: list[Logits] = []
    for path in paths:
        alone.truncate(0)
        rows.append(alone.decode([*held, *(tokens[i] for i in path)], 1)[0].copy())
    alone.close()
    return np.array(rows)


@settings(deadline=None, max_examples=60)
@given(
    held=st.lists(st.integers(0, 255), max_size=10),
    rounds=st.lists(trees(), min_size=1, max_size=3),
    following=st.lists(st.integers(0, 255), min_size=1, max_size=12),
)
def test_rows_of_a_tree_are_those_of_its_chains_and_what_is_kept_is_as_if_it_had_been_decoded_alone(
    models: tuple[Model, Model],
    held: list[int],
    rounds: list[tuple[list[int], list[int], list[int]]],
    following: list[int],
):
    context = Context(models[0], size=256, threads=1, chunk=64, branches=8, **EXACT)
    held = list(held)
    if held:
        context.decode(held, 0)
    for tokens, parents, path in rounds:
        rows = context.decode_tree(tokens, parents)
        np.testing.assert_allclose(rows, chain_rows(context, held, tokens, parents), atol=2e-5)
        assert context.tokens == held
        context.keep(path)
        held += [tokens[node] for node in path]
        assert context.tokens == held
    row = context.decode(following, 1)[0]
    np.testing.assert_allclose(row, fresh_row(context, held + following), atol=2e-5)
    context.close()


@pytest.mark.parametrize("branches", [1, 8])
def test_a_chain_gives_the_rows_of_a_plain_pass_bit_for_bit(models: tuple[Model, Model], branches: int):
    tree, plain = (Context(models[0], size=256, threads=1, chunk=64, branches=n) for n in (branches, 1))
    for tokens in ([1, 2, 3, 4, 5], [6], [7, 8]):
        rows = tree.decode_tree(tokens, range(-1, len(tokens) - 1))
        assert np.array_equal(rows, plain.decode(tokens, len(tokens)))
        tree.keep(range(len(tokens)))
    assert tree.tokens == plain.tokens == [1, 2, 3, 4, 5, 6, 7, 8]
    tree.close()
    plain.close()


@pytest.mark.parametrize("length", [0, 1, 3, 4])
def test_what_is_kept_of_the_first_branch_leaves_no_trace_of_the_others(
    models: tuple[Model, Model], length: int
):
    tree, plain = (Context(models[0], size=256, threads=1, chunk=64, branches=n) for n in (4, 1))
    tokens = [10, 11, 12, 13, 14, 15, 16]
    for context in (tree, plain):
        context.decode([1, 2, 3], 0)
    rows = tree.decode_tree(tokens, COMB).copy()
    assert np.array_equal(rows[:4], plain.decode(tokens[:4], 4))
    tree.keep(range(length))
    plain.truncate(3 + length)
    assert np.array_equal(tree.decode([99], 1), plain.decode([99], 1))
    assert tree.tokens == plain.tokens
    tree.close()
    plain.close()


def test_every_path_of_a_tree_can_be_kept(forest: Context):
    tokens = [10, 11, 12, 13, 14, 15, 16]
    for node in range(-1, len(tokens)):
        path = ancestors(COMB, node)
        forest.truncate(0)
        forest.decode([1, 2, 3], 0)
        forest.decode_tree(tokens, COMB)
        forest.keep(path)
        assert forest.tokens == [1, 2, 3, *(tokens[i] for i in path)]
        row = forest.decode([99], 1)[0]
        np.testing.assert_allclose(row, fresh_row(forest, forest.tokens), atol=2e-5)


def test_a_tree_may_have_several_roots_and_nothing_before_it(forest: Context):
    rows = forest.decode_tree([1, 2, 3], [-1, -1, 1])
    np.testing.assert_allclose(rows, chain_rows(forest, [], [1, 2, 3], [-1, -1, 1]), atol=2e-5)
    forest.keep([1, 2])
    assert forest.tokens == [2, 3]


@pytest.mark.parametrize("length", [0, 2, 3, 9])
def test_truncating_drops_a_tree_of_which_nothing_was_kept(forest: Context, length: int):
    forest.decode([1, 2, 3], 0)
    forest.decode_tree([4, 5, 6], [-1, 0, 0])
    forest.truncate(length)
    with pytest.raises(PassError, match="no path"):
        forest.keep([0])
    assert forest.tokens == [1, 2, 3][:length]
    row = forest.decode([9], 1)[0]
    np.testing.assert_allclose(row, fresh_row(forest, [*[1, 2, 3][:length], 9]), atol=2e-5)


def test_a_pass_drops_a_tree_of_which_nothing_was_kept(forest: Context):
    forest.decode([1, 2, 3], 0)
    forest.decode_tree([4, 5, 6], [-1, 0, 0])
    forest.decode_tree([7, 8, 9], [-1, 0, 0])
    row = forest.decode([9], 1)[0]
    np.testing.assert_allclose(row, fresh_row(forest, [1, 2, 3, 9]), atol=2e-5)
    assert forest.tokens == [1, 2, 3, 9]


@pytest.mark.parametrize(
    ("tokens", "parents"),
    [
        ([4] * 10, [-1, *[0] * 9]),  # nine leaves, for eight branches
        ([4, 5], [-1, 1]),
        ([4, 5], [-2, 0]),
        ([4, 5], [1, -1]),
        ([4, 5], [-1]),
        ([4], [-1, 0]),
        ([], []),
        ([4] * 40, list(range(-1, 39))),  # more rows than there is room for
        ([4, 100_000], [-1, -1]),  # a token that llama.cpp refuses
    ],
)
def test_a_tree_that_cannot_be_is_refused_and_changes_nothing(
    forest: Context, tokens: list[int], parents: list[int]
):
    forest.decode([1, 2, 3], 0)
    with pytest.raises(PassError):
        forest.decode_tree(tokens, parents)
    assert forest.tokens == [1, 2, 3]
    rows = forest.decode_tree([4, 5], [-1, -1])
    np.testing.assert_allclose(rows, chain_rows(forest, [1, 2, 3], [4, 5], [-1, -1]), atol=2e-5)


def test_a_context_for_one_branch_refuses_two(contexts: tuple[Context, Context]):
    with pytest.raises(PassError, match="2 branches was asked of a context for 1"):
        contexts[0].decode_tree([1, 2], [-1, -1])


def test_a_tree_needs_a_cell_for_each_of_its_nodes(models: tuple[Model, Model]):
    context = Context(models[0], size=6, threads=1, chunk=64, branches=2, **EXACT)
    context.decode([1, 2, 3], 0)
    with pytest.raises(PassError, match="holds 3 of 6"):
        context.decode_tree([4, 5, 6, 7], [-1, 0, 1, 0])
    assert context.decode_tree([4, 5, 6], [-1, 0, 0]).shape[0] == 3
    context.close()


def test_a_cache_is_filled_to_the_brim_by_one_tree_after_another(models: tuple[Model, Model]):
    context = Context(models[0], size=256, threads=1, chunk=64, branches=4, **EXACT)
    while len(context.tokens) + 7 <= 256:
        context.decode_tree([10, 11, 12, 13, 14, 15, 16], COMB)
        context.keep([0, 1, 5, 6])
    row = context.decode([9], 1)[0]
    np.testing.assert_allclose(row, fresh_row(context, context.tokens), atol=2e-5)
    context.close()


@pytest.mark.parametrize("path", [[1], [0, 2], [0, 1, 1], [-1], [7], [1, 0]])
def test_what_is_no_path_of_the_tree_is_refused_and_the_tree_stays(forest: Context, path: list[int]):
    forest.decode_tree([1, 2, 3], [-1, 0, 1])
    with pytest.raises(PassError, match="no path"):
        forest.keep(path)
    forest.keep([0, 1])
    assert forest.tokens == [1, 2]


def test_without_a_tree_there_is_nothing_to_keep(forest: Context):
    forest.decode([1], 0)
    forest.keep([])
    with pytest.raises(PassError):
        forest.keep([0])
    assert forest.tokens == [1]


def test_seconds_of_tree_passes_count(models: tuple[Model, Model]):
    ticks = iter(range(100))
    context = Context(
        models[0], size=8, threads=1, chunk=8, branches=2, clock=lambda: float(next(ticks)), **EXACT
    )
    context.decode_tree([1, 2], [-1, -1])
    assert context.pass_s == 1.0
    context.close()


def test_more_branches_than_rows_are_no_trouble(models: tuple[Model, Model]):
    context = Context(models[0], size=64, threads=1, chunk=8, rows=2, branches=40, **EXACT)
    assert context.decode_tree([1, 2], [-1, -1]).shape[0] == 2
    context.close()


def test_more_branches_than_llama_cpp_knows_are_refused(models: tuple[Model, Model]):
    with pytest.raises(LoadError):
        Context(models[0], size=64, threads=1, branches=100_000)


@given(trees())
def test_branches_are_numbered_first_child_first_and_each_node_knows_its_own(
    drawn: tuple[list[int], list[int], list[int]],
):
    parents = drawn[1]
    shape = TreeShape.of(parents)
    leaves = [node for node in range(len(parents)) if node not in parents]
    walk = sorted(leaves, key=lambda leaf: ancestors(parents, leaf))
    assert shape.branches == len(leaves)
    for node in range(len(parents)):
        through = [branch for branch, leaf in enumerate(walk) if node in ancestors(parents, leaf)]
        assert [*range(shape.firsts[node], shape.firsts[node] + shape.counts[node])] == through
        assert shape.depths[node] == len(ancestors(parents, node)) - 1


@given(trees(), st.lists(st.integers(0, 11), max_size=4))
def test_a_path_goes_down_one_level_after_the_other(
    drawn: tuple[list[int], list[int], list[int]], nodes: list[int]
):
    _, parents, path = drawn
    shape = TreeShape.of(parents)
    assert shape.is_path(path)
    known = [node for node in nodes if node < len(parents)]
    steps = [parents[node] for node in known[:1]] == [-1] * len(known[:1])
    assert shape.is_path(known) == (steps and all(parents[child] == node for node, child in pairwise(known)))
