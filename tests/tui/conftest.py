"""A conversation without a screen, in a history of its own."""

from __future__ import annotations

from pathlib import Path

import pytest

from specchat.app.history import History
from specchat.app.requests import AnswerOptions
from specchat.tui.session import Session
from tests.tui.scripted_engine import LOADED


@pytest.fixture
def history(tmp_path: Path) -> History:
    return History(tmp_path / "history.db")


@pytest.fixture
def session(history: History) -> Session:
    made = Session(AnswerOptions(), None, history)
    made.loaded = LOADED
    return made
