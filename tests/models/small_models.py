"""Sound models of a few kilobytes, of several architectures, that llama.cpp loads and runs."""

from __future__ import annotations

from pathlib import Path

import gguf
import numpy as np

from tests.tiny_models import CHATML, byte_tokens

WIDTH, LAYERS, HEADS, FEED_FORWARD, EXPERTS = 32, 2, 2, 64, 4
_HEAD = WIDTH // HEADS
_SPECIAL = ("<s>", "</s>", "<unk>", "<|im_start|>", "<|im_end|>")
_INNER, _STATE, _CONVOLVED, _RANK = 64, 8, 4, 2

ARCHITECTURES = ("llama", "llama-of-experts", "qwen2", "qwen3", "gemma3", "phi3", "mamba")


def write_small_model(path: Path, kind: str, *, tokens: int | None = None, layers: int = LAYERS) -> Path:
    """Write one of `ARCHITECTURES`; of the vocabulary only the first `tokens` where told, without a text's
    bytes among them."""
    architecture = "llama" if kind == "llama-of-experts" else kind
    writer = gguf.GGUFWriter(path, architecture)
    writer.add_name("Small Instruct")
    writer.add_basename("Small")
    writer.add_context_length(512)
    writer.add_embedding_length(WIDTH)
    writer.add_block_count(layers)
    writer.add_file_type(0)
    writer.add_layer_norm_rms_eps(1e-5)
    if architecture == "mamba":
        writer.add_feed_forward_length(0)
        writer.add_head_count(0)
        writer.add_ssm_conv_kernel(_CONVOLVED)
        writer.add_ssm_inner_size(_INNER)
        writer.add_ssm_state_size(_STATE)
        writer.add_ssm_time_step_rank(_RANK)
    else:
        writer.add_feed_forward_length(FEED_FORWARD)
        writer.add_head_count(HEADS)
        writer.add_head_count_kv([HEADS] * layers if kind == "llama-of-experts" else 1)
        writer.add_rope_dimension_count(_HEAD)
        writer.add_rope_freq_base(10_000.0)
    if kind == "llama-of-experts":
        writer.add_expert_count(EXPERTS)
        writer.add_expert_used_count(2)
    if architecture in ("gemma3", "phi3"):
        writer.add_sliding_window(64)
    if kind == "llama":
        writer.add_chat_template(CHATML)
    size = _add_vocabulary(writer, "llama" if architecture in ("gemma3", "phi3") else "gpt2", tokens)
    weights = np.random.default_rng(len(kind))
    for name, shape in _tensors(kind, size, layers):
        values = np.ones(shape) if "norm" in name else weights.standard_normal(shape) * WIDTH**-0.5
        writer.add_tensor(name, -abs(values).astype(np.float32) if "ssm_a" in name else values.astype("f"))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def _add_vocabulary(writer: gguf.GGUFWriter, kind: str, count: int | None) -> int:
    texts = byte_tokens() if kind == "gpt2" else [f"<0x{byte:02X}>" for byte in range(256)]
    if count is not None:
        texts = texts[:count]
    if kind == "llama":
        texts += ["\u2581", "\u2581a", "e"]
    byte = int(gguf.TokenType.BYTE if kind == "llama" else gguf.TokenType.NORMAL)
    kinds = [byte if text.startswith("<0x") else int(gguf.TokenType.NORMAL) for text in texts]
    kinds += [int(gguf.TokenType.CONTROL)] * len(_SPECIAL)
    first, texts = len(texts), [*texts, *_SPECIAL]
    writer.add_tokenizer_model(kind)
    writer.add_tokenizer_pre("gpt-2" if kind == "gpt2" else "default")
    writer.add_token_list(texts)
    writer.add_token_types(kinds)
    if kind == "gpt2":
        writer.add_token_merges(["h e"])
    else:
        writer.add_token_scores([0.0] * len(texts))
    writer.add_bos_token_id(first)
    writer.add_eos_token_id(first + 4)
    writer.add_unk_token_id(first + 2)
    writer.add_add_bos_token(kind == "llama")
    return len(texts)


def _tensors(kind: str, vocabulary: int, layers: int) -> list[tuple[str, tuple[int, ...]]]:
    rows: list[tuple[str, tuple[int, ...]]] = [
        ("token_embd.weight", (vocabulary, WIDTH)),
        ("output_norm.weight", (WIDTH,)),
    ]
    for layer in range(layers):
        start = f"blk.{layer}."
        rows.append((f"{start}attn_norm.weight", (WIDTH,)))
        if kind == "mamba":
            rows += [
                (f"{start}ssm_in.weight", (2 * _INNER, WIDTH)),
                (f"{start}ssm_conv1d.weight", (_INNER, _CONVOLVED)),
                (f"{start}ssm_conv1d.bias", (_INNER,)),
                (f"{start}ssm_x.weight", (_RANK + 2 * _STATE, _INNER)),
                (f"{start}ssm_dt.weight", (_INNER, _RANK)),
                (f"{start}ssm_dt.bias", (_INNER,)),
                (f"{start}ssm_a", (_INNER, _STATE)),
                (f"{start}ssm_d", (_INNER,)),
                (f"{start}ssm_out.weight", (WIDTH, _INNER)),
            ]
            continue
        kv = WIDTH if kind == "llama-of-experts" else _HEAD
        if kind == "phi3":
            rows.append((f"{start}attn_qkv.weight", (WIDTH + 2 * kv, WIDTH)))
        else:
            rows += [
                (f"{start}attn_{part}.weight", (size, WIDTH))
                for part, size in (("q", WIDTH), ("k", kv), ("v", kv))
            ]
        if kind == "qwen2":
            rows += [
                (f"{start}attn_{part}.bias", (size,)) for part, size in (("q", WIDTH), ("k", kv), ("v", kv))
            ]
        if kind in ("qwen3", "gemma3"):
            rows += [(f"{start}attn_{part}_norm.weight", (_HEAD,)) for part in ("q", "k")]
        rows += [(f"{start}attn_output.weight", (WIDTH, WIDTH)), (f"{start}ffn_norm.weight", (WIDTH,))]
        if kind == "gemma3":
            rows += [(f"{start}post_{part}_norm.weight", (WIDTH,)) for part in ("attention", "ffw")]
        if kind == "llama-of-experts":
            rows += [
                (f"{start}ffn_gate_inp.weight", (EXPERTS, WIDTH)),
                (f"{start}ffn_gate_exps.weight", (EXPERTS, FEED_FORWARD, WIDTH)),
                (f"{start}ffn_up_exps.weight", (EXPERTS, FEED_FORWARD, WIDTH)),
                (f"{start}ffn_down_exps.weight", (EXPERTS, WIDTH, FEED_FORWARD)),
            ]
        elif kind == "phi3":
            rows += [
                (f"{start}ffn_up.weight", (2 * FEED_FORWARD, WIDTH)),
                (f"{start}ffn_down.weight", (WIDTH, FEED_FORWARD)),
            ]
        else:
            rows += [
                (f"{start}ffn_{part}.weight", shape)
                for part, shape in (
                    ("gate", (FEED_FORWARD, WIDTH)),
                    ("up", (FEED_FORWARD, WIDTH)),
                    ("down", (WIDTH, FEED_FORWARD)),
                )
            ]
    return rows
