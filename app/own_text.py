"""What a model writes by itself to a few prompts, and how often a draft would have guessed each token.

A draft reads the text that the model wrote, not its own guesses, so all its guesses come from a few long
passes; at temperature 0 a guess that equals the token is one that would have been accepted.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ..models.llama import Context, Model
from ..models.memory import ContextSettings
from .conversation import Template, build_prompt
from .requests import Turn

PROMPTS = {
    "code": "Write a Python function that reads a CSV file and returns its rows as dictionaries.",
    "edit": "Rename total to amount in this code and write all of it again:\n\n"
    "def total(items):\n    total = 0\n    for price, count in items:\n        total += price * count\n"
    "    return total\n",
    "data": "List the planets of the solar system as a JSON array of objects with name and radius_km.",
    "question": "Why is the sky blue and the sunset red? Explain it to a student.",
    "prose": "Begin a short story about a lighthouse keeper who finds a letter on the beach.",
}
"""A prompt of each kind, by its kind: from where drafts are guessed right most to where least."""

_ROWS = 64
"""Rows of logits that a pass gives: each takes a vocabulary of memory."""

_CHUNK = 128


@dataclass(frozen=True)
class Sample:
    """A prompt, and what the model answered at temperature 0."""

    kind: str
    prompt: tuple[int, ...]
    answer: tuple[int, ...]


def context_settings(size: int) -> ContextSettings:
    """What decides how much memory a context for measuring takes."""
    return ContextSettings(size, _CHUNK, _ROWS)


@contextlib.contextmanager
def opened(path: Path, threads: int, gpu_layers: int, size: int) -> Generator[Context, None, None]:
    """A model's context for measuring and guessing.

    Raises:
        LoadError: llama.cpp would not load it.
    """
    with Model(path, gpu_layers=gpu_layers) as model:
        context = Context(model, size=size, threads=threads, chunk=_CHUNK, rows=_ROWS)
        try:
            yield context
        finally:
            context.close()


def write_samples(
    context: Context, template: Template, tokens: int, on_token: Callable[[int], None]
) -> tuple[Sample, ...]:
    """Let the model answer each prompt, with so many tokens at most; `on_token` is told how many there are,
    and may raise to stop.

    Raises:
        PassError: llama.cpp would not run a pass.
        TemplateError: The chat template refuses the prompts.
        ContextFullError: A prompt does not fit.
    """
    samples: list[Sample] = []
    written = 0
    for kind, text in PROMPTS.items():
        prompt = build_prompt((Turn("user", text),), template, context.model, context.size).tokens
        context.truncate(0)
        _read(context, prompt[:-1])
        answer: list[int] = []
        token = prompt[-1]
        while len(answer) < tokens and len(context.tokens) < context.size:
            token = int(context.decode([token], 1)[0].argmax())
            if context.model.ends_generation(token):
                break
            answer.append(token)
            written += 1
            on_token(written)
        if answer:
            samples.append(Sample(kind, tuple(prompt), tuple(answer)))
    return tuple(samples)


def guesses(
    context: Context, samples: Sequence[Sample], check: Callable[[], None] = lambda: None
) -> tuple[tuple[bool, ...], ...]:
    """For each token of each answer, whether it is this model's likeliest one after the text before it.

    `check` is called between passes, and may raise to stop.

    Raises:
        PassError: llama.cpp would not run a pass.
    """
    found: list[tuple[bool, ...]] = []
    for sample in samples:
        context.truncate(0)
        _read(context, sample.prompt[:-1])
        text = (sample.prompt[-1], *sample.answer[:-1])
        right: list[bool] = []
        for start in range(0, len(text), context.rows):
            check()
            part = text[start : start + context.rows]
            likeliest = context.decode(part, len(part)).argmax(axis=1)
            right += np.equal(likeliest, sample.answer[start : start + len(part)]).tolist()
        found.append(tuple(right))
    return tuple(found)


def agreement(guessed: Sequence[Sequence[bool]]) -> float:
    """The share of all tokens that were guessed right."""
    count = sum(map(len, guessed))
    return sum(map(sum, guessed)) / count if count else 0.0


def agreement_by_kind(samples: Sequence[Sample], guessed: Sequence[Sequence[bool]]) -> dict[str, float]:
    """The same for each kind of prompt."""
    return {sample.kind: agreement([right]) for sample, right in zip(samples, guessed, strict=True)}


def _read(context: Context, tokens: Sequence[int]) -> None:
    for start in range(0, len(tokens), context.chunk):
        context.decode(tokens[start : start + context.chunk], 0)
