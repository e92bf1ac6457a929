"""What a loaded model takes of memory, estimated from its header as llama.cpp allocates it.

The weights are read into memory, never mapped, and the whole cache is written to when it is made: all of it
counts from the start. Where layers lie on a GPU, their part lies there.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

from .gguf_file import GgufHeader

_CACHE_BLOCKS = {
    "f32": (1, 4), "f16": (1, 2), "bf16": (1, 2), "q8_0": (32, 34),
    "q5_1": (32, 24), "q5_0": (32, 22), "q4_1": (32, 20), "q4_0": (32, 18),
}  # fmt: skip
"""Values and bytes of a block of each cache type."""

_CELLS = 256
"""llama.cpp rounds a context up to a multiple of this."""

_FLOAT, _HALF = 4, 2

# Seen with vocabularies of 49,000 to 262,000 tokens, in hash tables and texts of them.
_TOKEN, _MERGE, _VOCABULARY = 150, 115, 3_000_000

_GRAPHS = 7_000_000
"""The graphs of the passes, and what the threads work in."""


@dataclass(frozen=True)
class ContextSettings:
    """What decides how large a model's context becomes, beside the model."""

    size: int
    """In tokens."""
    chunk: int
    """The most tokens of a pass."""
    rows: int
    """The most rows of logits of a pass."""
    cache_type_k: str = "f16"
    cache_type_v: str = "f16"
    flash_attn: bool = True
    rollback: int = 0
    """States of recurrent layers that are kept beside the newest."""


@dataclass(frozen=True)
class MemoryEstimate:
    """Bytes of one loaded model with its context."""

    weights: int
    """With a second copy of an embedding that is stored in another layout where it serves as the output."""
    vocabulary: int
    cache: int
    compute: int
    """What passes work in."""
    logits: int

    @property
    def total(self) -> int:
        """All of it."""
        return self.weights + self.vocabulary + self.cache + self.compute + self.logits


def estimate(header: GgufHeader, settings: ContextSettings, repacked: Collection[str] = ()) -> MemoryEstimate:
    """What a model takes once it is loaded and has run a full pass.

    Args:
        header: With its tokens.
        settings: Of its context.
        repacked: ggml's names of the types that this processor stores in another layout.
    """
    return MemoryEstimate(
        weights=_weights(header, repacked),
        vocabulary=vocabulary_bytes(header),
        cache=cache_bytes(header, settings),
        compute=_passes(header, settings) + _GRAPHS,
        logits=settings.rows * header.vocabulary.size * _FLOAT,
    )


def cache_bytes(header: GgufHeader, settings: ContextSettings) -> int:
    """The bytes of a KV cache, and of the state of recurrent layers, exactly as llama.cpp makes them.

    A sliding window saves nothing here: its cache is as long as the others, so that it can be cut back.
    """
    a_cell = sum(
        _row(key, settings.cache_type_k) + _row(value, settings.cache_type_v)
        for key, value in header.shape.cache_widths
    )
    states = header.shape.state_values * (1 + settings.rollback)
    return _cells(settings.size) * a_cell + states * _FLOAT


def vocabulary_bytes(header: GgufHeader) -> int:
    """What the texts of the tokens and merges take, in hash tables and out of them."""
    # A byte-pair vocabulary has about as many merges as tokens.
    merges = header.vocabulary.size if header.vocabulary.family == "byte-pair" else 0
    return _VOCABULARY + header.vocabulary.size * _TOKEN + merges * _MERGE


def largest_context(most: int, total_at: Callable[[int], int], available: int) -> int:
    """The largest context of at most `most` tokens whose `total_at` fits what is available; 0 if none does.

    `total_at` never falls as the context grows.
    """
    if total_at(most) <= available:
        return most
    fitting, too_large = 0, -(-most // _CELLS)
    while too_large - fitting > 1:
        middle = (fitting + too_large) // 2
        if total_at(middle * _CELLS) <= available:
            fitting = middle
        else:
            too_large = middle
    return fitting * _CELLS


def together(estimates: Sequence[MemoryEstimate]) -> int:
    """The bytes of several models at once; they share nothing."""
    return sum(one.total for one in estimates)


def _weights(header: GgufHeader, repacked: Collection[str]) -> int:
    groups = header.tensors
    # Tokens are looked up in the plain layout, and the output is computed in the fast one.
    copied = () if header.has_output_matrix else [group for group in groups if group.part == "embedding"]
    return sum(group.size_bytes for group in groups) + sum(
        group.size_bytes for group in copied if group.type in repacked
    )


def _cells(size: int) -> int:
    return -(-size // _CELLS) * _CELLS


def _row(values: int, cache_type: str) -> int:
    block_values, block_bytes = _CACHE_BLOCKS[cache_type]
    return values * block_bytes // block_values


def _passes(header: GgufHeader, settings: ContextSettings) -> int:
    """The buffer of a pass's intermediate results: what its widest moment needs, as each reuses it."""
    shape, width = header.shape, header.embedding_length
    cells, tokens = _cells(settings.size), max(settings.chunk, settings.rows)
    heads = shape.heads * (shape.key_length + shape.value_length)
    kv_heads = shape.kv_heads * (shape.key_length + shape.value_length)
    scores = 0 if settings.flash_attn else shape.heads * cells
    feed_forward = max(1, shape.experts_used) * (
        3 * shape.feed_forward_length + (width if shape.experts else 0)
    )
    masks = cells * tokens * (_HALF if settings.flash_attn else _FLOAT) * (2 if shape.sliding_window else 1)
    layer = masks + tokens * _FLOAT * (4 * width + max(feed_forward, heads + kv_heads + scores))
    output = _FLOAT * (settings.rows * header.vocabulary.size + tokens * width * 3 // 2)
    return max(layer, output)
