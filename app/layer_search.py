"""Searches which layers of a model can be left out for a draft of it: Bayesian, on the measured costs.

As in Draft & Verify (Zhang et al. 2023, arXiv 2309.08168) and SWIFT (Xia et al. 2024, arXiv 2410.06916), sets
of layers are tried out and the next one follows from those before. Here a layer's absence is taken to cost a
share of the guesses, whatever else is absent; how much is a linear regression on the logarithm of the
agreement, with a normal prior. The next set is the best one if the layers' shares were as drawn from what is
believed of them (Thompson sampling), so what is promising and what is unknown is tried.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from .interrupt import Stopped
from .requests import MAX_DRAFT

Array = npt.NDArray[np.float64]

_INNER, _OUTER = (0.1, 0.1), (1.5, 0.5)
"""What leaving out a layer is thought to cost before anything is known, as a logarithm, and how sure that is:
of the first two, on which all others build, and of the last one much more."""

_FIRST, _LAST = 2, 1

_LEAST_NOISE = 0.05
"""How far the sum over layers is from the truth, where thousands of tokens would be compared."""

_LEAST_AGREEMENT = 0.01
_MOST_DRAWS = 20
_BYTES_WEIGHT = 0.2
"""How much a guess by the sizes of the weights counts against a measured pass."""


@dataclass(frozen=True)
class Trial:
    """A set of layers that was left out, and what came of it."""

    skipped: tuple[int, ...]
    guessed: tuple[tuple[bool, ...], ...]
    """For each token of each text, whether it was guessed."""
    pass_ratio: float
    """A draft pass against a target pass over one token, as measured."""

    @property
    def agreement(self) -> float:
        """The share of all tokens that were guessed."""
        count = sum(map(len, self.guessed))
        return sum(map(sum, self.guessed)) / count if count else 0.0


@dataclass(frozen=True)
class Expected:
    """What drafting so is expected to give, at its best length."""

    speedup: float
    """Of decoding, against plain; counted with measured costs on the model's own text."""
    length: int
    """Tokens of a draft, 1 or more: what it gives is told also where nothing pays."""
    acceptance: float
    """Accepted of drafted tokens up to the first refused one."""
    tokens_per_pass: float


class RelativeCosts:
    """What passes cost, in passes of the target over one token."""

    def __init__(self, target: Sequence[float], layers: int, head_share: float, size_ratio: float) -> None:
        """Begin with the target's measured costs and the draft's bytes.

        Args:
            target: Seconds of a target pass over 0, 1, 2, ... tokens, those of one draft and one more at
                least.
            layers: How many the target has.
            head_share: The part of the target's bytes that is not in layers.
            size_ratio: The bytes of a draft with all layers over the target's: 1 where its types are kept.
        """
        self.target: Array = np.asarray(target) / target[1]
        self.layers = layers
        self._points = [
            (float(kept), size_ratio * (head_share + (1 - head_share) * kept / layers), _BYTES_WEIGHT)
            for kept in (0, layers)
        ]

    def observe(self, kept: int, pass_ratio: float) -> None:
        """Learn from a measured draft with so many layers."""
        self._points.append((float(kept), pass_ratio, 1.0))

    def draft(self, kept: int) -> float:
        """A draft pass with so many layers: on a line through what was measured."""
        at, cost, weight = (np.array(values) for values in zip(*self._points, strict=True))
        slope, start = np.polyfit(at, cost, 1, w=np.sqrt(weight))
        return max(float(start + slope * kept), 1e-3)


def expected(trial: Trial, costs: RelativeCosts) -> Expected:
    """What a trial's draft gives at its best fixed length, drafting through the texts as decoding would."""
    draft = costs.draft(costs.layers - len(trial.skipped))
    longest = min(MAX_DRAFT, len(costs.target) - 2)
    return max((_drafted(trial, costs, draft, k) for k in range(1, longest + 1)), key=lambda e: e.speedup)


def _drafted(trial: Trial, costs: RelativeCosts, draft: float, length: int) -> Expected:
    tokens, rounds, drafted, accepted = 0, 0, 0, 0
    for right in trial.guessed:
        at = 0
        while at < len(right):
            run = right[at : at + length]
            good = run.index(False) if False in run else len(run)
            accepted += good
            drafted += min(good + 1, len(run))
            at += good + 1
            rounds += 1
        tokens += len(right)
    cost = rounds * (draft * length + costs.target[length + 1])
    return Expected(
        speedup=tokens / cost if cost else 0.0,
        length=length,
        acceptance=accepted / drafted if drafted else 0.0,
        tokens_per_pass=tokens / rounds if rounds else 0.0,
    )


def search_layers(
    layers: int,
    try_out: Callable[[tuple[int, ...]], Trial],
    costs: RelativeCosts,
    random: np.random.Generator,
    goes_on: Callable[[], bool],
) -> list[Trial]:
    """Try sets of layers until there is no time left, or nothing that promises more.

    Args:
        layers: How many there are.
        try_out: Makes and measures the draft without these layers; where it raises `Stopped`, the search ends
            with what was tried.
        costs: What passes cost; learns from what is tried.
        random: Draws what the next set follows from.
        goes_on: Whether there is time for another trial; the first one is made in any case.

    Returns:
        The trials in their order.

    Raises:
        Stopped: Nothing was tried yet.
    """
    trials: list[Trial] = []
    beliefs = _Beliefs(layers)
    try:
        while not trials or goes_on():
            skipped = _next(beliefs, costs, random, {trial.skipped for trial in trials})
            if skipped is None:
                break
            trial = try_out(skipped)
            trials.append(trial)
            beliefs.observe(trial)
            costs.observe(layers - len(skipped), trial.pass_ratio)
    except Stopped:
        if not trials:
            raise
    return trials


def best(trials: Sequence[Trial], costs: RelativeCosts) -> Trial:
    """The trial whose draft is expected to give most."""
    return max(trials, key=lambda trial: expected(trial, costs).speedup)


class _Beliefs:
    """What leaving out each layer costs: a normal distribution over the logarithms."""

    def __init__(self, layers: int) -> None:
        mean, deviation = np.full(layers, _INNER[0]), np.full(layers, _INNER[1])
        if layers > _FIRST + _LAST:
            for ends in (slice(_FIRST), slice(layers - _LAST, layers)):
                mean[ends], deviation[ends] = _OUTER
        self._precision: Array = np.eye(layers) / deviation**2
        self._weighted: Array = mean / deviation**2

    def observe(self, trial: Trial) -> None:
        agreement = min(max(trial.agreement, _LEAST_AGREEMENT), 0.999)
        count = max(sum(map(len, trial.guessed)), 1)
        noise = _LEAST_NOISE**2 + (1 - agreement) / (agreement * count)
        absent = np.zeros(len(self._weighted))
        absent[list(trial.skipped)] = 1.0
        self._precision += np.outer(absent, absent) / noise
        self._weighted += absent * -np.log(agreement) / noise

    def draw(self, random: np.random.Generator) -> Array:
        """What the layers cost if things are as they may well be, float64 (layers,)."""
        covariance = np.linalg.inv(self._precision)
        drawn = random.multivariate_normal(covariance @ self._weighted, covariance, method="cholesky")
        return np.maximum(drawn, 0.0)


def _next(
    beliefs: _Beliefs, costs: RelativeCosts, random: np.random.Generator, tried: set[tuple[int, ...]]
) -> tuple[int, ...] | None:
    """The next set to try: the best of a draw, or where all of these were tried, the best of the others.

    `None` where nothing comes up that was not tried.
    """
    other = None
    for _ in range(_MOST_DRAWS):
        lost = beliefs.draw(random)
        order = np.argsort(lost, kind="stable")
        agreements = np.exp(-np.cumsum(lost[order]))
        promises = {
            tuple(sorted(int(layer) for layer in order[:size])): _promise(
                float(agreements[size - 1]), costs.draft(costs.layers - size), costs
            )
            for size in range(1, costs.layers)
        }
        ranked = sorted(promises, key=promises.__getitem__, reverse=True)
        if ranked and ranked[0] not in tried:
            return ranked[0]
        other = other or next((skipped for skipped in ranked if skipped not in tried), None)
    return other


def _promise(agreement: float, draft: float, costs: RelativeCosts) -> float:
    """The speed-up at the best length, were each token accepted with this probability."""
    lengths = np.arange(1, min(MAX_DRAFT, len(costs.target) - 2) + 1)
    tokens = 1.0 + np.cumsum(agreement**lengths)
    return float(np.max(tokens / (lengths * draft + costs.target[lengths + 1])))
