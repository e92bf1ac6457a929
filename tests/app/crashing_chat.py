"""A chat that is killed: plays turns into a history as fast as it goes, and tells each one it has kept.

As a script (python crashing_chat.py FILE [CHATS]) it is the child: after each change that has returned it
prints the message's id and text on a line. `crash` is the parent: it kills such a child and looks for
everything that was told.
"""

from __future__ import annotations

import json
import random
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from itertools import count
from pathlib import Path

from specchat.app.history import History

TURNS = 50


def play(path: Path, chats: int | None) -> None:
    """Chats of 50 turns; each answer is kept half first, as if it were saved while it streams."""
    history = History(path)
    draw = random.Random()
    for number in count() if chats is None else range(chats):
        conversation, parent = history.begin(f"system prompt {number}"), None
        for turn in range(0, TURNS, 2):
            parent = history.add(conversation, parent, "user", f"prompt {turn}")
            tell(parent, f"prompt {turn}")
            # Of any size: small ones for many commits, large ones for the journal to overflow.
            text = f"answer {turn} " + "some words " * draw.choice((1, 10, 100, 3000))
            half = text[: len(text) // 2]
            parent = history.add(conversation, parent, "assistant", half, token_ids=range(20), mark="cut off")
            tell(parent, half)
            history.extend(parent, text, range(40))
            tell(parent, text)
    history.close()


def tell(message: int, text: str) -> None:
    sys.stdout.write(json.dumps([message, text]) + "\n")
    sys.stdout.flush()


def start(path: Path, chats: int | None = None) -> subprocess.Popen[str]:
    words = [sys.executable, __file__, str(path), *([] if chats is None else [str(chats)])]
    return subprocess.Popen(words, stdout=subprocess.PIPE, text=True)


def crash(path: Path, after_s: float, *, begun: bool = True) -> int:
    """Kill a chat that long after its first message, or after its start; returns how many changes it told of.

    Raises:
        AssertionError: the file is damaged, or something that was told is not in it.
    """
    lines: list[str] = []
    with start(path) as child:
        assert child.stdout is not None
        reader = threading.Thread(target=lines.extend, args=(child.stdout,))
        reader.start()
        while begun and not lines and child.poll() is None:
            time.sleep(0.001)
        time.sleep(after_s)
        child.kill()
        reader.join()
    assert child.returncode == -signal.SIGKILL
    told = [json.loads(line) for line in lines if line.endswith("\n")]
    check(path, dict(told))
    return len(told)


def check(path: Path, told: dict[int, str]) -> None:
    """What was told is kept, and the file is sound."""
    history = History(path)
    history.close()
    with sqlite3.connect(path) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        assert connection.execute("PRAGMA foreign_key_check").fetchall() == []
        connection.execute("INSERT INTO words (words, rank) VALUES ('integrity-check', 1)")
        assert (
            connection.execute(
                "SELECT 1 FROM conversations AS c WHERE turns != "
                "(SELECT count(*) FROM messages WHERE conversation = c.id) "
                "OR head IS NOT (SELECT max(id) FROM messages WHERE conversation = c.id)"
            ).fetchall()
            == []
        )
        kept = dict(
            connection.execute("SELECT id, text FROM messages WHERE id >= ?", (min(told, default=0),))
        )
    connection.close()
    last = max(told, default=0)
    for message, text in told.items():
        # The last change may be kept without having been told of.
        assert kept[message] == text or (message == last and kept[message].startswith(text))


if __name__ == "__main__":
    play(Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else None)
