"""What caches of recurrent and hybrid models forget: exactly what they are told, or everything."""

from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import numpy as np
import pytest

from specchat.models.errors import PassError
from specchat.models.gguf_file import read_header
from specchat.models.llama import Context, Model
from tests.models.gguf_writing import write_gguf
from tests.tiny_architectures import write_tiny_architecture
from tests.tiny_models import EXACT

ROLLS_BACK = ("lfm2", "lfm2moe", "nemotron_h", "qwen35", "qwen35moe")
CLOSE = 1e-3
"""Logits of the same tokens in passes of other sizes; another token moves them by whole units."""


@contextmanager
def loaded(path: Path) -> Iterator[Context]:
    header = read_header(path)
    with (
        Model(path) as model,
        closing(
            Context(model, size=128, threads=1, chunk=64, rollback=header.shape.rollback, **EXACT)
        ) as context,
    ):
        yield context


@pytest.mark.parametrize("architecture", [*ROLLS_BACK, "mamba", "jamba"])
def test_whatever_is_decoded_kept_and_forgotten_the_next_row_is_that_of_a_fresh_context(
    tmp_path: Path, architecture: str
):
    draws = np.random.default_rng(1)
    with (
        loaded(write_tiny_architecture(tmp_path / "model.gguf", architecture)) as context,
        closing(context.fresh(128)) as fresh,
    ):
        went_back = 0
        for _ in range(80):
            if len(context.tokens) > 100:
                context.truncate(0)
            count = int(draws.integers(1, min(8, context.rollback + 1) + 1))
            tokens, before = draws.integers(0, 256, count).tolist(), list(context.tokens)
            match draws.integers(5):
                case 0:
                    context.decode(tokens, count)
                case 1:
                    context.truncate(int(draws.integers(0, len(context.tokens) + 1)))
                case 2:  # a round that fails before anything of it is kept
                    context.decode_tree(tokens, range(-1, count - 1))
                    context.truncate(len(context.tokens))
                case _:
                    context.decode_tree(tokens, range(-1, count - 1))
                    kept = int(draws.integers(1, count + 1))
                    context.keep(range(kept))
                    assert context.tokens == before + tokens[:kept]
                    went_back += kept < count
            token = int(draws.integers(0, 256))
            fresh.truncate(0)
            if context.tokens:
                fresh.decode(context.tokens, 0)
            row = fresh.decode([token], 1)[0].copy()
            np.testing.assert_allclose(context.decode([token], 1)[0], row, atol=CLOSE)
        assert (went_back > 0) == (architecture in ROLLS_BACK)


def test_a_draft_too_long_to_be_forgotten_is_not_decoded(tmp_path: Path):
    for architecture, longest in (("qwen35", 7), ("mamba", 0)):
        with loaded(write_tiny_architecture(tmp_path / "model.gguf", architecture)) as context:
            context.decode([1, 2, 3], 0)
            assert context.rollback == longest
            with pytest.raises(PassError, match=f"forgets {longest}"):
                context.decode_tree([4] * (longest + 2), range(-1, longest + 1))
            assert context.tokens == [1, 2, 3]


def test_a_state_goes_back_only_once_and_then_forgets_everything(tmp_path: Path):
    with loaded(write_tiny_architecture(tmp_path / "model.gguf", "qwen35")) as context:
        context.decode([1, 2, 3, 4], 0)
        context.truncate(3)
        assert context.tokens == [1, 2, 3]
        context.truncate(2)
        assert context.tokens == []


def test_what_is_kept_of_earlier_states_counts_as_memory(tmp_path: Path):
    shape = read_header(write_tiny_architecture(tmp_path / "model.gguf", "nemotron_h")).shape
    # The convolution's last three inputs and a state of 16 for each of 128 values; one layer of two.
    assert (shape.recurrent, shape.rollback, shape.state_values) == (True, 7, 3 * 192 + 16 * 128)
    plain = read_header(write_tiny_architecture(tmp_path / "other.gguf", "llama")).shape
    assert (plain.recurrent, plain.rollback, plain.tests_drafts) == (False, 0, True)


def test_a_layer_that_is_a_feed_forward_network_alone_has_no_state(tmp_path: Path):
    def states(feed_forward: list[int]) -> int:
        layers = {"attention.head_count": 4, "attention.head_count_kv": [0, 0]}
        state = {"conv_kernel": 4, "inner_size": 16, "state_size": 8, "group_count": 1}
        keys = {**layers, "feed_forward_length": feed_forward, **{f"ssm.{k}": v for k, v in state.items()}}
        extra = {f"nemotron_h.{key}": value for key, value in keys.items()}
        path = write_gguf(tmp_path / "model.gguf", architecture="nemotron_h", extra=extra)
        return read_header(path).shape.state_values

    assert states([0, 32]) * 2 == states([0, 0]) > 0
