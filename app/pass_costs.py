"""What passes of each size cost, measured in sweeps over all sizes: an answer can be counted in them."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from ..models.llama import Context

Seconds = Mapping[int, float]
"""Of a pass, by the tokens in it."""

_DEPTH = 96
"""Tokens that the caches hold while it is measured: about what a short prompt has."""

_TARGET_SIZES = (1, 5, 2, 8, 3, 4, 6, 16, 12, 32, 24)
"""In the order of what they tell: between two sizes the cost lies on a line."""

_FIRST_SIZES = 2
"""Of these the first are measured in any case."""

_DRAFT_SIZES = (1, 2, 4, 16)
_MOST_SWEEPS = 7


@dataclass(frozen=True)
class Costs:
    """Medians over the sweeps."""

    target_s: dict[int, float]
    drafts_s: tuple[dict[int, float], ...]
    """One for each draft, in their order."""


def sweep_costs(
    target: Context,
    drafts: Sequence[Context],
    clock: Callable[[], float],
    budget_s: float,
    cancelled: Callable[[], bool] = lambda: False,
) -> Costs | None:
    """Run a pass of every size in turn, again while the time allows: a slow moment touches all sizes alike.

    Where even one sweep does not fit into the time, the sizes that tell least are left out. At the end the
    caches are empty but for some tokens. `None` where it was cancelled before enough was known.
    """
    sizes = [
        (context, [size for size in wanted if _depth(context) + size <= context.size])
        for context, wanted in [(target, _TARGET_SIZES), *((draft, _DRAFT_SIZES) for draft in drafts)]
    ]
    for context, _ in sizes:
        context.truncate(0)
        held = _tokens(context, _depth(context))
        for start in range(0, len(held), context.chunk):
            context.decode(held[start : start + context.chunk], 0)
    seen: list[dict[int, list[float]]] = [{size: [] for size in wanted} for _, wanted in sizes]
    started = clock()
    for sweep in range(_MOST_SWEEPS):
        spent = clock() - started
        if sweep and (cancelled() or spent + spent / sweep > budget_s):
            break
        for (context, wanted), found in zip(sizes, seen, strict=True):
            for place, size in enumerate(wanted):
                if cancelled():
                    return None if sweep == 0 else _medians(seen)
                if sweep == 0 and place >= _FIRST_SIZES and clock() - started > budget_s:
                    break
                found[size].append(_seconds(context, size, clock))
    return _medians(seen)


def _medians(seen: Sequence[Mapping[int, Sequence[float]]]) -> Costs:
    medians = [
        {size: statistics.median(found[size]) for size in sorted(found) if found[size]} for found in seen
    ]
    return Costs(medians[0], tuple(medians[1:]))


def cost(costs: Seconds, size: int) -> float:
    """Seconds of a pass of this size, on the line between the sizes that were measured.

    Beyond the largest it is as dear by the token as that one.
    """
    below = max((one for one in costs if one <= size), default=min(costs))
    above = min((one for one in costs if one >= size), default=below)
    if above == below:
        return costs[below] * size / below
    share = (size - below) / (above - below)
    return costs[below] + share * (costs[above] - costs[below])


def spent(costs: Seconds, passes: Mapping[int, int]) -> float:
    """Seconds that these passes, by their size, cost."""
    return sum(count * cost(costs, size) for size, count in passes.items())


def _depth(context: Context) -> int:
    return min(_DEPTH, context.size // 2)


def _tokens(context: Context, count: int) -> list[int]:
    return [index % context.model.vocabulary_size for index in range(count)]


def _seconds(context: Context, size: int, clock: Callable[[], float]) -> float:
    held = len(context.tokens)
    started = clock()
    context.decode(_tokens(context, size), min(size, context.rows))
    taken = clock() - started
    context.truncate(held)
    return taken
