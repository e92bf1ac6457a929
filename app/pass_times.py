"""Passes of several models taken in turn, so that a slow moment of the machine meets all of them."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass, field

from ..models.llama import Context

_DEPTH = 64
"""Tokens that the caches hold meanwhile."""

_PASSES = 4
"""Passes of one token in a row, as a draft runs them."""

PREFILL = 64
"""Tokens of a prefill pass."""


@dataclass
class Timed:
    """Seconds that one model's passes took."""

    single_s: list[float] = field(default_factory=list[float])
    prefill_s: list[float] = field(default_factory=list[float])


def take_turns(contexts: Sequence[Context], timed: Sequence[Timed], rounds: int) -> None:
    """Run rounds of passes, all models in each round, and add what they took."""
    for context in contexts:
        context.truncate(0)
        filler = max(context.model.bos, 0)
        context.decode([filler] * min(_DEPTH, context.chunk), 0)
        _seconds(context, [filler])  # the first pass of a size sets up its buffers
    for round_number in range(rounds):
        for place in range(len(contexts)):
            # Each begins a round in its turn: whoever follows a prefill finds other things in the caches.
            index = (place + round_number) % len(contexts)
            context, times = contexts[index], timed[index]
            filler = max(context.model.bos, 0)
            times.single_s += [_seconds(context, [filler]) for _ in range(_PASSES)]
            times.prefill_s.append(_seconds(context, [filler] * min(PREFILL, context.chunk)))


def ratio(timed: Timed, to: Timed) -> float:
    """How long a pass of one token takes against another's of the same rounds: the median over them."""
    rounds = [
        statistics.median(ours) / statistics.median(theirs)
        for ours, theirs in zip(_by_round(timed.single_s), _by_round(to.single_s), strict=True)
    ]
    return statistics.median(rounds)


def _by_round(seconds: Sequence[float]) -> list[Sequence[float]]:
    return [seconds[start : start + _PASSES] for start in range(0, len(seconds), _PASSES)]


def _seconds(context: Context, tokens: Sequence[int]) -> float:
    held, before = len(context.tokens), context.pass_s
    context.decode(tokens, 1)
    seconds = context.pass_s - before
    context.truncate(held)
    return seconds
