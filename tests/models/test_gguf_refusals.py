"""Files that are refused in one line: no models, damaged ones, models that cannot chat."""

from __future__ import annotations

import os
import struct
import sys
import time
import tracemalloc
from pathlib import Path

import psutil
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from specchat.models.errors import ModelFileError
from specchat.models.gguf_file import read_header
from tests.models.gguf_writing import TOKENS, write_gguf


def refusal(path: Path | str, **arguments: bool) -> str:
    """The one line that refuses this file."""
    with pytest.raises(ModelFileError) as caught:
        read_header(path, **arguments)
    message = str(caught.value)
    assert message.isprintable()
    assert Path(path).name in message or not Path(path).name.isprintable()
    return message


def raw_gguf(path: Path, *parts: bytes, version: int = 3, tensors: int = 0, keys: int = 1) -> Path:
    path.write_bytes(b"GGUF" + struct.pack("<IQQ", version, tensors, keys) + b"".join(parts))
    return path


def text(value: bytes) -> bytes:
    return struct.pack("<Q", len(value)) + value


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux holds processes to this limit")
def test_where_memory_is_limited_the_limit_is_named(tmp_path: Path):
    import resource

    path = write_gguf(tmp_path / "large.gguf")
    os.truncate(path, 1 << 30)  # takes no room itself
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (psutil.Process().memory_info().vms + (1 << 28), hard))
    try:
        said = refusal(path)
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))
    assert said.endswith(
        "Cannot allocate memory; free some, or raise the limit that is set on it (ulimit -v)"
    )


# Files that are no models


def test_a_missing_file_is_refused_in_one_line(tmp_path: Path):
    assert refusal(tmp_path / "no.gguf").endswith("no.gguf does not exist; check the path")


def test_a_directory_is_refused_in_one_line(tmp_path: Path):
    assert "is a directory; name the .gguf file in it" in refusal(tmp_path)


def test_a_pipe_is_refused_without_waiting_for_it(tmp_path: Path):
    os.mkfifo(tmp_path / "pipe.gguf")

    assert "is not a regular file" in refusal(tmp_path / "pipe.gguf")


def test_an_unreadable_file_says_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    path = write_gguf(tmp_path / "m.gguf")

    def refuse(*_: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "open", refuse)
    assert "cannot be read: Permission denied" in refusal(path)


def test_impossible_paths_are_refused(tmp_path: Path):
    assert "cannot be read" in refusal("a\0b.gguf")
    assert "cannot be read" in refusal(tmp_path / ("x" * 5000))
    assert "does not exist" in refusal(tmp_path / "two\nlines.gguf")


def test_an_empty_file_is_refused(tmp_path: Path):
    (tmp_path / "m.gguf").touch()

    assert "is empty; download it again" in refusal(tmp_path / "m.gguf")


def test_a_text_file_named_gguf_is_refused_in_one_line(tmp_path: Path):
    (tmp_path / "notes.gguf").write_text("Dear diary,\ntoday é.\n" * 200)

    assert "is no GGUF model: it is a text file; name the model itself" in refusal(tmp_path / "notes.gguf")


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:0\n", "git lfs pull"),
        (b"\n<!DOCTYPE html><html><body>404", "it is a web page"),
        (b"tjgg\x03\0\0\0", "legacy GGML"),
        (struct.pack("<Q", 900) + b'{"__metadata__":{}}', "safetensors"),
        (b"PK\x03\x04rest", "archive or a PyTorch checkpoint"),
        (bytes(600), "nothing but zeros"),
        (bytes(range(256)), "first four bytes are not 'GGUF'"),
        (b"GG", "it is a text file"),
    ],
)
def test_what_else_a_file_is_gets_said(tmp_path: Path, content: bytes, told: str):
    (tmp_path / "m.gguf").write_bytes(content)

    assert told in refusal(tmp_path / "m.gguf")


def test_a_big_endian_file_is_refused(tmp_path: Path):
    path = tmp_path / "m.gguf"
    path.write_bytes(b"GGUF" + struct.pack(">IQQ", 3, 0, 0))

    assert "is a big-endian GGUF" in refusal(path)


def test_versions_that_llama_cpp_cannot_read_are_refused(tmp_path: Path):
    assert "is GGUF version 1, and versions 2 and 3" in refusal(raw_gguf(tmp_path / "m.gguf", version=1))
    assert "is GGUF version 4" in refusal(raw_gguf(tmp_path / "m.gguf", version=4))


# Files that are cut off or damaged


def test_a_file_cut_off_in_its_weights_says_how_much_is_missing(tmp_path: Path):
    path = write_gguf(tmp_path / "m.gguf", rows=1000)
    whole = path.read_bytes()
    path.write_bytes(whole[:-20_000])

    assert f"has {len(whole) - 20_000:,} of {len(whole):,} bytes, 20,000 are missing" in refusal(path)


def test_a_file_cut_off_in_its_header_is_refused_wherever_the_cut_is(tmp_path: Path):
    whole = write_gguf(tmp_path / "m.gguf").read_bytes()
    cut = tmp_path / "cut.gguf"
    for length in range(4, len(whole) - 32, 97):
        cut.write_bytes(whole[:length])
        message = refusal(cut)
        assert "cut off" in message or "are missing" in message


@pytest.mark.parametrize(
    "parts",
    [
        (text(b"k"), struct.pack("<IIQ", 9, 8, 1 << 60)),
        (text(b"k"), struct.pack("<IIQ", 9, 8, 3_000_000)),
        (text(b"k"), struct.pack("<IIQ", 9, 4, 1 << 62)),
        (text(b"k"), struct.pack("<IQ", 8, (1 << 64) - 1)),
        (struct.pack("<Q", (1 << 63) - 20),),
        (text(b"tokenizer.ggml.tokens"), struct.pack("<IIQQ", 9, 8, 2, (1 << 64) - 60)),
    ],
)
def test_hostile_lengths_are_refused_at_once(tmp_path: Path, parts: tuple[bytes, ...]):
    path = raw_gguf(tmp_path / "m.gguf", *parts, bytes(100))

    started = time.process_time()
    refusal(path)
    assert time.process_time() - started < 0.5


_GIB, _LONGEST = 1 << 30, 1 << 24


def _distinct(number: int, length: int) -> list[bytes | int]:
    """The length of a text and its first bytes, then as many zeros as it has more."""
    return [struct.pack("<QI", length, number), length - 4]


@pytest.mark.parametrize(
    ("counts", "parts"),
    [
        ({}, [text(b"tokenizer.ggml.tokens"), struct.pack("<IIQQ", 9, 8, 1, 5 * _GIB)]),
        (
            {},
            [
                text(b"tokenizer.ggml.tokens"),
                struct.pack("<IIQ", 9, 8, 500),
                *(part for number in range(500) for part in _distinct(number, _LONGEST)),
            ],
        ),
        ({}, [text(b"tokenizer.ggml.tokens"), struct.pack("<IIQ", 9, 8, 4_000_000)]),
        (
            {"keys": 500},
            [
                part
                for number in range(500)
                for part in (text(b"%d" % number), struct.pack("<IQ", 8, _LONGEST), _LONGEST)
            ],
        ),
        (
            {"keys": 500},
            [
                part
                for number in range(500)
                for part in (*_distinct(number, _LONGEST), struct.pack("<II", 4, 1))
            ],
        ),
        (
            {"keys": 6_000},
            [
                part
                for number in range(6_000)
                for part in (text(b"%d" % number), struct.pack("<IIQ", 9, 11, 1024), 8192)
            ],
        ),
        (
            {"keys": 0, "tensors": 500},
            [
                part
                for number in range(500)
                for part in (*_distinct(number, _LONGEST), struct.pack("<IQIQ", 1, 32, 0, 0))
            ],
        ),
    ],
    ids=["one token", "long tokens", "many tokens", "texts", "names of keys", "lists", "names of tensors"],
)
def test_a_header_of_gigabytes_is_damage_and_takes_little_memory(
    tmp_path: Path, counts: dict[str, int], parts: list[bytes | int]
):
    path = raw_gguf(tmp_path / "m.gguf", **counts)
    with path.open("r+b") as file:
        file.seek(0, os.SEEK_END)
        for part in parts:
            if isinstance(part, int):
                file.seek(part, os.SEEK_CUR)  # a hole, which takes no room on the disk
            else:
                file.write(part)
        file.truncate(20 * _GIB)

    tracemalloc.start()
    try:
        message = refusal(path)
        most = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()

    assert message.endswith("download it again")
    assert most < 150_000_000


@pytest.mark.parametrize("counts", [{"keys": 1 << 60}, {"tensors": 1 << 60}, {"tensors": 100, "keys": 0}])
def test_hostile_counts_are_refused_at_once(tmp_path: Path, counts: dict[str, int]):
    path = raw_gguf(tmp_path / "m.gguf", bytes(200), **counts)

    started = time.process_time()
    refusal(path)
    assert time.process_time() - started < 0.5


@pytest.mark.parametrize(
    ("parts", "told"),
    [
        ((text(b"k"), struct.pack("<I", 77)), "unknown type 77"),
        ((text(b"k"), struct.pack("<IIQ", 9, 9, 0)), "array of the unknown type 9"),
        ((text(b"general.alignment"), struct.pack("<II", 4, 24)), "not a power of two"),
        ((text(b"general.architecture"), struct.pack("<II", 4, 24)), "'general.architecture' is no text"),
    ],
)
def test_keys_that_no_model_has_are_damage(tmp_path: Path, parts: tuple[bytes, ...], told: str):
    message = refusal(raw_gguf(tmp_path / "m.gguf", *parts))

    assert told in message
    assert message.endswith("download it again")


def test_a_key_that_comes_twice_is_damage(tmp_path: Path):
    key = text(b"k") + struct.pack("<II", 4, 1)

    assert "'k' comes twice" in refusal(raw_gguf(tmp_path / "m.gguf", key, key, keys=2))


@pytest.mark.parametrize(
    ("extra", "told"),
    [
        ({"llama.attention.causal": 1}, "neither true nor false"),
        ({"llama.pooling_type": "mean"}, "no whole number"),
        ({"split.count": True}, "no whole number"),
    ],
)
def test_a_key_of_the_wrong_type_is_damage(tmp_path: Path, extra: dict[str, object], told: str):
    assert told in refusal(write_gguf(tmp_path / "m.gguf", extra=extra))


@pytest.mark.parametrize("number", [float("nan"), float("inf"), float("-inf")])
def test_a_number_that_is_none_is_refused(tmp_path: Path, number: float):
    path = write_gguf(tmp_path / "odd.gguf", extra={"llama.rope.freq_base": number})
    assert "its key 'llama.rope.freq_base' is no number" in refusal(path)


@pytest.fixture(scope="module")
def small_model(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    path = tmp_path_factory.mktemp("models") / "m.gguf"
    return write_gguf(path, template="{{ messages }}", tokens=TOKENS[-8:], bos=5, eos=7, rows=4).read_bytes()


@settings(max_examples=400, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    changes=st.lists(
        st.tuples(st.floats(0, 1, exclude_max=True), st.one_of(st.binary(max_size=9), st.just(b"\xff" * 8))),
        max_size=4,
    ),
    kept=st.one_of(st.just(1.0), st.floats(0, 1)),
    weights=st.booleans(),
)
def test_no_change_of_bytes_makes_the_reader_fail_in_another_way(
    tmp_path: Path, small_model: bytes, changes: list[tuple[float, bytes]], kept: float, weights: bool
):
    content = bytearray(small_model)
    for place, new in changes:
        start = int(place * len(content))
        content[start : start + len(new)] = new
    path = tmp_path / "changed.gguf"
    path.write_bytes(content[: int(kept * len(content))])

    try:
        header = read_header(path, weights=weights)
        shown = header.name + header.quantization
    except ModelFileError as error:
        shown = str(error)
    assert shown.isprintable()


# Files that hold no chat model


@pytest.mark.parametrize(
    ("architecture", "extra", "told"),
    [
        ("bert", {}, "is an embedding model"),
        ("nomic-bert-moe", {}, "is an embedding model"),
        ("gemma-embedding", {}, "is an embedding model"),
        ("qwen3", {"qwen3.pooling_type": 3}, "is an embedding model"),
        ("llama", {"llama.attention.causal": False}, "is an embedding model"),
        ("clip", {}, "image or sound part"),
        ("llama", {"general.type": "mmproj"}, "image or sound part"),
        ("llama", {"general.type": "adapter"}, "is a LoRA adapter"),
        ("llama", {"general.type": "imatrix"}, "is an importance matrix"),
        ("eagle3", {}, "speculative head"),
        ("llada", {}, "diffusion model"),
        ("t5", {}, "encoder-decoder"),
    ],
)
def test_what_cannot_hold_a_conversation_is_refused_by_what_it_is(
    tmp_path: Path, architecture: str, extra: dict[str, object], told: str
):
    message = refusal(write_gguf(tmp_path / "m.gguf", architecture=architecture, extra=extra))

    assert told in message
    assert message.endswith("choose a chat model")


def test_a_chat_model_that_says_it_does_not_pool_is_read(tmp_path: Path):
    extra = {"llama.pooling_type": 0, "llama.attention.causal": True, "general.type": "model"}

    assert read_header(write_gguf(tmp_path / "m.gguf", extra=extra)).architecture == "llama"


def test_a_model_without_a_vocabulary_is_refused(tmp_path: Path):
    assert "holds no vocabulary" in refusal(write_gguf(tmp_path / "m.gguf", tokens=()))
    assert "holds no vocabulary" in refusal(write_gguf(tmp_path / "n.gguf", kind=None))


def test_a_gguf_without_an_architecture_is_refused(tmp_path: Path):
    assert "names no architecture" in refusal(raw_gguf(tmp_path / "m.gguf", keys=0))


def test_a_header_alone_is_enough_where_weights_are_not_asked_for(tmp_path: Path):
    path = write_gguf(tmp_path / "vocabulary.gguf", rows=None)

    assert "holds a vocabulary and no weights" in refusal(path)
    assert read_header(path, weights=False).vocabulary.size == len(TOKENS)
