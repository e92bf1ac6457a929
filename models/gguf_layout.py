"""How a GGUF file is laid out: its keys and its table of tensors, read without touching the weights."""

from __future__ import annotations

import codecs
import errno
import mmap
import stat
import struct
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from math import prod
from pathlib import Path

from .errors import ModelFileError
from .text import is_plain

Value = bool | int | float | str | tuple[bytes, ...] | tuple[int, ...]

TOKENS_KEY = "tokenizer.ggml.tokens"

_MAGIC = b"GGUF"
_STRING, _ARRAY = 8, 9
_SCALARS = {
    code: struct.Struct("<" + form)
    for code, form in ((0, "B"), (1, "b"), (2, "H"), (3, "h"), (4, "I"), (5, "i"), (6, "f"), (7, "?"))
} | {10: struct.Struct("<Q"), 11: struct.Struct("<q"), 12: struct.Struct("<d")}
_U32, _U64 = _SCALARS[4], _SCALARS[10]
_FRACTIONS = (6, 12)

# Far above what any model has; a number beyond them is damage, and refusing it costs no walk and no memory.
_MOST_KEYS = 65_536
_MOST_STRINGS = 4_194_304
_MOST_TENSORS = 65_536
_LONGEST_TEXT = 16_777_216
_MOST_DIMENSIONS = 4
_MOST_KEPT = 67_108_864
"""Bytes of memory for all keys, names, texts, tokens and lists of one file together."""
_KEPT_OF_A_TOKEN = 48
"""Bytes of memory for a token beside its own; for a number in a list a little less."""

_LONGEST_LIST = 1024
"""Of lists of numbers those are kept that may have one for each layer."""


@dataclass(frozen=True)
class Tensor:
    """One row of a file's table of tensors."""

    name: str
    shape: tuple[int, ...]
    kind: int
    """ggml's number for how its values are quantized."""
    offset: int
    """In bytes from the start of the file."""

    @property
    def elements(self) -> int:
        """How many values it holds."""
        return prod(self.shape)


@dataclass(frozen=True)
class Layout:
    """What one GGUF file says before its weights."""

    path: Path
    size_bytes: int
    values: Mapping[str, Value]
    """Scalars and strings by their keys, the tokens, and short lists of whole numbers; other arrays are
    passed over."""
    tensors: tuple[Tensor, ...]
    array_lengths: Mapping[str, int]
    """How many values each array has, by its key."""
    types: Mapping[str, int]
    """GGUF's number for the type of each value, by its key."""


def shown(path: Path) -> str:
    """A path as it is written in a message: one line, nothing that moves a terminal's cursor."""
    text = str(path)
    return text if is_plain(text) else ascii(text)


def read_layout(path: Path) -> Layout:
    """The keys and tensors of the GGUF file at `path`.

    Raises:
        ModelFileError: There is no such file, it is no GGUF, or it is cut off or damaged.
    """
    size = _size_of(path)
    try:
        with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            return _Walk(path, data, size).layout()
    except (OSError, ValueError) as error:
        raise _unreadable(path, error) from None


def damaged(path: Path, what: str) -> ModelFileError:
    """The error for a file whose header says what no header can say."""
    return ModelFileError(f"{shown(path)} is damaged ({what}); download it again")


def _size_of(path: Path) -> int:
    try:
        state = path.stat()
    except FileNotFoundError:
        raise ModelFileError(f"{shown(path)} does not exist; check the path") from None
    except (OSError, ValueError) as error:
        raise _unreadable(path, error) from None
    if stat.S_ISDIR(state.st_mode):
        raise ModelFileError(f"{shown(path)} is a directory; name the .gguf file in it")
    if not stat.S_ISREG(state.st_mode):
        raise ModelFileError(f"{shown(path)} is not a regular file; name a .gguf file on disk")
    if state.st_size == 0:
        raise ModelFileError(f"{shown(path)} is empty; download it again")
    return state.st_size


def _unreadable(path: Path, error: OSError | ValueError) -> ModelFileError:
    reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    advice = "check its permissions and its disk"
    if isinstance(error, OSError) and error.errno == errno.ENOMEM:
        # The file is mapped whole, for as long as its header is read.
        advice = "free some, or raise the limit that is set on it (ulimit -v)"
    return ModelFileError(f"{shown(path)} cannot be read: {reason}; {advice}")


class _Walk:
    """A position in a mapped file that only moves forward and never past the end."""

    def __init__(self, path: Path, data: mmap.mmap, size: int) -> None:
        self.path = path
        self.data = data
        self.size = min(size, len(data))
        self.at = 0
        self.charged = 0
        self.lengths: dict[str, int] = {}
        self.types: dict[str, int] = {}

    def layout(self) -> Layout:
        start = bytes(self.data[:512])
        if not start.startswith(_MAGIC):
            raise ModelFileError(f"{shown(self.path)} is no GGUF model: {_looks_like(start)}")
        self.at = len(_MAGIC)
        version = self.u32()
        if version & 0xFFFF == 0 and version:
            raise ModelFileError(
                f"{shown(self.path)} is a big-endian GGUF, for another kind of machine; "
                "download the little-endian file"
            )
        if version not in (2, 3):
            raise ModelFileError(
                f"{shown(self.path)} is GGUF version {version}, and versions 2 and 3 can be read; "
                "download a newly converted file"
            )
        tensor_count, key_count = self.u64(), self.u64()
        if key_count > _MOST_KEYS or tensor_count > _MOST_TENSORS:
            raise damaged(self.path, f"it claims {key_count:,} keys and {tensor_count:,} tensors")
        values = self.keys(key_count)
        alignment = values.get("general.alignment", 32)
        if not isinstance(alignment, int) or alignment < 1 or alignment & (alignment - 1):
            raise damaged(self.path, "its alignment is not a power of two")
        table = [self.tensor() for _ in range(tensor_count)]
        weights = (self.at + alignment - 1) // alignment * alignment
        tensors = tuple(Tensor(name, shape, kind, weights + offset) for name, shape, kind, offset in table)
        return Layout(self.path, self.size, values, tensors, self.lengths, self.types)

    def keys(self, count: int) -> dict[str, Value]:
        values: dict[str, Value] = {}
        for _ in range(count):
            key = self.text()
            if key in self.types:
                raise damaged(self.path, f"the key {_quoted(key)} comes twice")
            kind = self.types[key] = self.u32()
            if kind in _SCALARS:
                values[key] = self.number(_SCALARS[kind])
            elif kind == _STRING:
                values[key] = self.text()
            elif kind == _ARRAY:
                kept = self.array(key, keep=key == TOKENS_KEY)
                if kept is not None:
                    values[key] = kept
            else:
                raise damaged(self.path, f"the key {_quoted(key)} is of the unknown type {kind}")
        return values

    def array(self, key: str, keep: bool) -> tuple[bytes, ...] | tuple[int, ...] | None:
        kind, count = self.u32(), self.u64()
        self.lengths[key] = count
        if kind == _STRING:
            if count > _MOST_STRINGS:
                raise damaged(self.path, f"the key {_quoted(key)} claims {count:,} strings")
            return self.strings(count, keep)
        if kind not in _SCALARS:
            raise damaged(self.path, f"the key {_quoted(key)} is an array of the unknown type {kind}")
        width = _SCALARS[kind].size
        start = self.at
        self.skip(count * width)
        if count <= _LONGEST_LIST and kind not in _FRACTIONS:
            self.charge(count * _KEPT_OF_A_TOKEN)
            form = f"<{count}{_SCALARS[kind].format[-1]}"
            return tuple(int(number) for number in struct.unpack_from(form, self.data, start))
        return None

    def strings(self, count: int, keep: bool) -> tuple[bytes, ...] | None:
        # The one loop that runs hundreds of thousands of times, so it works on locals only.
        data, at, size, unpack = self.data, self.at, self.size, _U64.unpack_from
        if keep:
            self.charge(count * _KEPT_OF_A_TOKEN)
            size = min(size, at + _MOST_KEPT)
        last = size - _U64.size
        texts: list[bytes] = []
        for _ in range(count):
            if at > last:
                raise self.cut_off()
            start = at + 8
            at = start + unpack(data, at)[0]
            if at > size:
                raise self.cut_off()
            if keep:
                texts.append(data[start:at])
        if keep:
            self.charge(at - self.at)
        self.at = at
        return tuple(texts) if keep else None

    def tensor(self) -> tuple[str, tuple[int, ...], int, int]:
        name = self.text()
        dimensions = self.u32()
        if dimensions > _MOST_DIMENSIONS:
            raise damaged(self.path, f"the tensor {_quoted(name)} has {dimensions:,} dimensions")
        row = struct.Struct(f"<{dimensions}QIQ")
        start = self.at
        self.skip(row.size)
        *shape, kind, offset = row.unpack_from(self.data, start)
        if prod(shape) >= 1 << 63:
            raise damaged(self.path, f"the tensor {_quoted(name)} has the shape {tuple(shape)}")
        return name, tuple(shape), kind, offset

    def text(self) -> str:
        length = self.u64()
        start = self.at
        if length > _LONGEST_TEXT or start + length > self.size:
            raise self.cut_off()
        self.at = start + length
        text = self.data[start : self.at].decode("utf-8", "replace")
        self.charge(sys.getsizeof(text))
        return text

    def charge(self, size: int) -> None:
        self.charged += size
        if self.charged > _MOST_KEPT:
            raise damaged(self.path, f"what it says before its weights takes more than {_MOST_KEPT:,} bytes")

    def number(self, form: struct.Struct) -> bool | int | float:
        start = self.at
        if start + form.size > self.size:
            raise self.cut_off()
        self.at = start + form.size
        return form.unpack_from(self.data, start)[0]

    def u32(self) -> int:
        return int(self.number(_U32))

    def u64(self) -> int:
        return int(self.number(_U64))

    def skip(self, length: int) -> None:
        if self.at + length > self.size:
            raise self.cut_off()
        self.at += length

    def cut_off(self) -> ModelFileError:
        return ModelFileError(
            f"{shown(self.path)} is cut off or damaged inside its header "
            f"(it is {self.size:,} bytes long); download it again"
        )


def _quoted(text: str) -> str:
    return ascii(text[:60])


def _looks_like(start: bytes) -> str:
    """What a file is whose first bytes are no GGUF's, and what to do about it."""
    words = start.lstrip().lower()
    if start.startswith(b"version https://git-lfs"):
        return "it is a git-lfs pointer to one; run `git lfs pull` where it was cloned"
    if words.startswith((b"<!doctype html", b"<html", b"<?xml")):
        return "it is a web page; download the file behind it (on Hugging Face the link with /resolve/)"
    if start[:4] in (b"lmgg", b"fmgg", b"tjgg", b"algg"):
        return "it is a legacy GGML file; download the same model as GGUF"
    if start[8:9] == b"{" and start[4:8] == bytes(4):
        return "it is a safetensors file; convert it with llama.cpp's convert_hf_to_gguf.py"
    if start.startswith((b"PK\x03\x04", b"\x1f\x8b", b"\xfd7zXZ", b"7z\xbc\xaf", b"BZh", b"(\xb5/\xfd")):
        return "it is an archive or a PyTorch checkpoint; unpack it, or download the model as GGUF"
    if not start.strip(b"\0"):
        return "it begins with nothing but zeros, as unfinished downloads do; download it again"
    if is_text(start):
        return "it is a text file; name the model itself"
    return "its first four bytes are not 'GGUF'; download it again or convert the model to GGUF"


def is_text(start: bytes) -> bool:
    """Whether a file that begins so is one to be read by people."""
    try:
        # Incremental, since a fixed number of bytes may end inside a character.
        text = codecs.getincrementaldecoder("utf-8")().decode(start)
    except UnicodeDecodeError:
        return False
    return all(character.isprintable() or character in "\t\n\r\f" for character in text)
