"""Every kind of model: answers as the plain ones and true caches, or refused in words before it is read."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from specchat.app.decoding.drafters import ModelDrafter
from specchat.app.decoding.sampling import Sampler
from specchat.app.events import Failed, Loaded, LoadProgress, PrefillProgress
from specchat.app.measuring import measure_costs
from specchat.app.requests import LoadOptions, Turn
from specchat.models.llama import Context
from tests.app.decoding.scripted import (
    GREEDY,
    Ending,
    EveryRound,
    Recited,
    own_leaves,
    plain,
    rounds,
    tokens_of,
)
from tests.app.driven import HELLO, Driven, options
from tests.fresh_rows import fresh_row
from tests.tiny_architectures import SLIDING_WINDOW, write_tiny_architecture, write_tiny_kin
from tests.tiny_models import EXACT, TinyPair

TRANSFORMERS: dict[str, dict[str, Any]] = {
    "llama": {},
    "llama, tied, SentencePiece": {"tied": True, "vocabulary": "llama"},
    "llama, unigram": {"vocabulary": "t5"},
    "llama, without an end": {"vocabulary": "rwkv"},
    "llama, without a template": {"template": None},
    "qwen2": {},
    "qwen3": {},
    "gemma3": {},
    "phi3": {},
    "qwen3moe": {},
}
ROLLS_BACK = ("lfm2", "lfm2moe", "nemotron_h", "qwen35", "qwen35moe")
CANNOT_ROLL_BACK = ("mamba", "jamba")

CLOSE = 0.05
"""Gemma's activations are looked up in a table of half-precision numbers; a wrong token moves whole units."""


@contextmanager
def driven(target: Path, draft: Path | None = None, ctx_size: int = 512) -> Iterator[Driven]:
    engine = Driven()
    engine.load(LoadOptions(str(target), draft and str(draft), ctx_size=ctx_size, threads=1, **EXACT))
    assert isinstance(engine.events[-1], Loaded), engine.events[-1]
    try:
        yield engine
    finally:
        engine.engine.close()


def kin(folder: Path, kind: str) -> TinyPair:
    return write_tiny_kin(folder, kind.split(",")[0], **TRANSFORMERS[kind])


def target_of(engine: Driven) -> Context:
    assert engine.engine.pair is not None
    return engine.engine.pair.target.context


def assert_caches_are_true(engine: Driven) -> None:
    """The row that comes next is the one of a context that has seen nothing else."""
    pair = engine.engine.pair
    assert pair is not None
    for context in (pair.target.context, pair.draft.context if pair.draft else None):
        if context is None or not context.tokens:
            continue
        held = list(context.tokens)
        row = context.decode([7], 1)[0].copy()
        context.truncate(len(held))
        np.testing.assert_allclose(row, fresh_row(context, [*held, 7]), atol=CLOSE)


@pytest.mark.parametrize("kind", TRANSFORMERS)
def test_a_transformer_of_any_kind_answers_drafted_as_it_does_plainly(tmp_path: Path, kind: str):
    pair = kin(tmp_path, kind)
    with driven(pair.target, pair.draft) as engine:
        whole = engine.ask(HELLO, options(60, speculate="off"))
        for drafter in ("lookup", "model", "both"):
            drafted = engine.ask(HELLO, options(60, drafter=drafter))
            assert drafted.token_ids == whole.token_ids
            assert drafted.stats.drafted > 0
        assert drafted.stats.accepted > 0
        assert_caches_are_true(engine)

        turns = (*HELLO, Turn("assistant", whole.text, whole.token_ids), Turn("user", "and then?"))
        second = engine.ask(turns, options(40))
        assert second.token_ids == engine.ask(turns, options(40, speculate="off")).token_ids
        assert_caches_are_true(engine)

        stopped = engine.ask(HELLO, options(60), cancel_after=4)
        assert stopped.token_ids == whole.token_ids[: len(stopped.token_ids)]
        assert_caches_are_true(engine)


@pytest.mark.parametrize("kind", TRANSFORMERS)
def test_a_transformer_of_any_kind_says_the_same_by_trees(tmp_path: Path, kind: str):
    pair = kin(tmp_path, kind)
    with driven(pair.target, pair.draft) as engine:
        assert engine.engine.pair is not None
        assert engine.engine.pair.draft is not None
        target, draft = target_of(engine), engine.engine.pair.draft.context
        prompt = [40, 41, 42, 43, 44]
        alone = plain(target, prompt)
        drafter = ModelDrafter(draft, prompt, Sampler(GREEDY), np.random.default_rng(0))
        told = list(rounds(target, EveryRound(drafter, 3, own_leaves(3)), prompt))
        assert tokens_of(told) == alone
        assert sum(done.leaves_tested for done in told) > 0
        assert_caches_are_true(engine)


def test_a_sliding_window_that_is_left_behind_is_still_there_after_a_rollback(tmp_path: Path):
    pair = kin(tmp_path, "gemma3")
    with driven(pair.target, pair.draft, 1024) as engine:
        long = (Turn("user", "".join(chr(40 + place * place % 80) for place in range(800))),)
        whole = engine.ask(long, options(50, speculate="off"))
        assert whole.prompt_tokens > 16 * SLIDING_WINDOW
        assert engine.ask(long, options(50)).token_ids == whole.token_ids
        # Back to where the window was before all of that.
        target_of(engine).truncate(SLIDING_WINDOW + 2)
        assert_caches_are_true(engine)


@pytest.mark.parametrize("architecture", ROLLS_BACK)
def test_a_hybrid_whose_states_are_kept_answers_drafted_as_it_does_plainly(tmp_path: Path, architecture: str):
    """By lookup and by a transformer of the same vocabulary, which is seldom right: all lengths go back."""
    target = write_tiny_architecture(tmp_path / "target.gguf", architecture)
    draft = write_tiny_architecture(tmp_path / "draft.gguf", "llama", seed=2)
    with driven(target, draft) as engine:
        whole = engine.ask(HELLO, options(70, speculate="off"))
        for drafter in ("lookup", "model", "both"):
            drafted = engine.ask(HELLO, options(70, drafter=drafter, draft_max=16))
            assert drafted.token_ids == whole.token_ids
            assert drafted.stats.drafted > drafted.stats.accepted
            assert "up to 7 tokens" in drafted.stats.reason
            assert_caches_are_true(engine)

        turns = (*HELLO, Turn("assistant", whole.text, whole.token_ids), Turn("user", "and then?"))
        second = engine.ask(turns, options(40))
        assert second.token_ids == engine.ask(turns, options(40, speculate="off")).token_ids
        assert_caches_are_true(engine)

        stopped = engine.ask(HELLO, options(70), cancel_after=5)
        assert stopped.token_ids == whole.token_ids[: len(stopped.token_ids)]
        assert_caches_are_true(engine)


def test_a_hybrid_reads_only_what_is_new_of_a_second_turn(tmp_path: Path):
    target = write_tiny_architecture(tmp_path / "target.gguf", "qwen35")
    with driven(target) as engine:
        first = engine.ask(HELLO, options(60))
        engine.ask(
            (*HELLO, Turn("assistant", first.text, first.token_ids), Turn("user", "go on")), options(5)
        )
        read = engine.of(PrefillProgress)[0]
        assert read.reused == first.prompt_tokens + len(first.token_ids) - 1


def test_a_hybrids_state_outlives_an_end_inside_a_draft(tmp_path: Path):
    target = write_tiny_architecture(tmp_path / "target.gguf", "qwen35")
    with driven(target) as engine:
        context, prompt = target_of(engine), [40, 41, 42]
        alone = plain(context, prompt, max_tokens=12)
        end = next(place for place in range(3, 12) if alone[place] not in alone[:place])
        ending: Any = Ending(context, alone[end])
        told = list(rounds(ending, Recited([[], alone[1 : end + 3]]), prompt))
        assert tokens_of(told) == alone[:end]
        assert context.tokens == prompt + alone[:end]
        np.testing.assert_allclose(
            context.decode([7], 1)[0], fresh_row(context, [*prompt, *alone[:end], 7]), atol=CLOSE
        )


@pytest.mark.parametrize("architecture", CANNOT_ROLL_BACK)
def test_a_model_that_cannot_roll_back_says_so_and_answers_plainly(tmp_path: Path, architecture: str):
    target = write_tiny_architecture(tmp_path / "target.gguf", architecture)
    with driven(target) as engine:
        loaded = engine.events[-1]
        assert isinstance(loaded, Loaded)
        assert (loaded.state, loaded.reason) == (
            "plain",
            "this model cannot roll back, so drafts cannot be tested",
        )
        first = engine.ask(HELLO, options(40))
        assert (first.stats.drafted, first.stats.reason) == (0, loaded.reason)
        assert list(first.token_ids) == plain(
            target_of(engine), target_of(engine).tokens[: first.prompt_tokens], max_tokens=40
        )

        answered = (*HELLO, Turn("assistant", first.text, first.token_ids))
        for turns in (
            (*answered, Turn("user", "and then?")),  # goes on
            (*HELLO, Turn("user", "another question")),  # differs from what is held
            HELLO,  # is shorter than what is held
            answered,  # an answer that is gone on with
        ):
            said = engine.ask(turns, options(30)).token_ids
            assert_caches_are_true(engine)
            target_of(engine).truncate(0)
            assert said == engine.ask(turns, options(30)).token_ids

        stopped = engine.ask(HELLO, options(40), cancel_after=3)
        assert stopped.token_ids == first.token_ids[: len(stopped.token_ids)]
        assert engine.ask(HELLO, options(40)).token_ids == first.token_ids


def test_what_passes_of_a_hybrid_cost_is_measured_as_far_as_it_can_go_back(tmp_path: Path):
    target = write_tiny_architecture(tmp_path / "target.gguf", "qwen35")
    with driven(target) as engine:
        engine.ask(HELLO, options(30, speculate="auto"))
        assert_caches_are_true(engine)
        context = target_of(engine)
        assert max(measure_costs(context, None).target_s) == context.rollback + 1 == 8
        assert context.tokens == []  # that it cannot forget
        assert_caches_are_true(engine)


def test_strict_drafts_nothing_for_a_hybrid_and_says_why(tmp_path: Path):
    target = write_tiny_architecture(tmp_path / "target.gguf", "qwen35")
    with driven(target) as engine:
        stats = engine.ask(HELLO, options(5, strict=True)).stats
        assert (stats.state, stats.drafted) == ("plain", 0)
        assert (
            stats.reason == "how passes of a recurrent model round is not known, so --strict drafts nothing"
        )


@pytest.mark.parametrize(
    ("target", "draft", "words"),
    [
        ("llama", "mamba", "The draft has recurrent layers (mamba)"),
        ("qwen35", "qwen35", "The draft has recurrent layers (qwen35)"),
        ("jamba", "llama", "The target has recurrent layers (jamba)"),
        ("t5", None, "an encoder-decoder model"),
        ("bert", None, "an embedding model"),
        ("llama", "bert", "an embedding model"),
    ],
)
def test_what_cannot_work_is_refused_in_words_before_anything_is_read(
    tmp_path: Path, target: str, draft: str | None, words: str
):
    engine = Driven()
    files = [
        str(write_tiny_architecture(tmp_path / f"{role}.gguf", architecture)) if architecture else None
        for role, architecture in (("target", target), ("draft", draft))
    ]
    (failed,) = engine.load(LoadOptions(str(files[0]), files[1], threads=1))
    assert isinstance(failed, Failed)
    assert words in failed.message
    assert not engine.of(LoadProgress)
    assert ("Start without --draft." in failed.message) == (target == "jamba")


def test_a_chat_model_with_a_vocabulary_that_llama_cpp_dies_of_is_refused(tmp_path: Path):
    target = write_tiny_architecture(tmp_path / "target.gguf", "llama", vocabulary="bert")
    (failed,) = Driven().load(LoadOptions(str(target), threads=1))
    assert isinstance(failed, Failed)
    assert "an embedding model" in failed.message


def test_a_prompt_does_not_end_with_the_end_that_a_vocabulary_adds(tmp_path: Path):
    """Unigram vocabularies add EOS to every text unless they say otherwise."""
    target = write_tiny_architecture(tmp_path / "target.gguf", "llama", vocabulary="t5")
    with driven(target) as engine:
        model = target_of(engine).model
        assert model.eos == 1
        assert model.eos not in model.tokenize("hello in the", add_special=True)


def test_a_model_without_an_end_answers_until_it_may_not_go_on(tmp_path: Path):
    target = write_tiny_architecture(tmp_path / "target.gguf", "llama", vocabulary="rwkv", template=None)
    with driven(target) as engine:
        assert not any(map(target_of(engine).model.ends_generation, range(257)))
        assert engine.ask(HELLO, options(None)).reason in ("context", "stop")


def test_a_draft_of_a_shorter_context_and_fewer_tokens_drafts_all_the_same(tmp_path: Path):
    target = write_tiny_architecture(tmp_path / "target.gguf", "qwen3", extra_tokens=100)
    draft = write_tiny_architecture(tmp_path / "draft.gguf", "qwen3", noise=0.1, train_context=64)
    with driven(target, draft) as engine:
        loaded = engine.events[-1]
        assert isinstance(loaded, Loaded)
        assert any("past 64 its guesses get worse" in warning for warning in loaded.warnings)
        whole = engine.ask(HELLO, options(150, speculate="off"))
        assert max(whole.token_ids) >= 259  # some that the draft does not have
        drafted = engine.ask(HELLO, options(150, drafter="model"))
        assert drafted.token_ids == whole.token_ids
        assert drafted.stats.drafted > 0
        assert_caches_are_true(engine)
