"""How much to sharpen a draft's distribution: between drawing from it and taking its likeliest token."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from .acceptance import on_tokens_of
from .calibration import BANDS, band
from .sampling import Distribution

POWERS = (1.1, 1.0, 1.4, 3.0, np.inf)
"""The first is where learning starts: on the pairs measured it is the best in nearly every band.
Only the last is infinite."""

_FINITE = np.array(POWERS[:-1])

_CLEARLY = 0.01
"""How much more another power has to be worth."""

MOST_TOKENS = 200
"""Distributions over more tokens are not compared: that would cost more than it tells."""

_MEMORY = 150.0
_PRIOR_WEIGHT = 10.0


class LearnedSharpness:
    """The power under which most is accepted, learned by band of confidence.

    Any power is lossless, and each tested token shows what every power would have been worth: the target's
    and the draft's distributions there are both known.
    """

    def __init__(self) -> None:
        self._weights = np.full(BANDS, _PRIOR_WEIGHT)
        self._chances = np.zeros((BANDS, len(POWERS)))

    @property
    def arrays(self) -> tuple[npt.NDArray[np.float64], ...]:
        """What is learned, to be kept and filled in again."""
        return self._weights, self._chances

    def __call__(self, confidence: float) -> float:
        """The power to raise a distribution of this confidence to."""
        chances = self._chances[band(confidence)]
        best = int(chances.argmax())
        return POWERS[best if chances[best] > chances[0] + _CLEARLY else 0]

    def observe(self, confidence: float, target: Distribution, draft: Distribution) -> None:
        """Learn from one place: the target's distribution there, and the draft's by the same chain."""
        if max(target.tokens.size, draft.tokens.size) > MOST_TOKENS:
            return
        place = band(confidence)
        keep = 1.0 - 1.0 / _MEMORY
        self._weights[place] = keep * self._weights[place] + 1.0
        # Chances of acceptance, sum of min(p, q), under all powers at once.
        powers = draft.probabilities ** _FINITE[:, None]
        shares = on_tokens_of(target, draft.tokens, powers / powers.sum(axis=1, keepdims=True))
        chances = np.minimum(target.probabilities, shares).sum(axis=1)
        likeliest = target.probability(int(draft.tokens[0]))
        self._chances[place] += (np.append(chances, likeliest) - self._chances[place]) / self._weights[place]
