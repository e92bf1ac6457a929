"""What of an answer reaches the next one, and what must not."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from specchat.app.decoding.adaptive import AdaptivePacing
from specchat.app.decoding.pacing import FixedPacing, PlainPacing
from specchat.app.decoding.sampling import Sampler
from specchat.app.decoding.settings import Sampling
from specchat.app.engine import Engine
from specchat.app.events import Ask, Event, Finished, Load
from specchat.app.loading import Pair, PairLoader
from specchat.app.pacers import Pacers
from specchat.app.requests import AnswerOptions, Drafting, LoadOptions, Turn
from tests.tiny_models import TinyPair

CHEAP = {"target_s": {"1": 1.0, "33": 1.1}, "draft_s": 0.02}
DOUBTFUL = {"target_s": {"1": 1.0, "2": 1.65, "4": 1.78, "16": 2.65}, "draft_s": 0.5}
"""Costs at which a draft would pay only if it were better than drafts mostly are."""
HELLO = (Turn("user", "hello"),)


class Recalling:
    """Remembers the same costs for every pair, whatever was measured."""

    def __init__(self, costs: dict[str, Any]) -> None:
        self._costs = costs

    def recall(self, what: str, depends_on: object) -> dict[str, Any] | None:
        return self._costs if what == "costs" else None

    def keep(self, what: str, depends_on: object, measured: dict[str, Any]) -> None:
        pass


class Noisy:
    """A clock that runs at a speed of its own, and jumps."""

    def __init__(self, seed: int) -> None:
        self._numbers = np.random.default_rng(seed)
        self._pace = 10.0 ** float(self._numbers.uniform(-3, 1))
        self._now = 0.0

    def __call__(self) -> float:
        self._now += self._pace * float(self._numbers.exponential())
        return self._now


class Answering:
    def __init__(self, pair: TinyPair, clock: Callable[[], float], costs: dict[str, Any]) -> None:
        self.events: list[Event] = []
        remembered: Any = Recalling(costs)
        self.engine = Engine(self.events.append, clock=clock, remembered=remembered)
        self.engine.load(Load(LoadOptions(str(pair.target), str(pair.draft), ctx_size=512, threads=1)))

    def __call__(self, turns: tuple[Turn, ...], seed: int | None, temperature: float = 1.0, **drafting):
        sampling = Sampling(temperature, seed=seed)
        self.engine.ask(Ask(turns, AnswerOptions(sampling, Drafting(**drafting), 60)))
        finished = self.events[-1]
        assert isinstance(finished, Finished), finished
        return finished


@pytest.fixture
def answering(tiny_pair: TinyPair) -> Iterator[Callable[..., Answering]]:
    made: list[Answering] = []

    def make(seed: int = 0, costs: dict[str, Any] = CHEAP) -> Answering:
        made.append(Answering(tiny_pair, Noisy(seed), costs))
        return made[-1]

    yield make
    for one in made:
        one.engine.close()


def followed(turns: tuple[Turn, ...], answer: Finished, text: str) -> tuple[Turn, ...]:
    return (*turns, Turn("assistant", answer.text, answer.token_ids), Turn("user", text))


@pytest.mark.parametrize("costs", [CHEAP, DOUBTFUL], ids=["cheap", "doubtful"])
@pytest.mark.parametrize("drafter", ["model", "lookup", "both"])
def test_a_seed_gives_the_same_text_whatever_the_clock_says(answering, drafter: str, costs: dict[str, Any]):
    """Two engines with clocks of their own, and two turns: what was measured at the start alone decides."""
    texts = []
    for clock in (1, 2):
        answer = answering(clock, costs)
        first = answer(HELLO, 5, drafter=drafter)
        second = answer(followed(HELLO, first, "and then?"), 6, drafter=drafter)
        texts.append((first.token_ids, second.token_ids))
    assert texts[0] == texts[1]
    assert drafter == "lookup" or costs is DOUBTFUL or first.stats.drafted > 0


@pytest.mark.parametrize("costs", [CHEAP, DOUBTFUL], ids=["cheap", "doubtful"])
@pytest.mark.parametrize("drafter", ["model", "lookup", "both"])
def test_a_seed_gives_the_same_text_whatever_was_answered_before(
    answering, drafter: str, costs: dict[str, Any]
):
    """Neither what other answers taught nor what the draft's cache happens to hold decides."""
    alone = [answering(1, costs)(HELLO, seed, drafter=drafter).token_ids for seed in range(2)]
    answer = answering(2, costs)
    for seed in range(2):
        answer((Turn("user", f"something else, {seed}"),), None, drafter=drafter)
        answer(HELLO, 90 + seed, drafter=drafter)
        assert answer(HELLO, seed, drafter=drafter).token_ids == alone[seed]


def test_without_a_seed_no_two_texts_are_alike(answering):
    answer = answering()
    assert answer(HELLO, None).token_ids != answer(HELLO, None).token_ids


def test_the_drafted_text_is_the_plain_one_at_temperature_zero(answering):
    answer = answering()
    drafted = answer(HELLO, None, 0.0)
    assert drafted.token_ids == answer(HELLO, None, 0.0, speculate="off").token_ids
    assert drafted.stats.drafted > 0


@pytest.fixture
def pair(tiny_pair: TinyPair) -> Iterator[Pair]:
    options = LoadOptions(str(tiny_pair.target), str(tiny_pair.draft), ctx_size=512, threads=1)
    loader = PairLoader(lambda _event: None, lambda: False)
    yield loader.load(options)
    loader.close()


def pacers(pair: Pair, costs: dict[str, Any] = CHEAP) -> Pacers:
    remembered: Any = Recalling(costs)
    return Pacers(pair, Noisy(0), remembered)


def pacing(of: Pacers, prompt: list[int], *, temperature: float = 0.0, seed: int | None = None, **drafting):
    sampler = Sampler(Sampling(temperature, seed=seed))
    return of.pacing(Drafting(**drafting), prompt, sampler, np.random.default_rng(0))


def test_each_way_of_drafting_has_its_pacing(pair: Pair):
    of = pacers(pair)
    assert isinstance(pacing(of, [1, 2]), AdaptivePacing)
    assert isinstance(pacing(of, [1, 2], speculate="always"), FixedPacing)
    assert isinstance(pacing(of, [1, 2], speculate="off"), PlainPacing)


def test_what_is_learned_is_kept_from_answer_to_answer_apart_by_whether_draws_are_made(pair: Pair):
    of = pacers(pair)
    greedy, warm = pacing(of, [1]), pacing(of, [1], temperature=1.0)
    assert pacing(of, [1])._learned is greedy._learned
    assert pacing(of, [1], temperature=0.7)._learned is warm._learned is not greedy._learned


def test_a_seeded_answer_neither_learns_from_others_nor_teaches_them(pair: Pair):
    of = pacers(pair)
    kept = pacing(of, [1], temperature=1.0)._learned
    seeded = pacing(of, [1], temperature=1.0, seed=3)._learned
    assert seeded is not kept
    assert pacing(of, [1], temperature=1.0, seed=3)._learned is not seeded
    # Nor at temperature 0: sizes of passes may round differently, and the same text has to come again.
    assert pacing(of, [1], seed=3)._learned is not pacing(of, [1])._learned


def test_the_index_goes_on_across_turns_and_is_made_anew_when_a_prompt_diverges(pair: Pair):
    of = pacers(pair)
    first = pacing(of, [1, 2, 3], drafter="lookup")._lookup
    first.observe([4, 5])
    second = pacing(of, [1, 2, 3, 4, 5, 6], drafter="lookup")._lookup
    assert second._index is first._index
    assert second._index.tokens == [1, 2, 3, 4, 5, 6]
    for diverged in ([1, 2, 9], [1, 2, 3], [7]):
        third = pacing(of, diverged, drafter="lookup")._lookup
        assert third._index is not second._index
        assert third._index.tokens == diverged


def test_costs_are_measured_once_and_never_where_nothing_is_drafted(pair: Pair):
    of = Pacers(pair, Noisy(0))
    of.prepare(Drafting(speculate="off"))
    of.prepare(Drafting(speculate="always"))
    assert of._measured is None
    of.prepare(Drafting())
    measured = of._measured
    assert measured is not None
    assert measured.draft_s is not None
    pacing(of, [1, 2])
    assert of._measured is measured


def test_costs_can_be_measured_after_an_answer_that_filled_the_context(tiny_pair: TinyPair):
    events: list[Event] = []
    engine = Engine(events.append)
    options = LoadOptions(str(tiny_pair.target), str(tiny_pair.draft), ctx_size=128, threads=1)
    engine.load(Load(options, Drafting(speculate="off")))
    for speculate in ("always", "auto"):
        drafting = Drafting(speculate=speculate, draft_p_min=0.0)
        engine.ask(Ask(HELLO, AnswerOptions(Sampling(temperature=0.0), drafting)))
        finished = events[-1]
        assert isinstance(finished, Finished), finished
        assert finished.reason == "context"
    engine.close()
