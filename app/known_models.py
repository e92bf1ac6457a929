"""Pairs that go well together and are there for anyone to fetch: a first model to begin with."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class HubFile:
    """One file on the Hugging Face hub."""

    repository: str
    file: str
    size_bytes: int
    """As this was written, of some to within a megabyte; the hub is asked before anything is fetched."""
    licence: str


@dataclass(frozen=True)
class Known:
    """A target and the draft for it."""

    name: str
    target: HubFile
    draft: HubFile | None
    """None where no small model is known to share the target's vocabulary: the text so far drafts."""

    @property
    def key(self) -> str:
        """The name as it is typed: "qwen2.5-coder-7b"."""
        return self.name.lower().replace(" ", "-")

    @property
    def files(self) -> tuple[HubFile, ...]:
        """What is to be fetched, the target first."""
        return (self.target,) if self.draft is None else (self.target, self.draft)

    @property
    def size_bytes(self) -> int:
        """Of all of it."""
        return sum(file.size_bytes for file in self.files)

    @property
    def share(self) -> float:
        """The draft's bytes as a part of the target's; 0 without a draft."""
        return 0.0 if self.draft is None else self.draft.size_bytes / self.target.size_bytes

    @property
    def large_draft(self) -> bool:
        """Whether the draft is so large that it pays only where passes over several tokens are cheap."""
        # Only here, since the command line reads this module to know the names, and is to start at once.
        from ..models.pair import LARGE_DRAFT

        return self.share > LARGE_DRAFT

    @property
    def licence(self) -> str:
        """The target's licence, and the draft's where it is another."""
        if self.draft is None or self.draft.licence == self.target.licence:
            return self.target.licence
        return f"{self.target.licence} (draft: {self.draft.licence})"


def known_models() -> tuple[Known, ...]:
    """The pairs, the smallest target first."""
    return _KNOWN


_APACHE, _GEMMA = "Apache-2.0", "Gemma Terms of Use"
_LLAMA, _LLAMA31 = "Llama 3.2 Community License", "Llama 3.1 Community License"
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
# Beside 14B and more a draft of half a billion is seldom right.
_CODER_1_5B = HubFile(
    "Qwen/Qwen2.5-Coder-1.5B-Instruct-GGUF", "qwen2.5-coder-1.5b-instruct-q4_k_m.gguf", 1_117_320_768, _APACHE
)
_QWEN25_1_5B = HubFile(
    "Qwen/Qwen2.5-1.5B-Instruct-GGUF", "qwen2.5-1.5b-instruct-q4_k_m.gguf", 1_117_320_736, _APACHE
)
_QWEN3_1_7B = HubFile("unsloth/Qwen3-1.7B-GGUF", "Qwen3-1.7B-Q4_K_M.gguf", 1_107_409_472, _APACHE)
_GEMMA_1B = HubFile("ggml-org/gemma-3-1b-it-GGUF", "gemma-3-1b-it-Q4_K_M.gguf", 806_058_240, _GEMMA)
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
        _QWEN3_1_7B,
        _QWEN3_DRAFT,
    ),
    Known(
        "Qwen2.5 1.5B",
        _QWEN25_1_5B,
        _QWEN25_DRAFT,
    ),
    Known(
        "Qwen2.5-Coder 1.5B",
        _CODER_1_5B,
        _CODER_DRAFT,
    ),
    Known(
        "SmolLM3 3B",
        HubFile("ggml-org/SmolLM3-3B-GGUF", "SmolLM3-Q4_K_M.gguf", 1_915_305_312, _APACHE),
        None,
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
    Known(
        "Qwen2.5 7B",
        HubFile(
            "bartowski/Qwen2.5-7B-Instruct-GGUF", "Qwen2.5-7B-Instruct-Q4_K_M.gguf", 4_683_074_240, _APACHE
        ),
        _QWEN25_DRAFT,
    ),
    Known(
        "Llama 3.1 8B",
        HubFile(
            "bartowski/Meta-Llama-3.1-8B-Instruct-GGUF",
            "Meta-Llama-3.1-8B-Instruct-Q4_K_M.gguf",
            4_920_739_232,
            _LLAMA31,
        ),
        _LLAMA_DRAFT,
    ),
    Known(
        "Qwen3 8B",
        HubFile("Qwen/Qwen3-8B-GGUF", "Qwen3-8B-Q4_K_M.gguf", 5_027_783_488, _APACHE),
        _QWEN3_DRAFT,
    ),
    Known(
        "Gemma 3 12B",
        HubFile("ggml-org/gemma-3-12b-it-GGUF", "gemma-3-12b-it-Q4_K_M.gguf", 7_300_574_976, _GEMMA),
        _GEMMA_1B,
    ),
    Known(
        "Qwen2.5-Coder 14B",
        HubFile(
            "Qwen/Qwen2.5-Coder-14B-Instruct-GGUF",
            "qwen2.5-coder-14b-instruct-q4_k_m.gguf",
            8_988_110_000,
            _APACHE,
        ),
        _CODER_1_5B,
    ),
    Known(
        "Qwen2.5 14B",
        HubFile(
            "bartowski/Qwen2.5-14B-Instruct-GGUF", "Qwen2.5-14B-Instruct-Q4_K_M.gguf", 8_988_110_976, _APACHE
        ),
        _QWEN25_1_5B,
    ),
    Known(
        "Qwen3 14B",
        HubFile("Qwen/Qwen3-14B-GGUF", "Qwen3-14B-Q4_K_M.gguf", 9_001_752_960, _APACHE),
        _QWEN3_1_7B,
    ),
    Known(
        "Qwen3 32B",
        HubFile("Qwen/Qwen3-32B-GGUF", "Qwen3-32B-Q4_K_M.gguf", 19_762_149_024, _APACHE),
        _QWEN3_1_7B,
    ),
    Known(
        "Qwen2.5-Coder 32B",
        HubFile(
            "Qwen/Qwen2.5-Coder-32B-Instruct-GGUF",
            "qwen2.5-coder-32b-instruct-q4_k_m.gguf",
            19_851_336_000,
            _APACHE,
        ),
        _CODER_1_5B,
    ),
    Known(
        "Qwen2.5 32B",
        HubFile(
            "bartowski/Qwen2.5-32B-Instruct-GGUF", "Qwen2.5-32B-Instruct-Q4_K_M.gguf", 19_851_336_576, _APACHE
        ),
        _QWEN25_1_5B,
    ),
)
