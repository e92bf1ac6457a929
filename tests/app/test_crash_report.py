"""A report says where an error came from, and nothing of what was said."""

from __future__ import annotations

import os
import stat
from datetime import datetime, timedelta
from itertools import count
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from specchat.app.crash_report import (
    Crash,
    settings_of,
    traceback_lines,
    unexpected,
    where_it_is,
    write_report,
)
from specchat.app.requests import AnswerOptions, LoadOptions

SAID = "my doctor says it is nothing serious\nbut I worry"


def raised(message: object) -> list[str]:
    secret = f"a variable with {message}"
    try:
        raise KeyError(message) if secret else None
    except KeyError as error:
        return traceback_lines(error)


def at_noon() -> datetime:
    return datetime(2026, 11, 30, 12, 0, 0)


def test_a_report_says_versions_settings_where_and_what_the_log_said_last(tmp_path: Path):
    load = LoadOptions(str(Path.home() / "models/q4.gguf"), chat_template="{{ my own words }}")
    crash = Crash(
        "the screen", raised("unknown_key"), ["GGML_ASSERT(n > 0) failed"], settings_of(load, AnswerOptions())
    )
    path = write_report(crash, tmp_path / "crashes", now=at_noon)
    assert path is not None
    text = path.read_text()
    for part in (
        "the screen, 2026-11-30 12:00:00", "llama-cpp-python", "~/models/q4.gguf", '"temperature": 0.8',
        "KeyError: 'unknown_key'", "in raised", "GGML_ASSERT(n > 0) failed",
    ):  # fmt: skip
        assert part in text
    assert str(Path.home()) not in text
    assert "my own words" not in text
    assert "a variable with" not in text.replace('secret = f"a variable with', "")


@pytest.mark.parametrize(
    "message",
    [
        SAID,
        "nothing serious",
        f"could not parse {SAID!r} at 3",
        "xx doctor says it yy",
        "but I worry",
    ],
)
def test_what_was_said_is_left_out_of_errors_and_of_the_log(tmp_path: Path, message: str):
    crash = Crash("the screen", raised(message), [f"log: {message}", "a log line of its own"], said=(SAID,))
    path = write_report(crash, tmp_path)
    assert path is not None
    text = path.read_text()
    assert not any(word in text for word in ("doctor", "serious", "worry"))
    assert "a log line of its own" in text
    assert "in raised" in text


def test_texts_that_an_error_quotes_are_left_out_even_where_nobody_knows_of_them(tmp_path: Path):
    path = write_report(Crash("the screen", raised("a title of last year")), tmp_path)
    assert path is not None
    assert "KeyError: '…'" in path.read_text()


def report_of(said: str, folder: Path) -> str:
    path = write_report(Crash("the screen", raised(said), [said], said=(said,)), folder)
    assert path is not None
    return path.read_text()


@settings(deadline=None, max_examples=30)
@given(st.text(min_size=12).filter(lambda text: len(text.strip()) > 11))
@example("what was sai")
def test_no_text_that_was_said_is_in_a_report(tmp_path_factory: pytest.TempPathFactory, said: str):
    folder = tmp_path_factory.getbasetemp() / "crashes"
    # A report's own words are in it whatever was said.
    text, own = report_of(said, folder), report_of("zebras cross at night", folder)
    lines = {line.strip() for line in said.splitlines() if len(line.strip()) > 11}
    assert not any(line in text and line not in own for line in lines)


def test_who_asks_for_it_gets_all_of_it(tmp_path: Path):
    path = write_report(Crash("the screen", raised("worry"), said=(SAID,)), tmp_path, whole=True)
    assert path is not None
    text = path.read_text()
    assert "KeyError: 'worry'" in text
    assert "my doctor says" in text
    assert "--debug" in where_it_is(path, whole=True)


def test_only_the_owner_reads_a_report_whatever_the_umask(tmp_path: Path):
    before = os.umask(0)
    try:
        path = write_report(Crash("the screen"), tmp_path / "state" / "crashes")
    finally:
        os.umask(before)
    assert path is not None
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


def test_reports_do_not_pile_up_and_the_newest_stays(tmp_path: Path):
    seconds = count()
    paths = [
        write_report(Crash(""), tmp_path, now=lambda: at_noon() + timedelta(seconds=next(seconds) // 2))
        for _ in range(25)
    ]
    assert len(set(paths)) == 25
    kept = sorted(tmp_path.iterdir())
    assert len(kept) == 20
    assert paths[-1] in kept


def test_a_report_that_cannot_be_written_is_said_and_is_no_error(tmp_path: Path):
    (tmp_path / "file").write_text("")
    assert write_report(Crash("the screen"), tmp_path / "file" / "crashes") is None
    assert where_it_is(None) == "no report of it could be written"


def test_an_error_of_a_command_is_told_in_one_line(tmp_path: Path):
    told = unexpected(ValueError("two\nlines \x1b[31m"), "specchat run", debug=False, said=("two\nlines",))
    assert len(told.splitlines()) == 1
    assert told.isprintable()
    assert "ValueError" in told
    (path,) = Path(os.environ["XDG_STATE_HOME"]).rglob("crash-*.txt")
    assert path.name in told
    assert "specchat run" in path.read_text()


def test_want_of_memory_is_said_and_not_reported():
    told = unexpected(MemoryError(), "specchat run", debug=False)
    assert told.startswith("no memory is left; free some, or raise the limit")
    assert not list(Path(os.environ["XDG_STATE_HOME"]).rglob("*"))
