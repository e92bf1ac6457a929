"""What the engine is told, and what it says: frozen, picklable, nothing of llama.cpp or the screen.

A chat sends `Load` once (again to switch models), then one `Ask` per prompt; each is answered by a
stream of events that ends with exactly one `Loaded`, `Finished` or `Failed`. `Cancel` ends a running
answer within a round and a running load within a moment.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from .decoding.stats import AnswerStats, FinishReason, Origin, State
from .requests import AnswerOptions, Drafting, LoadOptions, Turn

ContextRole = Literal["target", "draft"]


@dataclass(frozen=True)
class Load:
    """Load a target and perhaps a draft, in place of what is loaded; what both have stays loaded."""

    options: LoadOptions
    drafting: Drafting = field(default_factory=Drafting)
    """What the first answer will be drafted with, so that `Loaded` can say what stands in the way."""


@dataclass(frozen=True)
class Ask:
    """Answer the last of these turns."""

    turns: tuple[Turn, ...]
    options: AnswerOptions
    afresh: bool = False
    """Read the whole prompt, also what the caches hold of it: answers that are compared start alike."""


@dataclass(frozen=True)
class Cancel:
    """Stop the running answer or load."""


@dataclass(frozen=True)
class Quit:
    """Close the models and end."""


Command = Load | Ask | Cancel | Quit


@dataclass(frozen=True)
class ModelInfo:
    """What is loaded, for a person to read."""

    name: str
    path: str
    quantization: str
    size_bytes: int
    parameters: int
    train_context: int


@dataclass(frozen=True)
class LoadProgress:
    """How much of one model's weights has been read, from 0 to 1."""

    role: ContextRole
    name: str
    fraction: float


@dataclass(frozen=True)
class Loaded:
    """Both models are ready."""

    target: ModelInfo
    draft: ModelInfo | None
    context_size: int
    threads: int
    devices: tuple[str, ...]
    warnings: tuple[str, ...]
    """What fits less than well about this pair, one sentence each."""
    state: State
    reason: str
    """What the state line says before the first answer."""


@dataclass(frozen=True)
class PrefillProgress:
    """How far the prompt has been read by one context."""

    role: ContextRole
    done: int
    """Prompt tokens decoded by this prefill so far."""
    total: int
    """Prompt tokens this prefill has to decode; those reused from the cache are not among them."""
    reused: int
    """Prompt tokens that were already in the cache."""


@dataclass(frozen=True)
class Piece:
    """A stretch of text that one token completed."""

    text: str
    origin: Origin


@dataclass(frozen=True)
class Progress:
    """The text of one round, and the figures after it."""

    pieces: tuple[Piece, ...]
    stats: AnswerStats
    live_tokens_per_second: float | None
    """Over the last two seconds."""
    context_used: int
    context_size: int
    in_thought: bool = False
    """Whether the answer's text began inside a thought, whose opening tag was the end of the prompt."""


@dataclass(frozen=True)
class Finished:
    """The answer has ended."""

    reason: FinishReason
    text: str
    token_ids: tuple[int, ...]
    prompt_tokens: int
    dropped_turns: int
    """How many of the oldest turns no longer fitted the context and were not sent."""
    stats: AnswerStats
    context_used: int
    context_size: int
    in_thought: bool = False
    """Whether the text began inside a thought, whose opening tag was the end of the prompt."""
    ids_are_text: bool = True
    """Whether the ids are those of all of the text: a stop text may begin inside of a token's."""


@dataclass(frozen=True)
class Failed:
    """The command could not be carried out; the engine is still there."""

    message: str
    traceback: tuple[str, ...] = ()
    """Where it came from, if it should not have happened."""


@dataclass(frozen=True)
class Died:
    """The engine's process is gone; a new one has to be started. Said by the client, not the engine."""

    message: str
    log: tuple[str, ...] = ()
    """The last lines that it logged or printed."""


Event = LoadProgress | Loaded | PrefillProgress | Progress | Finished | Failed | Died
