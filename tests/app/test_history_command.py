import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from specchat.app.history import History, default_path
from specchat.app.history_command import history_command
from specchat.app.parsers import history_parser
from tests.app.histories import talk


@pytest.fixture
def kept(tmp_path: Path) -> tuple[int, int]:
    """Two conversations in the user's own history; the second has an escape sequence in it."""
    history = History(default_path())
    first, messages = talk(history, "How do I sort a list?", "Call sorted.", "Thanks")
    history.set_head(first, messages[1])
    second, _ = talk(history, "What is\x1b[2J a tuple?", "A fixed\x1b[31m list.")
    history.close()
    return first, second


def run(*words: object) -> int:
    return history_command(history_parser(), [str(word) for word in words])


def test_the_list_names_conversations_by_id_and_title(
    kept: tuple[int, int], capsys: pytest.CaptureFixture[str]
):
    assert run("list") == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == [str(kept[1]), str(kept[0])]
    assert lines[1].endswith("3 messages  How do I sort a list?")


def test_a_search_shows_what_was_found_and_where(kept: tuple[int, int], capsys: pytest.CaptureFixture[str]):
    assert run("search", "sort", "li") == 0
    row, snippet = capsys.readouterr().out.splitlines()
    assert row.split()[0] == str(kept[0])
    assert snippet.strip() == "How do I sort a list?"
    assert run("search", "nowhere") == 0
    assert capsys.readouterr().out == ""


def test_an_export_is_the_branch_in_view_as_markdown_or_all_as_json(
    kept: tuple[int, int], capsys: pytest.CaptureFixture[str]
):
    assert run("export", kept[0]) == 0
    page = capsys.readouterr().out
    assert page.startswith("# How do I sort a list?\n")
    assert page.endswith("## Answer\n\nCall sorted.\n")
    assert run("export", kept[0], "--json") == 0
    assert [message["text"] for message in json.loads(capsys.readouterr().out)["messages"]][2:] == ["Thanks"]


def test_a_list_and_what_a_search_found_are_one_json_object(
    kept: tuple[int, int], tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    assert run("--json") == 0
    listed = json.loads(capsys.readouterr().out)["conversations"]
    assert [(each["id"], each["messages"]) for each in listed] == [(kept[1], 2), (kept[0], 3)]
    assert listed[1]["title"] == "How do I sort a list?"
    assert run("search", "sorted", "--json") == 0
    (found,) = json.loads(capsys.readouterr().out)["conversations"]
    assert (found["id"], found["found"]) == (kept[0], "Call sorted.")
    assert found["message"]
    for nothing in (["search", "nowhere"], ["list", "--file", tmp_path / "none.db"]):
        assert run(*nothing, "--json") == 0
        assert json.loads(capsys.readouterr().out)["conversations"] == []


def test_a_deleted_conversation_is_gone(kept: tuple[int, int], capsys: pytest.CaptureFixture[str]):
    assert run("delete", kept[0]) == 0
    assert capsys.readouterr() == ("", "deleted: How do I sort a list?\n")
    run("list")
    assert len(capsys.readouterr().out.splitlines()) == 1


@pytest.mark.parametrize(
    "words",
    [["export", 99], ["delete", 99], ["export", "x"], ["export", "9" * 30], ["search"], ["list", "x"]],
)
def test_what_is_not_there_is_one_line_and_exit_code_two(
    kept: tuple[int, int], capsys: pytest.CaptureFixture[str], words: list[object]
):
    with pytest.raises(SystemExit) as left:
        run(*words)
    assert left.value.code == 2
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)


@pytest.mark.parametrize(("words", "code"), [(["list"], 0), (["search", "x"], 0), (["export", "1"], 2)])
def test_nothing_is_made_where_nothing_was_kept(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], words: list[str], code: int
):
    path = tmp_path / "nowhere" / "history.db"
    assert run("--file", path, *words) == code
    assert capsys.readouterr() == ("", f"specchat history: nothing has been kept in {path} yet\n")
    assert not path.parent.exists()


def specchat(*words: object, stdout: int) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [sys.executable, "-m", "specchat.tui.entry", "history", *map(str, words)],
        stdin=subprocess.DEVNULL, stdout=stdout, stderr=subprocess.PIPE, timeout=60, check=True,
    )  # fmt: skip


def test_a_terminal_gets_no_control_characters_and_a_pipe_gets_all_that_was_said(kept: tuple[int, int]):
    terminal, slave = os.openpty()
    for words in (["list"], ["search", "tuple"], ["export", kept[1]]):
        specchat(*words, stdout=slave)
    os.close(slave)
    seen = os.read(terminal, 100_000)
    os.close(terminal)
    assert b"tuple" in seen
    assert b"A fixed" in seen
    assert b"\x1b" not in seen
    assert b"A fixed\x1b[31m list." in specchat("export", kept[1], stdout=subprocess.PIPE).stdout
