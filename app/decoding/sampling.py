"""Logits to a distribution: penalties, top-k, top-p, min-p, temperature, in llama.cpp's order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from .settings import Sampling

Logits = npt.NDArray[np.float32]
Tokens = npt.NDArray[np.int64]

_BLOCK = 256
_CONFIDENCE_CANDIDATES = 10

_COLDEST = 1e-4
"""Below this temperature only equal logits would share their chances: it counts as 0."""


@dataclass(frozen=True)
class Distribution:
    """Probabilities over the few tokens that a sampler chain left.

    `tokens` is int64 (n,), the likeliest first; `probabilities` is float64 (n,) and sums to 1; every
    other token has probability 0.
    """

    tokens: Tokens
    probabilities: npt.NDArray[np.float64]

    @staticmethod
    def certain(token: int) -> Distribution:
        """All the probability on one token."""
        return Distribution(np.array([token], np.int64), np.ones(1))

    def probability(self, token: int) -> float:
        """The probability of one token."""
        found = np.flatnonzero(self.tokens == token)
        return float(self.probabilities[found[0]]) if found.size else 0.0

    def draw(self, uniform: float) -> int:
        """The token at this point, 0 <= uniform < 1, of the cumulative distribution."""
        index = int(np.searchsorted(np.cumsum(self.probabilities), uniform, side="right"))
        return int(self.tokens[min(index, self.tokens.size - 1)])


class Sampler:
    """Turns rows of logits into distributions, by one set of settings."""

    def __init__(self, settings: Sampling) -> None:
        self.settings = settings
        self.greedy = settings.temperature < _COLDEST

    def distribution(self, logits: Logits, history: Sequence[int]) -> Distribution:
        """The distribution of the token after `history`, from its row of logits, float32 (vocabulary,)."""
        settings = self.settings
        logits = self.adjusted(logits, history)
        if self.greedy:
            return Distribution.certain(int(np.argmax(logits)))
        tokens = self._nucleus(logits)
        kept = logits[tokens].astype(np.float64)
        if settings.min_p > 0.0:
            keep = kept >= kept[0] + np.log(settings.min_p)
            tokens, kept = tokens[keep], kept[keep]
        return Distribution(tokens, _softmax(kept / settings.temperature))

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

    def _nucleus(self, logits: Logits) -> Tokens:
        """The tokens that top-k and then top-p leave, the likeliest first."""
        top_k, top_p = self.settings.top_k, self.settings.top_p
        size = logits.size
        count = min(top_k, size) if top_k > 0 else size
        if top_p >= 1.0:
            return likeliest(logits, count)
        if top_k > 0:
            tokens = likeliest(logits, count)
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

    The `count`-th largest of the maxima of blocks is a floor under the answer: few logits lie above
    it, and only those are sorted.
    """
    size = logits.size
    blocks = size // _BLOCK
    if count >= size:
        candidates = np.arange(size)
    elif count >= blocks:
        floor = np.partition(logits, size - count)[size - count]
        candidates = np.flatnonzero(logits >= floor)
    else:
        maxima: Logits = np.reshape(logits[: blocks * _BLOCK], (blocks, _BLOCK)).max(axis=1)
        floor = np.partition(maxima, blocks - count)[blocks - count]
        candidates = np.flatnonzero(logits >= floor)
    order = np.argsort(-logits[candidates], kind="stable")
    return candidates[order[:count]]


def confidence(logits: Logits) -> float:
    """The likeliest token's probability at temperature 1 among the ten likeliest."""
    top = logits[likeliest(logits, min(_CONFIDENCE_CANDIDATES, logits.size))].astype(np.float64)
    return float(1.0 / np.exp(top - top[0]).sum())


def _softmax(logits: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    weights = np.exp(logits - logits.max())
    return weights / weights.sum()


def _mass_count(probabilities: npt.NDArray[np.float64], mass: float) -> int:
    """How many of these descending probabilities it takes to reach `mass`; at least one."""
    return int(np.searchsorted(np.cumsum(probabilities), mass, side="left")) + 1
