"""Writes tiny GGUF models, a few hundred KB, that the real llama.cpp loads and runs in a fraction of a ms."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import gguf
import numpy as np

LAYERS, WIDTH, HEADS, FEED_FORWARD, TRAIN_CONTEXT = 2, 64, 4, 128, 2048

EXACT = {"flash_attn": "off", "cache_type_k": "f32", "cache_type_v": "f32"}
"""Context settings under which nothing is rounded to half precision."""

SPECIAL_TOKENS = ("<|im_start|>", "<|im_end|>", "<|endoftext|>")
END_OF_TEXT = 256 + SPECIAL_TOKENS.index("<|endoftext|>")
END_OF_TURN = 256 + SPECIAL_TOKENS.index("<|im_end|>")

CHATML = (
    "{% for message in messages %}<|im_start|>{{ message['role'] }}\n{{ message['content'] }}<|im_end|>\n"
    "{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)


@dataclass(frozen=True)
class TinyPair:
    target: Path
    draft: Path


def byte_tokens() -> list[str]:
    """GPT-2's printable stand-ins for the 256 bytes, by byte."""
    printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = [byte for byte in range(256) if byte not in printable]
    characters = {byte: chr(byte) for byte in printable}
    characters |= {byte: chr(256 + index) for index, byte in enumerate(others)}
    return [characters[byte] for byte in range(256)]


def write_tiny_model(
    path: Path,
    *,
    seed: int = 1,
    noise: float = 0.0,
    sharpness: float = 6.0,
    ends: bool = False,
    dtype: type[np.floating] = np.float32,
    template: str | None = CHATML,
    extra_tokens: int = 0,
    name: str = "Tiny",
    architecture: str = "llama",
    add_bos: bool = False,
    special_tokens: tuple[str, ...] = (),
    layers: int = LAYERS,
    idle_layers: tuple[int, ...] = (),
) -> Path:
    """Write a llama-architecture model with random weights.

    `noise` disturbs the weights that `seed` gives: a draft is its target plus noise. `sharpness` scales the
    output matrix. The token that ends a turn is as likely as any other where the model `ends`, else rare.
    `idle_layers` pass on what they are given.
    """
    weights = np.random.default_rng(seed)
    disturbance = np.random.default_rng(seed + 1000)
    writer = gguf.GGUFWriter(path, architecture)
    writer.add_name(name)
    writer.add_context_length(TRAIN_CONTEXT)
    writer.add_embedding_length(WIDTH)
    writer.add_block_count(layers)
    writer.add_feed_forward_length(FEED_FORWARD)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(HEADS)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_rope_dimension_count(WIDTH // HEADS)
    writer.add_file_type(0 if dtype is np.float32 else 1)
    tokens = [
        *byte_tokens(),
        *SPECIAL_TOKENS,
        *(f"<extra{index}>" for index in range(extra_tokens)),
        *special_tokens,
    ]
    control = int(gguf.TokenType.CONTROL)
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("gpt-2")
    writer.add_token_list(tokens)
    writer.add_token_types([int(gguf.TokenType.NORMAL)] * 256 + [control] * (len(tokens) - 256))
    writer.add_token_merges(["h e"])
    writer.add_bos_token_id(END_OF_TEXT)
    writer.add_eos_token_id(END_OF_TURN)
    writer.add_add_bos_token(add_bos)
    if template is not None:
        writer.add_chat_template(template)

    idle = {f"blk.{layer}.{part}.weight" for layer in idle_layers for part in ("attn_output", "ffn_down")}

    def tensor(name: str, *shape: int, scale: float) -> None:
        values = weights.standard_normal(shape)
        values += noise * disturbance.standard_normal(shape)
        if name in idle:
            values[:] = 0.0
        if name == "output.weight":
            rare = [token for token in range(256, len(tokens)) if not (ends and token == END_OF_TURN)]
            values[rare] *= 0.05
        writer.add_tensor(name, (values * scale).astype(dtype if len(shape) > 1 else np.float32))

    def norm(name: str) -> None:
        writer.add_tensor(name, np.ones(WIDTH, np.float32))

    tensor("token_embd.weight", len(tokens), WIDTH, scale=1.0)
    for layer in range(layers):
        norm(f"blk.{layer}.attn_norm.weight")
        for part in ("q", "k", "v", "output"):
            tensor(f"blk.{layer}.attn_{part}.weight", WIDTH, WIDTH, scale=WIDTH**-0.5)
        norm(f"blk.{layer}.ffn_norm.weight")
        tensor(f"blk.{layer}.ffn_gate.weight", FEED_FORWARD, WIDTH, scale=WIDTH**-0.5)
        tensor(f"blk.{layer}.ffn_up.weight", FEED_FORWARD, WIDTH, scale=WIDTH**-0.5)
        tensor(f"blk.{layer}.ffn_down.weight", WIDTH, FEED_FORWARD, scale=FEED_FORWARD**-0.5)
    norm("output_norm.weight")
    tensor("output.weight", len(tokens), WIDTH, scale=sharpness * WIDTH**-0.5)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def write_tiny_pair(folder: Path, *, noise: float = 0.15, **settings: object) -> TinyPair:
    """A target, and a draft that is the target plus noise."""
    return TinyPair(
        target=write_tiny_model(folder / "target.gguf", name="Tiny", **settings),  # type: ignore[arg-type]
        draft=write_tiny_model(folder / "draft.gguf", name="Tiny", noise=noise, **settings),  # type: ignore[arg-type]
    )
