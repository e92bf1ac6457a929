"""Makes each answer's pacing, and keeps between answers what is learned about the pair."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from .conversation import common_prefix
from .decoding.adaptive import AdaptivePacing
from .decoding.costs import Costs
from .decoding.drafters import Drafter, ModelDrafter, Sharpness, argmax, as_it_is
from .decoding.learned import Learned
from .decoding.lookup import LookupDrafter, TextIndex
from .decoding.pacing import FixedPacing, Pacing, PlainPacing
from .decoding.sampling import Sampler
from .loading import Pair
from .measuring import MeasuredCosts, measure_costs
from .remembered import Remembered
from .requests import MAX_DRAFT, Drafting

_ALWAYS_MAX, _ALWAYS_P_MIN = 4, 0.5
"""Length and least confidence of a draft that is always made."""


class Pacers:
    """One pair's drafters and pacings."""

    def __init__(self, pair: Pair, clock: Callable[[], float], remembered: Remembered | None = None) -> None:
        self._pair, self._clock, self._remembered = pair, clock, remembered
        self._measured: MeasuredCosts | None = None
        self._learned: dict[bool, Learned] = {}
        self._index = TextIndex()

    def prepare(self, drafting: Drafting) -> None:
        """Measure what passes cost, or recall it, where drafting may be asked for."""
        if self.obstacle(drafting) is None and drafting.speculate == "auto":
            self._costs()

    def obstacle(self, drafting: Drafting) -> str | None:
        """Why nothing can be drafted, or `None`."""
        if drafting.speculate == "off":
            return "drafting is switched off"
        if not self._pair.target.model.drops_suffixes:
            return "this model cannot roll back, so drafts cannot be tested"
        if drafting.drafter == "model":
            if self._pair.draft is None:
                return "no draft loaded"
            if not self._pair.draft.model.drops_suffixes:
                return "the draft cannot roll back"
        return None

    def pacing(
        self, drafting: Drafting, prompt: Sequence[int], sampler: Sampler, draws: np.random.Generator
    ) -> Pacing:
        """The pacing of an answer to this prompt.

        Where a seed decides, the text depends on what is drafted: lengths are then chosen by counts alone,
        from the costs measured once and from nothing that other answers taught.
        """
        obstacle = self.obstacle(drafting)
        if obstacle:
            return PlainPacing(obstacle)
        seeded = sampler.settings.seed is not None and not sampler.greedy
        if drafting.speculate == "always":
            learned = Learned(Costs({1: 1.0}, None))
        elif seeded:
            learned = self._fresh(frozen=True)
        else:
            learned = self._learned.setdefault(sampler.greedy, self._fresh(frozen=False))
        lookup = self._lookup(prompt, learned) if drafting.drafter != "model" else None
        model = (
            self._model(drafting, prompt, sampler, draws, learned) if drafting.drafter != "lookup" else None
        )
        if drafting.speculate == "always":
            drafters: list[Drafter] = [drafter for drafter in (lookup, model) if drafter is not None]
            longest = drafting.draft_max or _ALWAYS_MAX
            p_min = _ALWAYS_P_MIN if drafting.draft_p_min is None else drafting.draft_p_min
            return FixedPacing(drafters, longest, p_min, f"always up to {longest} tokens a pass")
        return AdaptivePacing(
            learned,
            model=model,
            lookup=lookup,
            longest=drafting.draft_max or MAX_DRAFT,
            branches=self._pair.target.context.branches,
        )

    def _costs(self) -> MeasuredCosts:
        if self._measured is None:
            pair = self._pair
            draft = pair.draft.context if pair.draft else None
            kept = self._remembered.recall("costs", pair.identity) if self._remembered else None
            if kept is not None:
                target_s = {int(size): float(seconds) for size, seconds in kept["target_s"].items()}
                self._measured = MeasuredCosts(target_s, kept["draft_s"])
            else:
                self._measured = measured = measure_costs(pair.target.context, draft, self._clock)
                if self._remembered:
                    self._remembered.keep(
                        "costs",
                        pair.identity,
                        {"target_s": measured.target_s, "draft_s": measured.draft_s},
                    )
        return self._measured

    def _fresh(self, *, frozen: bool) -> Learned:
        measured = self._costs()
        return Learned(Costs(measured.target_s, measured.draft_s, frozen=frozen))

    def _lookup(self, prompt: Sequence[int], learned: Learned) -> LookupDrafter:
        """The text so far; its index goes on from the answer before where the prompt does."""
        held = self._index.tokens
        if common_prefix(held, prompt) < len(held):
            self._index = TextIndex()
        return LookupDrafter(self._index, prompt, learned.hits)

    def _model(
        self,
        drafting: Drafting,
        prompt: Sequence[int],
        sampler: Sampler,
        draws: np.random.Generator,
        learned: Learned,
    ) -> ModelDrafter | None:
        draft = self._pair.draft
        if draft is None or not draft.model.drops_suffixes:
            return None
        by_choice: dict[str, Sharpness] = {
            "auto": as_it_is if drafting.speculate == "always" else learned.sharpness,
            "sampled": as_it_is,
            "argmax": argmax,
        }
        return ModelDrafter(
            draft.context,
            prompt,
            sampler,
            draws,
            sharpness=by_choice[drafting.draft_sampling],
            vocabulary_size=self._pair.target.model.vocabulary_size,
        )
