"""What a header says."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from specchat.models.gguf_file import read_header
from tests.models.gguf_writing import TOKENS, write_gguf


def test_a_header_is_read_whole(tmp_path: Path):
    path = write_gguf(
        tmp_path / "tiny.gguf",
        template="{{ messages }}",
        basename="Tiny",
        file_type=15,
        extra={"general.organization": "Makers"},
    )

    header = read_header(path)

    assert header.path == path
    assert header.size_bytes == path.stat().st_size
    assert (header.architecture, header.name, header.basename) == ("llama", "Tiny 1M Instruct", "Tiny")
    assert header.organisation == "Makers"
    assert header.quantization == "Q4_K_M"
    assert header.parameters == 8 * 16 + 8
    assert (header.train_context, header.block_count, header.embedding_length) == (128, 2, 8)
    assert header.chat_template == "{{ messages }}"
    assert header.vocabulary.tokens == tuple(token.encode() for token in TOKENS)
    assert header.vocabulary.size == len(TOKENS)
    assert (header.vocabulary.bos_text, header.vocabulary.eos_text) == ("<|endoftext|>", "<|im_end|>")
    assert "<|im_start|>" in header.vocabulary
    assert "<|eot_id|>" not in header.vocabulary


def test_a_header_without_the_optional_keys_is_read(tmp_path: Path):
    path = write_gguf(
        tmp_path / "plain.gguf", name=None, context=None, file_type=None, pre=None, bos=None, eos=None
    )

    header = read_header(path)

    assert (header.name, header.train_context, header.chat_template) == ("plain", 0, None)
    assert header.quantization == "F32"
    assert header.vocabulary.pre == "default"


@pytest.mark.parametrize(
    ("kind", "pre", "add_bos", "add_eos"),
    [
        ("llama", "default", True, False),
        ("gpt2", "qwen2", False, False),
        ("gpt2", "llama-bpe", True, False),
        ("gpt2", "tekken", True, False),
        ("t5", "default", False, True),
        ("gemma4", "default", True, False),
        ("unheard-of", "default", False, False),
    ],
)
def test_absent_add_keys_mean_what_llama_cpp_takes_them_to_mean(
    tmp_path: Path, kind: str, pre: str, add_bos: bool, add_eos: bool
):
    vocabulary = read_header(
        write_gguf(tmp_path / "m.gguf", kind=kind, pre=pre, add_bos=None, add_eos=None)
    ).vocabulary

    assert (vocabulary.add_bos, vocabulary.add_eos) == (add_bos, add_eos)


@pytest.mark.parametrize(
    ("kind", "pre", "bos", "eos"),
    [
        ("llama", "default", 1, 2),
        ("gpt2", "gpt-2", 11, 11),
        ("gpt2", "glm4", None, 11),
        ("t5", "default", None, 1),
        ("rwkv", "default", None, None),
    ],
)
def test_absent_special_tokens_are_those_of_the_kind(
    tmp_path: Path, kind: str, pre: str, bos: int | None, eos: int | None
):
    vocabulary = read_header(
        write_gguf(tmp_path / "m.gguf", kind=kind, pre=pre, bos=None, eos=None)
    ).vocabulary

    assert (vocabulary.bos, vocabulary.eos) == (bos, eos)


def test_a_special_token_outside_the_vocabulary_counts_as_absent(tmp_path: Path):
    vocabulary = read_header(write_gguf(tmp_path / "m.gguf", kind="llama", bos=5000, eos=5000)).vocabulary

    assert (vocabulary.bos, vocabulary.eos) == (1, 2)


def test_quantization_falls_back_to_the_commonest_type_when_the_file_type_is_unknown(tmp_path: Path):
    assert read_header(write_gguf(tmp_path / "m.gguf", file_type=999)).quantization == "F32"
    assert read_header(write_gguf(tmp_path / "g.gguf", file_type=1024 | 7)).quantization == "Q8_0"


def test_names_out_of_a_file_cannot_move_the_cursor(tmp_path: Path):
    header = read_header(write_gguf(tmp_path / "m.gguf", name="evil\x1b[2J\nname"))

    assert header.name == "evil [2J name"


def test_importing_the_reader_imports_neither_numpy_nor_gguf():
    program = (
        "import sys, specchat.models.gguf_file\n"
        "print([name for name in ('numpy', 'gguf', 'llama_cpp', 'jinja2') if name in sys.modules])"
    )
    printed = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    ).stdout

    assert printed.strip() == "[]"
