"""A full disk is said in one line wherever something is written; nothing that was there is lost."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

pytest.importorskip("resource", reason="Windows has no limit on the size of files")

from specchat.app.config_command import write_template
from specchat.app.derive_command import derive_command
from specchat.app.history import History
from specchat.app.log_file import LogFile
from specchat.app.new_file import write_new
from specchat.app.parsers import derive_parser
from specchat.app.presets import save_preset
from specchat.app.remembered import Remembered
from specchat.app.requests import AnswerOptions
from specchat.app.settings import all_settings
from specchat.app.settings_file import read_presets
from specchat.models.errors import SpecchatError
from specchat.tui.ending import save_the_rest
from specchat.tui.session import Session
from tests.full_disk import full_disk
from tests.tiny_models import write_tiny_model
from tests.tui.scripted_engine import LOADED, ScriptedEngine, chat, ready, seen, type_in, wait_until


@pytest.mark.parametrize(
    "write",
    [
        lambda path: save_preset(path, "other", {"temp": 0.5}, all_settings()),
        lambda path: write_template(path.with_name("config.toml"), all_settings()),
    ],
    ids=["preset", "config --init"],
)
def test_what_a_person_asked_to_write_is_said_not_to_be_there(tmp_path: Path, write: Callable[[Path], None]):
    path = tmp_path / "presets.toml"
    save_preset(path, "mine", {"temp": 0.1}, all_settings())
    with full_disk(), pytest.raises(SpecchatError) as told:
        write(path)
    assert "\n" not in str(told.value)
    assert str(tmp_path) in str(told.value)
    assert read_presets(path, all_settings()) == {"mine": {"temp": 0.1}}
    write(path)


def test_a_new_file_is_written_whole_or_not_at_all(tmp_path: Path):
    path = tmp_path / "talk.md"
    with full_disk(100), pytest.raises(OSError, match="File too large"):
        write_new(path, "x" * 100_000)
    assert not list(tmp_path.iterdir())
    write_new(path, "x" * 100_000)
    with pytest.raises(FileExistsError):
        write_new(path, "y")
    assert path.read_text() == "x" * 100_000


@pytest.mark.parametrize("room", [0, 1000, 80_000])
@pytest.mark.parametrize("words", [["--quant", "Q8_0"], ["--skip-layers", "1"]], ids=" ".join)
def test_a_draft_that_cannot_be_written_is_one_line_and_leaves_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], room: int, words: list[str]
):
    source, folder = write_tiny_model(tmp_path / "tiny.gguf"), tmp_path / "drafts"
    words = [str(source), *words, "-o", str(folder), "-t", "1"]
    with full_disk(room):
        assert derive_command(derive_parser(), words) == 1
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert f"could not be written whole in {folder}; free some of its disk, or name a folder on an" in err
    assert not list(folder.iterdir())
    assert derive_command(derive_parser(), words) == 0


def test_what_was_measured_before_stays_where_nothing_more_can_be_kept(tmp_path: Path):
    remembered = Remembered(tmp_path / "measured.json")
    remembered.keep("costs", "a", {"one": 1})
    with full_disk():
        remembered.keep("costs", "b", {"two": 2})
    assert remembered.recall("costs", "a") == {"one": 1}
    assert [path.name for path in tmp_path.iterdir()] == ["measured.json"]


def test_a_log_that_cannot_go_on_says_so_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    log, root = LogFile(tmp_path / "log"), logging.getLogger()
    root.addHandler(log)
    try:
        root.warning("first")
        with full_disk():
            root.warning("second")
            root.warning("third")
        assert log not in root.handlers
    finally:
        root.removeHandler(log)
    assert capsys.readouterr().err == f"note: the log {tmp_path / 'log'} ends here: File too large\n"
    assert "first" in (tmp_path / "log").read_text()


@pytest.mark.parametrize("words", ["config", "completion bash"])
def test_output_that_cannot_be_written_is_one_line_and_code_one(words: str):
    if not Path("/dev/full").exists():
        pytest.skip("there is no /dev/full here")
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "specchat.tui.entry", *words.split()],
            stdin=subprocess.DEVNULL, stdout=full, stderr=subprocess.PIPE, timeout=60, check=False,
            env={**os.environ, "SPECCHAT_CONFIG": ""},
        )  # fmt: skip
    assert done.returncode == 1
    assert done.stderr.decode() == (
        "specchat: what was to be printed could not be written: No space left on device\n"
    )


def talk(session: Session, *texts: str) -> None:
    for prompt, answer in zip(texts[::2], texts[1::2], strict=True):
        session.ask(prompt)
        session.end_answer(answer, (1, 2), "failed" if answer == "half" else "")


def test_what_could_not_be_saved_is_saved_with_the_next_message_that_can_be(tmp_path: Path):
    history = History(tmp_path / "history.db")
    session = Session(AnswerOptions(), "be brief", history)
    session.loaded = LOADED
    talk(session, "one", "1")
    with full_disk(1024):
        talk(session, "two", "2", "three", "half")
        assert session.trouble.startswith(f"the history {tmp_path / 'history.db'} cannot be used: ")
    assert [each.text for each in session.messages] == ["one", "1", "two", "2", "three", "half"]
    assert session.conversation is not None
    assert [each.text for each in history.branch(session.conversation)] == ["one", "1"]
    talk(session, "four", "4")
    assert session.trouble == ""
    history.close()
    again = History(tmp_path / "history.db")
    kept = again.branch(session.conversation)
    assert [each.text for each in kept] == ["one", "1", "two", "2", "three", "half", "four", "4"]
    assert [each.id for each in kept] == [each.id for each in session.messages]
    assert (kept[5].mark, kept[5].token_ids) == ("failed", (1, 2))
    again.close()


def test_a_conversation_that_could_not_be_begun_is_kept_whole_once_there_is_room(tmp_path: Path):
    history = History(tmp_path / "history.db")
    session = Session(AnswerOptions(), "be brief", history)
    with full_disk(1024):
        talk(session, "one", "1")
        assert session.conversation is None
    session.ask("two")
    assert session.conversation is not None
    assert [each.text for each in history.branch(session.conversation)] == ["one", "1", "two"]
    assert history.get(session.conversation).system == "be brief"
    history.close()


def test_a_chat_that_ends_saves_what_it_can_and_says_what_it_cannot(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    history = History(tmp_path / "history.db")
    session = Session(AnswerOptions(), None, history)
    talk(session, "one", "1")
    with full_disk(1024):
        talk(session, "two", "2")
        save_the_rest(session)
    said = capsys.readouterr().err
    assert said.startswith("specchat: 2 messages could not be saved: the history ")
    assert said.count("\n") == 1
    save_the_rest(session)
    assert capsys.readouterr().err == ""
    assert [each.text for each in history.branch(session.conversation or 0)] == ["one", "1", "two", "2"]
    history.close()


async def test_the_chat_says_a_full_disk_once_and_goes_on(tmp_path: Path):
    history, engine = History(tmp_path / "history.db"), ScriptedEngine()
    app = chat(engine, history=history)
    async with app.run_test(size=(120, 40)) as pilot:
        await ready(pilot)
        with full_disk(1024):
            for prompt in ("one", "two"):
                await type_in(pilot, prompt)
                engine.finish(f"to {prompt}")
                await wait_until(pilot, lambda: not app.session.busy)
            target = tmp_path / "talk.md"
            await type_in(pilot, f"/export md {target}")
        assert seen(app).count("This is not being saved") == 1
        assert not target.exists()
        await type_in(pilot, "three")
        engine.finish("to three")
        await wait_until(pilot, lambda: not app.session.busy)
    reopened = History(tmp_path / "history.db")
    (conversation,) = reopened.conversations()
    assert [each.text for each in reopened.branch(conversation.id)] == [
        "one", "to one", "two", "to two", "three", "to three",
    ]  # fmt: skip
    reopened.close()
