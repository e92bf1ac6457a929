"""Logits to a distribution: penalties, top-k, top-p, min-p, temperature, in llama.cpp's order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from .settings import Sampling

Logits = npt.NDArray[np.float32]
Tokens = npt.NDArray[np.int64]
Probabilities = npt.NDArray[np.float64]

_COLUMNS = 1024

_ALL = np.ones(1)

_TOP = 10
"""So many of the likeliest tokens stand for the vocabulary where a chance is estimated."""

_COLDEST = 1e-4
"""Below this temperature only equal logits would share their chances: it counts as 0."""


@dataclass(frozen=True)
class Distribution:
    """Probabilities over the few tokens that a sampler chain left.

    `tokens` is int64 (n,), the likeliest first; `probabilities` is float64 (n,) and sums to 1; every
    other token has probability 0.
    """

    tokens: Tokens
    probabilities: Probabilities

    @staticmethod
    def certain(token: int) -> Distribution:
        """All the probability on one token."""
        return Distribution(np.array([token], np.int64), _ALL)

    def probability(self, token: int) -> float:
        """The probability of one token."""
        if self.tokens.size == 1:
            return float(self.probabilities[0]) if self.tokens[0] == token else 0.0
        found = (self.tokens == token).nonzero()[0]
        return float(self.probabilities[found[0]]) if found.size else 0.0

    def sharpened(self, power: float) -> Distribution:
        """Each probability raised to a power, and all brought back to 1; infinity leaves the likeliest."""
        if power == 1.0 or self.tokens.size == 1:
            return self
        if power == np.inf:
            return Distribution.certain(int(self.tokens[0]))
        weights = self.probabilities**power
        return Distribution(self.tokens, weights / weights.sum())

    def draw(self, uniform: float) -> int:
        """The token at this point, 0 <= uniform < 1, of the cumulative distribution."""
        if self.tokens.size == 1:
            return int(self.tokens[0])
        index = int(self.probabilities.cumsum().searchsorted(uniform, side="right"))
        return int(self.tokens[min(index, self.tokens.size - 1)])


@dataclass(frozen=True)
class Outlook:
    """What a draft's row of logits says of the next token."""

    distribution: Distribution
    """By the sampler chain."""
    tokens: Tokens
    """The ten likeliest, int64 (10,), the likeliest first."""
    chances: npt.NDArray[np.float64]
    """Their chances among themselves at temperature 1, float64 (10,)."""


class Sampler:
    """Turns rows of logits into distributions, by one set of settings."""

    def __init__(self, settings: Sampling) -> None:
        self.settings = settings
        self.greedy = settings.temperature < _COLDEST

    def distribution(self, logits: Logits, history: Sequence[int]) -> Distribution:
        """The distribution of the token after `history`, from its row of logits, float32 (vocabulary,)."""
        logits = self.adjusted(logits, history)
        if self.greedy:
            return Distribution.certain(int(logits.argmax()))
        return self._sampled(logits, self._nucleus(logits, None))

    def outlook(self, logits: Logits, history: Sequence[int]) -> Outlook:
        """The same distribution, and beside it how sure the row is of its likeliest tokens."""
        logits = self.adjusted(logits, history)
        shortlist = 0 if self.greedy else self.settings.top_k
        tokens = likeliest(logits, min(max(_TOP, shortlist), logits.size))
        top = tokens[:_TOP]
        chances = _softmax(logits[top].astype(np.float64))
        if self.greedy:
            return Outlook(Distribution.certain(int(tokens[0])), top, chances)
        known = tokens[:shortlist] if shortlist else None
        return Outlook(self._sampled(logits, self._nucleus(logits, known)), top, chances)

    def adjusted(self, logits: Logits, history: Sequence[int]) -> Logits:
        """The logits with each recently used token made less likely (Keskar et al. 2019, section 4.1).

        The row itself where no penalty is set, else a copy.
        """
        last = self.settings.repeat_last_n
        if self.settings.repeat_penalty == 1.0 or last == 0:
            return logits
        used = np.unique(np.asarray(history[-last:] if last > 0 else history, np.int64))
        penalized: Logits = np.array(logits)
        old = penalized[used]
        penalty = np.float32(self.settings.repeat_penalty)
        penalized[used] = np.where(old > 0, old / penalty, old * penalty)
        return penalized

    def _sampled(self, logits: Logits, tokens: Tokens) -> Distribution:
        settings = self.settings
        kept = logits[tokens].astype(np.float64)
        if settings.min_p > 0.0:
            keep = kept >= kept[0] + np.log(settings.min_p)
            tokens, kept = tokens[keep], kept[keep]
        return Distribution(tokens, _softmax(kept / settings.temperature))

    def _nucleus(self, logits: Logits, known: Tokens | None) -> Tokens:
        """The tokens that top-k and then top-p leave, the likeliest first; `known` are those of top-k."""
        top_k, top_p = self.settings.top_k, self.settings.top_p
        size = logits.size
        if top_k > 0 or top_p >= 1.0:
            tokens = likeliest(logits, min(top_k or size, size)) if known is None else known
            if top_p >= 1.0:
                return tokens
            return tokens[: _mass_count(_softmax(logits[tokens].astype(np.float64)), top_p)]
        # Without top-k the mass is a share of the whole vocabulary's, but the nucleus is mostly small:
        # grow a sorted head until it holds enough, rather than sort everything.
        top = float(logits.max())
        total = float(np.exp(logits - np.float32(top), dtype=np.float32).sum(dtype=np.float64))
        head = 128
        while True:
            tokens = likeliest(logits, min(head, size))
            share = np.exp(logits[tokens].astype(np.float64) - top) / total
            if head >= size or share.sum() >= top_p:
                return tokens[: _mass_count(share, top_p)]
            head *= 8


def likeliest(logits: Logits, count: int) -> Tokens:
    """The ids of the `count` largest logits, the largest first, equal ones by id.

    Seen as a table, the `count`-th largest of the maxima of its columns is a floor under the answer: only
    what reaches it is sorted.
    """
    size = logits.size
    height = size // _COLUMNS
    if 4 * count > _COLUMNS or height < 2:
        if count >= size:
            candidates = np.arange(size)
        else:
            candidates = np.flatnonzero(logits >= np.partition(logits, size - count)[size - count])
    else:
        table: Logits = np.reshape(logits[: height * _COLUMNS], (height, _COLUMNS))
        maxima: Logits = table.max(axis=0)
        maxima.partition(_COLUMNS - count)
        candidates = np.flatnonzero(logits >= maxima[_COLUMNS - count])
    order = (-logits[candidates]).argsort(kind="stable")
    return candidates[order[:count]]


def _softmax(logits: npt.NDArray[np.float64]) -> Probabilities:
    """Probabilities of logits of which the first is the largest."""
    weights = np.exp(logits - logits[0])
    return weights / weights.sum()


def _mass_count(probabilities: Probabilities, mass: float) -> int:
    """How many of these descending probabilities it takes to reach `mass`; at least one."""
    return int(probabilities.cumsum().searchsorted(mass, side="left")) + 1
