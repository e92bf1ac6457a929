"""What is said is in the history as soon as it can be: as it is written, late, beside other versions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from specchat.app.history import History, HistoryError, Message, Role
from specchat.tui.session import Session
from tests.tui.scripted_engine import LOADED
from tests.tui.talks import finished, kept, talk


def full(*_: object, **__: object) -> int:
    raise HistoryError("the disk is full")


@pytest.mark.parametrize("place", [None, 0, 2])
def test_what_comes_back_after_it_could_not_be_saved_at_once_is_in_the_file_once(
    session: Session, history: History, monkeypatch: pytest.MonkeyPatch, place: int | None
):
    with monkeypatch.context() as patch:
        for change in ("begin", "add"):
            patch.setattr(history, change, full)
        talk(session, "one", "1")
        session.ask("two")
    if place is None:
        session.again()
    else:
        session.editing = place
        session.ask("another")
    session.keep_so_far("something")
    assert session.end_answer("") is False
    assert not session.trouble
    expected = ["one", "1", "two"]
    assert [message.text for message in session.messages] == expected
    assert [text for _, text, _, _ in kept(history, session)] == expected
    branch = history.branch(session.conversation or 0)
    assert [(each.id, each.parent, each.text) for each in branch] == [
        (each.id, each.parent, each.text) for each in session.messages
    ]


def test_an_answer_is_in_the_file_while_it_is_written_and_its_end_takes_the_place(
    session: Session, history: History
):
    talk(session, "one", "1")
    first = kept(history, session)
    session.ask("two")
    for so_far in ("", "2", "2 and"):
        session.keep_so_far(so_far, in_thought=so_far == "2 and")
        written = [("assistant", so_far, (), "cut off")] if so_far else []
        assert kept(history, session) == [*first, ("user", "two", (), ""), *written]
    record = history.branch(session.conversation or 0)[-1].record
    assert record == {**session.made_with, "in_thought": True}
    session.finished(finished("2 and more"))
    assert kept(history, session) == [
        *first,
        ("user", "two", (), ""),
        ("assistant", "2 and more", (7, 8), ""),
    ]
    session.keep_so_far("something late")
    assert kept(history, session)[-1] == ("assistant", "2 and more", (7, 8), "")


def test_an_answer_that_is_gone_on_with_is_in_the_file_as_far_as_it_is_written(
    session: Session, history: History
):
    session.ask("one")
    session.finished(finished("1, 2", reason="length"))
    session.go_on()
    session.keep_so_far(", 3")
    assert kept(history, session)[1:] == [("assistant", "1, 2, 3", (), "cut off")]
    assert history.branch(session.conversation or 0)[-1].record.keys() == session.messages[-1].record.keys()
    session.finished(finished(", 3, 4", (9,)))
    assert kept(history, session)[1:] == [("assistant", "1, 2, 3, 4", (7, 8, 9), "")]
    assert history.branch(session.conversation or 0)[-1].record.keys() == session.messages[-1].record.keys()


@pytest.mark.parametrize("going_on", [False, True])
def test_of_an_answer_that_nothing_came_of_the_file_keeps_nothing(
    session: Session, history: History, going_on: bool
):
    session.ask("one")
    session.finished(finished("1", reason="length"))
    before = kept(history, session)
    _ = session.go_on() if going_on else session.ask("two")
    session.keep_so_far("something")
    assert kept(history, session) != before
    session.end_answer("", (), "length" if going_on else "")
    assert kept(history, session) == before


@pytest.mark.parametrize("going_on", [False, True])
@pytest.mark.parametrize("fails_at", [0, 1, 2])
def test_an_answer_that_could_not_be_saved_to_its_end_is_saved_whole_with_the_next(
    session: Session, history: History, monkeypatch: pytest.MonkeyPatch, going_on: bool, fails_at: int
):
    session.ask("one")
    if going_on:
        session.finished(finished("1", (5,), reason="length"))
        session.go_on()
    tries: list[str] = []
    with monkeypatch.context() as patch:
        for step in range(3):
            if step == fails_at:
                for change in ("add", "extend"):
                    patch.setattr(history, change, full)
            tries.append("so far" * (step + 1))
            session.keep_so_far(tries[-1])
        session.finished(finished("to its end"))
    assert session.trouble
    assert session.messages[-1].id < 0
    session.ask("two")
    assert not session.trouble
    whole = (
        ("assistant", "1to its end", (5, 7, 8), "") if going_on else ("assistant", "to its end", (7, 8), "")
    )
    assert kept(history, session) == [("user", "one", (), ""), whole, ("user", "two", (), "")]


@pytest.mark.parametrize("opens", [False, True])
@pytest.mark.parametrize("begun", [False, True])
def test_a_conversation_that_was_left_unsaved_is_saved_with_what_can_be_next(
    session: Session, history: History, monkeypatch: pytest.MonkeyPatch, opens: bool, begun: bool
):
    talk(session, "before", "0")
    other = session.conversation
    assert other is not None
    session.clear()
    if begun:
        talk(session, "one", "1")
    with monkeypatch.context() as patch:
        for change in ("begin", "add", "extend"):
            patch.setattr(history, change, full)
        talk(session, "two", "2")
        _ = session.open(other) if opens else session.clear()
        assert session.save_the_rest() == 2
    talk(session, "three", "3")
    assert not session.trouble
    assert session.save_the_rest() == 0
    texts = {tuple(message.text for message in history.branch(each.id)) for each in history.conversations()}
    left = ("one", "1", "two", "2") if begun else ("two", "2")
    others = {("before", "0", "three", "3")} if opens else {("before", "0"), ("three", "3")}
    assert texts == {left, *others}


@pytest.mark.parametrize("fails", ["prompt", "answer"])
@pytest.mark.parametrize("going_on", [False, True])
def test_what_could_not_be_saved_of_a_long_answer_is_tried_again_now_and_then(
    session: Session, history: History, monkeypatch: pytest.MonkeyPatch, fails: str, going_on: bool
):
    tried: list[object] = []

    def full(*what: object, **_: object) -> int:
        tried.append(what)
        raise HistoryError("the disk is full")

    def ask() -> None:
        _ = session.go_on() if going_on else session.ask("two")

    session.ask("one")
    if fails == "answer":
        session.finished(finished("1", reason="length"))
        ask()
    with monkeypatch.context() as patch:
        patch.setattr(history, "add", full)
        patch.setattr(history, "extend", full)
        if fails == "prompt":
            session.finished(finished("1", reason="length"))
            ask()
        tried.clear()
        tries: list[int] = []
        for _ in range(20):
            session.keep_so_far("so far")
            tries.append(len(tried))
    assert tries == [1] * 16 + [2] * 4
    assert session.trouble == "the disk is full"
    for _ in range(20):
        session.keep_so_far("so far")
    assert not session.trouble
    expected = ["one", "1so far"] if going_on else ["one", "1", "two", "so far"]
    assert [text for _, text, _, _ in kept(history, session)] == expected
    session.finished(finished("2"))
    expected[-1] = "12" if going_on else "2"
    assert [text for _, text, _, _ in kept(history, session)] == expected


def test_the_next_answer_is_saved_at_once_also_after_one_that_could_not_be(
    session: Session, history: History, monkeypatch: pytest.MonkeyPatch
):
    session.ask("one")
    with monkeypatch.context() as patch:
        patch.setattr(history, "add", full)
        session.keep_so_far("so far")
    session.finished(finished("1"))
    session.ask("two")
    session.keep_so_far("so far")
    assert kept(history, session)[-1] == ("assistant", "so far", (), "cut off")


def test_what_was_left_is_saved_as_it_was_where_it_was_begun(
    session: Session, history: History, monkeypatch: pytest.MonkeyPatch
):
    add, begin = history.add, history.begin
    refused, begun = {"be brief"}, list[str]()

    def try_to_add(conversation: int, parent: int | None, role: Role, text: str, **others: Any) -> int:
        if text in refused:
            raise HistoryError("the disk is full")
        return add(conversation, parent, role, text, **others)

    def try_to_begin(system: str) -> int:
        begun.append(system)
        if system in refused:
            raise HistoryError("the disk is full")
        return begin(system)

    monkeypatch.setattr(history, "add", try_to_add)
    monkeypatch.setattr(history, "begin", try_to_begin)
    session.set_system("be brief")
    talk(session, "one", "1")
    session.clear()
    session.set_system("")
    session.loaded = replace(LOADED, draft=None)
    begun.clear()
    for texts, begins in (({"two"}, [""]), ({"1"}, ["", "be brief"]), ({"1"}, ["", "be brief"])):
        refused = texts
        talk(session, "two", "2")
        assert session.save_the_rest() > 0
        assert begun == begins, "what was left is tried once what is in view is saved"
    refused.clear()
    session.clear()
    assert session.save_the_rest() == 0
    left, other = sorted(history.conversations(), key=lambda each: each.turns)
    assert [message.text for message in history.branch(left.id)] == ["one", "1"]
    assert (left.system, left.pair) == ("be brief", "Big 1.5B + Small 0.5B")
    assert (other.system, other.pair) == ("", "Big 1.5B")


def test_where_only_what_was_left_cannot_be_saved_nothing_is_said_before_the_end(
    session: Session, history: History, monkeypatch: pytest.MonkeyPatch
):
    talk(session, "one", "1")
    gone = session.conversation
    assert gone is not None
    with monkeypatch.context() as patch:
        patch.setattr(history, "add", full)
        talk(session, "two", "2")
    session.clear()
    history.delete(gone)
    talk(session, "three", "3")
    assert not session.trouble
    assert session.save_the_rest() == 2


@pytest.mark.parametrize("older", [("one", "1"), ("one",)])
@pytest.mark.parametrize("edits", [False, True])
@pytest.mark.parametrize("begun", [False, True])
def test_a_version_that_could_not_be_saved_is_saved_beside_the_one_that_took_its_place(
    session: Session,
    history: History,
    monkeypatch: pytest.MonkeyPatch,
    edits: bool,
    begun: bool,
    older: tuple[str, ...],
):
    if begun:
        talk(session, "before", "0")
    before = ["before", "0"] if begun else []
    view = [*before, "other" if edits else "one", "2"]
    with monkeypatch.context() as patch:
        for change in ("begin", "add", "extend"):
            patch.setattr(history, change, full)
        session.ask("one")
        if older[1:]:
            session.finished(finished("1"))
        if edits:
            session.editing = len(before)
            talk(session, "other", "2")
        else:
            session.again()
            session.finished(finished("2"))
        assert session.save_the_rest() == len({*view, *older} - {*before})
    assert session.save_the_rest() == 0
    assert not session.trouble
    assert [message.text for message in session.messages] == view
    branches = [
        [message.text for message in history.branch(each.id, leaf)]
        for each in history.conversations()
        for leaf in _leaves(history.messages(each.id))
    ]
    longer = [*before, *older]
    assert sorted(branches) == sorted([view] if view[: len(longer)] == longer else [view, longer])
    assert session.conversation is not None
    assert [message.text for message in history.branch(session.conversation)] == view


def _leaves(messages: Sequence[Message]) -> list[int]:
    parents = {message.parent for message in messages}
    return [message.id for message in messages if message.id not in parents]


def test_a_version_that_comes_back_is_not_saved_as_it_was_before(
    session: Session, history: History, monkeypatch: pytest.MonkeyPatch
):
    with monkeypatch.context() as patch:
        patch.setattr(history, "add", full)
        talk(session, "one", "1")
        session.again()
        session.end_answer("")
        session.go_on()
        session.finished(finished(" and more"))
    assert session.save_the_rest() == 0
    assert [text for _, text, _, _ in kept(history, session)] == ["one", "1 and more"]


def test_after_a_talk_that_was_left_unsaved_no_empty_one_is_begun(
    session: Session, history: History, monkeypatch: pytest.MonkeyPatch
):
    with monkeypatch.context() as patch:
        patch.setattr(history, "begin", full)
        talk(session, "one", "1")
        session.clear()
        assert session.save_the_rest() == 2
        assert session.trouble == "the disk is full"
    assert session.save_the_rest() == 0
    assert not session.trouble
    assert [each.title for each in history.conversations()] == ["one"]
    assert session.conversation is None


def test_where_nothing_can_be_saved_the_talk_goes_on(session: Session, history: History):
    talk(session, "one", "1")
    history.close()
    talk(session, "two", "2")
    assert session.trouble
    assert [turn.text for turn in session.turns] == ["one", "1", "two", "2"]
