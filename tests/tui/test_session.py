"""The conversation without a screen: what is asked, what is kept, and what becomes of branches."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from specchat.app.history import History, HistoryError
from specchat.app.requests import AnswerOptions, Turn
from specchat.tui.session import Session
from tests.tui.scripted_engine import LOADED
from tests.tui.talks import finished, talk


def test_every_ask_carries_the_whole_conversation(history: History):
    session = Session(AnswerOptions(), "Be brief.", history)
    session.loaded = LOADED
    talk(session, "one", "1")
    assert session.ask("two").turns == (
        Turn("system", "Be brief."),
        Turn("user", "one"),
        Turn("assistant", "1", (7, 8)),
        Turn("user", "two"),
    )


def test_ids_that_are_not_those_of_all_of_the_text_are_not_kept(session: Session):
    session.ask("one")
    session.finished(replace(finished("1!"), ids_are_text=False))
    assert session.ask("two").turns[1] == Turn("assistant", "1!")


def test_ids_of_another_target_mean_nothing_to_this_one(session: Session):
    talk(session, "one", "1")
    session.loaded = LOADED.__class__(**{**vars(LOADED), "target": LOADED.draft})
    assert session.ask("two").turns[1] == Turn("assistant", "1")


def test_a_prompt_without_an_answer_does_not_stay_in_view(session: Session):
    session.ask("one")
    assert session.end_answer("") is False
    assert (session.messages, session.phase) == ([], "ready")


@pytest.mark.parametrize("saved", [True, False])
def test_what_was_in_view_comes_back_when_nothing_comes_of_another_answer_or_prompt(
    session: Session, history: History, monkeypatch: pytest.MonkeyPatch, saved: bool
):
    if not saved:

        def full(*_: object, **__: object) -> int:
            raise HistoryError("the disk is full")

        for change in ("begin", "add", "drop", "set_head"):
            monkeypatch.setattr(history, change, full)
    talk(session, "one", "1", "two", "2")
    before = list(session.messages)
    for place in (None, 0, 2):
        if place is None:
            session.again()
        else:
            session.editing = place
            session.ask("another")
        assert session.end_answer("") is False
        assert session.messages == before
        if saved:
            (conversation,) = history.conversations()
            ids = [message.id for message in before]
            assert [message.id for message in history.branch(conversation.id)] == ids
            assert [message.id for message in history.messages(conversation.id)] == ids
    session.ask("three")
    assert [turn.text for turn in session.turns] == ["one", "1", "two", "2", "three"]


def test_a_prompt_that_had_no_answer_stays_when_another_try_ends_without_one(
    session: Session, history: History
):
    session.ask("one")
    session.again()
    session.end_answer("")
    assert [each.text for each in session.messages] == ["one"]
    assert [each.text for each in history.branch(history.conversations()[0].id)] == ["one"]


def test_a_prompt_is_kept_before_it_is_answered(session: Session, history: History, tmp_path: Path):
    session.ask("one")
    other = History(tmp_path / "history.db")
    (conversation,) = other.conversations()
    assert conversation.pair == session.pair
    assert [each.text for each in other.branch(conversation.id)] == ["one"]


def test_a_conversation_opens_as_it_was(session: Session, history: History):
    session.set_system("Be brief.")
    talk(session, "one", "1", "two", "2")
    again = Session(AnswerOptions(), None, history)
    again.loaded = LOADED
    again.open(history.conversations()[0].id)
    assert again.turns == session.turns
    assert again.system == "Be brief."


def test_another_answer_stands_beside_the_first(session: Session, history: History):
    talk(session, "one", "1")
    assert session.again().turns == (Turn("user", "one"),)
    session.finished(finished("1b"))
    assert session.show_version(-1) == "version 1 of 2"
    assert [each.text for each in session.messages] == ["one", "1"]
    assert history.branch(session.conversation or 0) == session.messages
    assert session.show_version(-1) == "version 1 of 2, and no other that way"
    session.ask("two")
    assert [turn.text for turn in session.turns] == ["one", "1", "two"]


def test_a_stopped_answer_is_gone_on_with(session: Session, history: History):
    session.ask("count")
    session.finished(finished("one, ", (1,), "cancelled"))
    assert session.messages[-1].mark == "stopped"
    session.go_on()
    session.finished(finished("two", (2,)))
    _, answer = history.branch(history.conversations()[0].id)
    assert (answer.text, answer.token_ids, answer.mark) == ("one, two", (1, 2), "")


@pytest.mark.parametrize("ids", [(), (1, 2)])
@pytest.mark.parametrize("more", ["", "two"])
@pytest.mark.parametrize("more_ids", [(), (3, 4)])
@pytest.mark.parametrize("same_target", [True, False])
def test_an_answer_that_was_gone_on_with_has_the_ids_of_all_of_its_text_or_none(
    session: Session, ids: tuple[int, ...], more: str, more_ids: tuple[int, ...], same_target: bool
):
    session.ask("count")
    session.end_answer("one, ", ids, "stopped", session.made_with)
    if not same_target:
        session.loaded = LOADED.__class__(**{**vars(LOADED), "target": LOADED.draft})
    session.go_on()
    more_ids = more_ids if more else ()
    session.end_answer(more, more_ids, "cut off", session.made_with)
    whole = ids and same_target and (more_ids or not more)
    assert session.turns[-1] == Turn("assistant", f"one, {more}", (*ids, *more_ids) if whole else ())


def test_an_answer_that_cannot_be_gone_on_with_stays_as_it_was(session: Session):
    session.ask("count")
    session.finished(finished("one, ", (1,), "cancelled"))
    session.go_on()
    session.end_answer("", mark="failed")
    assert session.messages[-1].text == "one, "


def test_an_answer_is_kept_with_its_pair_its_settings_and_its_figures(session: Session, history: History):
    talk(session, "one", "1")
    record = history.branch(history.conversations()[0].id)[1].record
    assert record["pair"] == "Big 1.5B + Small 0.5B"
    assert record["options"]["sampling"]["temperature"] == 0.8
    assert record["stats"]["completion_tokens"] == 0
    session.loaded = replace(LOADED, draft=None)
    session.again()
    session.keep_so_far("1b")
    assert history.conversations()[0].pair == "Big 1.5B"


def test_a_step_forth_undoes_a_step_back_also_between_branches_with_versions_of_their_own(session: Session):
    talk(session, "one", "1")
    session.again()
    session.finished(finished("1b"))
    session.editing = 0
    talk(session, "uno", "1c")
    assert session.show_version(-1) == "version 1 of 2"
    assert [each.text for each in session.messages] == ["one", "1b"]
    assert session.show_version(1) == "version 2 of 2"
    assert [each.text for each in session.messages] == ["uno", "1c"]
    session.show_version(-1)
    assert session.show_version(-1) == "version 1 of 2", "the next place that has a version"
    assert [each.text for each in session.messages] == ["one", "1"]


def test_a_prompt_that_was_not_answered_is_not_kept(session: Session, history: History):
    talk(session, "one", "1")
    session.ask("two")
    session.end_answer("")
    assert [each.text for each in history.messages(1)] == ["one", "1"]
    assert history.get(1).turns == 2


def test_the_tokens_of_an_answer_that_was_gone_on_with_are_all_of_them(session: Session):
    session.ask("count")
    session.finished(finished("one, ", (1, 2, 3), "cancelled"))
    session.go_on()
    session.finished(finished("two", (4, 5)))
    assert session.messages[-1].record["stats"]["completion_tokens"] == 5
