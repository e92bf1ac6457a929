"""Which pass sizes round like single-token passes: the finder says what brute force says."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import count, product
from typing import Literal

import numpy as np
import pytest

from specchat.models.errors import LoadError, PassError
from specchat.models.llama import Context, Logits, Model
from specchat.models.quantizing import quantize
from specchat.models.rounding import EqualSizes, find_equal_sizes
from tests.tiny_models import write_tiny_model

SIZES = (2, 3, 4, 8)


@pytest.fixture(scope="module")
def model(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Model]:
    """A tiny model whose weights have the type that the test asks for."""
    folder = tmp_path_factory.mktemp("rounding")
    path = write_tiny_model(folder / "tiny.gguf", dtype=np.float16 if request.param == "f16" else np.float32)
    if request.param == "q8_0":
        quantize(path, folder / "q8.gguf", "Q8_0")
        path = folder / "q8.gguf"
    with Model(path, gpu_layers=0) as loaded:
        yield loaded


def truly_equal(context: Context, depth: int) -> tuple[int, ...]:
    """The sizes before the first that is not equal on all of 40 texts after `depth` tokens."""
    draws = np.random.default_rng(depth)
    held = draws.integers(0, 256, depth).tolist()
    context.truncate(0)
    for start in range(0, depth, 32):
        context.decode(held[start : start + 32], 0)
    sizes = SIZES
    for text in draws.integers(0, 256, (40, SIZES[-1] + 1)).tolist():
        context.truncate(depth)
        alone = [context.decode([token], 1)[0].copy() for token in text]
        for index, size in enumerate(sizes):
            context.truncate(depth)
            rows = [*context.decode(text[:size], size).copy(), *context.decode([text[size]], 1)]
            if not np.array_equal(rows, alone[: size + 1]):
                sizes = sizes[:index]
                break
    return sizes


# Without flash attention a model this small, with eight-bit weights, hides too much for finder and force.
@pytest.mark.parametrize(
    ("model", "flash_attn", "cache_types", "threads"),
    [
        *product(["f32", "f16", "q8_0"], ["on"], [("f16", "f16")], [1, 2]),
        *product(["f32", "f16", "q8_0"], ["on"], [("f16", "bf16")], [2]),
        *product(["f32", "f16"], ["off"], [("f16", "f16"), ("f32", "f32")], [2]),
    ],
    indirect=["model"],
)
def test_the_sizes_found_are_those_that_brute_force_finds(
    model: Model, flash_attn: Literal["on", "off"], cache_types: tuple[str, str], threads: int
):
    context = Context(
        model,
        size=512,
        threads=threads,
        chunk=64,
        cache_type_k=cache_types[0],
        cache_type_v=cache_types[1],
        flash_attn=flash_attn,
    )
    found = find_equal_sizes(context, SIZES)
    assert context.tokens == []
    assert found.shallow == truly_equal(context, 40)
    assert found.deep == truly_equal(context, 300)
    # A pass that begins in the shallow cells and ends in the deep ones counts as deep.
    assert set(found.at(258)) <= set(truly_equal(context, 255))
    context.close()


def test_a_pass_is_shallow_while_it_ends_within_the_first_256_cells():
    sizes = EqualSizes(shallow=(2, 3), deep=(2,))
    assert [sizes.at(cells) for cells in (1, 256, 257, 9999)] == [(2, 3), (2, 3), (2,), (2,)]


@pytest.fixture
def never_rounding(monkeypatch: pytest.MonkeyPatch) -> None:
    """Passes whose rows are all alike, as if nothing was ever rounded."""
    decode = Context.decode

    def flat_decode(self: Context, tokens: Sequence[int], rows: int) -> Logits:
        return np.zeros_like(decode(self, tokens, rows))

    monkeypatch.setattr(Context, "decode", flat_decode)


def test_sizes_that_a_context_has_no_rows_for_are_not_tried(
    models: tuple[Model, Model], never_rounding: None
):
    context = Context(models[0], size=64, threads=1, chunk=8, rows=4)
    assert find_equal_sizes(context, (2, 4, 8)) == EqualSizes((2, 4), (2, 4))
    context.close()


@dataclass
class Watched:
    """What happened to the contexts that were made fresh from others."""

    made: list[Context] = field(default_factory=list)
    closed: list[Context] = field(default_factory=list)
    passes: list[int] = field(default_factory=list)
    """The size of each pass."""


@pytest.fixture
def watched(monkeypatch: pytest.MonkeyPatch) -> Watched:
    seen = Watched()
    fresh, close, decode = Context.fresh, Context.close, Context.decode

    def watched_fresh(self: Context, size: int, *, branches: int | None = None) -> Context:
        seen.made.append(fresh(self, size, branches=branches))
        return seen.made[-1]

    def watched_close(self: Context) -> None:
        seen.closed.append(self)
        close(self)

    def watched_decode(self: Context, tokens: Sequence[int], rows: int) -> Logits:
        seen.passes.append(len(tokens))
        return decode(self, tokens, rows)

    monkeypatch.setattr(Context, "fresh", watched_fresh)
    monkeypatch.setattr(Context, "close", watched_close)
    monkeypatch.setattr(Context, "decode", watched_decode)
    return seen


def test_the_contexts_made_for_it_are_freed(contexts: tuple[Context, Context], watched: Watched):
    find_equal_sizes(contexts[0])
    assert len(watched.made) == 2
    assert sorted(map(id, watched.closed)) == sorted(map(id, watched.made))


@pytest.mark.parametrize("failing", range(4))
def test_they_are_freed_when_a_pass_fails(
    contexts: tuple[Context, Context], watched: Watched, monkeypatch: pytest.MonkeyPatch, failing: int
):
    decode, number = Context.decode, count()

    def failing_decode(self: Context, tokens: Sequence[int], rows: int) -> Logits:
        if next(number) == failing:
            raise PassError("no")
        return decode(self, tokens, rows)

    monkeypatch.setattr(Context, "decode", failing_decode)
    with pytest.raises(PassError):
        find_equal_sizes(contexts[0])
    assert len(watched.made) == 2
    assert sorted(map(id, watched.closed)) == sorted(map(id, watched.made))


def test_the_first_is_freed_when_the_second_cannot_be_made(
    contexts: tuple[Context, Context], watched: Watched, monkeypatch: pytest.MonkeyPatch
):
    fresh = Context.fresh

    def failing_fresh(self: Context, size: int, *, branches: int | None = None) -> Context:
        if watched.made:
            raise LoadError("no memory")
        return fresh(self, size, branches=branches)

    monkeypatch.setattr(Context, "fresh", failing_fresh)
    with pytest.raises(LoadError):
        find_equal_sizes(contexts[0])
    assert watched.closed == watched.made


def test_one_cancelled_before_it_starts_makes_nothing(contexts: tuple[Context, Context], watched: Watched):
    assert find_equal_sizes(contexts[0], cancelled=lambda: True) == EqualSizes((), ())
    assert watched.made == []


def test_one_cancelled_later_tries_no_further_size(
    contexts: tuple[Context, Context], never_rounding: None, watched: Watched
):
    looks = count()
    found = find_equal_sizes(contexts[0], (2, 3, 4), cancelled=lambda: next(looks) >= 2)
    assert 2 in watched.passes
    assert not {3, 4} & {*watched.passes, *found.shallow}
    assert found.deep == ()
    assert sorted(map(id, watched.closed)) == sorted(map(id, watched.made))


def test_after_the_first_size_that_differs_no_larger_one_is_tried(
    contexts: tuple[Context, Context],
    never_rounding: None,
    watched: Watched,
    monkeypatch: pytest.MonkeyPatch,
):
    decode = Context.decode

    def rounding_decode(self: Context, tokens: Sequence[int], rows: int) -> Logits:
        found = decode(self, tokens, rows)
        return np.nextafter(found, np.float32(1)) if len(tokens) == 3 else found

    monkeypatch.setattr(Context, "decode", rounding_decode)
    assert find_equal_sizes(contexts[0], (2, 3, 4, 5)) == EqualSizes((2,), (2,))
    assert not {4, 5} & set(watched.passes)


def test_a_pass_that_leaves_another_cache_behind_does_not_count_as_equal(
    contexts: tuple[Context, Context], never_rounding: None, monkeypatch: pytest.MonkeyPatch
):
    decode = Context.decode
    disturbed: set[Context] = set()

    def disturbing_decode(self: Context, tokens: Sequence[int], rows: int) -> Logits:
        found = decode(self, tokens, rows)
        if self in disturbed and len(tokens) == 1:
            found = np.nextafter(found, np.float32(1))
        if len(tokens) == 2:
            disturbed.add(self)
        return found

    monkeypatch.setattr(Context, "decode", disturbing_decode)
    assert find_equal_sizes(contexts[0], (2,)) == EqualSizes((), ())


def test_a_model_that_cannot_forget_a_suffix_has_none(
    contexts: tuple[Context, Context], watched: Watched, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(Model, "drops_suffixes", False)
    assert find_equal_sizes(contexts[0]) == EqualSizes((), ())
    assert watched.made == []
