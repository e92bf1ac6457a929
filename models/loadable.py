"""What a header says that llama.cpp would not survive: it ends its process where it finds that in a file.

Each rule is an assertion of llama.cpp's own, or a crash that was seen, so none refuses what it would load.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from math import isfinite
from pathlib import Path
from typing import Protocol

from .architecture_keys import ArchitectureKeys
from .errors import ModelFileError
from .gguf_layout import Layout, Tensor, damaged
from .loadable_layers import experts, recurrence
from .tensors import type_name

_MOST_LAYERS = 512
_WIDEST_WINDOW = 16_777_216
"""llama.cpp takes memory for each of its tokens, however long the context is."""

_SCALINGS = {"none", "linear", "yarn", "longrope"}

_SAME_HEADS = {
    *("afmoe", "apertus", "arcee", "arctic", "baichuan", "bailingmoe2", "bitnet", "bloom", "chameleon"),
    *("chatglm", "codeshell", "cogvlm", "cohere2", "cohere2moe", "command-r", "dbrx", "deci", "deepseek"),
    *("dots1", "ernie4_5", "ernie4_5-moe", "exaone", "exaone-moe", "exaone4", "falcon", "glm4", "glm4moe"),
    *("gpt2", "gptneox", "granite", "granite_swa", "granitehybrid", "graniteswitch", "grok", "grovemoe"),
    *("hunyuan-moe", "hunyuan_vl", "hy_v3", "internlm2", "jais", "jais2", "laguna", "lfm2", "lfm2moe"),
    *("llama", "llama4", "maincoder", "maple", "mellum", "minimax-01", "minimax-m2", "minimax-m3"),
    *("mistral3", "mpt", "muse-glimmer", "nanbeige", "nemotron", "nemotron_h", "nemotron_h_moe", "olmo"),
    *("olmo2", "olmoe", "openelm", "orion", "paddleocr", "pangu-embedded", "phi2", "phi3", "plamo", "qwen"),
    *("qwen2", "qwen2moe", "qwen2vl", "qwen3", "qwen35", "qwen35moe", "qwen3moe", "qwen3next", "qwen3vl"),
    *("qwen3vlmoe", "qwen4exp", "refact", "seed_oss", "smallthinker", "smollm3", "spark2_5", "stablelm"),
    *("starcoder", "starcoder2", "talkie", "xverse"),
}
"""Architectures that llama.cpp runs only where a head's key is as long as its value."""

_AS_WIDE_AS_HEADS = {
    *("arctic", "baichuan", "bitnet", "bloom", "chameleon", "codeshell", "cohere2", "command-r", "dbrx"),
    *("deepseek", "deepseek2-ocr", "falcon", "gpt2", "gptneox", "grok", "internlm2", "jais", "jamba", "lfm2"),
    *("lfm2moe", "mpt", "nemotron", "olmo", "olmo2", "olmoe", "orion", "phi2", "phi3", "phimoe", "plamo"),
    *("qwen", "qwen2", "qwen2moe", "qwen2vl", "stablelm", "starcoder", "starcoder2", "xverse"),
}
"""Architectures that llama.cpp runs only where a layer is as wide as its heads together."""

_WHOLE_ROTATION = {
    *("apertus", "arcee", "arctic", "baichuan", "chameleon", "codeshell", "cogvlm", "cohere2moe", "dbrx"),
    *("deci", "deepseek", "dots1", "ernie4_5", "ernie4_5-moe", "exaone", "exaone-moe", "exaone4", "falcon"),
    *("granite", "granite_swa", "graniteswitch", "grok", "grovemoe", "hunyuan-moe", "hunyuan_vl", "hy_v3"),
    *("internlm2", "jais2", "llama", "llama4", "maincoder", "mellum", "mistral3", "olmo", "olmo2", "olmoe"),
    *("orion", "paddleocr", "pangu-embedded", "plamo", "qwen2", "qwen2moe", "qwen2vl", "qwen3", "qwen3moe"),
    *("qwen3vl", "qwen3vlmoe", "seed_oss", "smallthinker", "smollm3", "starcoder2", "talkie", "xverse"),
}
"""Architectures that llama.cpp runs only where all of a head is rotated."""

_SECTIONED = {"paddleocr", "qwen2vl", "qwen35", "qwen35moe", "qwen3vl", "qwen3vlmoe", "qwen4exp"}
"""Architectures that rotate sections of a head by several positions."""
_SECTIONED_WHERE_TOLD = {"bailingmoe3", "glm4", "glm4moe", "hunyuan_vl"}
"""Those that do where the first two sections are not empty."""

_WINDOWED = {"gemma3"}
"""Architectures that llama.cpp runs with a sliding window only where some layer has it."""

_FUSED = {"phi3"}
"""Architectures of which llama.cpp misses a layer's matrices for queries, keys and values only when they are
to be used."""

_F32 = 0
_NO_WEIGHTS = {9, 15, 24, 25, 26, 27, 28}
"""Types that nothing can be multiplied by: integers, doubles, and those of intermediate results."""
_TABLES = (".ffn_gate_tid2eid.",)
"""Tensors that are lists of numbers."""
_ADDED = ("norm", ".ssm_conv1d", ".ssm_a", ".ssm_d", ".shortconv.conv", ".time_mix_lerp", ".time_mix_first")
"""Tensors of which each value is added or multiplied by one: llama.cpp does that in F32."""


class Vocabulary(Protocol):
    """What is asked of a model's tokens."""

    @property
    def kind(self) -> str: ...  # noqa: D102
    @property
    def pre(self) -> str: ...  # noqa: D102
    @property
    def tokens(self) -> tuple[bytes, ...]: ...  # noqa: D102
    @property
    def bos(self) -> int | None: ...  # noqa: D102
    @property
    def eos(self) -> int | None: ...  # noqa: D102
    @property
    def add_bos(self) -> bool: ...  # noqa: D102
    @property
    def add_eos(self) -> bool: ...  # noqa: D102


def refuse_unloadable(layouts: Sequence[Layout], vocabulary: Vocabulary) -> None:
    """Say what llama.cpp would die of, if it would.

    Args:
        layouts: Of all the model's parts, the first one's first.
        vocabulary: The model's.

    Raises:
        ModelFileError: It would.
    """
    keys = ArchitectureKeys(layouts[0])
    for reason in (
        _names(keys) or _layers(keys) or experts(keys),
        _rope(keys) or _heads(keys) or _epsilons(keys),
        _tokens(vocabulary) or _around_texts(vocabulary),
    ):
        if reason is not None:
            raise damaged(layouts[0].path, reason)
    for layout in layouts:
        for tensor in layout.tensors:
            _refuse_tensor(layout.path, tensor)
    shapes = {tensor.name: tensor.shape for layout in layouts for tensor in layout.tensors}
    reason = _attention(keys, shapes) or _keys_and_values(keys, shapes) or recurrence(keys, shapes)
    if reason is not None:
        raise damaged(layouts[0].path, reason)


def _names(keys: ArchitectureKeys) -> str | None:
    # Read as far as the first zero byte, such a name is none.
    if any(name.startswith("\0") for name in keys.names):
        return "one of its keys has no name"
    return None


def _layers(keys: ArchitectureKeys) -> str | None:
    layers = keys.number("block_count", 1)
    if not 0 < layers <= _MOST_LAYERS:
        return f"it claims {layers:,} layers"
    beyond = keys.number("nextn_predict_layers")
    if not 0 <= beyond < layers:
        return f"it claims that {beyond:,} of its {layers:,} layers look further ahead"
    window = keys.number("attention.sliding_window")
    if not 0 <= window <= _WIDEST_WINDOW:
        return f"it claims a sliding window of {window:,} tokens"
    pattern = keys.numbers("attention.sliding_window_pattern")
    if (
        window
        and keys.architecture in _WINDOWED
        and (pattern == (1,) or (pattern and not any(pattern[:layers])))
    ):
        return "it has a sliding window and no layer that has it"
    return None


def _rope(keys: ArchitectureKeys) -> str | None:
    scaling = keys.values.get(f"{keys.architecture}.rope.scaling.type", "none")
    if scaling not in _SCALINGS:
        return f"it scales positions by {str(scaling)[:60]!a}, which is no known way"
    return _sections(keys)


def _sections(keys: ArchitectureKeys) -> str | None:
    # One number stands for all four; llama.cpp reads each as one with a sign.
    numbers = [
        (number + (1 << 31)) % (1 << 32) - (1 << 31) for number in keys.numbers("rope.dimension_sections")
    ]
    sections = numbers * 4 if len(numbers) == 1 else numbers
    used = keys.architecture in _SECTIONED or (
        keys.architecture in _SECTIONED_WHERE_TOLD and min(sections[:2], default=0) > 0
    )
    if not used or len(sections) != 4:
        return None
    width = keys.number("embedding_length") // max(1, keys.number("attention.head_count"))
    length = keys.number("attention.key_length", width)
    if max(sections[:3]) <= 0 or sum(sections) == 0 or sum(sections) > length:
        return f"it rotates sections of {', '.join(map(str, sections))} values of a head"
    return None


def _heads(keys: ArchitectureKeys) -> str | None:
    heads = keys.number("attention.head_count")
    if heads == 0:
        return None
    width = keys.number("embedding_length")
    length = width // heads
    key = keys.number("attention.key_length", length)
    value = keys.number("attention.value_length", length)
    rotated = keys.number("rope.dimension_count", key)
    if key != value and keys.architecture in _SAME_HEADS:
        return f"its heads have keys of {key:,} and values of {value:,}"
    if heads * key != width and keys.architecture in _AS_WIDE_AS_HEADS:
        return f"its {heads:,} heads of {key:,} values are not as wide as its layers' {width:,}"
    if rotated != value and keys.architecture in _WHOLE_ROTATION:
        return f"it rotates {rotated:,} of the {value:,} values of a head"
    for windowed, turned in (
        (key, rotated),
        (keys.number("attention.key_length_swa", key), keys.number("rope.dimension_count_swa", rotated)),
    ):
        if not 0 < turned <= windowed or turned % 2:
            return f"it rotates {turned:,} of the {windowed:,} values of a head"
    return None


def _epsilons(keys: ArchitectureKeys) -> str | None:
    for key, value in keys.items():
        if key.endswith("epsilon") and isinstance(value, float) and not (isfinite(value) and value >= 0.0):
            return f"its {key[:60]!a} is {value}"
    return None


def _tokens(vocabulary: Vocabulary) -> str | None:
    # llama.cpp reads a token as far as its first zero byte.
    ends = any(b"\0" in token for token in vocabulary.tokens)
    listed = tuple(token.partition(b"\0")[0] for token in vocabulary.tokens) if ends else vocabulary.tokens
    tokens = set(listed)
    if len(tokens) < len(listed) or b"" in tokens:
        # An empty token is given a text by its number.
        texts = [token or f"[EMPTY_{index}]".encode() for index, token in enumerate(listed)]
        twice = next((text for text, count in Counter(texts).items() if count > 1), None)
        if twice is not None:
            return f"the token {twice[:60].decode('utf-8', 'replace')!a} comes twice in its vocabulary"
    if vocabulary.kind == "gpt2" and vocabulary.pre == "whitespace":
        return "it splits texts in a way that its vocabulary does not have"
    if vocabulary.kind == "llama":
        missing = sum(f"<0x{byte:02X}>".encode() not in tokens for byte in range(256))
        if missing:
            return f"its vocabulary has no token for {missing} of the 256 bytes"
    return None


def _around_texts(vocabulary: Vocabulary) -> str | None:
    for name, token, added in (
        ("BOS", vocabulary.bos, vocabulary.add_bos),
        ("EOS", vocabulary.eos, vocabulary.add_eos),
    ):
        if added and token is None:
            return f"it adds {name} to every text and has no such token"
    return None


def _attention(keys: ArchitectureKeys, shapes: Mapping[str, tuple[int, ...]]) -> str | None:
    if keys.architecture not in _FUSED:
        return None
    for layer in range(keys.number("block_count")):
        parts = {part for part in ("qkv", "q", "k", "v") if f"blk.{layer}.attn_{part}.weight" in shapes}
        if "qkv" not in parts and len(parts) < 3:
            return f"the layer {layer} has no matrices for its attention"
    return None


def _keys_and_values(keys: ArchitectureKeys, shapes: Mapping[str, tuple[int, ...]]) -> str | None:
    # What a list says of each layer is used for all where some of llama.cpp's architectures are loaded.
    heads, counts = keys.number("attention.head_count"), keys.numbers("attention.head_count_kv")
    if keys.architecture not in _SAME_HEADS or len(counts) < 2 or heads == 0:
        return None
    length = keys.number("attention.key_length", keys.number("embedding_length") // heads)
    for layer, count in enumerate(counts):
        rows = shapes.get(f"blk.{layer}.attn_k.weight", ())[1:2]
        if rows and rows[0] != count * length:
            return f"the layer {layer} has {rows[0]:,} rows for {count:,} heads of {length:,} values"
    return None


def _refuse_tensor(path: Path, tensor: Tensor) -> None:
    if tensor.elements == 0:
        raise damaged(path, f"the tensor {tensor.name[:60]!a} holds no values")
    added = len(tensor.shape) < 2 or all(extent == 1 for extent in tensor.shape[1:])
    added = added or any(part in tensor.name for part in _ADDED)
    table = any(part in tensor.name for part in _TABLES)
    if (added and tensor.kind != _F32) or (tensor.kind in _NO_WEIGHTS and not table):
        raise _wrong_type(path, tensor)


def _wrong_type(path: Path, tensor: Tensor) -> ModelFileError:
    return damaged(path, f"the tensor {tensor.name[:60]!a} cannot be {type_name(tensor.kind)}")
