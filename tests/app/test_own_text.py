"""What a model writes, and how its drafts guess it, on real tiny models."""

from pathlib import Path

import pytest

from specchat.app.interrupt import Stopped
from specchat.app.own_text import PROMPTS, agreement, agreement_by_kind, guesses, opened, write_samples
from specchat.models.template import ChatTemplate
from tests.tiny_models import CHATML, TinyPair, write_tiny_model


def template() -> ChatTemplate:
    return ChatTemplate.from_model(CHATML, "", "", ())


def test_a_model_guesses_all_of_what_it_wrote_and_a_noisy_one_some(tiny_pair: TinyPair):
    told: list[int] = []
    with opened(tiny_pair.target, 1, 0, 768) as target, opened(tiny_pair.draft, 1, 0, 768) as draft:
        samples = write_samples(target, template(), 20, told.append)
        assert [sample.kind for sample in samples] == list(PROMPTS)
        assert {len(sample.answer) for sample in samples} == {20}
        assert told == list(range(1, 101))
        assert agreement(guesses(target, samples)) > 0.98  # near ties, where half precision rounds
        right = guesses(draft, samples)
        assert 0.05 < agreement(right) < 0.9
        by_kind = agreement_by_kind(samples, right)
        assert set(by_kind) == set(PROMPTS)
        assert agreement(right) == pytest.approx(sum(by_kind.values()) / len(by_kind))
        # Read in passes of another size, the same text is guessed the same.
        draft.rows = 7
        assert guesses(draft, samples) == right


def test_the_end_of_an_answer_is_not_guessed(tmp_path: Path):
    path = write_tiny_model(tmp_path / "ends.gguf", ends=True, seed=6)
    with opened(path, 1, 0, 768) as context:
        samples = write_samples(context, template(), 120, lambda _count: None)
        assert 0 < min(len(sample.answer) for sample in samples) < 120
        assert not any(context.model.ends_generation(t) for sample in samples for t in sample.answer)


def test_what_is_told_of_each_token_may_stop_the_writing(tiny_pair: TinyPair):
    def stop(count: int) -> None:
        if count == 3:
            raise Stopped

    with opened(tiny_pair.target, 1, 0, 768) as context, pytest.raises(Stopped):
        write_samples(context, template(), 20, stop)


def test_nothing_written_is_no_agreement():
    assert agreement(()) == 0.0
