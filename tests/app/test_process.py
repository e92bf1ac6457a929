"""The engine's process: commands go in, events come out, and its death is told in words."""

import os
import signal
import tempfile
import time
from collections import deque
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from specchat.app.decoding.settings import Sampling
from specchat.app.events import (
    Ask,
    Cancel,
    Died,
    Event,
    Failed,
    Finished,
    Load,
    Loaded,
    PrefillProgress,
    Progress,
)
from specchat.app.process import EngineProcess
from specchat.app.requests import AnswerOptions, Drafting, LoadOptions, Turn
from tests.tiny_models import TinyPair

HELLO = (Turn("user", "hello"),)
LONG = AnswerOptions(Sampling(temperature=0.0), Drafting(speculate="always", draft_p_min=0.0))
SHORT = AnswerOptions(Sampling(temperature=0.0), Drafting(speculate="off"), max_tokens=10)


class Running:
    """An engine's process, and all it has said."""

    def __init__(self, log_file: Path | None) -> None:
        self.process = EngineProcess(log_file)
        self.events: list[Event] = []
        self._unread: deque[Event] = deque()
        self.process.start()

    def until(self, wanted: Callable[[Event], bool], within_s: float = 30.0) -> Event:
        """Collect events until one is wanted; those drained with it are read by the next call."""
        deadline = time.monotonic() + within_s
        while time.monotonic() < deadline:
            self._unread.extend(self.process.drain())
            while self._unread:
                event = self._unread.popleft()
                self.events.append(event)
                if wanted(event):
                    return event
            time.sleep(0.002)
        raise AssertionError(f"not said in {within_s} s; said was {self.events[-5:]}")

    def until_a(self, *kinds: type) -> Event:
        return self.until(lambda event: isinstance(event, kinds))


@pytest.fixture
def running(tmp_path: Path, tiny_pair: TinyPair) -> Iterator[Running]:
    running = Running(tmp_path / "logs" / "engine.log")
    running.process.send(Load(LoadOptions(str(tiny_pair.target), str(tiny_pair.draft), threads=1)))
    assert isinstance(running.until_a(Loaded, Failed, Died), Loaded)
    yield running
    running.process.close()


def test_a_question_is_answered_across_the_pipe(running: Running):
    running.process.send(Ask(HELLO, SHORT))
    finished = running.until_a(Finished)
    assert isinstance(finished, Finished)
    assert (finished.reason, len(finished.token_ids)) == ("length", 10)


def test_a_cancel_ends_a_running_answer_and_the_next_is_answered(running: Running):
    running.process.send(Ask(HELLO, LONG))
    running.until_a(Progress)
    running.process.send(Cancel())
    finished = running.until_a(Finished)
    assert isinstance(finished, Finished)
    assert finished.reason == "cancelled"
    running.process.send(Ask(HELLO, SHORT))
    again = running.until_a(Finished)
    assert isinstance(again, Finished)
    assert again.reason == "length"


def test_a_cancel_stops_what_was_asked_before_it_and_nothing_after(running: Running):
    for command in (Ask(HELLO, LONG), Cancel(), Ask(HELLO, SHORT)):
        running.process.send(command)
    first, second = running.until_a(Finished), running.until_a(Finished)
    assert isinstance(first, Finished)
    assert isinstance(second, Finished)
    assert (first.reason, second.reason) == ("cancelled", "length")


@pytest.mark.parametrize("number", [signal.SIGSEGV, signal.SIGKILL, signal.SIGILL])
def test_a_process_killed_in_the_middle_of_an_answer_is_told_once_and_can_be_started_again(
    running: Running, tiny_pair: TinyPair, number: signal.Signals
):
    running.process.send(Ask(HELLO, LONG))
    running.until_a(Progress)
    assert running.process.pid is not None
    os.kill(running.process.pid, number)
    died = running.until_a(Died)
    assert isinstance(died, Died)
    assert number.name in died.message
    assert died.log
    assert running.process.pid is None
    assert running.process.drain() == []
    running.process.send(Ask(HELLO, SHORT))  # lost, and no exception
    running.process.start()
    running.process.send(Load(LoadOptions(str(tiny_pair.target), threads=1)))
    assert isinstance(running.until_a(Loaded, Failed, Died), Loaded)
    running.process.send(Ask(HELLO, SHORT))
    assert isinstance(running.until_a(Finished, Failed, Died), Finished)


def test_what_the_process_prints_goes_to_the_log(running: Running, tmp_path: Path):
    log = (tmp_path / "logs" / "engine.log").read_text()
    assert "llama" in log


def test_without_a_log_file_the_last_words_are_told_and_no_file_is_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tiny_pair: TinyPair
):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    running = Running(None)
    running.process.send(Load(LoadOptions(str(tiny_pair.target), threads=1)))
    assert isinstance(running.until_a(Loaded, Failed, Died), Loaded)
    assert list(tmp_path.glob("specchat-words-*")) == []
    assert running.process.pid is not None
    os.kill(running.process.pid, signal.SIGABRT)
    died = running.until_a(Died)
    assert isinstance(died, Died)
    assert any("llama" in line for line in died.log)
    running.process.close()


def test_an_error_that_should_not_have_happened_tells_where_it_came_from(running: Running):
    running.process.send(Ask(("no turn",), SHORT))  # type: ignore[arg-type]
    failed = running.until_a(Failed, Finished, Died)
    assert isinstance(failed, Failed)
    assert "AttributeError" in failed.message
    assert any("conversation.py" in line for line in failed.traceback)
    running.process.send(Ask(HELLO, SHORT))
    assert isinstance(running.until_a(Finished, Failed, Died), Finished)


def test_closing_is_prompt_even_in_the_middle_of_an_answer(running: Running):
    running.process.send(Ask(HELLO, LONG))
    running.until_a(PrefillProgress)
    started = time.monotonic()
    running.process.close()
    assert time.monotonic() - started < 5
    assert running.process.pid is None


def test_a_file_that_cannot_be_loaded_fails_and_leaves_the_process_running(running: Running, tmp_path: Path):
    running.process.send(Load(LoadOptions(str(tmp_path / "missing.gguf"))))
    failed = running.until_a(Failed, Loaded, Died)
    assert isinstance(failed, Failed)
    assert "missing.gguf does not exist" in failed.message
    assert running.process.pid is not None
