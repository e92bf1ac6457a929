"""The rows of the list of drafts: what was measured of them here stands in front."""

from pathlib import Path

import pytest

from specchat.app.catalog import FoundModel
from specchat.app.recommending import Advice
from specchat.tui.commands.models import draft_choices
from tests.tiny_models import TinyPair, write_tiny_model


@pytest.fixture
def found(tiny_pair: TinyPair, tmp_path: Path) -> list[FoundModel]:
    other = write_tiny_model(tmp_path / "other.gguf", noise=0.1)
    return [FoundModel(path, path.name, "here", 400_000, 0.0) for path in (tiny_pair.draft, other)]


def details(pair: TinyPair, found: list[FoundModel], advice: Advice | None) -> dict[str, str]:
    return {choice.title: choice.detail for choice in draft_choices(pair.target, found, advice)}


def test_what_a_comparison_measured_is_said_of_each_draft(tiny_pair: TinyPair, found: list[FoundModel]):
    best, other = (str(model.path) for model in found)
    advice = Advice("Use it.", best, {best: "1.70x on code", other: "slower on story (0.90x)"})
    told = details(tiny_pair, found, advice)
    assert told["draft.gguf"].startswith("measured here, the best: 1.70x on code · ")
    assert told["other.gguf"].startswith("measured here: slower on story (0.90x) · ")


def test_the_draft_that_is_loaded_is_marked(tiny_pair: TinyPair, found: list[FoundModel]):
    current = str(found[1].path)
    marked = {
        choice.title: choice.content.plain.startswith("● ")
        for choice in draft_choices(tiny_pair.target, found, None, current)
    }
    assert marked == {"draft.gguf": False, "other.gguf": True}


def test_where_nothing_was_measured_nothing_is_said(tiny_pair: TinyPair, found: list[FoundModel]):
    for advice in (None, Advice("Use another.", None, {"/elsewhere/draft.gguf": "1.70x on code"})):
        assert not any("measured" in detail for detail in details(tiny_pair, found, advice).values())
