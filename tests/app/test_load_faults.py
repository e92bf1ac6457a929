"""What fails while a pair is loaded: without its draft the target goes on, and nothing is left in memory."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from dataclasses import replace

import psutil
import pytest

from specchat.app.compare_events import Noted, Wanted
from specchat.app.comparing import compare
from specchat.app.events import Event, Failed, Loaded, LoadProgress
from specchat.app.footprint import Machine, needed
from specchat.app.loading import PairLoader
from specchat.app.measuring import DraftFailed
from specchat.app.memory_room import Room
from specchat.app.processor import Processor
from specchat.app.requests import AnswerOptions, LoadOptions
from specchat.models.errors import LoadError
from specchat.models.freed_memory import give_back_freed_memory
from specchat.models.gguf_file import read_header
from tests.app.driven import HELLO, Driven, options
from tests.faulty import Faulty
from tests.tiny_models import TinyPair

TARGET, DRAFT = 0, 1
"""The places of the contexts that a load makes."""

FIRST_PASS, LAST_TIMED = 0, 3
"""Passes of a draft's while it is loaded: one reads its weights in, three are timed."""


@pytest.fixture
def faulty(monkeypatch: pytest.MonkeyPatch) -> Faulty:
    return Faulty(monkeypatch)


@pytest.fixture
def fresh() -> Iterator[Driven]:
    """Nothing is loaded yet."""
    fresh = Driven()
    yield fresh
    fresh.engine.close()


@pytest.fixture
def pair(tiny_pair: TinyPair) -> LoadOptions:
    return LoadOptions(str(tiny_pair.target), str(tiny_pair.draft), ctx_size=512, threads=1)


def read(events: list[Event]) -> set[str]:
    return {event.role for event in events if isinstance(event, LoadProgress)}


@pytest.mark.parametrize(
    ("after", "kind"), [(FIRST_PASS, "refused"), (1, "half done"), (2, "refused"), (LAST_TIMED, "refused")]
)
def test_a_draft_whose_pass_fails_while_loading_is_left_out_and_said_and_loads_another_time(
    fresh: Driven, pair: LoadOptions, faulty: Faulty, after: int, kind: str
):
    faulty.arm_new(DRAFT, kind, after)
    loaded = fresh.load(pair, drafter="model")[-1]
    assert faulty.happened
    assert isinstance(loaded, Loaded), loaded
    why = "failed when it was first used: llama.cpp could not run a pass of "
    assert (loaded.draft, loaded.state) == (None, "plain")
    assert loaded.reason.startswith(f"the draft {why}")
    (warning,) = [warning for warning in loaded.warnings if why in warning]
    assert warning.startswith("The draft is left out: it failed")
    answer = fresh.ask(HELLO, options(20, drafter="model"))
    assert (answer.stats.state, answer.stats.drafted) == ("plain", 0)
    assert answer.stats.reason == loaded.reason
    # The text so far needs no draft model.
    assert fresh.ask(HELLO, options(20, drafter="both")).token_ids == answer.token_ids
    events = fresh.load(pair, drafter="model")
    assert isinstance(events[-1], Loaded)
    assert events[-1].draft is not None
    assert events[-1].state == "drafting"
    assert read(events) == {"draft"}
    again = fresh.ask(HELLO, options(20, drafter="model"))
    assert again.token_ids == answer.token_ids
    assert again.stats.drafted > 0


def test_where_the_text_so_far_is_drafted_from_that_goes_on_without_the_draft(
    fresh: Driven, pair: LoadOptions, faulty: Faulty
):
    faulty.arm_new(DRAFT, "refused", LAST_TIMED)
    loaded = fresh.load(pair)[-1]
    assert isinstance(loaded, Loaded)
    assert loaded.state == "drafting"
    assert loaded.reason.startswith("the draft failed when it was first used")


def test_a_draft_that_was_left_out_is_not_counted_as_memory_that_it_would_free(pair: LoadOptions):
    processor = Processor("", frozenset())
    headers = [read_header(name) for name in (pair.target, pair.draft) if name is not None]
    free = needed(headers, pair, processor)[1].total
    room = [1 << 40]
    machine = Machine(lambda: processor, lambda: Room(room[0]))
    loader = PairLoader(lambda _event: None, lambda: False, machine=machine)
    loader.load(pair)
    assert loader.leave_out_draft(DraftFailed("its passes cannot be timed")).draft is None
    room[0] = free - 1
    with pytest.raises(LoadError, match="Not enough memory"):
        loader.load(pair)
    room[0] = free
    assert loader.load(pair).draft is not None
    loader.close()


@pytest.mark.parametrize("after", [FIRST_PASS, 1])
def test_a_target_whose_pass_fails_while_loading_is_not_loaded_and_is_another_time(
    fresh: Driven, pair: LoadOptions, faulty: Faulty, after: int
):
    faulty.arm_new(TARGET, "refused", after)
    failed = fresh.load(pair)[-1]
    assert faulty.happened
    assert isinstance(failed, Failed)
    assert failed.message.startswith("llama.cpp could not run a pass of ")
    assert isinstance(fresh.load(pair)[-1], Loaded)


def test_a_draft_that_cannot_be_loaded_is_refused_with_what_to_do_and_the_target_stays(
    fresh: Driven, pair: LoadOptions, faulty: Faulty
):
    faulty.arm_new(DRAFT, "not made")
    failed = fresh.load(pair)[-1]
    assert isinstance(failed, Failed)
    assert str(pair.draft) in failed.message
    assert failed.message.endswith("; name another draft, or start without --draft")
    events = fresh.load(replace(pair, draft=None))
    assert isinstance(events[-1], Loaded)
    assert not read(events)


def test_a_comparison_leaves_out_a_draft_whose_first_pass_fails(pair: LoadOptions, faulty: Faulty):
    faulty.arm_new(DRAFT, "refused")
    told: list[object] = []
    compare(
        Wanted(
            (pair.target,), (str(pair.draft),), replace(pair, target="", draft=None),
            AnswerOptions(max_tokens=2), {"code": ("x",)}, time_limit_s=30.0,
        ),
        told.append,
    )  # fmt: skip
    notes = [one.text for one in told if isinstance(one, Noted)]
    assert len([note for note in notes if "is left out: llama.cpp could not run a pass of" in note]) == 1


def test_loads_that_fail_half_way_keep_no_memory(fresh: Driven, pair: LoadOptions, faulty: Faulty):
    pair = replace(pair, ctx_size=32768)  # a cache of 16 MB each
    alone = replace(pair, draft=None)

    def fail(*what: tuple[int, str, int]) -> None:
        for fault in what:
            faulty.arm_new(*fault)
            fresh.load(pair)
            assert faulty.happened, fault
        faulty.disarm()

    def a_few() -> None:
        fresh.engine.close()
        fail((TARGET, "not made", 0), (TARGET, "refused", FIRST_PASS), (DRAFT, "not made", 0))
        # The target is there now, and the draft is the next that is made.
        fail((0, "refused", FIRST_PASS), (0, "refused", LAST_TIMED))
        fresh.load(alone)

    def taken() -> int:
        gc.collect()
        give_back_freed_memory()
        return psutil.Process().memory_info().rss

    a_few()
    before = taken()
    for _ in range(4):
        a_few()
    assert taken() - before < 10_000_000
