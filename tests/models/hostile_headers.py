"""Damaged and hostile GGUF headers: what can be done to a file, in words and in bytes.

A case is a function of its seed alone, so that a failure is made again from the number that it prints.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from tests.models.header_bytes import ALL, ARRAY, FORMS, STRING, Header, Key, Scalar, header_bytes

_WHOLE = tuple(kind for kind in FORMS if kind not in (6, 12))

NUMBERS = (
    *(0, 1, 2, 3, 4, 5, 7, 8, 16, 31, 33, 63, 64, 100, 127, 128, 255, 256, 257, 511, 512, 513, 1000),
    *(1024, 1025, 4096, 65_535, 65_536, 1 << 20, 1 << 24, (1 << 31) - 1, 1 << 31, (1 << 32) - 1, 1 << 32),
    *(1 << 40, (1 << 62), (1 << 63) - 1, 1 << 63, (1 << 64) - 32, (1 << 64) - 1, -1, -2, -32),
)
FRACTIONS = (0.0, -0.0, -1.0, 1e-30, 1e30, float("inf"), float("-inf"), float("nan"), 0.5, 3.4e38)
TEXTS = (
    *(
        b"",
        b" ",
        b"\0",
        b"a\0b",
        b"\xff\xfe\xfd",
        b"\x1b]8;;http://x\x07",
        b"\x1b[2J",
        b"x\ny",
        b"\xc2\x9b31m",
    ),
    *("\u202eevil".encode(), "\u200b".encode() * 300, b"A" * 5000, b"%s%n%d", b"{{ x", b"<0x0A>", b"<0xZZ>"),
    *(b"llama", b"gpt2", b"bert", b"t5", b"rwkv", b"plamo2", b"gemma4", b"no_vocab", b"none", b"whitespace"),
    *(b"hybriddna", b"default", b"llama-bpe", b"gpt-2", b"qwen2", b"kimi-k2", b"bogus", b"phi-3", b"chatml"),
    *(
        b"linear",
        b"yarn",
        b"longrope",
        b"qwen2",
        b"qwen3",
        b"qwen3moe",
        b"gemma",
        b"gemma3",
        b"mamba",
        b"phi3",
    ),
    *(b"falcon", b"gpt2", b"deepseek2", b"rwkv6", b"granite", b"jamba", b"lfm2", b"clip", b"phi3"),
    *(b"model", b"adapter", b"mmproj", b"</s>", b"<s>", b"<unk>", b"<|im_end|>", b"<|endoftext|>"),
)
_KEYS_OF_AN_ARCHITECTURE = (
    "block_count", "context_length", "embedding_length", "feed_forward_length", "vocab_size",
    "attention.head_count", "attention.head_count_kv", "attention.key_length", "attention.value_length",
    "attention.key_length_swa", "attention.value_length_swa", "attention.key_length_mla",
    "attention.value_length_mla", "attention.layer_norm_rms_epsilon", "attention.layer_norm_epsilon",
    "attention.sliding_window", "attention.sliding_window_pattern", "attention.shared_kv_layers",
    "attention.causal", "attention.scale", "attention.max_alibi_bias", "attention.clamp_kqv",
    "attention.temperature_length", "pooling_type", "expert_count", "expert_used_count",
    "expert_group_count", "expert_group_used_count", "expert_feed_forward_length", "expert_shared_count",
    "expert_weights_scale", "expert_gating_func", "leading_dense_block_count", "nextn_predict_layers",
    "full_attention_interval", "interleave_moe_layer_step", "rope.dimension_count",
    "rope.dimension_count_swa", "rope.dimension_sections", "rope.freq_base", "rope.freq_base_swa",
    "rope.scaling.type", "rope.scaling.factor", "rope.scaling.attn_factor",
    "rope.scaling.original_context_length", "rope.scaling.finetuned", "rope.scaling.yarn_log_multiplier",
    "rope.scale_linear", "logit_scale", "residual_scale", "embedding_scale", "final_logit_softcapping",
    "attn_logit_softcapping", "use_parallel_residual", "decoder_start_token_id", "decoder_block_count",
    "embedding_length_out", "embedding_length_per_layer_input", "ssm.conv_kernel", "ssm.inner_size",
    "ssm.state_size", "ssm.time_step_rank", "ssm.group_count", "wkv.head_size", "shortconv.l_cache",
    "token_shift_count", "classifier.output_labels", "attention.recurrent_layers",
    "attention.relative_buckets_count", "expert_shared_feed_forward_length", "expert_weights_norm",
    "moe_latent_size", "ssm.dt_b_c_rms",
)  # fmt: skip
_OTHER_KEYS = (
    "general.architecture", "general.alignment", "general.file_type", "general.name", "general.basename",
    "general.type", "general.quantization_version", "general.author", "general.license",
    "split.no", "split.count", "split.tensors.count", "tokenizer.chat_template",
    "tokenizer.ggml.model", "tokenizer.ggml.pre", "tokenizer.ggml.tokens", "tokenizer.ggml.token_type",
    "tokenizer.ggml.scores", "tokenizer.ggml.merges", "tokenizer.ggml.token_type_count",
    "tokenizer.ggml.bos_token_id", "tokenizer.ggml.eos_token_id", "tokenizer.ggml.eot_token_id",
    "tokenizer.ggml.eom_token_id", "tokenizer.ggml.unknown_token_id", "tokenizer.ggml.seperator_token_id",
    "tokenizer.ggml.padding_token_id", "tokenizer.ggml.mask_token_id", "tokenizer.ggml.fim_pre_token_id",
    "tokenizer.ggml.add_bos_token", "tokenizer.ggml.add_eos_token", "tokenizer.ggml.add_sep_token",
    "tokenizer.ggml.add_space_prefix", "tokenizer.ggml.remove_extra_whitespaces",
    "tokenizer.ggml.precompiled_charsmap", "tokenizer.ggml.normalizer.lowercase",
    "tokenizer.ggml.suppress_tokens", "adapter.type", "specchat.derived.source",
    "specchat.derived.source_bytes", "specchat.derived.skipped_layers", "specchat.derived.source_layers",
)  # fmt: skip
_TENSOR_NAMES = (
    b"output.weight", b"token_embd.weight", b"output_norm.weight", b"rope_freqs.weight",
    b"blk.0.attn_q.bias", b"blk.0.attn_qkv.weight", b"blk.0.attn_output.bias", b"blk.0.ffn_up_exps.weight",
    b"blk.0.attn_q_norm.weight", b"blk.7.attn_q.weight", b"blk.999999999999.attn_q.weight", b"blk..x",
    b"rope_factors_long.weight", b"output.bias", b"blk.0.attn_q.scale", b"", b"x" * 63, b"x" * 64,
    b"x" * 3000, b"\x1b[31m", b"\xff", b"blk.0.ffn_gate_inp.weight", b"blk.0.ssm_norm.weight",
    b"blk.1.shortconv.conv.weight", b"blk.1.attn_q.bias", b"blk.0.ffn_up.bias", b"blk.0.ssm_in.scale",
)  # fmt: skip


def number(draw: random.Random, old: Scalar = 0) -> int | float:
    """One that is no model's, or near the old one."""
    if isinstance(old, float):
        return draw.choice(FRACTIONS)
    near = old if isinstance(old, int) else 0
    return draw.choice((draw.choice(NUMBERS), near + 1, near - 1, near * 2, near // 2, -near))


def _changed_value(draw: random.Random, key: Key) -> Key:
    value = key.value
    if isinstance(value, tuple):
        return _changed_array(draw, key, value)
    if key.kind == STRING:
        return replace(key, value=draw.choice(TEXTS))
    return replace(key, value=number(draw, value))


def _changed_array(draw: random.Random, key: Key, values: tuple[Scalar, ...]) -> Key:
    what = draw.randrange(7)
    place = draw.randrange(len(values)) if values else 0
    if what == 0:
        return replace(key, claimed_count=draw.choice((len(values) + 1, len(values) - 1, *NUMBERS)))
    if what == 1:
        return replace(key, value=values[:place])
    if what == 2:
        return replace(key, value=values + values[:place])
    if what == 3:
        return replace(key, element=draw.choice((*FORMS, STRING, ARRAY, 13, 255)))
    if not values:
        return key
    if what == 4:
        return replace(key, value=(*values[:place], draw.choice(values), *values[place + 1 :]))
    new = draw.choice(TEXTS) if key.element == STRING else number(draw, values[place])
    if what == 5:
        return replace(key, value=(*values[:place], new, *values[place + 1 :]))
    return replace(key, value=(new,) * len(values))


def _retyped(draw: random.Random, key: Key) -> Key:
    kind = draw.choice((*FORMS, STRING, ARRAY, 13, 99))
    if kind == ARRAY and not isinstance(key.value, tuple):
        count = draw.choice((0, 1, 2, 3, 4, 512, 513))
        element = key.kind if draw.random() < 0.7 else draw.choice(_WHOLE)
        return replace(key, kind=ARRAY, element=element, value=(key.value,) * count)
    if kind != ARRAY and isinstance(key.value, tuple):
        return replace(key, kind=kind, value=key.value[0] if key.value else 0)
    return replace(key, kind=kind)


def _some_key(draw: random.Random, header: Header) -> Key:
    """A key that llama.cpp or this program asks for, with a value of any kind."""
    place = header.index("general.architecture")
    value = header.keys[place].value if place is not None else b"llama"
    architecture = value.decode("latin-1") if isinstance(value, bytes) else "llama"
    if draw.random() < 0.6:
        name = f"{architecture}.{draw.choice(_KEYS_OF_AN_ARCHITECTURE)}"
    else:
        name = draw.choice(_OTHER_KEYS)
    encoded = name.encode("latin-1", "replace")
    if any(word in name for word in ("type", "name", "model", "pre", "template")) and draw.random() < 0.7:
        return Key(encoded, STRING, draw.choice(TEXTS))
    kind = draw.choice((4, 4, 4, 4, 5, 6, 7, 10, STRING, ARRAY))
    if kind == ARRAY:
        count = draw.choice((0, 1, 2, 2, 2, 3, 4, 256, 512, 513, 2000))
        element = draw.choice((4, 5, 6, 7, STRING))
        one = draw.choice(TEXTS[:20]) if element == STRING else number(draw, 1)
        return Key(encoded, ARRAY, (one,) * count, element)
    if kind == STRING:
        return Key(encoded, kind, draw.choice(TEXTS))
    return Key(encoded, kind, draw.choice(FRACTIONS) if kind == 6 else number(draw, 1))


def change_key(draw: random.Random, header: Header) -> Header:
    """Change, retype, drop, double, move or add a key."""
    if not header.keys:
        return header
    place = draw.randrange(len(header.keys))
    key, before, after = header.keys[place], header.keys[:place], header.keys[place + 1 :]
    what = draw.randrange(14)
    if what < 5:
        return replace(header, keys=(*before, _changed_value(draw, key), *after))
    if what < 6:
        return replace(header, keys=(*before, _retyped(draw, key), *after))
    if what == 6:
        return replace(header, keys=before + after)
    if what == 7:
        return replace(header, keys=(key, *header.keys))
    if what == 8:
        return replace(header, keys=(*before, *after, key))
    if what == 9:
        return replace(header, keys=(*before, replace(key, name=draw.choice(TEXTS)), *after))
    if what == 10:
        lie = replace(key, claimed_length=draw.choice(NUMBERS))
        return replace(header, keys=(*before, lie, *after))
    new = _some_key(draw, header)
    others = tuple(other for other in header.keys if other.name != new.name)
    return replace(header, keys=(*others, new))


def change_tensor(draw: random.Random, header: Header) -> Header:
    """Change, drop, double, move or add a tensor."""
    if not header.tensors:
        return header
    place = draw.randrange(len(header.tensors))
    tensor, before, after = header.tensors[place], header.tensors[:place], header.tensors[place + 1 :]
    what = draw.randrange(10)
    if what == 0:
        return replace(header, tensors=before + after)
    if what == 1:
        return replace(header, tensors=(*header.tensors, tensor))
    if what == 2:
        other = draw.choice(header.tensors)
        return replace(header, tensors=(*before, replace(tensor, name=other.name), *after))
    if what == 3:
        return replace(header, tensors=(*header.tensors, replace(tensor, name=draw.choice(_TENSOR_NAMES))))
    if what == 4:
        lie = replace(tensor, offset=draw.choice((*NUMBERS, tensor.offset + 1, tensor.offset + 32)) % ALL)
        return replace(header, tensors=(*before, lie, *after), laid_out=False)
    if what == 5:
        lie = replace(tensor, dimensions=draw.choice((0, 1, 2, 3, 4, 5, 255, 0xFFFFFFFF)))
        return replace(header, tensors=(*before, lie, *after))
    if what in (6, 7):
        new = replace(tensor, kind=draw.choice((*range(44), 255, 0xFFFFFFFF)))
    else:
        extents = list(tensor.shape) or [1]
        which = draw.randrange(len(extents))
        extents[which] = int(number(draw, extents[which])) % ALL
        if draw.random() < 0.2:
            extents.append(draw.choice((0, 1, 2, 1 << 32)))
        if draw.random() < 0.2:
            extents.reverse()
        new = replace(tensor, shape=tuple(extents[:4]))
    return replace(header, tensors=(*before, new, *after))


def change_counts(draw: random.Random, header: Header) -> Header:
    """Change what stands before the keys, or the alignment."""
    what = draw.randrange(4)
    if what == 0:
        near = len(header.keys)
        return replace(header, key_count=draw.choice((near - 1, near + 1, *NUMBERS)) % ALL)
    if what == 1:
        near = len(header.tensors)
        return replace(header, tensor_count=draw.choice((near - 1, near + 1, *NUMBERS)) % ALL)
    if what == 2:
        return replace(header, version=draw.choice((*NUMBERS, 3 << 24, 2)))
    alignment = draw.choice((0, 1, 2, 8, 16, 31, 64, 4096, 1 << 31, (1 << 32) - 1))
    key = Key(b"general.alignment", draw.choice((4, 4, 4, 5, 10)), alignment)
    sound = alignment if 0 < alignment <= 4096 else 32
    return replace(header, keys=(*header.keys, key), alignment=sound)


def change_extent(draw: random.Random, header: Header) -> Header:
    """Change a number of the header, and the tensors as it asks for."""
    extents = {extent for tensor in header.tensors for extent in tensor.shape}
    places = [place for place, key in enumerate(header.keys) if not extents.isdisjoint(_wholes(key.value))]
    if not places:
        return header
    place = draw.choice(places)
    key, before, after = header.keys[place], header.keys[:place], header.keys[place + 1 :]
    old = draw.choice([value for value in _wholes(key.value) if value in extents])
    new = int(draw.choice((0, 1, 2, 3, 4, 5, 7, old + 1, old - 1, old * 2, old // 2, 33, 513))) % ALL
    if isinstance(key.value, tuple):
        changed = replace(key, value=tuple(new if value == old else value for value in key.value))
    else:
        changed = replace(key, value=new)
    tensors = (
        replace(tensor, shape=tuple(new if extent == old else extent for extent in tensor.shape))
        for tensor in header.tensors
    )
    return replace(header, keys=(*before, changed, *after), tensors=tuple(tensors))


def _wholes(value: Scalar | tuple[Scalar, ...]) -> list[int]:
    return [part for part in (value if isinstance(value, tuple) else (value,)) if isinstance(part, int)]


def change_bytes(draw: random.Random, content: bytes) -> bytes:
    """Cut the file, or change, put in or take out some of its bytes."""
    what = draw.randrange(5)
    # Most of a file's sense is in its header.
    place = draw.randrange(min(len(content), draw.choice((64, 512, 4096, len(content)))))
    some = draw.choice((b"\xff" * 8, bytes(8), draw.randbytes(draw.randint(1, 9))))
    if what == 0:
        return content[:place]
    if what == 1:
        return content[:place] + bytes([content[place] ^ 1 << draw.randrange(8)]) + content[place + 1 :]
    if what == 2:
        return content[:place] + some + content[place + len(some) :]
    if what == 3:
        return content[:place] + some + content[place:]
    return content[:place] + content[place + len(some) :]


Change = Callable[[random.Random, Header], Header]
_CHANGES: tuple[Change, ...] = (
    change_key,
    change_key,
    change_key,
    change_tensor,
    change_tensor,
    change_counts,
    change_extent,
)


@dataclass(frozen=True)
class Case:
    """One file, and how it is made again."""

    seed: int
    content: bytes


def case(bases: Sequence[Header], seed: int) -> Case:
    """The hostile file of this seed: one of the bases with one to three changes."""
    draw = random.Random(seed)
    header = draw.choice(bases)
    whole = draw.random() < 0.85
    for _ in range(draw.choice((1, 1, 1, 2, 3)) if whole else draw.choice((0, 1))):
        header = draw.choice(_CHANGES)(draw, header)
    content = header_bytes(header)
    return Case(seed, content if whole else change_bytes(draw, content))
