"""What a pair takes of memory with the contexts that it is given, told before anything is loaded."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from ..models.errors import LoadError
from ..models.gguf_file import GgufHeader
from ..models.gguf_layout import shown
from ..models.memory import ContextSettings, MemoryEstimate, estimate, largest_context, together
from .byte_counts import bytes_text
from .events import ContextRole
from .memory_room import Room, memory_room
from .processor import Processor, this_processor
from .requests import MAX_DRAFT, LoadOptions

DEFAULT_CONTEXT = 8192

_SPARE = 0.05
"""What is free changes by the moment; what is said to fit leaves this share of it."""

_LEAST_CONTEXT = 512
"""A shorter context is not worth proposing."""

BRANCHES = 8
"""Branches that a draft tree may have."""

CPU_CHUNK, GPU_CHUNK = 128, 512
"""Prompt tokens per prefill pass. A processor takes about a second for so many, which is how long a
cancel waits; fixed, since the size of a pass may change how its results are rounded."""


@dataclass(frozen=True)
class Machine:
    """What models are loaded on, as far as it limits them."""

    processor: Callable[[], Processor] = this_processor
    room: Callable[[], Room] = memory_room
    """For what is to be loaded."""


def rows_of(role: ContextRole) -> int:
    """Rows of logits that a pass may give; each takes a vocabulary of them."""
    return MAX_DRAFT + 1 if role == "target" else 1


def context_size(asked: int, train_context: int) -> int:
    """Tokens of context for a target that was trained for so many, if not asked for otherwise."""
    return asked or min(DEFAULT_CONTEXT, train_context or DEFAULT_CONTEXT)


def needed(
    headers: Sequence[GgufHeader], options: LoadOptions, processor: Processor
) -> tuple[MemoryEstimate, ...]:
    """What each takes: the first header is the target's, any other a draft's. They keep their tokens."""
    size = context_size(options.ctx_size, headers[0].train_context)
    return tuple(
        estimate(
            header,
            ContextSettings(
                size,
                CPU_CHUNK,
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
    headers: Sequence[GgufHeader], options: LoadOptions, processor: Processor, available: int
) -> int:
    """The largest context, up to the one wanted, with which a target and its draft fit so many bytes.

    0 if the weights alone are too much.
    """

    def total_at(size: int) -> int:
        return together(needed(headers, replace(options, ctx_size=size), processor))

    return largest_context(context_size(options.ctx_size, headers[0].train_context), total_at, available)


def must_fit(headers: Sequence[GgufHeader], options: LoadOptions, processor: Processor, room: Room) -> None:
    """Refuse a target, and perhaps its draft, that would take more bytes than there are.

    Raises:
        LoadError: they would; the message says what would fit.
    """
    total = together(needed(headers, options, processor))
    if total <= room.free:
        return
    size = context_size(options.ctx_size, headers[0].train_context)
    names = " with ".join(shown(Path(header.path.name)) for header in headers)
    raise LoadError(
        f"{too_little(f'{names} at {size:,} tokens', total, room)}; "
        f"{_what_fits(headers, options, processor, room.free)} (--no-memory-check loads it all the same)"
    )


def too_little(what: str, total: int, room: Room) -> str:
    """That it takes more than there is, in words that differ where the figures do."""
    alike = bytes_text(total) == bytes_text(room.free)
    takes = f"{total:,} bytes" if alike else bytes_text(total)
    return f"Not enough memory: {what} takes about {takes} and {room.told(to_the_byte=alike)}"


def _what_fits(
    headers: Sequence[GgufHeader], options: LoadOptions, processor: Processor, available: int
) -> str:
    """What could be loaded instead, and what that takes."""
    wanted = context_size(options.ctx_size, headers[0].train_context)
    room = int(available * (1.0 - _SPARE))
    for fewer in (headers, headers[:1]):
        size = context_that_fits(fewer, options, processor, room)
        if size >= min(wanted, _LEAST_CONTEXT):
            changes = ["without the draft"] if len(fewer) < len(headers) else []
            changes += [f"with --ctx-size {size}"] if size < wanted else []
            total = together(needed(fewer, replace(options, ctx_size=size), processor))
            return f"{' and '.join(changes)} it takes {bytes_text(total)}"
    return "a smaller quantization takes less"
