"""Makes and measures drafts of a model's own layers, for the search of the best of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from ..models.derived import Recipe
from ..models.llama import Context
from .decoding.costs import Costs
from .deriving import Source, estimated_bytes, write
from .layer_search import Expected, RelativeCosts, Trial, best, expected, search_layers
from .measuring import measure_costs
from .own_text import Sample, agreement_by_kind, guesses, opened
from .pass_times import Timed, ratio, take_turns
from .requests import MAX_DRAFT

_ROUNDS = 3
_COSTS_S = 8.0


@dataclass(frozen=True)
class Rated:
    """A set of layers that was left out, and what drafting without them is expected to give."""

    skipped: tuple[int, ...]
    agreement: float
    """The share of the target's own text, token by token, that was guessed."""
    by_kind: dict[str, float]
    pass_cost: float
    """A draft pass, in passes of the target over one token: on the line through all that was measured."""
    expected: Expected


@dataclass(frozen=True)
class LayerSearch:
    """What was tried, the best first."""

    layers: int
    target_s: tuple[float, ...]
    """Seconds of a target pass over 0, 1, 2, ... tokens."""
    rated: tuple[Rated, ...]

    @property
    def chosen(self) -> Rated:
        """The best one, also where it does not pay."""
        return self.rated[0]


def find_layers(
    source: Source,
    context: Context,
    samples: Sequence[Sample],
    folder: Path,
    recipe: Recipe,
    *,
    threads: int,
    gpu_layers: int = -1,
    seed: int = 0,
    goes_on: Callable[[], bool],
    on_trial: Callable[[Rated], None] = lambda _rated: None,
    check: Callable[[], None] = lambda: None,
) -> LayerSearch:
    """Search the layers to leave out, by drafts that are written, loaded, timed and compared with the target.

    Args:
        source: The target.
        context: The target, loaded.
        samples: What the target wrote.
        folder: Where drafts are written; none of them stays.
        recipe: What else is done to the draft: its quantization.
        threads: For quantizing and for passes.
        gpu_layers: As for loading.
        seed: The search's random numbers are drawn from it.
        goes_on: Whether there is time for another trial.
        on_trial: Told of each trial.
        check: Called wherever stopping is possible; where it raises `Stopped`, the search ends with what was
            tried.

    Raises:
        Stopped: Nothing was tried yet.
        DeriveError: A draft could not be written.
        LoadError: A draft could not be loaded.
    """
    layers = source.header.block_count
    measured = measure_costs(context, None, budget_s=_COSTS_S).target_s
    target_s = Costs(measured, None).target(MAX_DRAFT + 1)
    size_ratio = estimated_bytes(source, recipe) / source.header.size_bytes if recipe.quant else 1.0
    costs = RelativeCosts(target_s.tolist(), layers, _head_share(source), min(size_ratio, 1.0))

    def try_out(skipped: tuple[int, ...]) -> Trial:
        check()
        path = write(source, replace(recipe, skipped=skipped), folder, threads)
        try:
            with opened(path, threads, gpu_layers, context.size) as draft:
                check()
                ours, theirs = Timed(), Timed()
                take_turns((context, draft), (theirs, ours), _ROUNDS)
                trial = Trial(skipped, guesses(draft, samples, check), ratio(ours, theirs))
        finally:
            path.unlink(missing_ok=True)
        on_trial(rate(trial))
        return trial

    def rate(trial: Trial) -> Rated:
        return Rated(
            skipped=trial.skipped,
            agreement=trial.agreement,
            by_kind=agreement_by_kind(samples, trial.guessed),
            pass_cost=costs.draft(layers - len(trial.skipped)),
            expected=expected(trial, costs),
        )

    trials = search_layers(layers, try_out, costs, np.random.default_rng(seed), goes_on)
    chosen = best(trials, costs)
    rated = sorted(map(rate, trials), key=lambda one: (one.skipped != chosen.skipped, -one.expected.speedup))
    return LayerSearch(layers, tuple(target_s.tolist()), tuple(rated))


def _head_share(source: Source) -> float:
    """The part of what a pass reads that lies outside the layers: the output matrix."""
    output = "token_embd.weight" if source.tied else "output.weight"
    head = sum(tensor.elements for tensor in source.layout.tensors if tensor.name == output)
    layers = sum(tensor.elements for tensor in source.layout.tensors if tensor.name.startswith("blk."))
    return head / max(head + layers, 1)
