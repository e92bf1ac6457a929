"""Writes tiny GGUF models of many kinds: layers, attention, experts, recurrent states, vocabularies.

Each is a few hundred KB of random F32 weights that the real llama.cpp loads in milliseconds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import gguf
import numpy as np

from tests.tiny_models import CHATML, SPECIAL_TOKENS, TRAIN_CONTEXT, TinyPair, byte_tokens

LAYERS, WIDTH, HEADS, KV_HEADS, FEED_FORWARD = 2, 64, 4, 2, 96
HEAD, KV_WIDTH = WIDTH // HEADS, WIDTH // HEADS * KV_HEADS
SLIDING_WINDOW = 24
_EXPERTS, _EXPERTS_USED, _EXPERT_FEED_FORWARD = 4, 2, 48
_CONVOLVED, _STATE, _STEP_RANK, _INNER = 4, 16, 4, 2 * WIDTH
_SHORT_CONVOLUTION = 3
_GROUPS = 2
_DELTA_STATE, _DELTA_KEYS, _DELTA_VALUES = 16, 2, 4

Tensors = Iterator[tuple[str, tuple[int, ...]]]
VocabularyKind = Literal["gpt2", "rwkv", "llama", "t5", "bert"]


def _attention(layer: int, *, bias: bool = False, head_norms: bool = False, gated: bool = False) -> Tensors:
    """Queries of all heads, keys and values of half as many."""
    name = f"blk.{layer}.attn_"
    yield f"{name}norm.weight", (WIDTH,)
    for part, width in (("q", 2 * WIDTH if gated else WIDTH), ("k", KV_WIDTH), ("v", KV_WIDTH)):
        yield f"{name}{part}.weight", (width, WIDTH)
        if bias:
            yield f"{name}{part}.bias", (width,)
    yield f"{name}output.weight", (WIDTH, WIDTH)
    if head_norms:
        yield f"{name}q_norm.weight", (HEAD,)
        yield f"{name}k_norm.weight", (HEAD,)


def _feed_forward(layer: int, norm: str = "ffn_norm") -> Tensors:
    yield f"blk.{layer}.{norm}.weight", (WIDTH,)
    yield f"blk.{layer}.ffn_gate.weight", (FEED_FORWARD, WIDTH)
    yield f"blk.{layer}.ffn_up.weight", (FEED_FORWARD, WIDTH)
    yield f"blk.{layer}.ffn_down.weight", (WIDTH, FEED_FORWARD)


def _state_space(layer: int, *, norms: bool) -> Tensors:
    """A Mamba layer."""
    name = f"blk.{layer}.ssm_"
    yield f"blk.{layer}.attn_norm.weight", (WIDTH,)
    yield f"{name}in.weight", (2 * _INNER, WIDTH)
    yield f"{name}conv1d.weight", (_INNER, _CONVOLVED)
    yield f"{name}conv1d.bias", (_INNER,)
    yield f"{name}x.weight", (_STEP_RANK + 2 * _STATE, _INNER)
    yield f"{name}dt.weight", (_INNER, _STEP_RANK)
    yield f"{name}dt.bias", (_INNER,)
    yield f"{name}a", (_INNER, _STATE)
    yield f"{name}d", (_INNER,)
    yield f"{name}out.weight", (WIDTH, _INNER)
    if norms:
        yield f"{name}dt_norm.weight", (_STEP_RANK,)
        yield f"{name}b_norm.weight", (_STATE,)
        yield f"{name}c_norm.weight", (_STATE,)


def _llama(layer: int) -> Tensors:
    yield from _attention(layer)
    yield from _feed_forward(layer)


def _qwen2(layer: int) -> Tensors:
    yield from _attention(layer, bias=True)
    yield from _feed_forward(layer)


def _qwen3(layer: int) -> Tensors:
    yield from _attention(layer, head_norms=True)
    yield from _feed_forward(layer)


def _gemma3(layer: int) -> Tensors:
    yield from _qwen3(layer)
    yield f"blk.{layer}.post_attention_norm.weight", (WIDTH,)
    yield f"blk.{layer}.post_ffw_norm.weight", (WIDTH,)


def _phi3(layer: int) -> Tensors:
    """Queries, keys and values in one matrix; gate and up in another."""
    yield f"blk.{layer}.attn_norm.weight", (WIDTH,)
    yield f"blk.{layer}.attn_qkv.weight", (WIDTH + 2 * KV_WIDTH, WIDTH)
    yield f"blk.{layer}.attn_output.weight", (WIDTH, WIDTH)
    yield f"blk.{layer}.ffn_norm.weight", (WIDTH,)
    yield f"blk.{layer}.ffn_up.weight", (2 * FEED_FORWARD, WIDTH)
    yield f"blk.{layer}.ffn_down.weight", (WIDTH, FEED_FORWARD)


def _experts(layer: int, norm: str = "ffn_norm") -> Tensors:
    """A router and its experts, in place of a feed-forward network."""
    yield f"blk.{layer}.{norm}.weight", (WIDTH,)
    yield f"blk.{layer}.ffn_gate_inp.weight", (_EXPERTS, WIDTH)
    yield f"blk.{layer}.ffn_gate_exps.weight", (_EXPERTS, _EXPERT_FEED_FORWARD, WIDTH)
    yield f"blk.{layer}.ffn_up_exps.weight", (_EXPERTS, _EXPERT_FEED_FORWARD, WIDTH)
    yield f"blk.{layer}.ffn_down_exps.weight", (_EXPERTS, WIDTH, _EXPERT_FEED_FORWARD)


def _qwen3moe(layer: int) -> Tensors:
    yield from _attention(layer, head_norms=True)
    yield from _experts(layer)


def _mamba(layer: int) -> Tensors:
    yield from _state_space(layer, norms=False)


def _jamba(layer: int) -> Tensors:
    """A state space first, then attention."""
    yield from _state_space(layer, norms=True) if layer == 0 else _attention(layer)
    yield from _feed_forward(layer)


def _short_convolution(layer: int) -> Tensors:
    """A short convolution first, then attention."""
    if layer == 0:
        yield f"blk.{layer}.attn_norm.weight", (WIDTH,)
        yield f"blk.{layer}.shortconv.conv.weight", (WIDTH, _SHORT_CONVOLUTION)
        yield f"blk.{layer}.shortconv.in_proj.weight", (3 * WIDTH, WIDTH)
        yield f"blk.{layer}.shortconv.out_proj.weight", (WIDTH, WIDTH)
    else:
        yield from _attention(layer, head_norms=True)


def _lfm2(layer: int) -> Tensors:
    yield from _short_convolution(layer)
    yield from _feed_forward(layer)


def _lfm2moe(layer: int) -> Tensors:
    """A feed-forward network first, then experts."""
    yield from _short_convolution(layer)
    if layer == 0:
        yield from _feed_forward(layer)
    else:
        yield from _experts(layer)
        yield f"blk.{layer}.exp_probs_b.bias", (_EXPERTS,)


def _nemotron_h(layer: int) -> Tensors:
    """A state space of several heads (Mamba-2) first, then attention; nothing else."""
    if layer > 0:
        yield from _attention(layer)
        return
    name, convolved = f"blk.{layer}.ssm_", _INNER + 2 * _GROUPS * _STATE
    yield f"blk.{layer}.attn_norm.weight", (WIDTH,)
    yield f"{name}in.weight", (_INNER + convolved + _STEP_RANK, WIDTH)
    yield f"{name}conv1d.weight", (convolved, _CONVOLVED)
    yield f"{name}conv1d.bias", (convolved,)
    yield f"{name}dt.bias", (_STEP_RANK,)
    yield f"{name}a", (_STEP_RANK, 1)
    yield f"{name}d", (_STEP_RANK, 1)
    yield f"{name}norm.weight", (_GROUPS, _INNER // _GROUPS)
    yield f"{name}out.weight", (WIDTH, _INNER)


def _delta_net(layer: int) -> Tensors:
    """A gated delta net first, then attention with a gate."""
    values, name = _DELTA_STATE * _DELTA_VALUES, f"blk.{layer}."
    if layer == 0:
        mixed = 2 * _DELTA_STATE * _DELTA_KEYS + values
        yield f"{name}attn_norm.weight", (WIDTH,)
        yield f"{name}attn_qkv.weight", (mixed, WIDTH)
        yield f"{name}attn_gate.weight", (values, WIDTH)
        yield f"{name}ssm_conv1d.weight", (mixed, _CONVOLVED)
        yield f"{name}ssm_dt.bias", (_DELTA_VALUES,)
        yield f"{name}ssm_a", (_DELTA_VALUES,)
        yield f"{name}ssm_beta.weight", (_DELTA_VALUES, WIDTH)
        yield f"{name}ssm_alpha.weight", (_DELTA_VALUES, WIDTH)
        yield f"{name}ssm_norm.weight", (_DELTA_STATE,)
        yield f"{name}ssm_out.weight", (WIDTH, values)
    else:
        yield from _attention(layer, head_norms=True, gated=True)


def _qwen35(layer: int) -> Tensors:
    yield from _delta_net(layer)
    yield from _feed_forward(layer, "post_attention_norm")


def _qwen35moe(layer: int) -> Tensors:
    """Experts, and one that all tokens share."""
    yield from _delta_net(layer)
    yield from _experts(layer, "post_attention_norm")
    yield f"blk.{layer}.ffn_gate_inp_shexp.weight", (WIDTH,)
    yield f"blk.{layer}.ffn_gate_shexp.weight", (_EXPERT_FEED_FORWARD, WIDTH)
    yield f"blk.{layer}.ffn_up_shexp.weight", (_EXPERT_FEED_FORWARD, WIDTH)
    yield f"blk.{layer}.ffn_down_shexp.weight", (WIDTH, _EXPERT_FEED_FORWARD)


_STATE_SPACE_KEYS: dict[str, Any] = {
    "ssm.conv_kernel": _CONVOLVED,
    "ssm.inner_size": _INNER,
    "ssm.state_size": _STATE,
    "ssm.time_step_rank": _STEP_RANK,
}
_EXPERT_KEYS: dict[str, Any] = {
    "expert_count": _EXPERTS,
    "expert_used_count": _EXPERTS_USED,
    "expert_feed_forward_length": _EXPERT_FEED_FORWARD,
}
_SHORT_CONVOLUTION_KEYS: dict[str, Any] = {
    "shortconv.l_cache": _SHORT_CONVOLUTION,
    "attention.head_count_kv": [0, KV_HEADS],
}
_DELTA_NET_KEYS: dict[str, Any] = {
    "ssm.conv_kernel": _CONVOLVED,
    "ssm.inner_size": _DELTA_STATE * _DELTA_VALUES,
    "ssm.state_size": _DELTA_STATE,
    "ssm.time_step_rank": _DELTA_VALUES,
    "ssm.group_count": _DELTA_KEYS,
    "full_attention_interval": 2,
    "rope.dimension_sections": [3, 3, 2, 0],
}


@dataclass(frozen=True)
class Architecture:
    """What a kind of model is made of, beside what all have."""

    layer: Callable[[int], Tensors] = _llama
    keys: dict[str, Any] = field(default_factory=dict)
    output_norm: str = "output_norm"


ARCHITECTURES = {
    "llama": Architecture(),
    "qwen2": Architecture(_qwen2),
    "qwen3": Architecture(_qwen3),
    "gemma3": Architecture(
        _gemma3,
        {
            "attention.sliding_window": SLIDING_WINDOW,
            "attention.sliding_window_pattern": [True, False],
        },
    ),
    "phi3": Architecture(_phi3),
    "qwen3moe": Architecture(_qwen3moe, _EXPERT_KEYS),
    "mamba": Architecture(_mamba, {**_STATE_SPACE_KEYS, "attention.head_count": 0}),
    "jamba": Architecture(_jamba, {**_STATE_SPACE_KEYS, "attention.head_count_kv": [0, KV_HEADS]}),
    "lfm2": Architecture(_lfm2, _SHORT_CONVOLUTION_KEYS, output_norm="token_embd_norm"),
    "lfm2moe": Architecture(
        _lfm2moe,
        {**_SHORT_CONVOLUTION_KEYS, **_EXPERT_KEYS, "leading_dense_block_count": 1, "expert_gating_func": 2},
        output_norm="token_embd_norm",
    ),
    "nemotron_h": Architecture(
        _nemotron_h,
        {
            **_STATE_SPACE_KEYS,
            "ssm.group_count": _GROUPS,
            "attention.head_count_kv": [0, KV_HEADS],
            "feed_forward_length": [0, 0],
            "attention.layer_norm_epsilon": 1e-5,
        },
    ),
    "qwen35": Architecture(_qwen35, _DELTA_NET_KEYS),
    "qwen35moe": Architecture(
        _qwen35moe,
        {
            **_DELTA_NET_KEYS,
            **_EXPERT_KEYS,
            "expert_shared_feed_forward_length": _EXPERT_FEED_FORWARD,
        },
    ),
    # Refused by their headers: their weights are never looked at.
    "t5": Architecture(),
    "bert": Architecture(),
}


def write_tiny_architecture(
    path: Path,
    architecture: str,
    *,
    seed: int = 1,
    noise: float = 0.0,
    vocabulary: VocabularyKind = "gpt2",
    tied: bool = False,
    template: str | None = CHATML,
    extra_tokens: int = 0,
    train_context: int = TRAIN_CONTEXT,
) -> Path:
    """Write a model of this architecture with random weights.

    `noise` disturbs the weights that `seed` gives: a draft is its target plus noise. Where it is `tied` the
    embedding is the output matrix as well. `extra_tokens` come last, and are as likely as letters.
    """
    kind = ARCHITECTURES[architecture]
    writer = gguf.GGUFWriter(path, architecture)
    writer.add_name("Tiny")
    writer.add_file_type(0)
    keys: dict[str, Any] = {
        "context_length": train_context,
        "embedding_length": WIDTH,
        "block_count": LAYERS,
        "feed_forward_length": FEED_FORWARD,
        "attention.head_count": HEADS,
        "attention.head_count_kv": KV_HEADS,
        "attention.layer_norm_rms_epsilon": 1e-5,
        "rope.dimension_count": HEAD,
        **kind.keys,
    }
    for key, value in keys.items():
        _add(writer, f"{architecture}.{key}", value)
    size, rare = _add_vocabulary(writer, vocabulary, extra_tokens)
    if template is not None:
        writer.add_chat_template(template)

    def add(name: str, shape: tuple[int, ...]) -> None:
        # Each has draws of its own: with fewer tokens, or other layers, the rest stays alike.
        values = _draws(seed, name, shape) + noise * _draws(seed + 1000, name, shape)
        if name.endswith("ssm_a"):
            values = -np.exp(values)  # a state fades
        elif "norm" in name:
            # Where a norm ends a branch, what the branch adds must stand up to what it is added to.
            values = (8.0 if "post_" in name and architecture == "gemma3" else 1.0) + 0.1 * values
        elif name == "output.weight" or (tied and name == "token_embd.weight"):
            values[rare] *= 0.05
            values *= 1.0 if tied else 6.0 * WIDTH**-0.5
        elif len(shape) > 1 and name != "token_embd.weight":
            values *= (3.0 if tied else 1.0) * shape[-1] ** -0.5
        writer.add_tensor(name, values.astype(np.float32))

    add("token_embd.weight", (size, WIDTH))
    for layer in range(LAYERS):
        for name, shape in kind.layer(layer):
            add(name, shape)
    add(f"{kind.output_norm}.weight", (WIDTH,))
    if not tied:
        add("output.weight", (size, WIDTH))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def write_tiny_kin(folder: Path, architecture: str, *, noise: float = 0.1, **settings: Any) -> TinyPair:
    """A target of this architecture, and a draft that is the target plus noise."""
    return TinyPair(
        target=write_tiny_architecture(folder / "target.gguf", architecture, **settings),
        draft=write_tiny_architecture(folder / "draft.gguf", architecture, noise=noise, **settings),
    )


def _draws(seed: int, name: str, shape: tuple[int, ...]) -> np.ndarray:
    return np.random.default_rng([seed, *name.encode()]).standard_normal(shape)


def _add(writer: gguf.GGUFWriter, key: str, value: Any) -> None:
    if isinstance(value, list):
        writer.add_array(key, value)
    elif isinstance(value, float):
        writer.add_float32(key, value)
    else:
        writer.add_uint32(key, value)


def _add_vocabulary(
    writer: gguf.GGUFWriter, kind: VocabularyKind, extra_tokens: int
) -> tuple[int, list[int]]:
    """Add tokens for all bytes or letters; how many there are, and which of them are to be rare."""
    normal, control, byte = (
        int(token_type) for token_type in (gguf.TokenType.NORMAL, gguf.TokenType.CONTROL, gguf.TokenType.BYTE)
    )
    if kind == "gpt2":
        tokens = [*byte_tokens(), *SPECIAL_TOKENS]
        types = [normal] * 256 + [control] * len(SPECIAL_TOKENS)
        rare = list(range(256, len(tokens)))
        writer.add_tokenizer_model("gpt2")
        writer.add_tokenizer_pre("gpt-2")
        writer.add_token_merges(["h e"])
        writer.add_add_bos_token(False)
        writer.add_bos_token_id(tokens.index("<|endoftext|>"))
        writer.add_eos_token_id(tokens.index("<|im_end|>"))
    elif kind == "rwkv":  # the one kind that may have no end of a text
        tokens = ["<s>", *(f"\\x{value:02x}" for value in range(256))]
        types = [control] + [normal] * 256
        rare = [0]
        writer.add_tokenizer_model("rwkv")
    elif kind in ("llama", "t5"):
        first = ["<unk>", "<s>", "</s>"] if kind == "llama" else ["<pad>", "</s>", "<unk>"]
        letters = ["▁", *map(chr, range(0x21, 0x7F)), "▁t", "he", "in"]
        tokens = [*first, *(f"<0x{value:02X}>" for value in range(256)), *letters]
        types = [control] * 3 + [byte] * 256 + [normal] * len(letters)
        types[tokens.index("<unk>")] = int(gguf.TokenType.UNKNOWN)
        rare = [0, 1, 2]
        writer.add_tokenizer_model(kind)
        writer.add_token_scores([0.0] * 259 + [-float(rank) for rank in range(len(letters) + extra_tokens)])
    else:
        tokens = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *("▁" + chr(c) for c in range(0x21, 0x7F))]
        types = [control] * 5 + [normal] * (len(tokens) - 5)
        rare = [0, 1, 2, 3, 4]
        writer.add_tokenizer_model("bert")
        writer.add_bos_token_id(2)
        writer.add_eos_token_id(3)
    tokens += [f"<extra{index}>" for index in range(extra_tokens)]
    writer.add_token_list(tokens)
    writer.add_token_types([*types, *[normal] * extra_tokens])
    return len(tokens), rare
