"""What a header says of experts and of recurrent layers that llama.cpp would not survive."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable

from .architecture_keys import ArchitectureKeys

_MOST_EXPERTS = 1024

_ONLY_EXPERTS = {"bailingmoe2", "glm4moe", "grovemoe", "smallthinker"}
"""Architectures that llama.cpp loads only with experts."""

_SHARES = {"mellum", "qwen2moe", "qwen35moe", "qwen3next", "qwen3vlmoe", "qwen4exp"}
"""Architectures of which an expert is the share of a layer that each of those used has, where nothing is
said of its size."""
_SHARES_OF_EACH = {"nemotron_h", "nemotron_h_moe"}
"""Those of which each layer with a feed-forward network has shares of its own."""

_GATES = range(1, 5)
_GATED = {
    *("bailingmoe2", "bailingmoe3", "deepseek32", "dots1", "dots3note", "exaone-moe", "hy_v4", "kimi-k3"),
    *("kimi-linear", "lfm2moe", "minimax-m2", "minimax-m3", "smallthinker"),
}
"""Architectures that have their experts chosen as the file says."""
_GATED_BY_DEFAULT = {
    *("afmoe", "cohere2moe", "deepseek2", "deepseek2-ocr", "glm-dsa", "glm4moe", "glm5-next", "hy_v3"),
    *("laguna", "step35"),
}
"""Those of which the file may say 0, or nothing."""

_INTERVALS = {"minimax-01", "qwen35", "qwen35moe", "qwen3next", "qwen4exp"}
"""Architectures of which each so many layers one attends, and the others are recurrent."""

_DELTA_NETS = {"qwen35", "qwen35moe", "qwen3next", "qwen4exp"}
_STATE_SPACES = {"falcon-h1", "granitehybrid", "mamba2", "nemotron_h", "nemotron_h_moe"}
_TWICE_AS_WIDE = {"granitehybrid", "jamba"}

_RECURRENT_LAYER = re.compile(r"blk\.(\d+)\.(?:ssm_conv1d|shortconv\.conv)\.weight")


def experts(keys: ArchitectureKeys) -> str | None:
    """What is wrong with the numbers of experts, if something is."""
    count, used = keys.number("expert_count"), max(keys.numbers("expert_used_count"), default=0)
    if keys.architecture in ("hunyuan-dense", "hunyuan_vl") and count <= 1:
        return None
    groups, groups_used = keys.number("expert_group_count"), keys.number("expert_group_used_count")
    if not 0 <= count <= _MOST_EXPERTS or not min(1, count) <= used <= count:
        return f"it claims to use {used:,} of {count:,} experts"
    unequal = groups > 1 and (count % groups or not 0 < groups_used < groups)
    if not 0 <= groups < max(1, count) or unequal:
        return f"it claims {groups:,} groups of {count:,} experts"
    return _layers_of_experts(keys, count) or _gate(keys, count)


def _layers_of_experts(keys: ArchitectureKeys, count: int) -> str | None:
    layers = keys.number("block_count")
    if keys.architecture == "lfm2moe" and keys.number("leading_dense_block_count") >= layers:
        return None
    only = keys.architecture in _ONLY_EXPERTS or keys.architecture == "lfm2moe"
    if only and not (count and keys.number("expert_used_count")):
        return f"it claims to use {keys.number('expert_used_count'):,} of {count:,} experts"
    shared: list[int] = []
    if count and keys.architecture in _SHARES_OF_EACH:
        shared = [layer for layer in range(layers) if keys.of_layer("feed_forward_length", layer)]
    elif count and keys.architecture in _SHARES:
        shared = [0]
    for layer in shared:
        if not (
            keys.of_layer("expert_feed_forward_length", layer) or keys.of_layer("expert_used_count", layer)
        ):
            return f"it claims to use none of {count:,} experts in the layer {layer}"
    return None


def _gate(keys: ArchitectureKeys, count: int) -> str | None:
    gate = keys.number("expert_gating_func")
    by_default = keys.architecture in _GATED_BY_DEFAULT and gate == 0
    if not count or by_default or keys.architecture not in _GATED | _GATED_BY_DEFAULT or gate in _GATES:
        return None
    return f"it chooses experts by the function {gate:,}, which is no known one"


def recurrence(keys: ArchitectureKeys, tensors: Collection[str]) -> str | None:
    """What is wrong with the recurrent layers, if something is.

    Args:
        keys: The architecture's.
        tensors: The names of all the model's.
    """
    width, inner = keys.number("embedding_length"), keys.number("ssm.inner_size")
    if keys.architecture in _TWICE_AS_WIDE and inner != 2 * width:
        return f"its states are {inner:,} wide and not twice its layers' {width:,}"
    interval = keys.number("full_attention_interval", 1)
    if keys.architecture in _INTERVALS and interval == 0 and "attention.recurrent_layers" not in keys:
        return "it claims that each 0th of its layers attends"
    layers = sorted(int(found[1]) for name in tensors if (found := _RECURRENT_LAYER.fullmatch(name)))
    if not layers:
        return None
    return _states(keys, inner) or _missing(keys, layers, tensors)


def _states(keys: ArchitectureKeys, inner: int) -> str | None:
    heads, groups = keys.number("ssm.time_step_rank"), keys.number("ssm.group_count")
    state, span = keys.number("ssm.state_size"), keys.number("shortconv.l_cache")
    if keys.architecture in ("lfm2", "lfm2moe") and span < 2:
        return f"its convolutions span {span:,} tokens"
    delta, space = keys.architecture in _DELTA_NETS, keys.architecture in _STATE_SPACES
    if (delta or space) and not (heads > 0 and groups > 0):
        return f"it claims {heads:,} heads in {groups:,} groups for its states"
    if delta and (heads % groups or inner != heads * state):
        return f"its states are {inner:,} wide, for {heads:,} heads of {state:,} values in {groups:,} groups"
    if space and (inner % heads or inner % groups):
        return f"its states are {inner:,} wide, for {heads:,} heads in {groups:,} groups"
    return None


def _missing(keys: ArchitectureKeys, layers: Iterable[int], tensors: Collection[str]) -> str | None:
    # llama.cpp takes these for optional and misses them when they are to be used.
    for layer in layers:
        needed: tuple[str, ...] = ()
        if keys.architecture in _STATE_SPACES:
            needed = ("ssm_conv1d.bias",)
        elif keys.architecture == "qwen3next" and f"blk.{layer}.attn_qkv.weight" not in tensors:
            needed = ("ssm_in.weight",)
        elif keys.architecture in ("qwen35", "qwen35moe", "qwen3next"):
            needed = ("attn_qkv.weight", "attn_gate.weight")
        for name in needed:
            if f"blk.{layer}.{name}" not in tensors:
                return f"the layer {layer} has no tensor {name!a}"
    return None
