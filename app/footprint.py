"""What a pair takes of memory with the contexts that it is given, told before anything is loaded."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ..models.gguf_file import GgufHeader
from ..models.memory import ContextSettings, MemoryEstimate, estimate, largest_context, together
from .events import ContextRole
from .processor import Processor
from .requests import MAX_DRAFT, LoadOptions

DEFAULT_CONTEXT = 8192

BRANCHES = 8
"""Branches that a draft tree may have."""

CPU_CHUNK, GPU_CHUNK = 128, 512
"""Prompt tokens per prefill pass. A processor takes about a second for so many, which is how long a
cancel waits; fixed, since the size of a pass may change how its results are rounded."""


def rows_of(role: ContextRole) -> int:
    """Rows of logits that a pass may give; each takes a vocabulary of them."""
    return MAX_DRAFT + 1 if role == "target" else 1


def context_size(asked: int, train_context: int) -> int:
    """Tokens of context for a target that was trained for so many, if not asked for otherwise."""
    return asked or min(DEFAULT_CONTEXT, train_context or DEFAULT_CONTEXT)


def needed(
    headers: Sequence[GgufHeader], options: LoadOptions, processor: Processor, chunk: int = CPU_CHUNK
) -> tuple[MemoryEstimate, ...]:
    """What each takes: the first header is the target's, any other a draft's. They keep their tokens."""
    size = context_size(options.ctx_size, headers[0].train_context)
    return tuple(
        estimate(
            header,
            ContextSettings(
                size,
                chunk,
                rows_of("target" if index == 0 else "draft"),
                options.cache_type_k,
                options.cache_type_v,
                options.flash_attn != "off",
                header.shape.rollback if index == 0 else 0,
            ),
            processor.repacked,
        )
        for index, header in enumerate(headers)
    )


def context_that_fits(
    headers: Sequence[GgufHeader],
    options: LoadOptions,
    processor: Processor,
    available: int,
    chunk: int = CPU_CHUNK,
) -> int:
    """The largest context, up to the one wanted, with which a target and its draft fit so many bytes.

    0 if the weights alone are too much.
    """

    def total_at(size: int) -> int:
        return together(needed(headers, replace(options, ctx_size=size), processor, chunk))

    return largest_context(context_size(options.ctx_size, headers[0].train_context), total_at, available)
