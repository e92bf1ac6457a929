"""Whether layers can be left out of a model: only where no layer depends on its own number."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence

from .derived import ranges
from .errors import ModelFileError
from .gguf_layout import Layout, shown

_PLAIN = {
    *("llama", "arcee", "mistral3", "granite", "granitemoe", "seed_oss", "hunyuan-dense"),
    *("qwen", "qwen2", "qwen2moe", "qwen3", "qwen3moe", "internlm2", "chatglm", "glm4", "orion", "xverse"),
    *("phi2", "phi3", "phimoe", "gemma", "olmo", "olmo2", "olmoe", "exaone", "nemotron", "ernie4_5"),
    *("falcon", "stablelm", "starcoder", "starcoder2", "gptneox", "codeshell", "gpt2"),
}
"""Architectures that llama.cpp runs without asking a layer for its number, but for what the file lists."""

_COUNTED = (
    "attention.sliding_window_pattern",
    "leading_dense_block_count",
    "nextn_predict_layers",
    "full_attention_interval",
    "expert_offset",
)
"""Keys by which a file makes layers differ by their number."""

_WINDOWS_BY_NUMBER = {"olmo2"}
"""Architectures that lay their sliding windows by the layers' numbers, where a file has windows at all."""

_OF_A_LAYER = re.compile(r"blk\.(?P<layer>\d+)\.(?P<part>.+)")


def refuse_unprunable(layout: Layout, skipped: Sequence[int]) -> None:
    """Say why these layers cannot be left out, if they cannot.

    Raises:
        ModelFileError: There are no such layers, none would be left, or a layer's work depends on its
            number, so that those behind would do another's.
    """
    name, architecture = shown(layout.path), str(layout.values.get("general.architecture"))
    layers = layout.values.get(f"{architecture}.block_count")
    if not isinstance(layers, int) or layers < 1:
        raise ModelFileError(f"{name} does not say how many layers it has; none can be left out")
    beyond = [layer for layer in skipped if not 0 <= layer < layers]
    if beyond:
        raise ModelFileError(f"{name} has layers 0-{layers - 1}, and no {ranges(beyond)}; name others")
    if len(set(skipped)) == layers:
        raise ModelFileError(f"these are all {layers} layers of {name}; leave some")
    reason = _reason(layout, architecture, layers)
    if reason is not None:
        raise ModelFileError(f"no layers can be left out of {name}: {reason}")


def _reason(layout: Layout, architecture: str, layers: int) -> str | None:
    named = ascii(architecture)[1:-1]
    windows = layout.values.get(f"{architecture}.attention.sliding_window")
    if architecture not in _PLAIN or (architecture in _WINDOWS_BY_NUMBER and windows):
        return f"in the architecture {named} what a layer does may depend on its number"
    for key in _COUNTED:
        if layout.values.get(f"{architecture}.{key}"):
            return f"its layers differ by their number ({key})"
    for key, length in layout.array_lengths.items():
        if key.startswith(f"{architecture}.") and length >= layers:
            return f"{key.removeprefix(f'{architecture}.')[:60]!a} lists what each layer is"
    parts: defaultdict[str, set[object]] = defaultdict(set)
    for tensor in layout.tensors:
        found = _OF_A_LAYER.fullmatch(tensor.name)
        if found is not None:
            parts[found["layer"]].add((found["part"], tensor.shape))
    if len(parts) != layers or len({frozenset(tensors) for tensors in parts.values()}) > 1:
        return "its layers are not all of one shape"
    return None
