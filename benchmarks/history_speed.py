"""How long a full history takes to open, to list, to search and to write into.

python benchmarks/history_speed.py [--conversations 2000] [--turns 200]
"""

import argparse
import random
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from specchat.app.history import History
from specchat.app.history_database import Database

WORDS = "the of model draft token speed answer prompt cache text screen python sort list file read write test".split()


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--conversations", type=int, default=2000)
    parser.add_argument("--turns", type=int, default=200)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "history.db"
        fill(path, options.conversations, options.turns)
        print(
            f"{options.conversations} conversations of {options.turns} turns: {path.stat().st_size / 1e6:.0f} MB"
        )
        measure("open and list 200", lambda: listed(path))
        history = History(path)
        latest = history.latest()
        assert latest is not None
        measure("list 200", history.conversations)
        measure("read a branch", lambda: history.branch(latest))
        for words in ("rareword17", "python sor", "t", "nowhere", "->"):
            measure(f"search {words!r}", lambda words=words: history.search(words))
        head = history.get(latest).head
        measure("add a message", lambda: history.add(latest, head, "user", "some words"))
        history.close()


def fill(path: Path, conversations: int, turns: int) -> None:
    draw = random.Random(1)
    database = Database(path)
    for number in range(1, conversations + 1):
        first = (number - 1) * turns + 1
        with database.writing():
            database.change(
                "INSERT INTO conversations (id, title, updated, turns, pair, system, head) VALUES (?, ?, ?, ?, ?, ?, ?)",
                (
                    number,
                    f"conversation {number}",
                    draw.random() * 1e9,
                    turns,
                    "target + draft",
                    "Be brief." * 50,
                    first + turns - 1,
                ),
            )
            for turn in range(turns):
                text = " ".join(draw.choices(WORDS, k=60)) + (" rareword17" if draw.random() < 1e-4 else "")
                database.change(
                    "INSERT INTO messages (id, conversation, parent, role, text, token_ids, mark, created, record) "
                    "VALUES (?, ?, ?, ?, ?, ?, '', 0, '{}')",
                    (first + turn, number, first + turn - 1 if turn else None,
                     "assistant" if turn % 2 else "user", text, bytes(400)),
                )  # fmt: skip
    database.close()


def listed(path: Path) -> None:
    history = History(path)
    history.conversations()
    history.close()


def measure(what: str, work: Callable[[], object]) -> None:
    times: list[float] = []
    for _ in range(5):
        started = time.perf_counter()
        work()
        times.append(time.perf_counter() - started)
    print(f"{what}: {sorted(times)[2] * 1000:.1f} ms (first {times[0] * 1000:.1f})")


if __name__ == "__main__":
    main()
