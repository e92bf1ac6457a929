"""The conversation and where it stands, without a screen: messages, options, and what may happen next."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import asdict, replace
from typing import Any, Literal, TypeVar

from ..app.events import Ask, Finished, Loaded
from ..app.history import History, HistoryError, Message
from ..app.requests import AnswerOptions, Turn

Phase = Literal["loading", "ready", "answering", "stopping", "unloaded", "dead"]
"""`unloaded`: the engine is there, but no model is; `dead`: the engine is gone."""

Result = TypeVar("Result")

STOPPED = {"cancelled": "stopped", "length": "length", "context": "context"}
"""Marks of answers that are not whole, by why they ended."""


class Session:
    """What has been said, what the next answer is made with, and what the engine is doing.

    Every message is saved as soon as it is there. Where it cannot be, the conversation goes on unsaved and
    `trouble` says why.
    """

    def __init__(
        self,
        options: AnswerOptions,
        system: str | None,
        history: History,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.phase: Phase = "loading"
        self.options = options
        self.system = system or ""
        self.history = history
        self.conversation: int | None = None
        self.messages: list[Message] = []
        """The branch in view, from the first prompt on."""
        self.loaded: Loaded | None = None
        self.waiting: str | None = None
        """A prompt that is sent once the models are loaded."""
        self.editing: int | None = None
        """Place of the prompt that the next one takes the place of."""
        self.clear_when_stopped = False
        self.refused: str | None = None
        """Why the models could not be loaded, if that is how things stand."""
        self.trouble = ""
        """Why what is said is not saved."""
        self._clock = clock
        self._going_on = False
        self._unsaved = 0

    @property
    def busy(self) -> bool:
        """Whether an answer is under way."""
        return self.phase in ("answering", "stopping")

    @property
    def turns(self) -> tuple[Turn, ...]:
        """What the model is told, the system prompt first."""
        first = (Turn("system", self.system),) if self.system else ()
        return (*first, *(self._turn(message) for message in self.messages))

    @property
    def unanswered(self) -> bool:
        """Whether the last prompt has no answer."""
        return bool(self.messages) and self.messages[-1].role == "user"

    def _turn(self, message: Message) -> Turn:
        # Ids mean nothing to a target with another vocabulary.
        same = self.loaded is not None and message.record.get("target") == self.loaded.target.path
        in_thought = bool(message.record.get("in_thought", False))
        return Turn(message.role, message.text, message.token_ids if same else (), in_thought)

    # Answers.

    def ask(self, prompt: str, record: dict[str, Any] | None = None) -> Ask:
        """Begin an answer to this prompt; one that is being edited is left on a branch of its own."""
        if self.editing is not None:
            del self.messages[self.editing :]
            self.editing = None
        if self.conversation is None:
            self.conversation = self._saved(lambda: self.history.begin(self.system))
        self._add("user", prompt, record=record)
        return self._begin()

    def again(self) -> Ask:
        """Begin another answer to the last prompt; the one there is stays on a branch of its own."""
        if not self.unanswered:
            self.messages.pop()
        return self._begin()

    def go_on(self) -> Ask:
        """Go on with the last answer, where it was stopped."""
        self._going_on = True
        return self._begin()

    def _begin(self) -> Ask:
        self.phase = "answering"
        return Ask(self.turns, self.options)

    def end_answer(
        self, text: str, token_ids: tuple[int, ...] = (), mark: str = "", record: dict[str, Any] | None = None
    ) -> bool:
        """Keep an answer, whole or partial; a prompt whose answer has no text does not stay in view."""
        self.phase = "ready"
        if self._going_on:
            return self._extend(text, token_ids, mark, record or {})
        if not text:
            if self.unanswered:
                self.messages.pop()
                self._point_at_last()
            return False
        self._add("assistant", text, token_ids, mark, record or {})
        return True

    def _extend(self, text: str, token_ids: tuple[int, ...], mark: str, record: dict[str, Any]) -> bool:
        self._going_on = False
        last = self.messages[-1]
        whole = replace(
            last,
            text=last.text + text,
            token_ids=(*last.token_ids, *token_ids),
            mark=mark,
            record={**last.record, **record},
        )
        self.messages[-1] = whole
        if whole.id > 0:
            self._saved(
                lambda: self.history.extend(
                    whole.id, whole.text, whole.token_ids, whole.mark, dict(whole.record)
                )
            )
        return True

    def finished(self, event: Finished) -> bool:
        """Keep a finished answer; say whether there was one."""
        mark = STOPPED.get(event.reason, "")
        return self.end_answer(event.text, event.token_ids, mark, self.record(event))

    def record(self, event: Finished) -> dict[str, Any]:
        """What is kept of how an answer was made: the pair, the settings, the figures."""
        loaded = self.loaded
        return {
            "target": loaded.target.path if loaded else "",
            "pair": self.pair,
            "options": asdict(self.options),
            "system": self.system,
            "stats": asdict(event.stats),
            "prompt_tokens": event.prompt_tokens,
            "in_thought": event.in_thought,
        }

    @property
    def pair(self) -> str:
        """The names of what is loaded."""
        if self.loaded is None:
            return ""
        names = [self.loaded.target.name, *([self.loaded.draft.name] if self.loaded.draft else [])]
        return " + ".join(names)

    # The conversation.

    def clear(self) -> None:
        """Begin another conversation; the one that was is kept."""
        self.messages.clear()
        self.conversation = None
        self.editing = None
        self.clear_when_stopped = False

    def open(self, conversation: int, head: int | None = None) -> None:
        """Go on with a conversation of before.

        Raises:
            HistoryError: it cannot be read; nothing has changed.
        """
        found = self.history.get(conversation)
        messages = self.history.branch(conversation, head)
        self.conversation, self.messages = conversation, messages
        self.system = found.system
        self.editing = None
        if head is not None:
            self._saved(lambda: self.history.set_head(conversation, head))

    def versions(self) -> tuple[int, list[int], int] | None:
        """The last message that has others beside it: its place, their ids, and which of them it is."""
        for place in range(len(self.messages) - 1, -1, -1):
            message = self.messages[place]
            if message.id > 0:
                beside = self.history.siblings(message.id)
                if len(beside) > 1:
                    return place, beside, beside.index(message.id)
        return None

    def show_version(self, step: int) -> bool:
        """Change to the version before or after; say whether there is one.

        Raises:
            HistoryError: it cannot be read.
        """
        found = self.versions()
        if found is None or self.conversation is None:
            return False
        _, beside, at = found
        if not 0 <= at + step < len(beside):
            return False
        self.open(self.conversation, self.history.leaf(beside[at + step]))
        return True

    def set_system(self, text: str) -> None:
        """Change what the model is told first."""
        self.system = text
        if (conversation := self.conversation) is not None:
            self._saved(lambda: self.history.set_system(conversation, text))

    def _add(
        self,
        role: Literal["user", "assistant"],
        text: str,
        token_ids: tuple[int, ...] = (),
        mark: str = "",
        record: dict[str, Any] | None = None,
    ) -> None:
        parent = self.messages[-1].id if self.messages else None
        conversation = self.conversation
        saved: int | None = None
        if conversation is not None and (parent is None or parent > 0):
            saved = self._saved(
                lambda: self.history.add(
                    conversation, parent, role, text,
                    token_ids=token_ids, mark=mark, record=record or {}, pair=self.pair,
                )
            )  # fmt: skip
        if saved is None:
            self._unsaved -= 1
            saved = self._unsaved
        self.messages.append(Message(saved, parent, role, text, token_ids, mark, self._clock(), record or {}))

    def _point_at_last(self) -> None:
        conversation = self.conversation
        last = self.messages[-1].id if self.messages else None
        if conversation is not None and (last is None or last > 0):
            self._saved(lambda: self.history.set_head(conversation, last))

    def _saved(self, write: Callable[[], Result]) -> Result | None:
        try:
            result = write()
        except HistoryError as error:
            self.trouble = str(error)
            return None
        self.trouble = ""
        return result
