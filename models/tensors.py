"""What a model's weights are stored as: how many tensors of which part are in which of ggml's types."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from .gguf_layout import Tensor

Part = Literal["embedding", "attention", "feed-forward", "experts", "recurrent", "norms", "output", "other"]

# The first that is found in a name decides; norms of a part are norms.
_PARTS: tuple[tuple[Part, re.Pattern[str]], ...] = (
    ("norms", re.compile(r"norm")),
    ("embedding", re.compile(r"^(token_embd|position_embd|token_types|per_layer_token_embd)\.")),
    ("output", re.compile(r"^output\.")),
    ("recurrent", re.compile(r"\.(ssm|shortconv|time_mix|channel_mix)_?")),
    ("experts", re.compile(r"\.ffn_.*exp")),
    ("feed-forward", re.compile(r"\.ffn_")),
    ("attention", re.compile(r"\.(attn|cross_attn|indexer)_?")),
    ("other", re.compile("")),
)


@dataclass(frozen=True)
class TensorGroup:
    """The tensors of one part of a model that are stored as one type."""

    part: Part
    type: str
    """ggml's name: "Q4_K"."""
    count: int
    parameters: int
    size_bytes: int


def grouped(tensors: Iterable[Tensor]) -> tuple[TensorGroup, ...]:
    """The tensors by part and type, in the order in which a model computes, the largest type first."""
    groups: dict[tuple[Part, str], TensorGroup] = {}
    for tensor in tensors:
        part, kind = part_of(tensor.name), type_name(tensor.kind)
        old = groups.get((part, kind), TensorGroup(part, kind, 0, 0, 0))
        groups[part, kind] = TensorGroup(
            part,
            kind,
            old.count + 1,
            old.parameters + tensor.elements,
            old.size_bytes + (size_of(tensor) or 0),
        )
    order: list[Part] = [
        "embedding", "attention", "feed-forward", "experts", "recurrent", "output", "norms", "other",
    ]  # fmt: skip
    return tuple(sorted(groups.values(), key=lambda group: (order.index(group.part), -group.size_bytes)))


def part_of(name: str) -> Part:
    """Which part of a model a tensor of this name is."""
    return next(part for part, pattern in _PARTS if pattern.search(name))


def type_name(kind: int) -> str:
    """ggml's name for how values are quantized; one newer than the gguf package is told by its number."""
    # gguf brings numpy, and a plain import of this module is to stay cheap.
    from gguf.constants import GGMLQuantizationType

    try:
        return GGMLQuantizationType(kind).name
    except ValueError:
        return f"type {kind}"


def block_of(kind: int) -> tuple[int, int] | None:
    """How many values one block of a type has, and how many bytes; `None` where the type is unknown here."""
    from gguf.constants import GGML_QUANT_SIZES, GGMLQuantizationType

    try:
        return GGML_QUANT_SIZES[GGMLQuantizationType(kind)]
    except (KeyError, ValueError):
        return None


def block_named(name: str) -> tuple[int, int]:
    """The same of a type by ggml's name for it, which is known here."""
    from gguf.constants import GGML_QUANT_SIZES, GGMLQuantizationType

    return GGML_QUANT_SIZES[GGMLQuantizationType[name]]


def size_of(tensor: Tensor) -> int | None:
    """A tensor's bytes; `None` where its type is unknown here."""
    block = block_of(tensor.kind)
    return None if block is None else tensor.elements // block[0] * block[1]
