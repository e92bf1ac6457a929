"""How a model is built, from its header: layers, heads, windows, and what each token leaves in its caches."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

_RECURRENT = frozenset(
    "mamba mamba2 rwkv6 rwkv6qwen2 rwkv7 arwkv7 jamba falcon-h1 plamo2 granitehybrid lfm2 lfm2moe nemotron_h "
    "nemotron_h_moe qwen3next kimi-linear bailingmoe3 kimi-k3 glm5-next qwen35 qwen35moe qwen4exp deepseek4 "
    "minimax-01".split()
)
"""Architectures with recurrent layers, alone or beside attention, by llama.cpp's own lists."""

_ROLLS_BACK = frozenset({"lfm2", "lfm2moe", "nemotron_h", "qwen35", "qwen35moe"})
"""Those of them whose earlier states llama.cpp keeps, as far as that was tried and found exact."""

_FEED_FORWARD_ALONE = frozenset({"nemotron_h", "nemotron_h_moe"})
"""Those of them that have layers of a feed-forward network and nothing else."""

_STATES_KEPT = 7
"""Each takes as much memory as the state itself."""

_RECURRENT_TOKEN_SHIFTS = 2
_GEMMA_3N_OWN_CACHES = 20


@dataclass(frozen=True)
class Shape:
    """The figures of a model's build; 0 is what the header does not say or the model does not have."""

    heads: int = 0
    """Of the layer that has most."""
    kv_heads: int = 0
    key_length: int = 0
    """Values of one head's key."""
    value_length: int = 0
    feed_forward_length: int = 0
    """Of the layer that has most; of one expert where there are experts."""
    sliding_window: int = 0
    rope_base: float = 0.0
    rope_dimensions: int = 0
    rope_scaling: str = ""
    experts: int = 0
    experts_used: int = 0
    cache_widths: tuple[tuple[int, int], ...] = ()
    """Of each layer that has a cache, how many values of K and of V a token takes there."""
    state_values: int = 0
    """Of recurrent layers, values of state for each sequence, however long it is."""
    recurrent: bool = False
    """Whether there are recurrent layers: their state has no tokens in it that could be forgotten."""
    rollback: int = 0
    """Where there are, the most tokens of a draft that can be forgotten all the same, by states kept."""

    @property
    def tests_drafts(self) -> bool:
        """Whether drafted tokens can be tested: those that are refused have to be forgotten."""
        return not self.recurrent or self.rollback > 0


class Keys(Protocol):
    """A header's keys, each asked for as the type it has to be; an absent one is empty or 0."""

    def text(self, key: str) -> str: ...  # noqa: D102
    def number(self, key: str) -> int: ...  # noqa: D102
    def fraction(self, key: str) -> float: ...  # noqa: D102
    def numbers(self, key: str, count: int, default: int) -> tuple[int, ...]:
        """One number for each of `count` layers, whether the key has one for all or a list."""
        ...


def shape_of(architecture: str, keys: Keys) -> Shape:
    """What the keys say, with llama.cpp's defaults where they are silent."""

    def number(key: str) -> int:
        return keys.number(f"{architecture}.{key}")

    layers = number("block_count")
    heads = keys.numbers(f"{architecture}.attention.head_count", layers, 0)
    most_heads = max(heads, default=0)
    head_length = number("embedding_length") // most_heads if most_heads else 0
    key_length = number("attention.key_length") or head_length
    value_length = number("attention.value_length") or head_length
    experts = number("expert_count")
    feed_forward = max(keys.numbers(f"{architecture}.feed_forward_length", layers, 0), default=0)
    widths = _cache_widths(architecture, keys, layers, heads, key_length, value_length)
    return Shape(
        heads=most_heads,
        kv_heads=max(_kv_heads(architecture, keys, heads), default=0),
        key_length=key_length,
        value_length=value_length,
        feed_forward_length=(experts and number("expert_feed_forward_length")) or feed_forward,
        sliding_window=number("attention.sliding_window"),
        rope_base=keys.fraction(f"{architecture}.rope.freq_base"),
        rope_dimensions=number("rope.dimension_count"),
        rope_scaling=keys.text(f"{architecture}.rope.scaling.type"),
        experts=experts,
        experts_used=number("expert_used_count"),
        cache_widths=tuple(width for width in widths if width != (0, 0)),
        state_values=_state_values(number, _recurrent_layers(architecture, keys, widths)),
        recurrent=architecture in _RECURRENT,
        rollback=_STATES_KEPT if architecture in _ROLLS_BACK else 0,
    )


def _kv_heads(architecture: str, keys: Keys, heads: tuple[int, ...]) -> tuple[int, ...]:
    counts = keys.numbers(f"{architecture}.attention.head_count_kv", len(heads), -1)
    return tuple(own if own >= 0 else many for own, many in zip(counts, heads, strict=True))


def _cache_widths(
    architecture: str, keys: Keys, layers: int, heads: tuple[int, ...], key_length: int, value_length: int
) -> list[tuple[int, int]]:
    """Of every layer, (0, 0) where it has no cache: it is recurrent, or reads that of an earlier one."""

    def number(key: str) -> int:
        return keys.number(f"{architecture}.{key}")

    kv_heads = _kv_heads(architecture, keys, heads)
    # A pattern that is a single number says how often a window recurs; the heads are the same then.
    windowed = keys.numbers(f"{architecture}.attention.sliding_window_pattern", layers, 0)
    in_window = windowed if set(windowed) <= {0, 1} else (0,) * layers
    window_key = number("attention.key_length_swa") or key_length
    window_value = number("attention.value_length_swa") or value_length
    latent = number("attention.key_length_mla") > 0 and number("attention.value_length_mla") > 0
    own = layers - number("nextn_predict_layers") - number("attention.shared_kv_layers")
    if architecture == "gemma3n":
        own = min(own, _GEMMA_3N_OWN_CACHES)
    interval = number("full_attention_interval")
    widths: list[tuple[int, int]] = []
    for layer, count in enumerate(kv_heads):
        key, value = (window_key, window_value) if in_window[layer] else (key_length, value_length)
        attends = layer < own and (interval == 0 or (layer + 1) % interval == 0)
        # Latent attention reads its values out of the keys' cache.
        widths.append((count * key, 0 if latent else count * value) if attends else (0, 0))
    return widths


def _recurrent_layers(architecture: str, keys: Keys, widths: list[tuple[int, int]]) -> int:
    """How many layers have a state, should any: those without a cache, or all where all have one."""
    without_cache = [layer for layer, width in enumerate(widths) if width == (0, 0)]
    if architecture in _FEED_FORWARD_ALONE:
        feed_forward = keys.numbers(f"{architecture}.feed_forward_length", len(widths), 0)
        without_cache = [layer for layer in without_cache if feed_forward[layer] == 0]
    return len(without_cache) or len(widths)


def _state_values(number: Callable[[str], int], layers: int) -> int:
    width = number("embedding_length")
    if number("wkv.head_size"):
        values = (_RECURRENT_TOKEN_SHIFTS + number("wkv.head_size")) * width
    elif number("shortconv.l_cache"):
        values = (number("shortconv.l_cache") - 1) * width
    elif number("ssm.state_size"):
        inner, state = number("ssm.inner_size"), number("ssm.state_size")
        convolved = inner + 2 * number("ssm.group_count") * state
        values = max(0, number("ssm.conv_kernel") - 1) * convolved + state * inner
    else:
        return 0
    return values * layers
