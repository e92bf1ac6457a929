"""Copies of GGUF files by llama.cpp's quantizer: in another type, without some layers, with notes in them."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from .errors import LoadError
from .gguf_layout import shown

# By way of the module that has told llama.cpp where its log goes.
from .llama import api
from .native_log import last_errors


class FileType(NamedTuple):
    """A quantization of a whole file."""

    number: int
    """llama.cpp's number for it."""
    tensors: str
    """ggml's type of most of its tensors."""


FILE_TYPES = {
    "F16": FileType(1, "F16"),
    "BF16": FileType(32, "BF16"),
    "Q8_0": FileType(7, "Q8_0"),
    "Q6_K": FileType(18, "Q6_K"),
    "Q5_K_M": FileType(17, "Q5_K"),
    "Q5_K_S": FileType(16, "Q5_K"),
    "Q5_1": FileType(9, "Q5_1"),
    "Q5_0": FileType(8, "Q5_0"),
    "Q4_K_M": FileType(15, "Q4_K"),
    "Q4_K_S": FileType(14, "Q4_K"),
    "Q4_1": FileType(3, "Q4_1"),
    "Q4_0": FileType(2, "Q4_0"),
    "IQ4_NL": FileType(25, "IQ4_NL"),
    "IQ4_XS": FileType(30, "IQ4_XS"),
    "IQ3_S": FileType(26, "IQ3_S"),
    "Q3_K_L": FileType(13, "Q3_K"),
    "Q3_K_M": FileType(12, "Q3_K"),
    "Q3_K_S": FileType(11, "Q3_K"),
    "Q2_K": FileType(10, "Q2_K"),
}
"""Quantizations by their names, of those that ask for no importance matrix and hold up without one."""

TENSOR_TYPES = {"F16": 1, "Q4_0": 2, "Q4_1": 3, "Q5_0": 6, "Q5_1": 7, "Q8_0": 8, "Q6_K": 14, "IQ4_NL": 20}
"""Types that the output matrix can be given, and ggml's numbers for them."""

BUFFERS = 128 << 20
"""Bytes that the quantizer works in: whole tensors, as it takes them else, are gigabytes of some models."""

_TEXT = 3
"""llama.cpp's number for a note that is a text."""
_END = -1


def quantize(
    source: Path,
    destination: Path,
    file_type: str | None,
    *,
    output: str | None = None,
    tied: bool = False,
    without: Sequence[int] = (),
    notes: Mapping[str, str] | None = None,
    threads: int = 0,
) -> None:
    """Write a copy of a GGUF, which may be quantized already, by llama.cpp's quantizer.

    Args:
        source: The file; of a split model the first part.
        destination: What is written, over what may be there.
        file_type: A key of `FILE_TYPES`, mixed as llama.cpp mixes it; `None` leaves all tensors as they are.
        output: A key of `TENSOR_TYPES` for the output matrix, in place of what the mix says.
        tied: Whether the embeddings serve as the output matrix, as in files without one.
        without: Layers to leave out, counted from 0; the others move up.
        notes: Keys and texts to write into the metadata, in 127 bytes each.
        threads: How many; 0 is one per core.

    Raises:
        LoadError: llama.cpp would not read the source or write the destination.
    """
    parameters = api.llama_model_quantize_default_params()
    parameters.nthread = threads
    parameters.allow_requantize = True
    parameters.max_buf_size = BUFFERS
    if file_type is None:
        parameters.only_copy = True
    else:
        parameters.ftype = FILE_TYPES[file_type].number
        if output is not None and tied:
            parameters.token_embedding_type = TENSOR_TYPES[output]
        elif output is not None:
            parameters.output_tensor_type = TENSOR_TYPES[output]
    # Both arrays have to live until the quantizer returns.
    layers = (ctypes.c_int32 * (len(without) + 1))(*sorted(without), _END)
    if without:
        parameters.prune_layers = ctypes.cast(layers, ctypes.POINTER(ctypes.c_int32))
    overrides = _overrides(notes or {})
    if notes:
        parameters.kv_overrides = ctypes.cast(overrides, ctypes.POINTER(api.llama_model_kv_override))
    with last_errors() as errors:
        status = api.llama_model_quantize(bytes(source), bytes(destination), ctypes.pointer(parameters))
    if status != 0:
        to = f" to {file_type}" if file_type else ""
        raise LoadError(f"{shown(source)} could not be requantized{to}: {errors.reason()}")


def _overrides(notes: Mapping[str, str]) -> Any:
    """The notes as llama.cpp takes them: an array that ends with an empty key."""
    overrides = (api.llama_model_kv_override * (len(notes) + 1))()
    for entry, (key, text) in zip(overrides, notes.items(), strict=False):
        entry.tag = _TEXT
        entry.key = key.encode()
        entry.value.val_str = text.encode()
    return overrides
