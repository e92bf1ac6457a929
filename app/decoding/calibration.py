"""What a draft's confidence is worth: the chance that the target accepts a token drafted with it."""

from __future__ import annotations

import bisect
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

Chances = npt.NDArray[np.float64]

_EDGES = (0.2, 0.35, 0.5, 0.65, 0.8, 0.9, 0.96, 0.99)
_PRIOR = np.array([0.15, 0.3, 0.43, 0.58, 0.75, 0.87, 0.94, 0.98, 0.995])
BANDS = _PRIOR.size
"""Confidence is told apart in so many bands."""

_PRIOR_WEIGHT = 3.0
_MEMORY = 100.0

_BAND_SHARES = np.array([0.03, 0.05, 0.06, 0.07, 0.08, 0.09, 0.1, 0.12, 0.4])
_TURN_WEIGHT = 8.0
_TURN_MEMORY = 120.0
_KEPT = 0.3
"""What of one text's successions is kept for the next."""


def band(confidence: float) -> int:
    """The band that a confidence belongs to, the lowest first."""
    return bisect.bisect_right(_EDGES, confidence)


class Calibration:
    """The chance of acceptance by band of confidence, which starts near the confidence itself."""

    def __init__(self) -> None:
        self._weights = np.full(BANDS, _PRIOR_WEIGHT)
        self._accepted = _PRIOR_WEIGHT * _PRIOR

    @property
    def arrays(self) -> tuple[Chances, ...]:
        """What is learned, to be kept and filled in again."""
        return self._weights, self._accepted

    @property
    def chances(self) -> Chances:
        """The chance in each band, float64 (bands,)."""
        return self._accepted / self._weights

    def chance(self, confidence: float) -> float:
        """The chance that a token of this confidence is accepted."""
        place = band(confidence)
        return float(self._accepted[place] / self._weights[place])

    def observe(self, confidence: float, accepted: float) -> None:
        """Learn from a tested token: whether it was accepted, or the chance it had."""
        place = band(confidence)
        keep = 1.0 - 1.0 / _MEMORY
        self._weights[place] = keep * self._weights[place] + 1.0
        self._accepted[place] = keep * self._accepted[place] + accepted


class Successions:
    """How confidence follows on confidence: the chance of each band after each band."""

    def __init__(self) -> None:
        self._prior: Chances = _TURN_WEIGHT * np.tile(_BAND_SHARES, (BANDS, 1))
        self._counts: Chances = np.array(self._prior)
        self.last = BANDS - 1
        """The band of the last token that stands."""

    def begin(self) -> None:
        """Another text begins, of which nothing doubtful is known."""
        self.last = BANDS - 1
        self._counts = _KEPT * self._counts + (1.0 - _KEPT) * self._prior

    @property
    def chances(self) -> Chances:
        """The chance of the next token's band, one row for each band of the token before."""
        shares = self._counts.sum(axis=0)
        counts = self._counts + _TURN_WEIGHT * shares / shares.sum()
        return counts / counts.sum(axis=1, keepdims=True)

    def observe(self, confidences: Sequence[float]) -> None:
        """Learn from one draft's confidences, in order."""
        before = self.last
        for confidence in confidences:
            now = band(confidence)
            self._counts[before] *= 1.0 - 1.0 / _TURN_MEMORY
            self._counts[before, now] += 1.0
            before = now


_DEEPEST = 16
"""Tokens from which on one more is weighed like the one before."""


class StopTable:
    """When to stop drafting: what one more token is expected to bring, in tokens.

    The round is a stopping problem. Drafting on costs D and then perhaps a larger target pass; time is worth
    the tokens that it gives elsewhere, so that the best rate in the long run is reached where each round
    maximises tokens - rate x seconds (Dinkelbach 1967). With the chances of the next confidence known, the
    best rule follows backwards from the longest draft.
    """

    _SURVIVALS = np.geomspace(1.0, 0.02, 24)

    def __init__(
        self,
        target_s: npt.NDArray[np.float64],
        draft_s: float,
        rate: float,
        chances: Chances,
        successions: Chances,
    ) -> None:
        """Work the table out.

        Args:
            target_s: T(n) in seconds for n = 0 ... longest draft + 1.
            draft_s: D in seconds.
            rate: the tokens per second that time is worth.
            chances: of acceptance, by band.
            successions: the chance of the next band, one row for each band before.
        """
        self.rate = rate
        self._longest = target_s.size - 2
        longest = min(target_s.size - 2, _DEEPEST)
        logs = np.log(self._SURVIVALS)
        self._step = float(logs[1] - logs[0])
        places = np.maximum((logs[:, None] + np.log(np.maximum(chances, 1e-6))) / self._step, 0.0)
        low = places.astype(np.int64)
        share = places - low
        inside = low < logs.size - 1
        low = np.where(inside, low, logs.size - 2)
        bands = np.arange(chances.size)
        survivals = self._SURVIVALS[:, None] * chances
        before: Chances = np.transpose(successions)
        values = np.zeros((longest + 1, logs.size, chances.size))
        for drafted in range(longest - 1, -1, -1):
            beyond = np.maximum(values[drafted + 1], 0.0)
            going_on = np.where(
                inside, beyond[low, bands] * (1.0 - share) + beyond[low + 1, bands] * share, 0.0
            )
            dearer = rate * (target_s[drafted + 2] - target_s[drafted + 1])
            gains = np.maximum(survivals - dearer + going_on, 0.0)
            values[drafted] = gains @ before - rate * draft_s
        self._values = values

    def value(self, drafted: int, survival: float, last: int) -> float:
        """What drafting one more token is expected to bring, in tokens; not worth it where this is below 0.

        Args:
            drafted: tokens drafted so far in this round.
            survival: the chance that all of them are accepted.
            last: the band of the last of them.
        """
        if drafted >= self._longest:
            return 0.0
        place = min(max(np.log(max(survival, 1e-9)) / self._step, 0.0), self._SURVIVALS.size - 1.0)
        low = min(int(place), self._SURVIVALS.size - 2)
        column = self._values[min(drafted, _DEEPEST - 1), :, last]
        return float(column[low] + (column[low + 1] - column[low]) * (place - low))
