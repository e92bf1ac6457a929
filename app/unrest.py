"""Whether a machine was at rest while it was measured, by figures that contradict each other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from .comparison import PassCosts, Row

_FALL = 0.75
"""A pass over more tokens may take a little less, where kernels work in fours, but not so much less."""

_LEAST_S = 0.002
"""Of passes shorter than this the time is mostly what goes on around them."""

_APART = 1.3
"""Clock and counted passes differ by less than this on a machine that does nothing else."""


def unrest(rows: Sequence[Row], costs: Sequence[PassCosts]) -> str | None:
    """What says that the machine did something else meanwhile, in a sentence; `None` where nothing does."""
    lasting = [cost for cost in costs if cost.target_s.get(1, 0.0) >= _LEAST_S]
    for cost in lasting:
        if (fall := falling(cost.target_s)) is not None:
            more, fewer, share = fall
            return (
                f"The machine was not at rest: a pass over {more} tokens took {share:.2f} times one over "
                f"{fewer}, which cannot be. Measure again while nothing else runs."
            )
    if len(lasting) < len(costs):
        return None
    apart = 1.0
    for row in rows:
        if row.kind is not None and row.speedup is not None and row.counted_speedup is not None:
            ratio = row.speedup.median / row.counted_speedup.median
            apart = max(apart, ratio, 1.0 / ratio)
    if apart > _APART:
        return (
            f"The machine was not at rest: what the clock says and what the passes say differ by {apart:.1f} "
            "times. Measure again while nothing else runs."
        )
    return None


def falling(seconds: Mapping[int, float]) -> tuple[int, int, float] | None:
    """Two sizes of passes of which the larger took far less, and its share of the smaller one's time.

    The pair with the least share; `None` where there is none.
    """
    found = [
        (seconds[more] / seconds[fewer], more, fewer)
        for fewer in seconds
        for more in seconds
        if more > fewer and seconds[more] < _FALL * seconds[fewer]
    ]
    if not found:
        return None
    share, more, fewer = min(found)
    return more, fewer, share
