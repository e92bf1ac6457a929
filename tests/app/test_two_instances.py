"""Two instances on one history, each a process of its own: both work, and no message is lost."""

from __future__ import annotations

import math
import subprocess
import sys
from datetime import UTC
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from specchat.app.clocks import date_and_time
from specchat.app.exporting import export_json, export_markdown
from specchat.app.history import IN_MEMORY, History
from specchat.app.history_command import history_command
from specchat.app.parsers import COMMANDS

_MESSAGES = 30

_INSTANCE = """
import sys, time
from pathlib import Path
from specchat.app.history import History

path, name, together, count = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
print("ready", flush=True)
sys.stdin.readline()
history = History(path)
own, last, shared = history.begin(name), None, None
for number in range(count):
    last = history.add(own, last, "user" if number % 2 == 0 else "assistant", f"{name} {number}")
    shared = history.add(together, shared, "user", f"{name} shared {number}")
    time.sleep(0.003)
    if number % 10 == 9:
        history.rename(own, f"{name} after {number}")
        assert len(history.search(name)) > 0
        assert history.get(own).turns == number + 1
history.close()
print(own)
"""


def instance(path: Path, name: str, together: int) -> subprocess.Popen[str]:
    words = [sys.executable, "-c", _INSTANCE, str(path), name, str(together), str(_MESSAGES)]
    return subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def finish(process: subprocess.Popen[str]) -> int:
    own, _ = process.communicate(timeout=60)
    assert process.returncode == 0
    return int(own)


def test_what_two_instances_write_at_once_is_all_there(tmp_path: Path):
    path = tmp_path / "history.db"
    history = History(path)
    together = history.begin()
    running = [instance(path, name, together) for name in ("first", "second")]
    for process in running:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
    for process in running:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
    for name, own in zip(("first", "second"), map(finish, running), strict=True):
        said = [each.text for each in history.branch(own)]
        assert said == [f"{name} {number}" for number in range(_MESSAGES)]
        assert history.get(own).title == f"{name} after {_MESSAGES - 1}"
        shared = [each for each in history.messages(together) if each.text.startswith(name)]
        assert [each.text for each in shared] == [f"{name} shared {number}" for number in range(_MESSAGES)]
        assert all(after.parent == before.id for before, after in pairwise(shared))
    assert history.get(together).turns == 2 * _MESSAGES
    # They wrote in turn, not one after the other.
    names = [each.text.split()[0] for each in history.messages(together)]
    assert sum(one != other for one, other in pairwise(names)) > 2
    history.close()


def test_one_that_dies_in_the_middle_of_a_write_stops_nobody(tmp_path: Path):
    path = tmp_path / "history.db"
    history = History(path)
    conversation = history.begin()
    first = history.add(conversation, None, "user", "kept")
    script = (
        "import os, sys; from pathlib import Path; from specchat.app.history_database import Database\n"
        "database = Database(Path(sys.argv[1]))\n"
        "with database.writing():\n"
        "    database.change(\"UPDATE messages SET text = 'lost'\")\n"
        "    os._exit(9)\n"
    )
    done = subprocess.run([sys.executable, "-c", script, str(path)], timeout=60, check=False)
    assert done.returncode == 9
    history.add(conversation, first, "assistant", "and gone on")
    assert [each.text for each in history.branch(conversation)] == ["kept", "and gone on"]
    history.close()


# The time of day -------------------------------------------------------------------------------

times = st.floats(-1e18, 1e18) | st.sampled_from([0.0, -1.0, 2e9, 4e9, 1e12, math.inf, -math.inf])


@settings(max_examples=25, deadline=None)
@given(st.lists(times, min_size=3, max_size=6))
def test_whatever_time_it_is_conversations_are_listed_and_exported(moments: list[float]):
    clock = iter([moment for moment in moments for _ in range(3)])
    history = History(IN_MEMORY, lambda: next(clock))
    made: list[int] = []
    for _ in moments:
        conversation = history.begin()
        prompt = history.add(conversation, None, "user", "what time is it")
        history.add(conversation, prompt, "assistant", "late")
        made.append(conversation)
    listed = history.conversations()
    assert sorted(each.id for each in listed) == made
    assert history.latest() in made
    for each in listed:
        messages = history.branch(each.id)
        assert "late" in export_markdown(each, messages, UTC)
        assert "late" in export_json(each, messages)
        assert date_and_time(each.updated)
    assert len(history.search("late")) == len(made)
    history.close()


def test_a_conversation_of_an_impossible_time_is_in_the_list(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    history = History(tmp_path / "history.db", lambda: 1e18)
    history.add(history.begin(), None, "user", "from the far future")
    history.close()
    assert history_command(COMMANDS["history"](), ["list", "--file", str(tmp_path / "history.db")]) == 0
    assert "at an unknown time" in capsys.readouterr().out
