"""Runs a comparison: every contender answers every prompt, one after another, as long as there is time."""

from __future__ import annotations

import itertools
import os
import platform
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime
from typing import Literal

from ..models.errors import ContextFullError, LoadError
from ..models.llama import build, devices
from .clocks import steady
from .compare_events import Answering, Compared, Noted, Preparing, Tell, Wanted
from .compare_plan import Group, Speed, Timetable, order, rounds
from .comparison import Answered, Comparison, Contender, PassCosts, rows_of, settled
from .contenders import Bench, Contestant, Observed, load_bench
from .conversation import build_prompt
from .events import Event, LoadProgress
from .footprint import Machine
from .lineups import Lineup, line_up
from .pass_costs import Costs, spent, sweep_costs
from .processor import thread_count
from .recommending import recommend
from .remembered import Remembered
from .requests import AnswerOptions, Turn
from .unrest import unrest

_USED = 0.97
"""Of the time limit: a pass that is under way cannot be stopped, and a report has to be written."""

_COSTS_SHARE, _COSTS_MOST_S = 0.04, 20.0
"""Of the time, that measuring passes may take."""

_FIRST_TOKENS = 16
_FIRST_PROMPT = "Count from one to twenty, in words."
"""What every contender answers before it counts: caches are warm then, and its speed is roughly known."""

Ending = Literal["settled", "time limit", "all answered", "interrupted"]
"""Why it came to its end: no median moved any more, the time was over, there was nothing left, somebody
stopped it."""


def compare(
    wanted: Wanted,
    tell: Tell,
    *,
    cancelled: Callable[[], bool] = lambda: False,
    clock: Callable[[], float] = time.perf_counter,
    now: Callable[[], datetime] = datetime.now,
    remembered: Remembered | None = None,
    machine: Machine | None = None,
) -> Comparison:
    """Let every contender answer every prompt, until the figures settle or the time is over.

    One target is loaded at a time, with all its drafts. All contenders answer a prompt one after another,
    plain decoding among them, and each begins as often as any other. The time limit is kept by planning:
    fewer prompts of each kind, and shorter answers where one of each kind would not fit.

    Args:
        wanted: what to compare.
        tell: is told what happens.
        cancelled: is looked at within answers; what was answered until then is returned.
        clock: seconds.
        now: the time of day.
        remembered: where what is measured and learned of pairs is looked up and kept.
        machine: what models are loaded on; this one unless another is given.

    Raises:
        ModelFileError: a file is no usable model.
        PairError: drafts were given, and none can serve any of the targets; nothing was loaded.
        LoadError: a target could not be loaded, or takes more memory than there is.
        TemplateError: a chat template cannot be compiled.
        ContextFullError: a prompt does not fit the context.
        PassError: llama.cpp would not run a pass.
    """
    return _Comparing(wanted, tell, cancelled, clock, now, remembered, machine or Machine()).run()


@dataclass
class _Measuring:
    """One target's share: who takes part, and what is known so far."""

    bench: Bench
    first: int
    """The place of its first contender in the comparison."""
    costs: Costs
    timetable: Timetable
    tokens: int
    """The most tokens of an answer."""
    answers: list[Answered] = field(default_factory=list[Answered])


class _Comparing:
    def __init__(
        self,
        wanted: Wanted,
        tell: Tell,
        cancelled: Callable[[], bool],
        clock: Callable[[], float],
        now: Callable[[], datetime],
        remembered: Remembered | None,
        machine: Machine,
    ) -> None:
        self._machine = machine
        self._wanted, self._tell, self._clock = wanted, tell, steady(clock)
        self._cancelled, self._remembered = cancelled, remembered
        self._date = now().isoformat(timespec="seconds")
        self._started = self._deadline = self._clock()
        self._contenders: list[Contender] = []
        self._answers: list[Answered] = []
        self._costs: list[PassCosts] = []
        self._endings: list[Ending] = []
        self._settings: dict[str, object] = {}

    def run(self) -> Comparison:
        lineups = line_up(
            self._wanted.targets, self._wanted.drafts, lambda why: self._tell(Noted(f"Left out: {why}"))
        )
        end = self._started + _USED * self._wanted.time_limit_s
        for index, lineup in enumerate(lineups):
            now = self._clock()
            self._deadline = now + (end - now) / (len(lineups) - index)
            try:
                self._endings.append(self._measure_target(lineup))
            except LoadError:
                if not self._stopped():
                    raise
                self._endings.append(self._why_stopped())
            if self._cancelled():
                break
        contenders, rows = tuple(self._contenders), rows_of(self._contenders, self._answers)
        costs = tuple(self._costs)
        measured = {(row.contender, row.kind) for row in rows if row.kind is not None}
        whole = len(self._endings) == len(lineups) and len(measured) == len(contenders) * len(
            self._wanted.prompts
        )
        return Comparison(
            date=self._date,
            machine=(
                *devices(self._wanted.load.gpu_layers), f"{os.cpu_count()} processors", platform.machine(),
            ),
            build=build(),
            settings={**self._settings, "answers": len(self._answers), "ended": list(self._endings)},
            contenders=contenders,
            rows=rows,
            costs=costs,
            answers=tuple(self._answers),
            recommendations=recommend(contenders, rows, costs),
            unrest=unrest(rows, costs),
            complete=bool(contenders) and whole and "interrupted" not in self._endings,
            seconds=self._clock() - self._started,
        )  # fmt: skip

    def _measure_target(self, lineup: Lineup) -> Ending:
        bench = load_bench(
            self._wanted.load,
            lineup.target,
            lineup.candidates,
            self._wanted.options.drafting,
            lambda what: what if len(self._wanted.targets) == 1 else f"{lineup.name}, {what}",
            self._machine,
            emit=self._loading,
            left_out=lambda candidate, why: self._tell(Noted(f"{candidate.name} is left out: {why}")),
            cancelled=self._stopped,
            clock=self._clock,
            remembered=self._remembered,
        )
        with closing(bench):
            measuring = self._prepare(bench)
            return self._why_stopped() if measuring is None else self._answer_all(measuring)

    def _prepare(self, bench: Bench) -> _Measuring | None:
        """Measure what passes cost, see who can take part, let each answer once; `None` if stopped."""
        wanted = self._wanted
        prompt_tokens = self._prompt_tokens(bench)
        self._tell(Preparing("measuring what passes cost"))
        budget_s = min(_COSTS_MOST_S, _COSTS_SHARE * self._left_s())
        drafts = [draft.context for draft in bench.drafts]
        costs = sweep_costs(bench.target.context, drafts, self._clock, budget_s, self._stopped)
        if costs is None:
            return None
        taking_part: list[Contestant] = []
        for contestant in bench.contestants:
            if self._stopped():
                return None
            obstacle = contestant.prepare(wanted.options.drafting)
            if obstacle is None:
                taking_part.append(contestant)
            else:
                self._tell(Noted(f"{contestant.name} is left out: {obstacle}"))
        bench.contestants[:] = taking_part
        first = len(self._contenders)
        contenders = [contestant.contender() for contestant in taking_part]
        speeds: list[Speed] = []
        for contestant in taking_part:
            self._tell(Preparing(f"a first answer, which does not count: {contestant.name}"))
            tokens = min(_FIRST_TOKENS, wanted.options.max_tokens or _FIRST_TOKENS)
            turns, options = self._turns(_FIRST_PROMPT), replace(wanted.options, max_tokens=tokens)
            observed = None if self._stopped() else self._answer(contestant, turns, options)
            if observed is None:
                return None
            speeds.append(observed[1])
        self._contenders += contenders
        draft_s = {
            contestant.name: _draft_costs(bench, contestant, costs)[1]
            for contestant in taking_part
            if contestant.pair.draft is not None
        }
        self._costs.append(PassCosts(bench.target.info(), costs.target_s, draft_s))
        timetable = Timetable(speeds, prompt_tokens)
        first_round = next(rounds(wanted.prompts, 1))
        asked = wanted.options.max_tokens or bench.target.context.size
        tokens = timetable.tokens(first_round, asked, self._left_s())
        if tokens < asked:
            self._tell(Noted(f"Answers are cut at {tokens} tokens, to answer every kind within the time."))
        self._note_settings(bench, tokens)
        return _Measuring(bench, first, costs, timetable, tokens)

    def _answer_all(self, measuring: _Measuring) -> Ending:
        """Group by group, until nothing is left, nothing moves, or the next does not fit into the time."""
        prompts = self._wanted.prompts
        plan = list(rounds(prompts, self._wanted.repeats))
        whole = max(map(len, prompts.values()))  # rounds in which every prompt is answered once
        number, before = 0, ()
        for index, groups in enumerate(plan):
            for place, group in enumerate(groups):
                # A kind that nobody has answered is tried even where the time looks too short.
                if index and measuring.timetable.seconds(group, measuring.tokens) > self._left_s():
                    return "time limit"
                ahead = [*groups[place:], *itertools.chain.from_iterable(plan[index + 1 :])]
                if not self._answer_group(measuring, group, number, ahead):
                    return self._why_stopped()
                number += 1
            if (index + 1) % whole == 0:
                rows = rows_of(self._contenders, measuring.answers)
                if before and settled(before, rows):
                    return "settled"
                before = rows
        return "all answered"

    def _answer_group(self, measuring: _Measuring, group: Group, number: int, ahead: Sequence[Group]) -> bool:
        """Let everybody answer one prompt; False where that was stopped, with what there was kept."""
        contestants = measuring.bench.contestants
        turns = self._turns(self._wanted.prompts[group.kind][group.prompt])
        options = replace(self._wanted.options, max_tokens=measuring.tokens)
        started = self._clock()
        observed: dict[int, Observed] = {}
        for place in order(len(contestants), number):
            self._tell(self._answering(measuring, group, contestants[place].name, len(observed), ahead))
            # Prompts are read anew the first time; later the contender before has left them in the cache.
            # A prompt that is being read cannot be left before a part of it is.
            got, first_s = None, measuring.timetable.first_token_s(group, place)
            if not self._stopped() and (group.repeat or first_s < self._left_s()):
                got = self._answer(contestants[place], turns, options, afresh=group.repeat == 0)
            if got is None:
                break
            observed[place], speed = got
            if group.repeat == 0:
                measuring.timetable.observe(place, speed)
        answers = [
            self._answered(measuring, group, place, observed.get(0), one)
            for place, one in sorted(observed.items())
        ]
        measuring.answers += answers
        self._answers += answers
        if len(observed) < len(contestants):
            return False
        measuring.timetable.observe_group(group, self._clock() - started)
        rows = rows_of(self._contenders, self._answers)
        self._tell(Compared(group, tuple(self._contenders), tuple(answers), rows))
        return True

    def _answer(
        self, contestant: Contestant, turns: tuple[Turn, ...], options: AnswerOptions, afresh: bool = True
    ) -> tuple[Observed, Speed] | None:
        """An answer, and how fast it was; `None` where it was stopped."""
        started = self._clock()
        observed = contestant.answer(turns, options, afresh=afresh)
        if observed is None:
            return None
        taken = self._clock() - started
        stats = observed.finished.stats
        first_s = stats.ttft_s or 0.0
        further = max(1, stats.completion_tokens - 1)
        return observed, Speed(
            first_s / max(1, observed.finished.prompt_tokens), max(0.0, taken - first_s) / further
        )

    def _answered(
        self, measuring: _Measuring, group: Group, place: int, plain: Observed | None, one: Observed
    ) -> Answered:
        contestant = measuring.bench.contestants[place]
        comparable = place > 0 and plain is not None and self._wanted.options.sampling.temperature == 0
        differs_from = one.differs_from(plain) if comparable and plain is not None else None
        stats = one.finished.stats if group.repeat == 0 else replace(one.finished.stats, ttft_s=None)
        return Answered(
            contender=measuring.first + place,
            kind=group.kind,
            prompt=group.prompt,
            stats=stats,
            counted_speedup=_counted(measuring, contestant, one) if place > 0 else None,
            times_s=one.times_s,
            same_as_plain=differs_from is None if comparable else None,
            differs_from=differs_from,
            repeat=group.repeat,
        )

    def _answering(
        self, measuring: _Measuring, group: Group, name: str, answered: int, ahead: Sequence[Group]
    ) -> Answering:
        left_s, fitting, needed_s = self._left_s(), 0, 0.0
        contestants = len(measuring.bench.contestants)
        for later in ahead:
            seconds = measuring.timetable.seconds(later, measuring.tokens)
            if fitting and needed_s + seconds > left_s:
                break
            fitting, needed_s = fitting + 1, needed_s + seconds
        needed_s *= 1 - answered / (fitting * contestants)
        before = len(self._answers)
        return Answering(
            name, group.kind, group.prompt, before + answered, before + fitting * contestants,
            min(needed_s, max(left_s, 0.0)),
        )  # fmt: skip

    def _prompt_tokens(self, bench: Bench) -> dict[tuple[str, int], int]:
        """How long each prompt is for this target.

        Raises:
            ContextFullError: one does not fit.
        """
        lengths: dict[tuple[str, int], int] = {}
        model, room = bench.target.model, bench.target.context.size
        for kind, texts in self._wanted.prompts.items():
            for index, text in enumerate(texts):
                try:
                    prompt = build_prompt(self._turns(text), bench.template, model, room)
                except ContextFullError as error:
                    raise ContextFullError(f"prompt {index + 1} of {kind}: {error}") from None
                lengths[kind, index] = len(prompt.tokens)
        return lengths

    def _turns(self, prompt: str) -> tuple[Turn, ...]:
        system = self._wanted.system
        return ((Turn("system", system),) if system else ()) + (Turn("user", prompt),)

    def _loading(self, event: Event) -> None:
        if isinstance(event, LoadProgress):
            self._tell(Preparing(f"loading {event.name}: {event.fraction:.0%}"))

    def _note_settings(self, bench: Bench, tokens: int) -> None:
        wanted = self._wanted
        fewest = self._settings.get("tokens_per_answer", tokens)
        self._settings = {
            **asdict(wanted.options.sampling),
            **asdict(wanted.options.drafting),
            "max_tokens": wanted.options.max_tokens,
            "tokens_per_answer": min(tokens, fewest if isinstance(fewest, int) else tokens),
            "ctx_size": bench.target.context.size,
            "threads": thread_count(wanted.load.threads),
            "flash_attn": wanted.load.flash_attn,
            "cache_type_k": wanted.load.cache_type_k,
            "cache_type_v": wanted.load.cache_type_v,
            "prompts": {kind: len(texts) for kind, texts in wanted.prompts.items()},
            "repeats": wanted.repeats,
            "time_limit_s": wanted.time_limit_s,
        }

    def _left_s(self) -> float:
        return self._deadline - self._clock()

    def _stopped(self) -> bool:
        return self._cancelled() or self._left_s() <= 0.0

    def _why_stopped(self) -> Ending:
        return "interrupted" if self._cancelled() else "time limit"


def _draft_costs(bench: Bench, contestant: Contestant, costs: Costs) -> dict[int, float]:
    return next(
        seconds
        for draft, seconds in zip(bench.drafts, costs.drafts_s, strict=True)
        if draft is contestant.pair.draft
    )


def _counted(measuring: _Measuring, contestant: Contestant, one: Observed) -> float | None:
    """What plain passes would have cost over what these cost."""
    target_s = measuring.costs.target_s
    taken = spent(target_s, one.target_passes)
    if contestant.pair.draft is not None:
        taken += spent(_draft_costs(measuring.bench, contestant, measuring.costs), one.draft_passes)
    return one.decided * target_s[1] / taken if taken > 0 else None
