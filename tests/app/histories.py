"""Conversations for the tests of the history."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from specchat.app.history import History, Message


class Clock:
    """Tells a second more each time it is asked."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        self.now += 1.0
        return self.now


def talk(history: History, *texts: str, pair: str = "") -> tuple[int, list[int]]:
    """A new conversation of these prompts and answers; its id, and theirs."""
    conversation = history.begin()
    return conversation, go_on(history, conversation, None, *texts, pair=pair)


def go_on(history: History, conversation: int, parent: int | None, *texts: str, pair: str = "") -> list[int]:
    """Prompts and answers that follow `parent`; their ids."""
    messages: list[int] = []
    for index, text in enumerate(texts):
        role = "assistant" if index % 2 else "user"
        parent = history.add(conversation, parent, role, text, pair=pair)
        messages.append(parent)
    return messages


def texts(messages: Sequence[Message]) -> list[str]:
    """What the messages say."""
    return [message.text for message in messages]


def path_of_a_history(path: Path) -> Path:
    """The path, with an empty history there."""
    History(path).close()
    return path


def check_index(history: History) -> None:
    """Raise unless the index of words holds what the messages say, and nothing else."""
    history._database.rows("INSERT INTO words (words, rank) VALUES ('integrity-check', 1)")
