"""Comparisons of tiny real pairs: who answers what, in which order, and when it ends."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path

import pytest

from specchat.app import loading
from specchat.app.compare_events import Answering, Compared, Happening, Noted, Wanted
from specchat.app.comparing import compare
from specchat.app.comparison import Comparison, rows_of
from specchat.app.decoding.settings import Sampling
from specchat.app.requests import AnswerOptions, Drafting, LoadOptions
from specchat.models.errors import ContextFullError, LoadError, ModelFileError, PairError
from specchat.models.llama import Context, Logits, Model
from tests.tiny_models import EXACT, TinyPair, write_tiny_model

PROMPTS = {"code": ["write code", "more code"], "story": ["a story", "another"]}
LOAD = LoadOptions("", ctx_size=512, threads=1, **EXACT)
GREEDY = AnswerOptions(Sampling(temperature=0.0), Drafting("always", draft_p_min=0.0), 20)


@pytest.fixture(scope="module")
def second(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Another draft for the tiny target."""
    return write_tiny_model(tmp_path_factory.mktemp("second") / "second.gguf", noise=0.05, name="Tiny")


class Ticking:
    """A clock that moves each time it is looked at."""

    def __init__(self, step_s: float) -> None:
        self.now, self._step_s = 0.0, step_s

    def __call__(self) -> float:
        self.now += self._step_s
        return self.now


class Heard:
    """What a comparison told, and when it is to be stopped."""

    def __init__(self, stop_at: Callable[[Happening], bool] = lambda _: False) -> None:
        self.told: list[Happening] = []
        self.stopped, self._stop_at = False, stop_at

    def tell(self, happening: Happening) -> None:
        self.told.append(happening)
        self.stopped = self.stopped or self._stop_at(happening)

    def __call__(self, wanted: Wanted, clock: Callable[[], float] | None = None) -> Comparison:
        return compare(
            wanted, self.tell, cancelled=lambda: self.stopped, clock=clock or Ticking(1e-4),
            now=lambda: datetime(2026, 1, 2, 3, 4, 5),
        )  # fmt: skip

    @property
    def order(self) -> list[str]:
        return [happening.name for happening in self.told if isinstance(happening, Answering)]


def wanted(pair: TinyPair, *drafts: Path, **others) -> Wanted:
    made = Wanted((str(pair.target),), tuple(map(str, drafts)), LOAD, GREEDY, PROMPTS, repeats=1)
    return replace(made, **others)


def test_every_contender_answers_every_prompt(tiny_pair: TinyPair, second: Path):
    comparison = Heard()(wanted(tiny_pair, tiny_pair.draft, second))
    assert [one.drafts for one in comparison.contenders] == ["none", "lookup", "both", "both"]
    assert len({one.name for one in comparison.contenders}) == 4
    answered = Counter((one.contender, one.kind, one.prompt) for one in comparison.answers)
    assert set(answered.values()) == {1}
    assert len(answered) == 4 * 4
    assert comparison.complete
    assert comparison.settings["ended"] == ["all answered"]
    assert comparison.date == "2026-01-02T03:04:05"
    assert comparison.rows == rows_of(comparison.contenders, comparison.answers)


def test_at_temperature_zero_exact_models_give_the_plain_text(tiny_pair: TinyPair, second: Path):
    comparison = Heard()(wanted(tiny_pair, tiny_pair.draft, second))
    same = [one.same_as_plain for one in comparison.answers if one.contender > 0]
    assert same == [True] * 12
    assert sum(one.stats.accepted for one in comparison.answers if one.contender > 1) > 0
    assert {one.same_as_plain for one in comparison.answers if one.contender == 0} == {None}
    assert {one.differs_from for one in comparison.answers} == {None}


def test_above_temperature_zero_texts_are_not_compared(tiny_pair: TinyPair):
    options = replace(GREEDY, sampling=Sampling(temperature=1.0))
    comparison = Heard()(wanted(tiny_pair, tiny_pair.draft, options=options))
    assert {one.same_as_plain for one in comparison.answers} == {None}


def test_everyone_goes_first_as_often_as_anyone(tiny_pair: TinyPair, second: Path):
    heard = Heard()
    comparison = heard(wanted(tiny_pair, tiny_pair.draft, second))
    groups = [heard.order[at : at + 4] for at in range(0, len(heard.order), 4)]
    assert all(set(group) == {one.name for one in comparison.contenders} for group in groups)
    for place in range(4):
        assert {group[place] for group in groups} == {one.name for one in comparison.contenders}


def test_the_figures_of_an_answer(tiny_pair: TinyPair):
    comparison = Heard()(wanted(tiny_pair, tiny_pair.draft))
    for one in comparison.answers:
        assert one.stats.ttft_s is not None
        assert one.stats.ttft_s > 0
        assert len(one.times_s) == one.stats.completion_tokens == 20
        assert list(one.times_s) == sorted(one.times_s)
        assert (one.counted_speedup is None) == (one.contender == 0)
    (costs,) = comparison.costs
    assert {1, 5} <= set(costs.target_s)
    assert list(costs.draft_s) == [comparison.contenders[2].name]
    plain, lookup, both = comparison.contenders
    assert plain.memory_bytes == lookup.memory_bytes < both.memory_bytes


def test_the_counted_speed_up_is_that_of_the_passes(tiny_pair: TinyPair):
    """On a clock that every pass moves alike, a pass of any size costs one plain one, a draft's too."""
    comparison = Heard()(wanted(tiny_pair, tiny_pair.draft))
    (costs,) = comparison.costs
    assert list(costs.target_s.values()) == pytest.approx([costs.target_s[1]] * len(costs.target_s))
    assert any(one.stats.drafted for one in comparison.answers if one.contender == 1)
    for one in comparison.answers:
        # The first round is plain, and tokens per second are counted from there.
        passes_alone = 19 / (one.stats.target_passes - 1)
        if one.contender == 1:
            assert one.counted_speedup == pytest.approx(passes_alone)
        elif one.contender == 2:
            assert one.counted_speedup is not None
            assert one.counted_speedup < passes_alone


def test_a_target_is_loaded_once_with_all_its_drafts(
    tiny_pair: TinyPair, second: Path, monkeypatch: pytest.MonkeyPatch
):
    loaded: list[str] = []

    class Counted(Model):
        def __init__(self, path: Path, **options) -> None:
            loaded.append(path.name)
            super().__init__(path, **options)

    monkeypatch.setattr(loading, "Model", Counted)
    Heard()(wanted(tiny_pair, tiny_pair.draft, second, tiny_pair.draft))
    assert loaded == ["target.gguf", "draft.gguf", "second.gguf"]


def test_several_targets_have_contenders_of_their_own(tiny_pair: TinyPair, second: Path):
    targets = (str(tiny_pair.target), str(second))
    comparison = Heard()(wanted(tiny_pair, tiny_pair.draft, targets=targets, repeats=1))
    assert len({one.name for one in comparison.contenders}) == 6
    assert [Path(one.target.path).name for one in comparison.contenders] == ["target.gguf"] * 3 + [
        "second.gguf"
    ] * 3
    assert comparison.complete
    assert len(comparison.costs) == len(comparison.recommendations) == 2
    with_speedup = {row.contender for row in comparison.rows if row.speedup is not None}
    assert with_speedup == {1, 2, 4, 5}


def test_the_whole_prompt_is_read_for_every_contender(tiny_pair: TinyPair, monkeypatch: pytest.MonkeyPatch):
    from_the_start: list[int] = []
    decode = Context.decode

    def noted(context: Context, tokens: Sequence[int], rows: int) -> Logits:
        if not context.tokens and rows == 0:
            from_the_start.append(len(tokens))
        return decode(context, tokens, rows)

    monkeypatch.setattr(Context, "decode", noted)
    comparison = Heard()(wanted(tiny_pair))
    # Before what passes cost is measured, and in a first answer of each, which does not count.
    assert len(from_the_start) == 1 + len(comparison.contenders) + len(comparison.answers)


def test_prompts_are_answered_again_until_nothing_moves(tiny_pair: TinyPair):
    heard = Heard()
    comparison = heard(wanted(tiny_pair, repeats=50))
    assert comparison.settings["ended"] == ["settled"]
    repeats = {one.repeat for one in comparison.answers}
    assert 1 <= max(repeats) < 49
    # Only the first time the whole prompt is read.
    assert {one.stats.ttft_s is None for one in comparison.answers if one.repeat} == {True}
    assert {one.stats.ttft_s is None for one in comparison.answers if not one.repeat} == {False}


@pytest.mark.parametrize("limit_s", [15.0, 30.0, 50.0])
def test_the_time_limit_is_kept_and_no_kind_is_left_out(tiny_pair: TinyPair, limit_s: float):
    asked = wanted(tiny_pair, tiny_pair.draft, time_limit_s=limit_s, repeats=50,
                   options=replace(GREEDY, max_tokens=200))  # fmt: skip
    comparison = Heard()(asked, Ticking(0.005))
    assert comparison.seconds <= limit_s + 0.1
    assert comparison.complete
    assert comparison.settings["ended"] == ["time limit"]
    assert {row.kind for row in comparison.rows} == {"code", "story", None}
    assert comparison.settings["tokens_per_answer"] <= 200


def test_answers_are_shorter_where_one_prompt_of_each_kind_would_not_fit(tiny_pair: TinyPair):
    heard = Heard()
    asked = wanted(tiny_pair, time_limit_s=12.0, options=replace(GREEDY, max_tokens=300))
    comparison = heard(asked, Ticking(0.005))
    assert 16 <= comparison.settings["tokens_per_answer"] < 300
    assert any(isinstance(one, Noted) and "tokens" in one.text for one in heard.told)


@pytest.mark.parametrize("limit_s", [0.01, 0.5, 2.0])
def test_a_time_that_is_too_short_ends_it_all_the_same(tiny_pair: TinyPair, limit_s: float):
    comparison = Heard()(wanted(tiny_pair, tiny_pair.draft, time_limit_s=limit_s), Ticking(0.005))
    assert not comparison.complete
    assert comparison.seconds <= limit_s + 1.0


def test_stopped_it_keeps_what_there_is(tiny_pair: TinyPair):
    heard = Heard(lambda told: isinstance(told, Answering) and told.answered == 4)
    comparison = heard(wanted(tiny_pair, tiny_pair.draft))
    assert len(comparison.answers) == 4
    assert not comparison.complete
    assert comparison.settings["ended"] == ["interrupted"]
    assert {row.kind for row in comparison.rows if row.contender == 0} >= {"code", None}


def test_stopped_while_it_loads_there_is_nothing(tiny_pair: TinyPair):
    comparison = Heard(lambda _: True)(wanted(tiny_pair, tiny_pair.draft))
    assert (comparison.contenders, comparison.answers, comparison.complete) == ((), (), False)


def test_progress_counts_up_to_what_is_expected(tiny_pair: TinyPair):
    heard = Heard()
    comparison = heard(wanted(tiny_pair, tiny_pair.draft))
    told = [one for one in heard.told if isinstance(one, Answering)]
    assert [one.answered for one in told] == list(range(12))
    assert {one.expected for one in told} == {len(comparison.answers)} == {12}
    assert all(one.left_s >= 0 for one in told)
    assert told[-1].left_s < told[0].left_s
    compared = [one for one in heard.told if isinstance(one, Compared)]
    assert len(compared) == 4
    assert compared[-1].rows == comparison.rows


def test_a_draft_that_cannot_serve_is_named_and_left_out(tiny_pair: TinyPair, tmp_path: Path):
    alien = write_tiny_model(tmp_path / "alien.gguf", extra_tokens=500)
    heard = Heard()
    comparison = heard(wanted(tiny_pair, alien, tiny_pair.draft))
    assert [one.drafts for one in comparison.contenders] == ["none", "lookup", "both"]
    notes = [one.text for one in heard.told if isinstance(one, Noted)]
    assert any("alien.gguf cannot draft for target.gguf" in note and "759" in note for note in notes)


def test_a_draft_that_cannot_be_loaded_is_named_and_left_out(
    tiny_pair: TinyPair, second: Path, monkeypatch: pytest.MonkeyPatch
):
    class Refusing(Model):
        def __init__(self, path: Path, **options) -> None:
            if path.name == "second.gguf":
                raise LoadError("out of memory")
            super().__init__(path, **options)

    monkeypatch.setattr(loading, "Model", Refusing)
    heard = Heard()
    comparison = heard(wanted(tiny_pair, second, tiny_pair.draft))
    assert [one.drafts for one in comparison.contenders] == ["none", "lookup", "both"]
    assert any(isinstance(one, Noted) and "out of memory" in one.text for one in heard.told)


def test_where_no_draft_can_serve_nothing_is_loaded(
    tiny_pair: TinyPair, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.delattr(loading, "Model")
    alien = write_tiny_model(tmp_path / "alien.gguf", extra_tokens=500)
    with pytest.raises(PairError, match=r"alien\.gguf"):
        Heard()(wanted(tiny_pair, alien))


def test_a_file_that_is_no_model_is_said_before_anything_is_loaded(tiny_pair: TinyPair, tmp_path: Path):
    (tmp_path / "no.gguf").write_text("nothing")
    with pytest.raises(ModelFileError):
        Heard()(wanted(tiny_pair, tmp_path / "no.gguf"))


def test_a_prompt_that_is_too_long_is_named_before_any_answer(tiny_pair: TinyPair):
    heard = Heard()
    with pytest.raises(ContextFullError, match="prompt 2 of code: the prompt is"):
        heard(wanted(tiny_pair, prompts={"code": ["short", "x" * 600]}))
    assert not heard.order


def test_a_target_that_cannot_roll_back_is_left_with_plain_decoding(
    tiny_pair: TinyPair, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(Model, "drops_suffixes", False)
    heard = Heard()
    comparison = heard(wanted(tiny_pair, tiny_pair.draft))
    assert [one.drafts for one in comparison.contenders] == ["none"]
    assert sum(isinstance(one, Noted) and "cannot roll back" in one.text for one in heard.told) == 2
