"""Small GGUF files for these tests: a header with everything a reader asks for, and a few weights."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import gguf
import numpy as np

_LETTERS = map(chr, range(0x21, 0x7F))
TOKENS = (*_LETTERS, "Ġ", "Ċ", "<|endoftext|>", "<|im_start|>", "<|im_end|>")


def write_gguf(
    path: Path,
    *,
    architecture: str = "llama",
    kind: str | None = "gpt2",
    pre: str | None = "gpt-2",
    tokens: tuple[str | bytes, ...] = TOKENS,
    bos: int | None = len(TOKENS) - 3,
    eos: int | None = len(TOKENS) - 1,
    add_bos: bool | None = False,
    add_eos: bool | None = None,
    name: str | None = "Tiny 1M Instruct",
    basename: str | None = None,
    context: int | None = 128,
    template: str | None = None,
    file_type: int | None = 0,
    rows: int | None = 16,
    extra: dict[str, Any] | None = None,
) -> Path:
    """A model whose one matrix has 8 x `rows` F32 values; no weights where `rows` is None."""
    if kind == "llama":  # such a vocabulary has a token for every byte
        tokens = (*tokens, *(f"<0x{byte:02X}>" for byte in range(256)))
    writer = gguf.GGUFWriter(path, architecture)
    if name is not None:
        writer.add_name(name)
    if basename is not None:
        writer.add_basename(basename)
    if context is not None:
        writer.add_context_length(context)
    writer.add_block_count(2)
    writer.add_embedding_length(8)
    if file_type is not None:
        writer.add_file_type(file_type)
    if kind is not None:
        writer.add_tokenizer_model(kind)
    if pre is not None:
        writer.add_tokenizer_pre(pre)
    if tokens:
        writer.add_token_list(list(tokens))
    writer.add_token_merges(["a b"])
    writer.add_token_scores([0.0] * len(tokens))
    for add, value in (
        (writer.add_bos_token_id, bos),
        (writer.add_eos_token_id, eos),
        (writer.add_add_bos_token, add_bos),
        (writer.add_add_eos_token, add_eos),
        (writer.add_chat_template, template),
    ):
        if value is not None:
            add(value)
    for key, value in (extra or {}).items():
        if isinstance(value, bool):
            writer.add_bool(key, value)
        elif isinstance(value, int):
            writer.add_uint32(key, value)
        elif isinstance(value, float):
            writer.add_float32(key, value)
        elif isinstance(value, list):
            writer.add_array(key, value)
        else:
            writer.add_string(key, value)
    if rows is not None:
        writer.add_tensor("token_embd.weight", np.zeros((rows, 8), dtype=np.float32))
        writer.add_tensor("output_norm.weight", np.ones(8, dtype=np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path
