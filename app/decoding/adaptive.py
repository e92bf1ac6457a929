"""Drafts what is expected to pay, as much as pays, by the costs and chances learned so far."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from .acceptance import acceptance_chance
from .calibration import StopTable, band
from .drafters import Drafter, Lookup, Source, Step
from .guard import Guard
from .learned import Learned
from .pacing import Leaf, Proposal, any_size
from .sampling import Distribution
from .sharpness import MOST_TOKENS
from .stats import Round

Values = npt.NDArray[np.float64]

_PLAIN_EVERY = 64
"""One round in this many is plain, so that the baseline stays that of this text at this depth."""

_TABLE_EVERY = 24
"""Rounds after which the stopping problem is solved anew, with what was learned since."""

_TABLE_RATE = 1.15
"""It is solved anew too where the rate has changed by so much."""

_MARGIN = 0.1
"""Tokens that a draft has to be worth: of several estimates the largest is mostly too large."""

_PROBE_SHARE = 0.01
"""The share of the time that may go into drafts that are not expected to pay."""

_READING = 0.1
"""What a token costs to read among others, in draft passes, at the most."""

_IMPASSABLE = 100.0
"""A pass of a size that is not allowed counts as if it took so many plain ones longer."""

_BEST_CHANCE = 0.985
"""If not even drafts accepted so often would pay, none is tried."""

_UNLIKELY = 0.03
"""A looked-up run ends where so little of it is expected to stand."""


class AdaptivePacing:
    """Chooses drafter and length round by round, so that time goes where it gives most tokens.

    With T(n) the seconds of a target pass and D of a draft pass, a round with k drafted tokens costs
    D k + T(k + 1) and is expected to yield 1 + a_1 + a_1 a_2 + ... tokens, a_i being the calibrated chance
    of the i-th. A round's value is that yield, beyond plain decoding's one token, less the tokens that its
    time beyond a plain pass would give at the rate of the long run. The model drafts on while the stop table
    says so; what followed a match in the text costs no draft pass; where neither has value, nothing is
    drafted.
    """

    def __init__(
        self,
        learned: Learned,
        *,
        model: Drafter | None = None,
        lookup: Lookup | None = None,
        longest: int = 32,
        branches: int = 1,
        allowed: Callable[[int], bool] = any_size,
    ) -> None:
        """Pace these drafters.

        Args:
            learned: what earlier answers taught, and where this one's lessons go.
            model: the draft model.
            lookup: the text so far.
            longest: the most tokens of one draft, leaves included.
            branches: how many branches the target's pass may have; 1 allows chains only.
            allowed: whether the target may run a pass over so many tokens now.
        """
        self._learned = learned
        learned.successions.begin()
        self._model, self._lookup = model, lookup
        self._longest, self._branches = longest, branches
        self._may_run = allowed
        self._allowed = np.ones(longest + 1, bool)
        self._rounds = 0
        self._table: StopTable | None = None
        self._tables: dict[int, StopTable] = {}
        self._could_pay = True
        self._solve_again = self._solved_for = self._region = 0
        self._last = Proposal((), "drafting", "beginning with a plain pass")
        self._steps: tuple[Step, ...] = ()
        self._drawn: list[Step] = []
        self._seen: list[float] = []  # the confidence of each place that cost a draft pass
        self._guard = Guard()
        self._source: Source | None = None

    @property
    def draft_s(self) -> float:
        """Seconds spent in draft passes so far."""
        return self._model.pass_s if self._model is not None else 0.0

    @property
    def reads_prompt(self) -> bool:
        """Whether the draft model is expected to pay."""
        self._region = self._learned.region
        target_s = self._learned.costs.target(self._longest + 1)
        return self._model_value(target_s, self._learned.rate(self._region)) > _MARGIN

    def propose(self, limit: int) -> Proposal:
        """The best of the drafters' proposals by its expected value, or nothing."""
        self._steps, self._drawn, self._seen, self._source = (), [], [], None
        self._rounds += 1
        if self._may_run is not any_size:
            self._allowed[1:] = [self._may_run(size + 1) for size in range(1, self._longest + 1)]
        longest = int(np.flatnonzero(self._allowed)[-1])
        if longest == 0:
            self._last = Proposal(
                (), "plain", "strict: no pass of several tokens rounds like single ones here"
            )
            return self._last
        limit = min(limit, longest)
        if limit <= 0 or self._rounds % _PLAIN_EVERY == 1:
            return replace(self._last, steps=(), leaves=(), source=None)
        target_s = self._learned.costs.target(longest + 1)
        self._region = self._learned.region
        rate = self._learned.rate(self._region)
        extra_s = target_s[1:] - target_s[1]  # by the number of drafted tokens
        dearer = rate * extra_s
        least_s = extra_s[1] + (self._learned.costs.draft if self._lookup is None else 0.0)
        budget_s = self._guard.budget(float(least_s / target_s[1])) * float(target_s[1])
        if budget_s <= 0.0:
            return self._nothing("drafting cost more than it gave, so it rests")
        run = self._look_up(min(limit, _affordable(extra_s, budget_s)))
        drafting_s: Values = self._learned.costs.draft * np.arange(extra_s.size, dtype=np.float64)
        limit = min(limit, _affordable(extra_s + drafting_s, budget_s))
        length, looked_up_value = self._best_length([step.confidence for step in run], dearer)
        model_value = self._model_value(target_s, rate)
        if self._catching_up_s() > budget_s:
            model_value = -np.inf
        if model_value > max(looked_up_value, _MARGIN):
            drafted = self._draw(limit, dearer, run)
            if self._seen:
                return self._drafted("model", *drafted, rate * float(target_s[1]))
        if looked_up_value > _MARGIN:
            return self._drafted("lookup", tuple(run[:length]), (), rate * float(target_s[1]))
        if self._may_probe(target_s):
            return self._drafted("model", *self._draw(1, dearer, (), at_least=1), 1.0)
        return self._nothing(self._why_not(max(model_value, looked_up_value), target_s))

    def observe(self, done: Round, verified: Sequence[Distribution]) -> None:
        """Learn what the round cost and what its draft was worth."""
        learned = self._learned
        if done.took_a_pass:
            learned.costs.observe_target(1 + done.proposed, done.target_s)
            decided = len(done.emitted) + (done.finish == "stop")
            seconds = learned.costs.spent(1 + done.proposed, len(self._seen), done.target_s + done.draft_s)
            self._guard.observe(decided, seconds, float(learned.costs.target(1)[1]))
            if self._source != "lookup" and len(self._steps) <= len(self._drawn):
                learned.count(self._region, decided, 1 + done.proposed, len(self._seen))
        if self._source == "model":
            learned.successions.observe(self._seen)
            # What a run took over is learned where runs are.
            own = self._steps[: len(self._drawn)]
            for step, target in zip(own, verified, strict=False):
                learned.calibration.observe(step.confidence, _chance(target, step))
                learned.successions.last = band(step.confidence)
                if step.unsharpened is not None:
                    learned.sharpness.observe(step.confidence, target, step.unsharpened)
            if len(own) > done.accepted < min(len(verified), len(done.emitted)):
                refused, replacement = self._steps[done.accepted], done.emitted[done.accepted].token
                for token, chance in refused.others:
                    learned.leaves.observe(_beside(refused, chance), float(token == replacement))
        self._tell([emitted.token for emitted in done.emitted])

    def forget(self) -> None:
        """What was proposed last has not come about."""
        self._tell(())

    def _tell(self, tokens: Sequence[int]) -> None:
        """Tell the drafters what stands."""
        for drafter in (self._model, self._lookup):
            if drafter is not None:
                drafter.observe(tokens)

    def _look_up(self, limit: int, after: Sequence[int] = ()) -> list[Step]:
        """What followed the latest match, as far as it may stand; `after` is what is drafted before it."""
        run: list[Step] = []
        survival = 1.0
        for step in self._lookup.draft(after) if self._lookup is not None and limit > 0 else ():
            survival *= step.confidence
            run.append(step)
            if len(run) == limit or survival < _UNLIKELY:
                break
        return run

    def _model_value(self, target_s: Values, rate: float) -> float:
        """The value of asking the model for a draft."""
        if self._model is None:
            return -np.inf
        learned = self._learned
        if self._rounds >= self._solve_again or target_s.size != self._solved_for:
            self._solved_for = target_s.size
            self._tables.clear()
            extra = target_s[1:] - target_s[1] + learned.costs.draft * np.arange(target_s.size - 1)
            best = self._best_length([_BEST_CHANCE] * (target_s.size - 2), extra / target_s[1])
            self._could_pay = best[1] > 0.0  # if nearly all were accepted
            self._solve_again = self._rounds + _TABLE_EVERY
        table = self._tables.get(self._region)
        if table is None or not 1.0 / _TABLE_RATE < rate / table.rate < _TABLE_RATE:
            barred = np.where(self._allowed[: target_s.size - 1], 0.0, _IMPASSABLE * target_s[1])
            table = self._tables[self._region] = StopTable(
                target_s + np.concatenate(([0.0], barred)),
                learned.costs.draft,
                rate,
                learned.calibration.chances,
                learned.successions.chances,
            )
        self._table = table
        return table.value(0, 1.0, learned.successions.last)

    def _draw(
        self, limit: int, dearer: Values, run: Sequence[Step], *, at_least: int = 0
    ) -> tuple[tuple[Step, ...], tuple[Leaf, ...]]:
        """The model's draft, as long as its confidence lets it pay, and the leaves that pay beside it.

        What followed a match of the text and the draft so far may take over from the model: it costs nothing.
        """
        assert self._model is not None
        assert self._table is not None
        learned, drawn = self._learned, self._drawn
        chances: list[float] = []
        behind, spent_s = self._model.behind, self._model.pass_s
        run = list(run)
        whole = bool(self._allowed[: limit + 1].all())
        takes_over, survival = True, 1.0
        for step in self._model.draft():
            self._seen.append(step.confidence)
            if behind <= 1:
                learned.costs.observe_draft(self._model.pass_s - spent_s)
            behind, spent_s = 0, self._model.pass_s
            chance = learned.calibration.chance(step.confidence)
            count = len(chances) + 1
            more = self._table.value(count, survival * chance, band(step.confidence))
            # A token that was drawn is either tested whatever it is, or its place is left unseen. So no run
            # may lead from a size that is not allowed to one that is: whether there is a run is the token's.
            drawn_by_chance = step.distribution.tokens.size > 1
            takes_over = takes_over and (whole or not drawn_by_chance)
            if drawn_by_chance:
                gain = survival * chance - float(dearer[count] - dearer[count - 1]) + max(more, 0.0)
                if gain <= 0.0 and count > at_least:
                    break
                at_least = count
            drawn.append(step)
            chances.append(chance)
            survival *= chance
            if not run or run.pop(0).token != step.token:
                run = self._look_up(limit - count, [one.token for one in drawn])
            run = run[: limit - count]
            rest = [one.confidence for one in run]
            if takes_over and self._best_length(rest, dearer[count:] - dearer[count], survival)[1] > max(
                more, 0.0
            ):
                length, _ = self._best_length([*chances, *rest], dearer, at_least=at_least)
                return (*drawn, *run)[:length], self._leaves(length, chances, limit, dearer)
            if count >= limit or more <= 0.0:
                break
        length, _ = self._best_length(chances, dearer, at_least=min(at_least, len(chances)))
        return tuple(drawn[:length]), self._leaves(length, chances, limit, dearer)

    def _leaves(self, length: int, chances: Sequence[float], limit: int, dearer: Values) -> tuple[Leaf, ...]:
        """Other choices beside the tokens of a chain, where the one token more that each may bring pays."""
        most = min(self._branches - 1, limit - length)
        if most <= 0 or not length:
            return ()
        options: list[tuple[float, Leaf]] = []
        survival = 1.0
        for place, step in enumerate(self._drawn[:length]):
            refused_here = survival * (1.0 - chances[place])
            survival *= chances[place]
            for token, chance in step.others:
                stands = refused_here * self._learned.leaves.chance(_beside(step, chance))
                options.append((stands, Leaf(place, token)))
        if not options:
            return ()
        options.sort(key=lambda option: -option[0])
        options = options[:most]
        sizes = slice(length + 1, length + 1 + len(options))
        values = np.cumsum([stands for stands, _ in options]) - (dearer[sizes] - dearer[length])
        values[~self._allowed[sizes]] = -np.inf
        best = int(np.argmax(values))
        return tuple(leaf for _, leaf in options[: best + 1]) if values[best] > 0.0 else ()

    def _best_length(
        self, chances: Sequence[float], dearer: Values, survival: float = 1.0, *, at_least: int = 0
    ) -> tuple[int, float]:
        """How many drafted tokens to have tested, and the value of that.

        Args:
            chances: of acceptance, token by token.
            dearer: what testing 0, 1, ... of them costs, in tokens.
            survival: the chance that all before them are accepted.
            at_least: so many in any case.
        """
        if not len(chances):
            return 0, 0.0
        values = np.zeros(len(chances) + 1)
        np.cumsum(np.cumprod(chances), out=values[1:])
        values *= survival
        values -= dearer[: values.size]
        values[~self._allowed[: values.size]] = -np.inf
        values[:at_least] = -np.inf
        best = int(np.argmax(values))
        return best, float(values[best])

    def _catching_up_s(self) -> float:
        """What the model has to read first, in seconds."""
        return _READING * self._learned.costs.draft * self._model.behind if self._model is not None else 0.0

    def _may_probe(self, target_s: Values) -> bool:
        """Whether a draft that is not expected to pay may be tried, to see if the text has changed."""
        learned = self._learned
        if self._model is None or not self._could_pay:
            return False
        learned.probe_s += _PROBE_SHARE * float(target_s[1])
        cost = self._catching_up_s() + learned.costs.draft + float(target_s[2] - target_s[1])
        if learned.probe_s < cost:
            return False
        learned.probe_s = 0.0
        return True

    def _drafted(
        self, source: Source, steps: tuple[Step, ...], leaves: tuple[Leaf, ...], gain: float
    ) -> Proposal:
        self._source, self._steps = source, steps
        reason = "the draft model drafts" if source == "model" else "the text repeats itself"
        if gain > 1.0:
            reason += f", lately {gain:.2f}x the plain speed"
        self._last = Proposal(steps, "drafting", reason + self._strictness(), leaves, source)
        return self._last

    def _nothing(self, reason: str) -> Proposal:
        self._last = Proposal((), "plain", reason + self._strictness())
        return self._last

    def _strictness(self) -> str:
        """What strict allows now, to go behind a reason."""
        if self._allowed.all():
            return ""
        return f"; strict: passes of up to {int(np.flatnonzero(self._allowed)[-1]) + 1} tokens"

    def _why_not(self, value: float, target_s: Values) -> str:
        draft_s = self._learned.costs.draft
        if self._model is None or not self._could_pay:
            what = f"a pass of 2 tokens costs {target_s[2] / target_s[1]:.2f} of 1"
            if self._model is not None:
                return f"no draft model could pay: {what}, a draft pass {draft_s / target_s[1]:.2f}"
            return "nothing of the text so far repeats here"
        if value > 0.0:
            return "drafting would gain next to nothing here"
        return f"drafting is expected to give {max(0.0, 1.0 + value):.2f}x here"


def _affordable(costs_s: Values, budget_s: float) -> int:
    """The most drafted tokens that cost no more than this; one at the least."""
    return max(1, int(np.searchsorted(np.maximum.accumulate(costs_s), budget_s, "right")) - 1)


def _chance(target: Distribution, step: Step) -> float:
    """The chance that what is drawn in this place is accepted; of the token alone where all would be dear."""
    if step.distribution.tokens.size <= MOST_TOKENS:
        return acceptance_chance(target, step.distribution)
    return min(1.0, target.probability(step.token) / step.distribution.probability(step.token))


def _beside(step: Step, chance: float) -> float:
    """The chance that the draft gives another choice, should its first be refused."""
    return min(1.0, chance / max(1.0 - step.chance, 1e-6))
