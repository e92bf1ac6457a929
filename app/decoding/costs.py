"""What passes cost on this machine with these models, learned from the passes themselves."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

Seconds = npt.NDArray[np.float64]

_LEVEL_STEP, _SHAPE_STEP = 0.1, 0.03
"""How far one pass moves what is known: of all sizes together, and of its own, at the least."""

_MEASURED = 32
"""What was measured at the start counts as so many passes."""

_MOST_PASSES = 16
"""Passes that a single-token pass makes up for, at the most."""

_BEYOND = 0.5
"""How steep costs are taken to go on beyond the largest size seen, against the last two."""

_MOST_SURPRISE = 0.5
"""A pass that took more or less than e to this power times the expected counts as if it were that."""


class Costs:
    """Seconds of a target pass over n tokens, T(n), and of a draft pass, D.

    All sizes share a level, which follows the depth of the text and what else the machine does; the shape
    over the sizes is the machine's and the model's own: a staircase, since kernels work in blocks. So a slow
    moment does not look like a dear size.
    """

    def __init__(self, target_s: Mapping[int, float], draft_s: float | None, *, frozen: bool = False) -> None:
        """Begin with measured seconds, by pass size, one token's at least; `frozen` ones never change."""
        self._shape = dict(target_s)
        self._seen = dict.fromkeys(target_s, _MEASURED)
        self._draft_s = draft_s
        self._level = 1.0
        self._passes = 0  # since the last one over a single token
        self._frozen = frozen
        self._sizes: Seconds = np.empty(0)

    @property
    def draft(self) -> float:
        """D; nothing where there is no draft model."""
        return (self._draft_s or 0.0) * self._level

    def target(self, largest: int) -> Seconds:
        """T(0), T(1), ... T(largest), float64 (largest + 1,); T(0) is 0.

        Sizes never seen lie on the line between their neighbours. Beyond the largest seen they go on half as
        steep as the last two: passes are a staircase, and what is thought too dear would never be tried.
        """
        if self._sizes.size <= largest:
            known = sorted(self._shape)
            seconds = [self._shape[size] for size in known]
            if len(known) == 1:
                known.append(2 * known[0])
                seconds.append(2 * seconds[0])
            if known[-1] < largest:
                slope = _BEYOND * (seconds[-1] - seconds[-2]) / (known[-1] - known[-2])
                seconds.append(seconds[-1] + max(slope, 0.0) * (largest - known[-1]))
                known.append(largest)
            self._sizes = np.interp(np.arange(largest + 1), [0, *known], [0.0, *seconds])
        return self._sizes[: largest + 1] * self._level

    def observe_target(self, size: int, seconds: float) -> None:
        """Learn from a target pass."""
        if self._frozen or seconds <= 0.0:
            return
        expected = float(self.target(size)[size])
        surprise = _surprise(seconds, expected)
        known = self._shape.get(size, expected / self._level)
        seen = self._seen[size] = self._seen.get(size, 0) + 1
        self._passes += 1
        if size == 1:
            # The size that the others are relative to: the rarer it is, the more each one says.
            passes = min(self._passes, _MOST_PASSES)
            self._level *= math.exp((1.0 - (1.0 - _LEVEL_STEP) ** passes) * surprise)
            self._passes = 0
            return
        if seen > 1:
            self._level *= math.exp(_LEVEL_STEP * surprise)
        self._shape[size] = known * math.exp(max(_SHAPE_STEP, 1.0 / seen) * surprise)
        self._sizes = np.empty(0)

    def observe_draft(self, seconds: float) -> None:
        """Learn from a draft pass."""
        if self._frozen or seconds <= 0.0:
            return
        if not self._draft_s:
            self._draft_s = seconds / self._level
        self._draft_s *= math.exp(_LEVEL_STEP * _surprise(seconds, self.draft))

    def retime(self, target_s: Mapping[int, float], draft_s: float | None) -> None:
        """Take over what was measured just now, of which one token's is known; other sizes keep their shape.

        What was remembered may come from a moment in which the machine was busy.
        """
        self._level = target_s[1] / self._shape[1]
        for size, seconds in target_s.items():
            if size in self._shape:
                self._shape[size] = math.sqrt(self._shape[size] * seconds / self._level)
        if draft_s:
            self._draft_s = draft_s / self._level
        self._sizes = np.empty(0)

    def spent(self, size: int, draft_passes: int, seconds: float) -> float:
        """What a round's passes took: `seconds`, but as they were measured where costs are frozen."""
        if not self._frozen:
            return seconds
        return float(self.target(size)[size]) + draft_passes * self.draft

    def measured(self) -> tuple[dict[int, float], float]:
        """Seconds by pass size and of a draft pass, as on this machine when it has nothing else to do.

        The level is left out: a moment in which all was slow is not to be remembered.
        """
        return dict(sorted(self._shape.items())), self._draft_s or 0.0


def _surprise(seconds: float, expected: float) -> float:
    return min(max(math.log(seconds / expected), -_MOST_SURPRISE), _MOST_SURPRISE)
