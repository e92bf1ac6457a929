"""Write a draft that fits a target and is good for nothing: its vocabulary, and small random weights."""

from pathlib import Path

import gguf
import numpy as np

from specchat.models.gguf_file import read_header

WIDTH, HEADS, FEED_FORWARD = 64, 4, 64


def write_useless_draft(target: Path, path: Path) -> Path:
    """One layer of random weights over the target's own vocabulary."""
    header = read_header(target)
    vocabulary = header.vocabulary
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_name("Useless")
    writer.add_context_length(header.train_context or 8192)
    writer.add_embedding_length(WIDTH)
    writer.add_block_count(1)
    writer.add_feed_forward_length(FEED_FORWARD)
    writer.add_head_count(HEADS)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_rope_dimension_count(WIDTH // HEADS)
    writer.add_file_type(1)
    writer.add_tokenizer_model(vocabulary.kind)
    writer.add_tokenizer_pre(vocabulary.pre)
    writer.add_token_list(list(vocabulary.tokens))
    writer.add_token_types([1] * vocabulary.size)
    writer.add_token_merges(["h e"])
    if vocabulary.bos is not None:
        writer.add_bos_token_id(vocabulary.bos)
    if vocabulary.eos is not None:
        writer.add_eos_token_id(vocabulary.eos)
    writer.add_add_bos_token(vocabulary.add_bos)
    numbers = np.random.default_rng(0)

    def tensor(name: str, *shape: int) -> None:
        writer.add_tensor(name, (numbers.standard_normal(shape) * WIDTH**-0.5).astype(np.float16))

    tensor("token_embd.weight", vocabulary.size, WIDTH)
    for norm in ("blk.0.attn_norm", "blk.0.ffn_norm", "output_norm"):
        writer.add_tensor(f"{norm}.weight", np.ones(WIDTH, np.float32))
    for part in ("q", "k", "v", "output"):
        tensor(f"blk.0.attn_{part}.weight", WIDTH, WIDTH)
    for part in ("gate", "up", "down"):
        tensor(f"blk.0.ffn_{part}.weight", FEED_FORWARD, WIDTH)
    tensor("output.weight", vocabulary.size, WIDTH)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path
