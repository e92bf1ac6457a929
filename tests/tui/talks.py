"""Talks without a screen, and what the history has of them."""

from __future__ import annotations

from specchat.app.decoding.stats import AnswerStats
from specchat.app.events import Finished
from specchat.app.history import History
from specchat.tui.session import Session


def finished(text: str, ids: tuple[int, ...] = (7, 8), reason="stop") -> Finished:
    return Finished(reason, text, ids, 10, 0, AnswerStats(), 20, 4096)


def talk(session: Session, *texts: str) -> None:
    for prompt, answer in zip(texts[::2], texts[1::2], strict=True):
        session.ask(prompt)
        session.finished(finished(answer))


def kept(history: History, session: Session) -> list[tuple[str, str, tuple[int, ...], str]]:
    assert session.conversation is not None
    messages = history.messages(session.conversation)
    return [(message.role, message.text, message.token_ids, message.mark) for message in messages]
