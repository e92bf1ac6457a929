"""What is kept from one answer to the next: what passes cost, and what drafts are worth."""

from __future__ import annotations

import bisect
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from .calibration import Calibration, Successions
from .costs import Costs
from .lookup import HitRates
from .sharpness import LearnedSharpness

_RATE_MEMORY = 16.0
"""Rounds of a region that its rate is averaged over."""

_REGIONS = (5, 8)
"""From these bands of confidence on, what a token leads to counts as another region of the text."""


@dataclass
class Learned:
    """Everything that pacing learns about one pair; a fresh one knows what passes cost."""

    costs: Costs
    calibration: Calibration = field(default_factory=Calibration)
    successions: Successions = field(default_factory=Successions)
    leaves: Calibration = field(default_factory=Calibration)
    hits: HitRates = field(default_factory=HitRates)
    sharpness: LearnedSharpness = field(default_factory=LearnedSharpness)
    probe_s: float = 0.0
    """Seconds that may go into drafts that are not expected to pay."""
    _tokens: npt.NDArray[np.float64] = field(default_factory=lambda: np.zeros(len(_REGIONS) + 1))
    _seconds: npt.NDArray[np.float64] = field(default_factory=lambda: np.zeros(len(_REGIONS) + 1))

    def state(self) -> dict[str, Any]:
        """What to keep for the next start, as JSON can hold it."""
        target_s, draft_s = self.costs.measured()
        return {
            "target_s": target_s,
            "draft_s": draft_s,
            "arrays": [array.tolist() for array in self._arrays],
        }

    @staticmethod
    def restored(state: Mapping[str, Any]) -> Learned:
        """What an earlier start kept.

        Raises:
            KeyError, TypeError, ValueError: the state is none of this version's.
        """
        target_s = {int(size): float(seconds) for size, seconds in state["target_s"].items()}
        if 1 not in target_s or min(target_s.values()) <= 0.0:
            raise ValueError("the cost of a plain pass is missing, or one is none")
        learned = Learned(Costs(target_s, float(state["draft_s"])))
        for array, kept in zip(learned._arrays, state["arrays"], strict=True):
            values = np.asarray(kept, np.float64)
            if values.shape != array.shape or not np.isfinite(values).all():
                raise ValueError("what was learned has another shape")
            array[:] = values
        return learned

    @property
    def _arrays(self) -> tuple[npt.NDArray[np.float64], ...]:
        learners = (self.calibration, self.leaves, self.hits, self.sharpness)
        return tuple(array for learner in learners for array in learner.arrays)

    @property
    def region(self) -> int:
        """Where the text is: whether its last drafted token was a doubtful, a likely or a sure one."""
        return bisect.bisect_right(_REGIONS, self.successions.last)

    def count(self, region: int, tokens: int, target_size: int, draft_passes: int) -> None:
        """Take a round that began in a region into its rate, at what passes are known to cost.

        Rounds that a looked-up run carried do not belong into it: time saved elsewhere brings no more of
        them, since the text has as many repetitions as it has.
        """
        keep = 1.0 - 1.0 / _RATE_MEMORY
        seconds = float(self.costs.target(target_size)[target_size]) + draft_passes * self.costs.draft
        self._tokens[region] = keep * self._tokens[region] + tokens
        self._seconds[region] = keep * self._seconds[region] + seconds

    def rate(self, region: int) -> float:
        """Tokens per second lately in a region; plain decoding's at the least, and where nothing is known.

        It is what time is worth there. Time saved in a region is not spent in better ones: the text has to
        be gone through as it is.
        """
        plain_s = float(self.costs.target(1)[1])
        return max(1.0 / plain_s, (1.0 + self._tokens[region]) / (plain_s + self._seconds[region]))
