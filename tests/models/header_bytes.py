"""A small model of a GGUF file, read from its bytes and written as bytes, whatever it claims."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from functools import cached_property
from math import prod
from pathlib import Path

from gguf.constants import GGML_QUANT_SIZES

STRING, ARRAY = 8, 9
"""GGUF's numbers for the types of values; the others are those of `FORMS`."""

FORMS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "B", 10: "Q", 11: "q", 12: "d"}
_WIDTHS = {kind: struct.calcsize(form) for kind, form in FORMS.items()}
_BLOCKS = {int(kind): block for kind, block in GGML_QUANT_SIZES.items()}
_LARGEST_DATA = 1 << 20
ALL = 1 << 64

Scalar = int | float | bytes


@dataclass(frozen=True)
class Key:
    """One key and its value; the lengths and counts it claims may be lies."""

    name: bytes
    kind: int
    value: Scalar | tuple[Scalar, ...]
    element: int = 4
    claimed_count: int | None = None
    claimed_length: int | None = None
    """Of its text, or of its name where it has none."""

    @cached_property
    def content(self) -> bytes:
        """Its bytes."""
        return b"".join(_key_bytes(self))


@dataclass(frozen=True)
class TensorRow:
    """One row of the table of tensors."""

    name: bytes
    shape: tuple[int, ...]
    kind: int
    offset: int = 0
    dimensions: int | None = None


@dataclass(frozen=True)
class Header:
    """A whole file."""

    keys: tuple[Key, ...]
    tensors: tuple[TensorRow, ...]
    data: bytes
    version: int = 3
    key_count: int | None = None
    tensor_count: int | None = None
    alignment: int = 32
    laid_out: bool = True
    """Whether the weights are given room as the table says, so that only what it says can be wrong."""

    def index(self, name: str) -> int | None:
        """Where the key of this name is."""
        return next((i for i, key in enumerate(self.keys) if key.name == name.encode()), None)


def parse(content: bytes) -> Header:
    """The structure of a sound file."""
    at = 4

    def take(form: str) -> int:
        nonlocal at
        at += struct.calcsize(form)
        return struct.unpack_from("<" + form, content, at - struct.calcsize(form))[0]

    def text() -> bytes:
        nonlocal at
        length = take("Q")
        at += length
        return content[at - length : at]

    def scalar(kind: int) -> Scalar:
        return text() if kind == STRING else take(FORMS[kind])

    version, tensor_count, key_count = take("I"), take("Q"), take("Q")
    keys: list[Key] = []
    for _ in range(key_count):
        name, kind = text(), take("I")
        if kind == ARRAY:
            element, count = take("I"), take("Q")
            keys.append(Key(name, kind, tuple(scalar(element) for _ in range(count)), element))
        else:
            keys.append(Key(name, kind, scalar(kind)))
    tensors = tuple(
        TensorRow(text(), tuple(take("Q") for _ in range(take("I"))), take("I"), take("Q"))
        for _ in range(tensor_count)
    )
    data = content[(at + 31) // 32 * 32 :]
    return Header(tuple(keys), tensors, data, version)


def header_bytes(header: Header) -> bytes:
    """The file."""
    parts = [
        b"GGUF",
        struct.pack(
            "<IQQ",
            header.version & 0xFFFFFFFF,
            len(header.tensors) if header.tensor_count is None else header.tensor_count,
            len(header.keys) if header.key_count is None else header.key_count,
        ),
    ]
    parts += [key.content for key in header.keys]
    offset, size = 0, 0
    for tensor in header.tensors:
        stated = tensor.offset
        if header.laid_out:
            stated = offset
            offset = _aligned(offset + _bytes_of(tensor), header.alignment)
            size = offset
        count = len(tensor.shape) if tensor.dimensions is None else tensor.dimensions
        parts.append(struct.pack("<Q", len(tensor.name)) + tensor.name)
        parts.append(
            struct.pack(f"<I{len(tensor.shape)}QIQ", count, *tensor.shape, tensor.kind, stated % ALL)
        )
    length = sum(map(len, parts))
    parts.append(bytes(_aligned(length, min(header.alignment, 1 << 16)) - length))
    data = header.data
    if header.laid_out and len(data) < size <= _LARGEST_DATA:
        data += bytes(size - len(data))
    return b"".join([*parts, data])


def _key_bytes(key: Key) -> list[bytes]:
    lie = key.claimed_length
    name_length = len(key.name) if lie is None or key.kind == STRING else lie
    parts = [_packed(10, name_length), key.name, _packed(4, key.kind)]
    if isinstance(key.value, tuple):
        count = len(key.value) if key.claimed_count is None else key.claimed_count
        if key.kind == ARRAY:
            parts += [_packed(4, key.element), _packed(10, count)]
        return parts + [_scalar_bytes(key.element, value) for value in key.value]
    if key.kind == STRING and isinstance(key.value, bytes):
        return [*parts, _packed(10, len(key.value) if lie is None else lie), key.value]
    return [*parts, _scalar_bytes(key.kind, key.value)]


def _scalar_bytes(kind: int, value: Scalar) -> bytes:
    if kind == STRING:
        text = value if isinstance(value, bytes) else str(value).encode()
        return _packed(10, len(text)) + text
    if isinstance(value, bytes):
        return value[: _WIDTHS.get(kind, 4)].ljust(_WIDTHS.get(kind, 4), b"\0")
    return _packed(kind, value)


def _packed(kind: int, value: float) -> bytes:
    """A number in so many bytes, cut to what fits."""
    form = FORMS.get(kind, "I")
    if form in "fd":
        try:
            return struct.pack("<" + form, value)
        except OverflowError:
            return struct.pack("<" + form, float("inf"))
    width = struct.calcsize(form)
    whole = int(value) if value == value and abs(value) != float("inf") else 0
    return (whole & ((1 << (8 * width)) - 1)).to_bytes(width, "little")


def _aligned(size: int, alignment: int) -> int:
    return (size + alignment - 1) // alignment * alignment


def _bytes_of(tensor: TensorRow) -> int:
    values, size = _BLOCKS.get(tensor.kind, (1, 4))
    return prod(tensor.shape) // values * size


def bases_of(*paths: Path) -> tuple[Header, ...]:
    """The structures of sound files."""
    return tuple(parse(path.read_bytes()) for path in paths)
