"""Makes each answer's pacing, and keeps between answers what is learned about the pair."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np

from ..models.rounding import EqualSizes, find_equal_sizes
from .decoding.adaptive import AdaptivePacing
from .decoding.costs import Costs
from .decoding.drafters import Drafter, ModelDrafter, Sharpness, argmax, as_it_is, common_prefix
from .decoding.learned import Learned
from .decoding.lookup import LookupDrafter, TextIndex
from .decoding.pacing import FixedPacing, Pacing, PlainPacing, any_size
from .decoding.sampling import Sampler
from .loading import Pair
from .measuring import MeasuredCosts, measure_costs
from .remembered import Remembered
from .requests import MAX_DRAFT, Drafting

_ALWAYS_MAX, _ALWAYS_P_MIN = 4, 0.5
"""Length and least confidence of a draft that is always made."""

_MANY = 16
"""A pass size that leaves nothing to wish for."""

_COSTS, _EQUAL_SIZES = "costs", "equal sizes"


class Pacers:
    """One pair's drafters and pacings."""

    def __init__(
        self,
        pair: Pair,
        clock: Callable[[], float],
        cancelled: Callable[[], bool] = lambda: False,
        remembered: Remembered | None = None,
    ) -> None:
        self._pair, self._clock = pair, clock
        self._cancelled, self._remembered = cancelled, remembered
        self._measured: MeasuredCosts | None = None
        self._equal: EqualSizes | None = None
        self._learned: dict[bool, Learned] = {}
        self._index = TextIndex()

    def prepare(self, drafting: Drafting) -> None:
        """Measure what passes cost, or recall it, where drafting may be asked for.

        Raises:
            DraftFailed: the draft's passes cannot be timed.
            PassError: the target's cannot.
        """
        if self.obstacle(drafting) is None:
            if drafting.speculate == "auto":
                self._costs()
            if drafting.strict:
                self._equal_sizes()

    def obstacle(self, drafting: Drafting) -> str | None:
        """Why nothing can be drafted, or `None`."""
        if drafting.speculate == "off":
            return "drafting is switched off"
        if self._pair.target.context.rollback == 0:
            return "this model cannot roll back, so drafts cannot be tested"
        if drafting.strict and not self._pair.target.model.drops_suffixes:
            return "how passes of a recurrent model round is not known, so --strict drafts nothing"
        if drafting.drafter == "model":
            if self._pair.draft is None:
                return f"the draft {self._pair.left_out}" if self._pair.left_out else "no draft loaded"
            if not self._pair.draft.model.drops_suffixes:
                return "the draft cannot roll back"
        return None

    def pacing(
        self, drafting: Drafting, prompt: Sequence[int], sampler: Sampler, draws: np.random.Generator
    ) -> Pacing:
        """The pacing of an answer to this prompt.

        With a seed the same text has to come again, and it depends on what is drafted: lengths are then
        chosen by counts alone, from the costs measured once and nothing that other answers taught or left.
        """
        obstacle = self.obstacle(drafting)
        if obstacle:
            return PlainPacing(obstacle)
        seeded = sampler.settings.seed is not None
        if drafting.speculate == "always":
            learned = Learned(Costs({1: 1.0}, None))
        elif seeded:
            learned = self._fresh(frozen=True)
        else:
            learned = self._known(sampler.greedy)
        most = self._pair.target.context.rollback
        allowed = any_size
        if drafting.strict:
            # What is drawn must be tested: no draft may be cut back to a smaller size that is allowed.
            allowed = self._rounds_alike if sampler.greedy else self._and_smaller_round_alike
        lookup = self._lookup(prompt, learned) if drafting.drafter != "model" else None
        model = (
            self._model(drafting, prompt, sampler, draws, learned) if drafting.drafter != "lookup" else None
        )
        if drafting.speculate == "always":
            drafters: list[Drafter] = [drafter for drafter in (lookup, model) if drafter is not None]
            longest = min(drafting.draft_max or _ALWAYS_MAX, most)
            p_min = _ALWAYS_P_MIN if drafting.draft_p_min is None else drafting.draft_p_min
            reason = f"always up to {longest} tokens a pass"
            return FixedPacing(drafters, longest, p_min, reason, allowed=allowed)
        return AdaptivePacing(
            learned,
            model=model,
            lookup=lookup,
            longest=min(drafting.draft_max or MAX_DRAFT, most),
            # A branch other than the first leaves its cells out of order, which rounds differently.
            branches=1 if drafting.strict else self._pair.target.context.branches,
            allowed=allowed,
        )

    def strict_note(self, drafting: Drafting) -> str | None:
        """What `--strict` allows here, in a sentence, and what would allow more."""
        if not drafting.strict or self.obstacle(drafting) is not None:
            return None
        equal = self._equal_sizes()
        shallow, deep = max(equal.shallow, default=1), max(equal.deep, default=1)
        start = f"the first {equal.deep_from - 1} tokens of context"
        if shallow == deep == 1:
            note = "Strict: no pass of several tokens rounds like single ones here, so nothing is drafted."
        elif shallow == deep:
            note = f"Strict: passes of up to {deep} tokens round like single ones here."
        else:
            beyond = f"of up to {deep}" if deep > 1 else "none"
            note = f"Strict: passes of up to {shallow} tokens round like single ones in {start}, "
            note += f"{beyond} beyond."
        if shallow < _MANY:
            note += " Q4_0 and Q8_0 files were seen to allow all sizes."
        if deep < shallow:
            note += " With --cache-type-v bf16 the sizes hold at any depth."
        return note

    def _rounds_alike(self, size: int) -> bool:
        """Whether a pass over so many tokens gives now, bit for bit, what single ones would."""
        return size == 1 or size in self._equal_sizes().at(len(self._pair.target.context.tokens) + size)

    def _and_smaller_round_alike(self, size: int) -> bool:
        return all(self._rounds_alike(smaller) for smaller in range(2, size + 1))

    def _equal_sizes(self) -> EqualSizes:
        if self._equal is None:
            kept = self._recall(_EQUAL_SIZES)
            with contextlib.suppress(KeyError, TypeError, ValueError):
                self._equal = EqualSizes(tuple(kept["shallow"]), tuple(kept["deep"]), int(kept["deep_from"]))
                return self._equal
            self._equal = find_equal_sizes(self._pair.target.context, cancelled=self._cancelled)
            if not self._cancelled():
                self._keep(_EQUAL_SIZES, asdict(self._equal))
        return self._equal

    def _costs(self) -> MeasuredCosts:
        if self._measured is None:
            kept = self._recall(_COSTS)
            with contextlib.suppress(KeyError, TypeError, ValueError, AttributeError):
                target_s = {int(size): float(seconds) for size, seconds in kept["target_s"].items()}
                if 1 in target_s and min(target_s.values()) > 0.0:
                    self._measured = MeasuredCosts(target_s, kept["draft_s"])
                    return self._measured
            draft = self._pair.draft.context if self._pair.draft else None
            self._measured = measure_costs(self._pair.target.context, draft, self._clock)
            self._keep(_COSTS, asdict(self._measured))
        return self._measured

    def _recall(self, what: str) -> dict[str, Any]:
        """What was kept of this pair; nothing where nothing was."""
        return (self._remembered and self._remembered.recall(what, self._pair.identity)) or {}

    def _keep(self, what: str, measured: dict[str, Any]) -> None:
        if self._remembered:
            self._remembered.keep(what, self._pair.identity, measured)

    def remember(self) -> None:
        """Keep what was learned for the next start."""
        for greedy, learned in self._learned.items():
            self._keep(_learned_as(greedy), learned.state())

    def _known(self, greedy: bool) -> Learned:
        """What is known of answers at temperature 0, or above it."""
        if greedy not in self._learned:
            self._learned[greedy] = self._fresh(frozen=False)
            with contextlib.suppress(KeyError, TypeError, ValueError, AttributeError):
                learned = Learned.restored(self._recall(_learned_as(greedy)))
                draft = self._pair.draft.context if self._pair.draft else None
                now = measure_costs(self._pair.target.context, draft, self._clock, budget_s=0.0)
                learned.costs.retime(now.target_s, now.draft_s)
                self._learned[greedy] = learned
        return self._learned[greedy]

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
        if sampler.settings.seed is not None:
            draft.context.truncate(0)  # what it holds of other answers decides what a probe costs
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


def _learned_as(greedy: bool) -> str:
    return "learned at temperature 0" if greedy else "learned above temperature 0"
