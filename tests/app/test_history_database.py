import os
import sqlite3
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from specchat.app import history_database
from specchat.app.history import History, HistoryError, default_path
from specchat.app.history_database import Database
from tests.app.histories import Clock, go_on, path_of_a_history, talk, texts


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "data" / "history.db"


@pytest.fixture
def history(path: Path) -> Iterator[History]:
    opened = History(path, Clock())
    yield opened
    opened.close()


def test_it_lies_in_the_users_data_folder(tmp_path: Path):
    assert default_path().name == "history.db"
    assert tmp_path in default_path().parents


def test_nobody_else_can_read_it(path: Path):
    former = os.umask(0)
    try:
        history = History(path)
        talk(history, "a secret")
        modes = {one.name: stat.S_IMODE(one.stat().st_mode) for one in path.parent.iterdir()}
        history.close()
    finally:
        os.umask(former)
    assert modes == {"history.db": 0o600, "history.db-wal": 0o600, "history.db-shm": 0o600}
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


def test_a_folder_that_is_there_keeps_its_mode(tmp_path: Path):
    tmp_path.chmod(0o755)
    History(tmp_path / "history.db").close()
    assert stat.S_IMODE(tmp_path.stat().st_mode) == 0o755


def test_a_commit_does_not_wait_for_the_disk(history: History):
    assert history._database.rows("PRAGMA journal_mode") == [("wal",)]
    assert history._database.rows("PRAGMA synchronous") == [(1,)]


def test_a_second_window_sees_what_the_first_has_kept_and_adds_to_it(history: History, path: Path):
    conversation, messages = talk(history, "a", "b")
    other = History(path)
    assert texts(other.branch(conversation)) == ["a", "b"]
    go_on(other, conversation, messages[-1], "c")
    go_on(history, conversation, messages[-1], "c2")
    assert history.messages(conversation) == other.messages(conversation)
    other.close()


def test_a_change_waits_for_another_window_and_then_says_so(path: Path):
    with sqlite3.connect(path_of_a_history(path), isolation_level=None) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(HistoryError, match=r"history\.db cannot be used: database is locked; another"):
            Database(path, patience_s=0.01)
        other.execute("ROLLBACK")
    other.close()
    Database(path, patience_s=0.01).close()


def test_a_full_disk_is_told_and_costs_nothing_that_was_kept(history: History):
    conversation, messages = talk(history, "a", "b")
    ((pages,),) = history._database.rows("PRAGMA page_count")
    history._database.rows(f"PRAGMA max_page_count = {pages + 1}")
    with pytest.raises(
        HistoryError, match=r"history\.db cannot be used: database or disk is full; free some"
    ):
        go_on(history, conversation, messages[-1], "x" * 100_000)
    assert texts(history.branch(conversation)) == ["a", "b"]
    assert history.get(conversation).turns == 2
    history._database.rows("PRAGMA max_page_count = 1000000")
    go_on(history, conversation, messages[-1], "x" * 100_000)


def no_database(path: Path) -> None:
    path.write_text("these are notes, not a history\n" * 100)


def damaged(path: Path) -> None:
    whole = path_of_a_history(path).read_bytes()
    path.write_bytes(whole[:4096] + b"\xff" * (len(whole) - 4096))


def anothers(path: Path) -> None:
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE bookmarks (url)")
    connection.close()


def newer(path: Path) -> None:
    connection = sqlite3.connect(path_of_a_history(path))
    connection.execute("PRAGMA user_version = 99")
    connection.close()


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (no_database, r"history\.db cannot be used: file is not a database; move it away"),
        (damaged, r"history\.db cannot be used: .* malformed.*; move it away"),
        (anothers, r"history\.db is another program's database: name another file"),
        (newer, r"history\.db was written by a newer specchat \(format 99, this one knows 1\): update"),
        (lambda path: path.mkdir(), r"history\.db cannot be used: unable to open database file; check"),
    ],
)  # fmt: skip
def test_a_file_that_is_no_history_is_told_in_one_line_and_left_alone(tmp_path: Path, spoil, said: str):
    path = tmp_path / "history.db"
    spoil(path)
    before = path.read_bytes() if path.is_file() else b""
    with pytest.raises(HistoryError, match=said) as told:
        History(path).conversations()
    assert "\n" not in str(told.value)
    assert (path.read_bytes() if path.is_file() else b"") == before


@pytest.mark.parametrize("place", ["file/history.db", "file/below/history.db", "nul\0/history.db"])
def test_a_place_where_no_file_can_be_is_told_in_one_line(tmp_path: Path, place: str):
    (tmp_path / "file").write_text("")
    with pytest.raises(HistoryError, match=r"history .* cannot be used: .*; check it and its folder"):
        History(tmp_path / place)


def test_a_file_that_may_not_be_written_is_told_at_once(path: Path):
    path_of_a_history(path).chmod(0o400)
    was_root = os.geteuid() == 0
    if was_root:
        os.seteuid(65534)
    try:
        with pytest.raises(HistoryError, match=r"history\.db cannot be used: Permission denied; check"):
            History(path)
    finally:
        if was_root:
            os.seteuid(0)


def test_a_closed_history_says_so(history: History):
    history.close()
    with pytest.raises(
        HistoryError, match=r"history\.db cannot be used: Cannot operate on a closed database"
    ):
        history.conversations()


# Formats


@pytest.mark.parametrize("content", [None, b""])
def test_a_file_of_version_0_becomes_one_of_this_version(tmp_path: Path, content: bytes | None):
    path = tmp_path / "history.db"
    if content is not None:
        path.write_bytes(content)
    database = Database(path)
    assert database.rows("PRAGMA user_version") == [(len(history_database._STEPS),)]
    database.close()


def test_an_older_file_gets_the_steps_it_lacks_and_keeps_what_it_holds(
    path: Path, monkeypatch: pytest.MonkeyPatch
):
    history = History(path)
    conversation, _ = talk(history, "a", "b")
    history.close()
    step = (
        "ALTER TABLE messages ADD COLUMN starred INTEGER NOT NULL DEFAULT 0",
        "UPDATE messages SET starred = 1",
    )
    monkeypatch.setattr(history_database, "_STEPS", (*history_database._STEPS, step))
    for _ in range(2):
        history = History(path)
        assert history._database.rows("PRAGMA user_version") == [(2,)]
        assert history._database.rows("SELECT starred FROM messages") == [(1,), (1,)]
        assert texts(history.branch(conversation)) == ["a", "b"]
        history.close()


def test_a_step_that_fails_leaves_the_file_as_it_was(path: Path, monkeypatch: pytest.MonkeyPatch):
    path_of_a_history(path)
    steps = history_database._STEPS
    monkeypatch.setattr(history_database, "_STEPS", (*steps, ("CREATE TABLE more (x)", "no SQL at all")))
    with pytest.raises(HistoryError, match=r"history\.db cannot be used: near \"no\": syntax error"):
        History(path)
    monkeypatch.setattr(history_database, "_STEPS", steps)
    history = History(path)
    assert history._database.rows("SELECT 1 FROM sqlite_master WHERE name = 'more'") == []
    history.close()
