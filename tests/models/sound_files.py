"""Sound files of every architecture and vocabulary that are tested, for hostile ones to be made from."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from tests.models.header_bytes import Header, Key, bases_of
from tests.models.small_models import ARCHITECTURES, write_small_model
from tests.tiny_architectures import VocabularyKind, write_tiny_architecture

_LARGER = ("qwen3moe", "jamba", "lfm2", "lfm2moe", "nemotron_h", "qwen35", "qwen35moe", "t5", "bert")
_VOCABULARIES: dict[str, VocabularyKind] = {
    "llama-of-unigrams": "t5",
    "llama-of-rwkv": "rwkv",
    "llama-of-word-pieces": "bert",
}
REFUSED = frozenset({"t5", "bert", "llama-of-word-pieces"})
"""Kinds that hold no conversation."""

_ALL_BYTES = ("gemma3", "phi3")

_U16, _I32 = 2, 5

_SMALL_SHARE, _LARGER_SHARE, _REFUSED_SHARE = 6, 2, 1


def write_sound_files(folder: Path, *, layers: int = 2, tokens: int | None = None) -> dict[str, Path]:
    """Write one of each kind; the small ones have so many layers, and few tokens where that is told and their
    vocabularies need not have all bytes."""
    written = {
        kind: write_small_model(
            folder / f"{kind}.gguf", kind, layers=layers, tokens=None if kind in _ALL_BYTES else tokens
        )
        for kind in ARCHITECTURES
    }
    for kind in _LARGER:
        written[kind] = write_tiny_architecture(folder / f"{kind}.gguf", kind, tied=True)
    for kind, vocabulary in _VOCABULARIES.items():
        path = folder / f"{kind}.gguf"
        written[kind] = write_tiny_architecture(path, "llama", vocabulary=vocabulary, tied=True)
    return written


def weighted_bases(written: Mapping[str, Path]) -> tuple[Header, ...]:
    """Their structures, the cheaper ones more often, and least often those that are refused as they are."""
    return tuple(base for kind, path in written.items() for base in bases_of(path) * _share(kind))


def _share(kind: str) -> int:
    if kind in REFUSED:
        return _REFUSED_SHARE
    return _SMALL_SHARE if kind in ARCHITECTURES else _LARGER_SHARE


def split_over(base: Header, parts: int) -> list[Header]:
    """A file as llama.cpp splits it over several: only the first has more keys than those of the split."""
    each = -(-len(base.tensors) // parts)
    return [part_of_split(base, number, parts, each) for number in range(parts)]


def part_of_split(base: Header, number: int, parts: int, each: int) -> Header:
    """One of these parts, with so many tensors."""
    split = (
        Key(b"split.no", _U16, number),
        Key(b"split.count", _U16, parts),
        Key(b"split.tensors.count", _I32, len(base.tensors)),
    )
    tensors = base.tensors[number * each : (number + 1) * each]
    return Header((*(base.keys if number == 0 else ()), *split), tensors, data=b"")
