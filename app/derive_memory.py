"""What making a draft takes of memory, told before it begins."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from ..models.derived import Recipe
from ..models.errors import LoadError
from ..models.gguf_file import GgufHeader
from ..models.gguf_layout import shown
from ..models.memory import estimate, vocabulary_bytes
from ..models.quantizing import BUFFERS, FILE_TYPES
from ..models.tensors import TensorGroup, block_named
from .byte_counts import bytes_text
from .footprint import Machine, too_little
from .loading import in_main_memory
from .own_text import context_settings
from .processor import Processor
from .quant_search import CANDIDATES, FINALISTS
from .requests import LoadOptions

_FLOATS = 8
"""Bytes that a value takes at the most while it is requantized, in its old and its new form."""


def quantizer_bytes(header: GgufHeader) -> int:
    """What writing a draft takes; the source is mapped, and its pages are the system's to take back."""
    return min(BUFFERS, _FLOATS * header.parameters) + vocabulary_bytes(header)


def search_bytes(
    header: GgufHeader, recipe: Recipe, processor: Processor, size: int, *, finds_quant: bool
) -> int:
    """What a search takes at its widest moment: the source beside the drafts that are timed together.

    Args:
        header: Of the source, which keeps its tokens.
        recipe: What of the draft's recipe is said.
        processor: What the models run on.
        size: Tokens of their contexts.
        finds_quant: Whether quantizations are tried, the quickest few at last in turns.
    """

    def loaded(one: GgufHeader) -> int:
        return estimate(one, context_settings(size), processor.repacked).total

    if finds_quant:
        sizes = sorted(loaded(requantized(header, candidate)) for candidate in CANDIDATES)
        drafts = sum(sizes[-FINALISTS:])
    else:
        drafts = loaded(requantized(header, recipe))
    return loaded(header) + max(drafts, quantizer_bytes(header))


def requantized(header: GgufHeader, recipe: Recipe) -> GgufHeader:
    """A header as a recipe's quantization makes it, all of its layers kept."""
    if not recipe.quant:
        return header
    output = "output" if header.has_output_matrix else "embedding"
    return replace(
        header,
        tensors=tuple(
            group
            if group.part == "norms"
            else _stored_as(
                group,
                recipe.output if recipe.output and group.part == output else FILE_TYPES[recipe.quant].tensors,
            )
            for group in header.tensors
        ),
    )


def refuse_search_without_room(
    header: GgufHeader,
    recipe: Recipe,
    machine: Machine,
    size: int,
    *,
    finds_quant: bool,
    gpu_layers: int,
) -> None:
    """Say so where drafts of a model cannot be measured for want of memory.

    Raises:
        LoadError: They cannot.
    """
    if not in_main_memory(header, None, LoadOptions(str(header.path), gpu_layers=gpu_layers)):
        return
    takes = search_bytes(header, recipe, machine.processor(), size, finds_quant=finds_quant)
    room = machine.room()
    if takes > room.free:
        name = shown(Path(header.path.name))
        raise LoadError(
            f"{too_little(f'measuring drafts of {name}', takes, room)}; --quant TYPE and "
            f"--skip-layers LIST measure nothing and take {bytes_text(quantizer_bytes(header))} "
            "(--no-memory-check goes on all the same)"
        )


def refuse_making_without_room(header: GgufHeader, machine: Machine) -> None:
    """Say so where a draft cannot be written for want of memory.

    Raises:
        LoadError: It cannot.
    """
    takes, room = quantizer_bytes(header), machine.room()
    if takes > room.free:
        name = shown(Path(header.path.name))
        raise LoadError(
            f"{too_little(f'making a draft of {name}', takes, room)} (--no-memory-check goes on all the same)"
        )


def _stored_as(group: TensorGroup, type_name: str) -> TensorGroup:
    values, size = block_named(type_name)
    return replace(group, type=type_name, size_bytes=group.parameters * size // values)
