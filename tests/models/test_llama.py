"""llama.cpp behind Python names, on real tiny models."""

from pathlib import Path

import numpy as np
import pytest

from specchat.models.errors import LoadError, PassError
from specchat.models.llama import Context, Model, devices
from tests.tiny_models import END_OF_TEXT, EXACT, TinyPair, write_tiny_model


def test_a_load_tells_its_progress_from_nothing_to_all(tiny_pair: TinyPair):
    fractions: list[float] = []
    with Model(tiny_pair.target, on_progress=lambda fraction: fractions.append(fraction) or True):
        pass
    assert fractions == sorted(fractions)
    assert fractions[-1] == 1.0


def test_a_load_can_be_stopped(tiny_pair: TinyPair):
    with pytest.raises(LoadError):
        Model(tiny_pair.target, on_progress=lambda fraction: False)


def test_a_failed_load_says_llama_cpps_own_reason(tmp_path: Path):
    path = write_tiny_model(tmp_path / "odd.gguf", architecture="nothing-known")
    with pytest.raises(LoadError, match=r"odd\.gguf could not be loaded: .*nothing-known"):
        Model(path)


def test_text_goes_to_tokens_and_back(models: tuple[Model, Model]):
    text = "naïve 🙂 text\n"
    tokens = models[0].tokenize(text, add_special=False)
    assert b"".join(models[0].piece(token) for token in tokens).decode() == text


def test_special_tokens_are_read_where_asked_for_and_stand_for_no_text(models: tuple[Model, Model]):
    assert models[0].tokenize("<|endoftext|>", add_special=False) == [END_OF_TEXT]
    assert len(models[0].tokenize("<|endoftext|>", add_special=False, parse_special=False)) > 1
    assert models[0].piece(END_OF_TEXT) == b""
    assert models[0].piece(END_OF_TEXT, special=True) == b"<|endoftext|>"


def test_a_piece_longer_than_the_buffer_is_whole(tmp_path: Path):
    long = "x" * 300
    path = write_tiny_model(tmp_path / "long.gguf", special_tokens=(long,))
    with Model(path) as model:
        assert model.piece(model.vocabulary_size - 1, special=True) == long.encode()


def test_bos_is_added_where_the_vocabulary_wants_it_and_never_twice(tmp_path: Path):
    with Model(write_tiny_model(tmp_path / "bos.gguf", add_bos=True)) as model:
        assert model.tokenize("a", add_special=True) == [END_OF_TEXT, *model.tokenize("a", add_special=False)]
        assert model.tokenize("<|endoftext|>a", add_special=True).count(END_OF_TEXT) == 1


def test_a_pass_extends_the_cache_and_gives_the_rows_asked_for(contexts: tuple[Context, Context]):
    target = contexts[0]
    assert target.decode([1, 2, 3], 0).shape == (0, target.model.vocabulary_size)
    assert target.decode([4, 5, 6], 2).shape == (2, target.model.vocabulary_size)
    assert target.tokens == [1, 2, 3, 4, 5, 6]


def test_each_row_of_a_pass_is_that_of_passes_of_one(contexts: tuple[Context, Context]):
    target = contexts[0]
    together = target.decode([1, 2, 3, 4], 4).copy()
    target.truncate(0)
    alone = [target.decode([token], 1)[0].copy() for token in (1, 2, 3, 4)]
    np.testing.assert_allclose(together, alone, atol=2e-5)


def test_rows_are_views_that_the_next_pass_overwrites(contexts: tuple[Context, Context]):
    first = contexts[0].decode([1], 1)
    before = first.copy()
    contexts[0].decode([2], 1)
    assert not np.array_equal(first, before)


def test_truncating_forgets_what_came_after(contexts: tuple[Context, Context]):
    target = contexts[0]
    target.decode([1, 2, 3], 1)
    target.truncate(2)
    again = target.decode([9], 1)[0].copy()
    fresh = target.fresh(16)
    np.testing.assert_allclose(again, fresh.decode([1, 2, 9], 1)[0], atol=2e-5)
    assert target.tokens == [1, 2, 9]
    fresh.close()


def test_truncating_to_more_than_there_is_changes_nothing(contexts: tuple[Context, Context]):
    contexts[0].decode([1, 2], 0)
    contexts[0].truncate(5)
    assert contexts[0].tokens == [1, 2]


def test_a_pass_that_does_not_fit_is_refused_and_changes_nothing(models: tuple[Model, Model]):
    context = Context(models[0], size=4, threads=1, chunk=64, **EXACT)
    context.decode([1, 2, 3], 0)
    with pytest.raises(PassError, match="holds 3 of 4"):
        context.decode([4, 5], 1)
    assert context.tokens == [1, 2, 3]
    assert context.decode([4], 1).shape[0] == 1
    context.close()


@pytest.mark.parametrize(("tokens", "rows"), [([], 0), ([1] * 65, 0), ([1], 2), ([1] * 40, 40)])
def test_a_pass_of_an_impossible_shape_is_refused(
    contexts: tuple[Context, Context], tokens: list[int], rows: int
):
    with pytest.raises(PassError):
        contexts[0].decode(tokens, rows)
    assert contexts[0].tokens == []


def test_a_token_that_llama_cpp_refuses_leaves_the_cache_as_it_was(contexts: tuple[Context, Context]):
    target = contexts[0]
    target.decode([1, 2], 0)
    with pytest.raises(PassError, match="could not run a pass"):
        target.decode([3, 100_000], 1)
    assert target.tokens == [1, 2]
    found = target.decode([3], 1)[0].copy()
    target.truncate(0)
    np.testing.assert_allclose(found, target.decode([1, 2, 3], 1)[0], atol=2e-5)


def test_seconds_in_passes_are_those_of_the_clock(models: tuple[Model, Model]):
    ticks = iter(range(100))
    context = Context(models[0], size=8, threads=1, chunk=8, clock=lambda: float(next(ticks)), **EXACT)
    context.decode([1], 1)
    context.decode([2], 1)
    assert context.pass_s == 2.0
    context.close()


def test_transformers_can_roll_back(models: tuple[Model, Model]):
    assert models[0].drops_suffixes


def test_there_is_a_device_to_name():
    assert all(devices(0))
    assert len(devices(0)) == 1
