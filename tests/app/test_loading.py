"""One pair after another in the same engine: what both have stays loaded, and nothing of the text changes."""

from __future__ import annotations

import os
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from specchat.app.decoding.settings import Sampling
from specchat.app.events import Ask, Failed, Finished, Loaded, LoadProgress, PrefillProgress
from specchat.app.requests import LoadOptions, Turn
from tests.app.driven import HELLO, Driven, options
from tests.tiny_models import TinyPair, write_tiny_model


@pytest.fixture
def first(tiny_pair: TinyPair) -> LoadOptions:
    return LoadOptions(str(tiny_pair.target), str(tiny_pair.draft), ctx_size=512, threads=1)


@pytest.fixture(scope="session")
def worse_draft(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_tiny_model(tmp_path_factory.mktemp("worse") / "worse.gguf", noise=0.6, name="Worse")


def read(events: list) -> list[str]:
    """The roles whose weights were read."""
    return list(dict.fromkeys(event.role for event in events if isinstance(event, LoadProgress)))


def fresh_answer(load: LoadOptions, turns: tuple[Turn, ...], asked) -> Finished:
    fresh = Driven()
    fresh.load(load)
    try:
        return fresh.ask(turns, asked)
    finally:
        fresh.engine.close()


@pytest.mark.parametrize("sampling", [Sampling(temperature=0.0), Sampling(temperature=0.9, seed=4)], ids=str)
@pytest.mark.parametrize("swap", ["another draft", "no draft"])
def test_after_a_swap_of_drafts_answers_are_those_of_a_fresh_engine(
    driven: Driven, first: LoadOptions, worse_draft: Path, sampling: Sampling, swap: str
):
    asked = options(60, sampling, speculate="always")
    said = driven.ask(HELLO, asked)
    other = replace(first, draft=str(worse_draft) if swap == "another draft" else None)
    turns = (*HELLO, Turn("assistant", said.text, said.token_ids), Turn("user", "and then?"))
    for load in (other, first, other):
        assert "target" not in read(driven.load(load))
        answer = driven.ask(turns, asked)
        assert answer.token_ids == fresh_answer(load, turns, asked).token_ids
        target, draft = driven.cached()
        assert target == [*target[: answer.prompt_tokens], *answer.token_ids][: len(target)]
        assert draft == target[: len(draft)]


def test_a_swap_of_drafts_keeps_the_targets_weights_and_what_it_has_read(
    driven: Driven, first: LoadOptions, worse_draft: Path
):
    driven.ask(HELLO, options(20))
    assert driven.engine.pair is not None
    target, held = driven.engine.pair.target, list(driven.cached()[0])
    events = driven.load(replace(first, draft=str(worse_draft)))
    assert read(events) == ["draft"]
    assert isinstance(events[-1], Loaded)
    assert events[-1].draft is not None
    assert events[-1].draft.name == "Worse"
    assert driven.engine.pair.target is target
    assert driven.cached() == (held, [])
    driven.ask(HELLO, options(20))
    prefills = {event.role: event for event in driven.of(PrefillProgress)}
    assert prefills["target"].total == 0
    assert prefills["draft"].reused == 0


def test_the_same_pair_again_is_ready_at_once_and_knows_what_it_learned(driven: Driven, first: LoadOptions):
    driven.ask(HELLO, options(20))
    pair, (held, _) = driven.engine.pair, driven.cached()
    events = driven.load(first)
    assert [type(event) for event in events] == [Loaded]
    assert driven.engine.pair is pair
    assert driven.cached()[0] == held


def test_the_same_pair_says_what_stands_in_the_way_of_other_drafting(driven: Driven, first: LoadOptions):
    (loaded,) = driven.load(first, speculate="off")
    assert isinstance(loaded, Loaded)
    assert (loaded.state, loaded.reason) == ("plain", "drafting is switched off")


@pytest.mark.parametrize(
    ("change", "reads"),
    [
        ({"ctx_size": 256}, ["target", "draft"]),
        ({"threads": 2}, ["target", "draft"]),
        ({"cache_type_k": "f32"}, ["target", "draft"]),
        ({"chat_template": "{% for turn in messages %}{{ turn['content'] }}{% endfor %}!"}, []),
    ],
    ids=str,
)
def test_other_options_load_what_depends_on_them(
    driven: Driven, first: LoadOptions, change: dict, reads: list[str]
):
    events = driven.load(replace(first, **change))
    assert read(events) == reads
    assert driven.ask(HELLO, options(5)).reason == "length"


def test_a_file_that_was_written_anew_is_loaded_anew(first: LoadOptions, tmp_path: Path):
    own = tmp_path / "own.gguf"
    shutil.copy(str(first.draft), own)
    driven = Driven()
    driven.load(replace(first, draft=str(own)))
    os.utime(own, ns=(1, 1))
    assert read(driven.load(replace(first, draft=str(own)))) == ["draft"]
    driven.engine.close()


def test_a_draft_that_cannot_be_loaded_leaves_the_target_for_the_next_load(
    driven: Driven, first: LoadOptions, tmp_path: Path
):
    strange = write_tiny_model(tmp_path / "strange.gguf", extra_tokens=900)
    cut = tmp_path / "cut.gguf"
    whole = Path(str(first.draft)).read_bytes()
    cut.write_bytes(whole[: len(whole) * 3 // 4])
    for path in (strange, cut, tmp_path / "missing.gguf"):
        failed = driven.load(replace(first, draft=str(path)))[-1]
        assert isinstance(failed, Failed)
        assert path.name in failed.message
        driven.events.clear()
        driven.engine.ask(Ask(HELLO, options(5)))
        assert driven.events == [Failed("no model is loaded")], "no answer comes from half a pair"
        assert "target" not in read(driven.load(first))
        assert driven.ask(HELLO, options(5)).reason == "length"


def test_a_load_that_is_stopped_keeps_the_target(driven: Driven, first: LoadOptions, worse_draft: Path):
    driven.cancel_after = 1
    assert driven.load(replace(first, draft=str(worse_draft)))[-1] == Failed("loading was stopped")
    driven.cancel_after = None
    assert read(driven.load(first)) == ["draft"]


def test_an_answer_asked_afresh_reads_the_whole_prompt_again_and_says_the_same(driven: Driven):
    first = driven.ask(HELLO, options(30))
    driven.events.clear()
    driven.engine.ask(Ask(HELLO, options(30), afresh=True))
    assert {event.reused for event in driven.of(PrefillProgress)} == {0}
    finished = driven.events[-1]
    assert isinstance(finished, Finished)
    assert finished.token_ids == first.token_ids
