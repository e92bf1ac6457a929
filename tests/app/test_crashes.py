"""A process that is killed takes nothing with it that it said was kept."""

import random
from pathlib import Path

import pytest

from specchat.app.history import History
from tests.app.crashing_chat import TURNS, crash, start


@pytest.mark.parametrize("kill", range(5))
def test_what_was_kept_outlives_a_kill_at_any_moment(tmp_path: Path, kill: int):
    assert crash(tmp_path / "history.db", random.uniform(0.0, 0.3)) > 0


@pytest.mark.parametrize("kill", range(3))
def test_a_kill_while_the_file_is_being_made_leaves_one_that_can_be_used(tmp_path: Path, kill: int):
    crash(tmp_path / "history.db", random.uniform(0.05, 0.3), begun=False)


def test_two_windows_that_begin_and_write_at_once_lose_nothing(tmp_path: Path):
    path = tmp_path / "history.db"
    children = [start(path, chats=2) for _ in range(3)]
    told = [child.communicate(timeout=60)[0].count("\n") for child in children]
    assert [child.returncode for child in children] == [0, 0, 0]
    assert told == [2 * TURNS * 3 // 2] * 3
    history = History(path)
    listed = history.conversations()
    assert [conversation.turns for conversation in listed] == [TURNS] * 6
    for conversation in listed:
        branch = history.branch(conversation.id)
        assert [message.text.split(" some")[0] for message in branch] == [
            f"{'prompt' if turn % 2 == 0 else 'answer'} {turn - turn % 2}" for turn in range(TURNS)
        ]
    history.close()
