"""Pairs that go well together and are there for anyone to fetch: a first model to begin with."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class HubFile:
    """One file on the Hugging Face hub."""

    repository: str
    file: str
    size_bytes: int
    """As this was written; the hub is asked before anything is fetched."""
    licence: str


@dataclass(frozen=True)
class Known:
    """A target and the draft for it."""

    name: str
    target: HubFile
    draft: HubFile

    @property
    def share(self) -> float:
        """The draft's bytes as a part of the target's."""
        return self.draft.size_bytes / self.target.size_bytes


def known_models() -> tuple[Known, ...]:
    """The pairs, the smallest first."""
    return _KNOWN


_APACHE, _LLAMA, _GEMMA = "Apache-2.0", "Llama 3.2 Community License", "Gemma Terms of Use"
_QWEN = "Qwen Research License, no commercial use"

_SMOL_DRAFT = HubFile(
    "bartowski/SmolLM2-135M-Instruct-GGUF", "SmolLM2-135M-Instruct-Q4_K_M.gguf", 105_454_432, _APACHE
)
_CODER_DRAFT = HubFile(
    "Qwen/Qwen2.5-Coder-0.5B-Instruct-GGUF", "qwen2.5-coder-0.5b-instruct-q4_0.gguf", 428_730_240, _APACHE
)
_QWEN25_DRAFT = HubFile(
    "Qwen/Qwen2.5-0.5B-Instruct-GGUF", "qwen2.5-0.5b-instruct-q4_0.gguf", 428_730_208, _APACHE
)
_QWEN3_DRAFT = HubFile("unsloth/Qwen3-0.6B-GGUF", "Qwen3-0.6B-Q4_K_M.gguf", 396_705_472, _APACHE)
_LLAMA_DRAFT = HubFile(
    "bartowski/Llama-3.2-1B-Instruct-GGUF", "Llama-3.2-1B-Instruct-Q4_K_M.gguf", 807_694_464, _LLAMA
)
_GEMMA_DRAFT = HubFile("ggml-org/gemma-3-270m-it-GGUF", "gemma-3-270m-it-Q8_0.gguf", 291_545_600, _GEMMA)

_KNOWN = (
    Known(
        "SmolLM2 1.7B",
        HubFile(
            "bartowski/SmolLM2-1.7B-Instruct-GGUF",
            "SmolLM2-1.7B-Instruct-Q4_K_M.gguf",
            1_055_609_824,
            _APACHE,
        ),
        _SMOL_DRAFT,
    ),
    Known(
        "Qwen3 1.7B",
        HubFile("unsloth/Qwen3-1.7B-GGUF", "Qwen3-1.7B-Q4_K_M.gguf", 1_107_409_472, _APACHE),
        _QWEN3_DRAFT,
    ),
    Known(
        "Qwen2.5 1.5B",
        HubFile(
            "Qwen/Qwen2.5-1.5B-Instruct-GGUF", "qwen2.5-1.5b-instruct-q4_k_m.gguf", 1_117_320_736, _APACHE
        ),
        _QWEN25_DRAFT,
    ),
    Known(
        "Qwen2.5-Coder 1.5B",
        HubFile(
            "Qwen/Qwen2.5-Coder-1.5B-Instruct-GGUF",
            "qwen2.5-coder-1.5b-instruct-q4_k_m.gguf",
            1_117_320_768,
            _APACHE,
        ),
        _CODER_DRAFT,
    ),
    Known(
        "Llama 3.2 3B",
        HubFile(
            "bartowski/Llama-3.2-3B-Instruct-GGUF", "Llama-3.2-3B-Instruct-Q4_K_M.gguf", 2_019_377_696, _LLAMA
        ),
        _LLAMA_DRAFT,
    ),
    Known(
        "Qwen2.5 3B",
        HubFile("Qwen/Qwen2.5-3B-Instruct-GGUF", "qwen2.5-3b-instruct-q4_k_m.gguf", 2_104_932_768, _QWEN),
        _QWEN25_DRAFT,
    ),
    Known(
        "Gemma 3 4B",
        HubFile("ggml-org/gemma-3-4b-it-GGUF", "gemma-3-4b-it-Q4_K_M.gguf", 2_489_757_856, _GEMMA),
        _GEMMA_DRAFT,
    ),
    Known(
        "Qwen3 4B",
        HubFile("Qwen/Qwen3-4B-GGUF", "Qwen3-4B-Q4_K_M.gguf", 2_497_280_256, _APACHE),
        _QWEN3_DRAFT,
    ),
    Known(
        "Qwen2.5-Coder 7B",
        HubFile(
            "Qwen/Qwen2.5-Coder-7B-Instruct-GGUF",
            "qwen2.5-coder-7b-instruct-q4_k_m.gguf",
            4_683_073_536,
            _APACHE,
        ),
        _CODER_DRAFT,
    ),
)
