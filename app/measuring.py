"""What passes cost here, measured in about a second when a pair is loaded for the first time."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ..models.errors import PassError
from ..models.llama import Context

_SIZES = (1, 2, 4, 1, 2, 16, 8, 4, 3, 6, 12, 1, 5, 32)
"""In the order of what they tell: between two sizes others can be guessed, and are learned in use."""

_DRAFT_PASSES = 3

_LEAST_S = 1e-7
"""What a pass takes at the least, also by a clock that stood still meanwhile."""


class DraftFailed(PassError):
    """A pass of a draft's, when it was first used; the target is none the worse for it."""


@dataclass(frozen=True)
class MeasuredCosts:
    """Seconds of a target pass, by its size, and of a draft pass."""

    target_s: dict[int, float]
    draft_s: float | None


def measure_costs(
    target: Context,
    draft: Context | None,
    clock: Callable[[], float] = time.perf_counter,
    budget_s: float = 1.0,
) -> MeasuredCosts:
    """Run passes after what the caches hold, which is left as it was, of as many sizes as the time allows.

    Sizes 1 and 2 are measured in any case: a cache that has no room for them loses its last tokens. One
    whose model cannot forget what is decoded here loses all of them.

    Raises:
        DraftFailed: llama.cpp would not run a pass of the draft's.
        PassError: it would not run one of the target's.
    """
    for context in (target, draft):
        if context is not None:
            context.truncate(max(0, context.size - 2) if context.model.drops_suffixes else 0)
    started = clock()
    draft_s = None
    if draft is not None:
        try:
            draft_s = min(_seconds(draft, [1] * _DRAFT_PASSES, clock))
        except PassError as error:
            raise DraftFailed(str(error)) from error
    target_s: dict[int, float] = {}
    for size in _SIZES:
        guessed = max(target_s.values(), default=0.0) * max(1.0, size / max(target_s, default=1))
        expected = target_s.get(size, guessed)
        late = expected > budget_s - (clock() - started) and (size > 2 or size in target_s)
        if late or size > min(target.rows, target.rollback + 1, target.size - len(target.tokens)):
            continue
        (seconds,) = _seconds(target, [size], clock)
        target_s[size] = min(seconds, target_s.get(size, seconds))
    return MeasuredCosts(dict(sorted(target_s.items())), draft_s)


def _seconds(context: Context, sizes: Sequence[int], clock: Callable[[], float]) -> list[float]:
    """Seconds of a pass of each of these sizes."""
    held, spent_s = len(context.tokens), context.pass_s
    taken: list[float] = []
    for size in sizes:
        started = clock()
        context.decode([max(context.model.bos, 0)] * size, size)
        taken.append(max(_LEAST_S, clock() - started))
        context.truncate(held)
    context.pass_s = spent_s
    return taken
