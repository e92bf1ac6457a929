"""The engine on real tiny pairs: what it says, in which order, and what its caches hold after."""

from dataclasses import replace
from pathlib import Path

import pytest

from specchat.app.decoding.settings import Sampling
from specchat.app.events import (
    Ask,
    Failed,
    Loaded,
    LoadProgress,
    PrefillProgress,
    Progress,
)
from specchat.app.requests import LoadOptions, Turn
from specchat.models.text import TextDecoder
from tests.app.driven import GREEDY, HELLO, Driven, options
from tests.tiny_models import CHATML, TinyPair, write_tiny_model


def test_loading_tells_its_progress_and_what_is_loaded(tiny_pair: TinyPair):
    driven = Driven()
    *progress, loaded = driven.load(LoadOptions(str(tiny_pair.target), str(tiny_pair.draft), threads=1))
    assert all(isinstance(event, LoadProgress) for event in progress)
    for role in ("target", "draft"):
        fractions = [event.fraction for event in progress if event.role == role]
        assert fractions == sorted(fractions)
        assert (fractions[0], fractions[-1]) == (0.0, 1.0)
    assert isinstance(loaded, Loaded)
    assert (loaded.target.name, loaded.target.quantization, loaded.context_size) == ("Tiny", "F32", 2048)
    assert loaded.state == "drafting"
    driven.engine.close()


def test_without_a_draft_the_state_says_why_nothing_is_drafted(tiny_pair: TinyPair):
    driven = Driven()
    alone = LoadOptions(str(tiny_pair.target), threads=1)
    loaded = driven.load(alone, drafter="model")[-1]
    assert isinstance(loaded, Loaded)
    assert (loaded.state, loaded.reason) == ("plain", "no draft loaded")
    assert driven.ask(HELLO, options(5, drafter="model")).stats.reason == "no draft loaded"
    # The text so far can be drafted from all the same.
    loaded = driven.load(alone)[-1]
    assert isinstance(loaded, Loaded)
    assert (loaded.state, loaded.reason) == ("drafting", "ready")
    driven.engine.close()


def test_an_answer_streams_its_text_with_the_origin_of_each_piece(driven: Driven):
    finished = driven.ask(HELLO, options())
    pieces = [piece for progress in driven.of(Progress) for piece in progress.pieces]
    assert finished.text == "".join(piece.text for piece in pieces)
    assert {piece.origin for piece in pieces} == {"target", "accepted", "correction"}
    assert finished.reason == "length"
    assert len(finished.token_ids) == finished.stats.completion_tokens == 40


@pytest.mark.parametrize("drafter", ["model", "lookup", "both"])
@pytest.mark.parametrize("sampling", [GREEDY, Sampling(temperature=0.0, repeat_penalty=1.2)])
def test_drafting_changes_no_token(driven: Driven, drafter: str, sampling: Sampling):
    plain = driven.ask(HELLO, options(120, sampling, speculate="off"))
    drafted = driven.ask(HELLO, options(120, sampling, drafter=drafter))
    assert plain.token_ids == drafted.token_ids
    assert plain.stats.drafted == 0 < drafted.stats.drafted


def test_the_first_answer_tells_the_whole_prompts_prefill_on_both_contexts(driven: Driven):
    finished = driven.ask(HELLO, options())
    for role in ("target", "draft"):
        told = [event for event in driven.of(PrefillProgress) if event.role == role]
        assert (told[0].done, told[0].reused) == (0, 0)
        assert told[-1].done == told[-1].total == finished.prompt_tokens - 1


def test_a_second_turn_prefills_only_what_is_new_on_both_contexts(driven: Driven):
    first = driven.ask(HELLO, options(drafter="model"))
    turns = (*HELLO, Turn("assistant", first.text, first.token_ids), Turn("user", "and then?"))
    second = driven.ask(turns, options(drafter="model"))
    # New are the turn's closing tokens, the question, and the answer's opening: one byte a token, and
    # one for each of the three special tokens. The last token waits for the first round.
    new = 1 + len("\n") + 1 + len("user\nand then?") + 1 + len("\n") + 1 + len("assistant\n")
    assert first.prompt_tokens + len(first.token_ids) + new == second.prompt_tokens
    for role in ("target", "draft"):
        last = [event for event in driven.of(PrefillProgress) if event.role == role][-1]
        assert last.reused + last.total == second.prompt_tokens - 1
        # The newest token of an answer is not in the target's cache; the draft may lack one more.
        assert last.total - (new - 1) in ((1,) if role == "target" else (1, 2))


def test_an_answer_that_is_gone_on_with_is_the_one_that_was_never_stopped(driven: Driven):
    """At temperature 0, token for token, and without reading anything again."""
    whole = driven.ask(HELLO, options(40))
    begun = driven.ask(HELLO, options(15))
    rest = driven.ask((*HELLO, Turn("assistant", begun.text, begun.token_ids)), options(25))
    assert (*begun.token_ids, *rest.token_ids) == whole.token_ids
    assert next(event.total for event in driven.of(PrefillProgress) if event.role == "target") <= 1


def test_an_edited_turn_reuses_what_stands_before_it(driven: Driven):
    driven.ask((Turn("user", "hello there"),), options())
    again = driven.ask((Turn("user", "hello you"),), options())
    told = [event for event in driven.of(PrefillProgress) if event.role == "target"][-1]
    assert told.reused == 1 + len("user\nhello ")
    fresh = Driven()
    assert driven.engine.pair is not None
    fresh.load(driven.engine.pair.options)
    assert again.token_ids == fresh.ask((Turn("user", "hello you"),), options()).token_ids
    fresh.engine.close()


def test_the_same_prompt_again_prefills_nothing_and_answers_the_same(driven: Driven):
    first = driven.ask(HELLO, options())
    assert first.token_ids == driven.ask(HELLO, options()).token_ids
    assert [event.total for event in driven.of(PrefillProgress)] == [0, 0]


def test_a_cancel_keeps_what_was_accepted_and_leaves_the_caches_true(driven: Driven):
    whole = driven.ask(HELLO, options(200))
    stopped = driven.ask(HELLO, options(200), cancel_after=4)
    assert stopped.reason == "cancelled"
    assert 0 < len(stopped.token_ids) < 200
    assert whole.token_ids[: len(stopped.token_ids)] == stopped.token_ids
    target, draft = driven.cached()
    assert target[-1] == stopped.token_ids[-2]
    assert draft == target[: len(draft)]
    assert whole.token_ids == driven.ask(HELLO, options(200)).token_ids


def test_a_cancel_stops_a_long_prefill_between_its_passes(driven: Driven):
    long = (Turn("user", "x" * 400),)
    stopped = driven.ask(long, options(), cancel_after=2)
    assert (stopped.reason, stopped.token_ids) == ("cancelled", ())
    assert len(driven.cached()[0]) == 128
    assert driven.ask(long, options()).reason == "length"
    assert driven.of(PrefillProgress)[0].reused == 128


def test_the_end_of_the_context_ends_the_answer(driven: Driven):
    finished = driven.ask((Turn("user", "x" * 300),), options(None))
    assert finished.reason == "context"
    assert finished.prompt_tokens + len(finished.token_ids) == 513
    assert finished.context_used == finished.context_size == 512


def test_a_prompt_too_long_is_refused_with_both_numbers_and_the_engine_goes_on(driven: Driven):
    driven.events.clear()
    driven.engine.ask(Ask((Turn("user", "x" * 600),), options()))
    (failed,) = driven.events
    assert isinstance(failed, Failed)
    assert "619 tokens" in failed.message
    assert "512" in failed.message
    assert driven.ask(HELLO, options()).reason == "length"


def test_older_turns_that_do_not_fit_are_left_out_and_counted(driven: Driven):
    turns = tuple(Turn("assistant" if index % 2 else "user", "x" * 150) for index in range(5))
    assert driven.ask(turns, options(5)).dropped_turns == 4


@pytest.mark.parametrize(
    ("drafting", "reason"),
    [
        ({"speculate": "off"}, "drafting is switched off"),
        ({"speculate": "always", "draft_max": 3}, "always up to 3 tokens a pass"),
    ],
)
def test_the_state_says_what_is_done_and_why(driven: Driven, drafting: dict, reason: str):
    assert driven.ask(HELLO, options(5, **drafting)).stats.reason == reason


def test_the_baseline_is_measured_by_plain_passes_and_not_made_up(driven: Driven):
    stats = driven.ask(HELLO, options(40)).stats
    assert stats.plain_passes >= 1
    assert stats.baseline_tokens_per_second is not None
    assert stats.speedup == pytest.approx(stats.tokens_per_second / stats.baseline_tokens_per_second)


def test_the_figures_of_a_drafted_answer_fit_together(driven: Driven):
    stats = driven.ask(HELLO, options(100)).stats
    assert stats.accepted == sum(stats.accepted_by_position)
    assert stats.drafted == sum(stats.tested_by_position)
    assert stats.tokens_per_pass == pytest.approx(100 / stats.target_passes)
    assert len(stats.accepted_by_position) <= 4


def test_a_seed_draws_the_same_text_again_and_another_one_does_not(driven: Driven):
    def text(seed: int | None) -> tuple[int, ...]:
        sampling = Sampling(temperature=1.0, seed=seed)
        return driven.ask(HELLO, options(60, sampling, speculate="auto")).token_ids

    assert text(5) == text(5) != text(6)
    assert text(None) != text(None)


def test_an_answer_ends_where_the_model_ends_it(ending_pair: TinyPair):
    driven = Driven()
    driven.load(LoadOptions(str(ending_pair.target), str(ending_pair.draft), threads=1))
    for seed in range(5):
        sampling = Sampling(temperature=1.0, seed=seed)
        finished = driven.ask(HELLO, options(1500, sampling))
        assert finished.reason == "stop"
        assert "<|im_end|>" not in finished.text
        target, draft = driven.cached()
        assert list(finished.token_ids) == target[finished.prompt_tokens :]
        assert draft == target[: len(draft)]
    driven.engine.close()


def test_a_model_without_a_template_stops_where_its_fallback_says(tmp_path: Path):
    """The transcript fallback ends an answer before "\\nUser:", which no token of a base model would."""
    driven = Driven()
    path = write_tiny_model(tmp_path / "base.gguf", template=None, seed=3)
    driven.load(LoadOptions(str(path), threads=1, chat_template=None))
    loaded = driven.events[-1]
    assert isinstance(loaded, Loaded)
    assert any("no chat template" in warning for warning in loaded.warnings)
    driven.engine.close()


def test_a_refused_pair_fails_before_any_weights_are_read(tiny_pair: TinyPair, tmp_path: Path):
    other = write_tiny_model(tmp_path / "other.gguf", extra_tokens=200)
    driven = Driven()
    (failed,) = driven.load(LoadOptions(str(tiny_pair.target), str(other)))
    assert isinstance(failed, Failed)
    assert "cannot draft for target.gguf" in failed.message
    assert "259" in failed.message
    assert "\n" not in failed.message


def test_asking_before_anything_is_loaded_fails_in_words():
    driven = Driven()
    driven.engine.ask(Ask(HELLO, options()))
    assert driven.events == [Failed("no model is loaded")]


def test_loading_can_be_stopped(tiny_pair: TinyPair):
    driven = Driven()
    driven.cancel_after = 1
    failed = driven.load(LoadOptions(str(tiny_pair.target), threads=1))[-1]
    assert failed == Failed("loading was stopped")


def test_another_pair_takes_the_place_of_the_loaded_one(driven: Driven, ending_pair: TinyPair):
    driven.load(LoadOptions(str(ending_pair.target), threads=1, ctx_size=256))
    assert driven.ask(HELLO, options(5, speculate="auto")).context_size == 256


def test_a_context_that_cannot_be_made_says_so(tiny_pair: TinyPair):
    driven = Driven()
    failed = driven.load(
        LoadOptions(str(tiny_pair.target), threads=1, cache_type_v="q4_0", flash_attn="off")
    )[-1]
    assert isinstance(failed, Failed)
    assert "target.gguf" in failed.message


def test_a_text_that_ends_answers_is_not_shown_and_ends_it(driven: Driven):
    whole = driven.ask(HELLO, options(80))
    pair = driven.engine.pair
    assert pair is not None
    stop = whole.text[20:23]
    pair.template = replace(pair.template, stops=(stop,))
    stopped = driven.ask(HELLO, options(80))
    assert stopped.reason == "stop"
    assert stopped.text == whole.text[: whole.text.index(stop)]
    assert stopped.text == "".join(piece.text for told in driven.of(Progress) for piece in told.pieces)
    # The ids are those of the shown text: none of the tokens that spelled the stop text is among them.
    assert stopped.token_ids == whole.token_ids[: len(stopped.token_ids)]
    assert len(stopped.token_ids) == stopped.stats.completion_tokens
    spelled = b"".join(map(pair.target.model.piece, stopped.token_ids)).decode("utf-8", "replace")
    assert stopped.text.startswith(spelled.rstrip("\ufffd"))


def test_ids_are_not_those_of_the_text_where_its_end_is_inside_of_a_token(driven: Driven):
    asked = options(400, sampling=Sampling(temperature=1.5, top_k=0, top_p=1.0, min_p=0.0, seed=3))
    whole = driven.ask(HELLO, asked)
    pair = driven.engine.pair
    assert pair is not None
    assert whole.ids_are_text
    # A byte that begins a character and is none gives two characters together with the next one.
    decoder, text, inside = TextDecoder(), "", []
    for token in whole.token_ids:
        piece = decoder.decode(pair.target.model.piece(token))
        inside += [len(text) + 1] * (len(piece) == 2)
        text += piece
    place = next(place for place in inside if text.index(text[place : place + 3]) == place)
    pair.template = replace(pair.template, stops=(text[place : place + 3],))
    stopped = driven.ask(HELLO, asked)
    assert stopped.text == text[:place]
    assert not stopped.ids_are_text


def test_a_draft_with_more_tokens_than_its_target_never_proposes_them(tiny_pair: TinyPair, tmp_path: Path):
    """Qwen's larger models pad their vocabulary: sizes may differ by 128, either way."""
    larger = write_tiny_model(tmp_path / "larger.gguf", extra_tokens=100, sharpness=0.3)
    wide = Sampling(temperature=2.0, top_k=0, top_p=1.0, min_p=0.0, seed=1)
    for target, draft in ((tiny_pair.target, larger), (larger, tiny_pair.draft)):
        driven = Driven()
        driven.load(LoadOptions(str(target), str(draft), threads=1, ctx_size=512))
        for turn in range(5):
            finished = driven.ask((Turn("user", f"hello {turn}"),), options(60, wide))
            assert finished.reason in ("length", "stop")
            assert finished.stats.target_passes > 0
        driven.engine.close()


def test_a_template_of_ones_own_replaces_the_models(driven: Driven, tiny_pair: TinyPair):
    driven.load(
        LoadOptions(
            str(tiny_pair.target),
            threads=1,
            chat_template="{% for turn in messages %}{{ turn['content'] }}{% endfor %}!",
        )
    )
    assert driven.ask((Turn("user", "abc"),), options(3, speculate="off")).prompt_tokens == 4


@pytest.mark.parametrize("opened", [False, True])
def test_an_answer_tells_whether_it_begins_in_a_thought(tiny_pair: TinyPair, opened: bool):
    driven = Driven()
    template = CHATML.replace("assistant\n", "assistant\n<think>\n") if opened else CHATML
    driven.load(LoadOptions(str(tiny_pair.target), threads=1, ctx_size=512, chat_template=template))
    assert driven.ask(HELLO, options(20)).in_thought == opened
    assert {event.in_thought for event in driven.of(Progress)} == {opened}
    driven.engine.close()
