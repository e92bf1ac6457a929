"""What an answer is asked with: turns, sampling, drafting; and what a pair is loaded with."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from .decoding.settings import Sampling

Role = Literal["system", "user", "assistant"]
Speculate = Literal["auto", "always", "off"]
DrafterKind = Literal["model", "lookup", "both"]
DraftSampling = Literal["auto", "sampled", "argmax"]

MAX_DRAFT = 32
"""The most tokens of one draft."""


@dataclass(frozen=True)
class Turn:
    """One message of a conversation; an answer keeps the token ids it was decoded as."""

    role: Role
    text: str
    token_ids: tuple[int, ...] = ()
    in_thought: bool = False
    """Whether the text begins inside a thought, whose opening tag was the end of the prompt."""


@dataclass(frozen=True)
class Drafting:
    """How drafts are made and how long they may be."""

    speculate: Speculate = "auto"
    drafter: DrafterKind = "both"
    draft_max: int | None = None
    """The most tokens of one draft; `None` is as many as pay, and 4 where drafts are always made."""
    draft_p_min: float | None = None
    """Drafting always stops before a token of less confidence than this; `None` is 0.5. What `auto` drafts
    is weighed token by token instead."""
    draft_sampling: DraftSampling = "auto"
    """Above temperature 0: how a draft's token is taken from its distribution."""
    strict: bool = False
    """Only passes that are found to round like plain ones: the text is bit for bit the plain one."""


@dataclass(frozen=True)
class AnswerOptions:
    """Everything that shapes one answer."""

    sampling: Sampling = field(default_factory=Sampling)
    drafting: Drafting = field(default_factory=Drafting)
    max_tokens: int | None = None
    """The most tokens to emit; `None` leaves the context as the only limit."""


@dataclass(frozen=True)
class LoadOptions:
    """Which models to load and how; a zero leaves the choice to specchat."""

    target: str
    draft: str | None = None
    ctx_size: int = 0
    threads: int = 0
    gpu_layers: int = -1
    gpu_layers_draft: int = -1
    cache_type_k: str = "f16"
    cache_type_v: str = "f16"
    flash_attn: Literal["auto", "on", "off"] = "auto"
    chat_template: str | None = None
    """The text of a jinja template that replaces the model's own, or the name of a built-in one."""
    memory_check: bool = True
    """Whether to refuse what would take more memory than is available."""
