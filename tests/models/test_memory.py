"""What a model is estimated to take, against llama.cpp's own figures and the system's."""

import logging
import re
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.memory_estimate import measured
from specchat.app.footprint import context_that_fits, needed
from specchat.app.processor import Processor, this_processor
from specchat.app.requests import LoadOptions
from specchat.models.gguf_file import read_header
from specchat.models.llama import Context, Model
from specchat.models.locate import packaged_demo_model
from specchat.models.memory import ContextSettings, cache_bytes, estimate, largest_context, together
from tests.models.gguf_writing import write_gguf
from tests.tiny_models import TinyPair, write_tiny_model

SETTINGS = ContextSettings(size=512, chunk=128, rows=33)


def own_cache_mib(log: str) -> float:
    """What llama.cpp says that it allocated for caches."""
    return sum(float(size) for size in re.findall(r"KV buffer size = +([\d.]+) MiB", log))


@pytest.mark.parametrize("types", [("f16", "f16"), ("f32", "bf16")])
@pytest.mark.parametrize("size", [64, 512, 1000, 5000])
def test_the_cache_is_as_large_as_llama_cpp_makes_it(
    models: tuple[Model, Model],
    tiny_pair: TinyPair,
    caplog: pytest.LogCaptureFixture,
    size: int,
    types: tuple[str, str],
):
    caplog.set_level(logging.DEBUG, "specchat.llama.cpp")
    Context(models[0], size=size, threads=1, chunk=64, cache_type_k=types[0], cache_type_v=types[1]).close()
    settings = ContextSettings(size, 64, 33, *types)
    expected = cache_bytes(read_header(tiny_pair.target), settings)
    assert expected > 0
    assert own_cache_mib(caplog.text) == pytest.approx(expected / 2**20, abs=0.0051)


@pytest.mark.parametrize("types", [("f16", "f16"), ("q8_0", "q4_0"), ("q5_0", "q5_1"), ("q4_1", "f32")])
def test_the_cache_of_the_demo_model_is_as_large_as_llama_cpp_makes_it(
    caplog: pytest.LogCaptureFixture, types: tuple[str, str]
):
    caplog.set_level(logging.DEBUG, "specchat.llama.cpp")
    with Model(packaged_demo_model()) as model:
        Context(model, size=600, threads=1, cache_type_k=types[0], cache_type_v=types[1]).close()
    expected = cache_bytes(read_header(packaged_demo_model()), ContextSettings(600, 128, 33, *types))
    assert own_cache_mib(caplog.text) == pytest.approx(expected / 2**20, abs=0.0051)


@pytest.mark.parametrize("size", [512, 4096])
def test_the_demo_model_takes_what_was_estimated(size: int):
    path = packaged_demo_model()
    options = LoadOptions(str(path), ctx_size=size)
    (expected,) = needed([read_header(path)], options, this_processor())
    assert measured([path], options) == pytest.approx(expected.total, rel=0.1)


# Other builds than the plain one


def cache_of(path: Path, **extra: object) -> int:
    keys = {
        "attention.head_count": 4, "attention.head_count_kv": 2, "attention.key_length": 8,
        "attention.value_length": 4, **{key.replace("__", "."): value for key, value in extra.items()},
    }  # fmt: skip
    # Keys and values may differ in length there.
    write_gguf(path, architecture="mimo2", extra={f"mimo2.{key}": value for key, value in keys.items()})
    return cache_bytes(read_header(path), SETTINGS) // 512


A_LAYER = 2 * (8 + 4) * 2  # heads of K and V, half precision


@pytest.mark.parametrize(
    ("extra", "bytes_per_token"),
    [
        ({}, 2 * A_LAYER),
        ({"attention__head_count_kv": [2, 0]}, A_LAYER),
        ({"attention__head_count_kv": [4, 2]}, 3 * A_LAYER),
        ({"attention__shared_kv_layers": 1}, A_LAYER),
        ({"nextn_predict_layers": 1}, A_LAYER),
        ({"full_attention_interval": 2}, A_LAYER),
        ({"attention__key_length_mla": 8, "attention__value_length_mla": 4}, 2 * 2 * 8 * 2),
        ({"attention__sliding_window": 64}, 2 * A_LAYER),
        (
            {"attention__sliding_window_pattern": [True, False], "attention__key_length_swa": 16,
             "attention__value_length_swa": 16},
            A_LAYER + 2 * (16 + 16) * 2,
        ),
        ({"attention__sliding_window_pattern": 6, "attention__key_length_swa": 8}, 2 * A_LAYER),
    ],
)  # fmt: skip
def test_layers_differ_in_what_a_token_leaves_in_them(
    tmp_path: Path, extra: dict[str, object], bytes_per_token: int
):
    assert cache_of(tmp_path / "m.gguf", **extra) == bytes_per_token


def test_heads_that_nobody_tells_are_as_many_and_as_long_as_the_embedding_has_room_for(tmp_path: Path):
    header = read_header(write_gguf(tmp_path / "m.gguf", extra={"llama.attention.head_count": 4}))
    assert (header.shape.kv_heads, header.shape.key_length, header.shape.value_length) == (4, 2, 2)


def test_recurrent_layers_keep_a_state_that_does_not_grow(tmp_path: Path):
    keys = {
        "attention.head_count": 0, "ssm.state_size": 16, "ssm.inner_size": 32, "ssm.conv_kernel": 4,
    }  # fmt: skip
    path = write_gguf(
        tmp_path / "m.gguf",
        architecture="mamba",
        extra={f"mamba.{key}": value for key, value in keys.items()},
    )
    header = read_header(path)
    sizes = {cache_bytes(header, replace(SETTINGS, size=size)) for size in (512, 8192)}
    assert sizes == {2 * (3 * 32 + 16 * 32) * 4}


# What else counts


def test_an_embedding_that_is_the_output_too_counts_twice_where_that_is_stored_in_another_layout(
    tmp_path: Path,
):
    tied = read_header(write_gguf(tmp_path / "tied.gguf", rows=1000))
    apart = read_header(write_tiny_model(tmp_path / "apart.gguf"))
    assert not tied.has_output_matrix
    assert apart.has_output_matrix
    once, twice = (estimate(tied, SETTINGS, types).weights for types in ((), ("F32",)))
    assert twice - once == 8 * 1000 * 4
    assert estimate(apart, SETTINGS, ("F32",)) == estimate(apart, SETTINGS)


def test_a_draft_needs_fewer_logits_than_a_target(tiny_pair: TinyPair):
    headers = [read_header(tiny_pair.target), read_header(tiny_pair.draft)]
    target, draft = needed(headers, LoadOptions("", ctx_size=512), Processor("", frozenset()))
    assert (target.logits, draft.logits) == (33 * 259 * 4, 259 * 4)
    assert target.cache == draft.cache
    assert together([target, draft]) == target.total + draft.total


def test_the_context_is_the_targets_own_unless_another_is_asked_for(tiny_pair: TinyPair):
    header = read_header(tiny_pair.target)
    processor = Processor("", frozenset())
    own, asked = (needed([header], LoadOptions("", ctx_size=size), processor)[0] for size in (0, 2048))
    assert own == asked


@given(st.integers(64, 100_000), st.integers(0, 3000), st.integers(0, 10_000_000))
def test_the_context_that_fits_is_the_largest_that_does(most: int, per_token: int, available: int):
    def total_at(size: int) -> int:
        return 1_000_000 + -(-size // 256) * 256 * per_token

    size = largest_context(most, total_at, available)
    assert 0 <= size <= most
    if size:
        assert total_at(size) <= available
    if size < most:
        assert total_at(min(most, size + 256)) > available


def test_less_memory_makes_the_context_smaller_and_at_last_nothing(tiny_pair: TinyPair):
    headers = [read_header(tiny_pair.target), read_header(tiny_pair.draft)]
    options, processor = LoadOptions("", ctx_size=100_000), Processor("", frozenset())
    whole = together(needed(headers, options, processor))
    sizes = [
        context_that_fits(headers, options, processor, available)
        for available in (whole, whole - 1, whole // 2, 1000)
    ]
    assert sizes[0] == 100_000
    assert sizes[-1] == 0
    assert all(more > less for more, less in pairwise(sizes))
