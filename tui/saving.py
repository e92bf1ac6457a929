"""Puts into the history what was said, also what could not be put there at once, or only a part of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeVar

from ..app.history import History, HistoryError, Message

Result = TypeVar("Result")


@dataclass
class _Left:
    """A branch that is not in view any more and not saved to its end."""

    conversation: int | None
    system: str
    messages: list[Message]


class Saving:
    """Saves messages; what cannot be waits, and is saved with what can be next.

    A message that is not saved has an id below 0.
    """

    def __init__(self, history: History) -> None:
        self.trouble = ""
        """Why what is said is not saved."""
        self._history = history
        self._last_id = 0
        self._rows: dict[int, int] = {}
        """The row that has a message, or a shorter text of it, by the id below 0 that the message had."""
        self._begun: dict[int, int] = {}
        """The conversation that was begun with a message, by the id below 0 that it had."""
        self._left: list[_Left] = []

    def new_id(self, row: int | None = None) -> int:
        """The id of a message that is not saved, or of which a row has a shorter text."""
        self._last_id -= 1
        if row is not None:
            self._rows[self._last_id] = row
        return self._last_id

    def attempt(self, write: Callable[[], Result]) -> Result | None:
        """Change the history; `None`, and `trouble` says why, where that fails."""
        try:
            result = write()
        except HistoryError as error:
            self.trouble = str(error)
            return None
        self.trouble = ""
        return result

    def leave(self, conversation: int | None, system: str, messages: list[Message]) -> None:
        """Set aside what of a branch is not saved, to be saved when it can be."""
        if unsaved(messages):
            self._left.append(_Left(conversation, system, list(messages)))

    def catch_up(
        self, conversation: int | None, system: str, messages: list[Message], pair: str
    ) -> int | None:
        """Save what of these messages is not saved, then what was left; returns where the messages are.

        Args:
            conversation: Where they are already, if anywhere.
            system: What the model is told first.
            messages: A branch from its first message on; what is saved gets its id there.
            pair: The names of what is loaded, for messages that do not say.
        """
        self.trouble = ""
        conversation = self._write(conversation, system, messages, pair)
        trouble = self.trouble
        for talk in self._left if not trouble else ():
            talk.conversation = self._write(talk.conversation, talk.system, talk.messages, pair)
            if messages and conversation is not None and talk.conversation == conversation:
                # What is written last would be in view the next time.
                self.attempt(partial(self._history.set_head, conversation, messages[-1].id))
        self._left = [talk for talk in self._left if unsaved(talk.messages)]
        if messages:
            self.trouble = trouble
        return conversation

    def waiting(self, messages: list[Message]) -> int:
        """How many messages are not saved, of these and of all that was left."""
        branches = [messages, *(talk.messages for talk in self._left)]
        return len({message.id for branch in branches for message in branch if message.id < 0})

    def _write(self, conversation: int | None, system: str, messages: list[Message], pair: str) -> int | None:
        """Save these messages up to the first that cannot be."""
        if conversation is None and messages:
            first = messages[0].id
            conversation = self._begun.get(first) or self.attempt(lambda: self._history.begin(system))
            if conversation is not None:
                self._begun[first] = conversation
        parent: int | None = None
        for place, message in enumerate(messages if conversation is not None else ()):
            if message.id < 0 and conversation is not None:
                saved = self.attempt(partial(self._keep, conversation, parent, message, pair))
                if saved is None:
                    break
                messages[place] = replace(message, id=saved, parent=parent)
            parent = messages[place].id
        return conversation

    def _keep(self, conversation: int, parent: int | None, message: Message, pair: str) -> int:
        row = self._rows.get(message.id)
        if row is not None:
            self._history.extend(row, message.text, message.token_ids, message.mark, dict(message.record))
            return row
        row = self._rows[message.id] = self._history.add(
            conversation, parent, message.role, message.text,
            token_ids=message.token_ids, mark=message.mark, record=dict(message.record),
            pair=str(message.record.get("pair", pair)),
        )  # fmt: skip
        return row


def unsaved(messages: list[Message]) -> int:
    """How many of these are not saved."""
    return sum(message.id < 0 for message in messages)
