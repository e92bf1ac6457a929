"""The conversation and where it stands, without a screen: messages, options, and what may happen next."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal

from ..app.events import Ask, Finished, Loaded
from ..app.history import History, HistoryError, Message
from ..app.requests import AnswerOptions, Turn
from .saving import Saving, unsaved

Phase = Literal["loading", "ready", "answering", "stopping", "unloaded", "dead"]
"""`unloaded`: the engine is there, but no model is; `dead`: the engine is gone."""

_RESTS = 15
"""How often an answer under way is not saved after it could not be: each try may wait for the file."""

STOPPED = {"cancelled": "stopped", "length": "length", "context": "context"}
"""Marks of answers that are not whole, by why they ended."""


@dataclass(frozen=True)
class ReadPrompt:
    """A prompt as it was typed, and as the model reads it."""

    typed: str
    text: str
    files: str
    """Which files go along, for a person."""
    record: dict[str, Any]


class Session:
    """What has been said, what the next answer is made with, and what the engine is doing.

    Every message is saved as soon as it is there, an answer also while it is written. Where it cannot be,
    the conversation goes on unsaved, `trouble` says why, and it is saved with the next message that can be.
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
        self.used: dict[str, None] = {}
        """The paths of the models that were loaded so far."""
        self.waiting: ReadPrompt | None = None
        """A prompt that is sent once the models are loaded."""
        self.editing: int | None = None
        """Place of the prompt that the next one takes the place of."""
        self.clear_when_stopped = False
        self.refused: str | None = None
        """Why the models could not be loaded, if that is how things stand."""
        self._saving = Saving(history)
        self._clock = clock
        self._going_on = False
        self._before: list[Message] = []
        """What was in view before the answer that is under way was asked for."""
        self._so_far: int | None = None
        """The message that the history has of the answer under way."""
        self._rests = 0
        """How often what comes of it is still not saved, after it could not be."""
        self._fork: int | None = None
        """The oldest of the versions among which the last step was made."""

    def loaded_with(self, loaded: Loaded) -> None:
        """These models are there."""
        self.loaded, self.refused, self.phase = loaded, None, "ready"
        self.used |= {model.path: None for model in (loaded.target, loaded.draft) if model is not None}

    @property
    def busy(self) -> bool:
        """Whether an answer is under way."""
        return self.phase in ("answering", "stopping")

    @property
    def trouble(self) -> str:
        """Why what is said is not saved; empty where it is."""
        return self._saving.trouble

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
        self._before = list(self.messages)
        if self.editing is not None:
            del self.messages[self.editing :]
            self.editing = None
        self._add("user", prompt, record=record)
        return self._begin()

    def again(self) -> Ask:
        """Begin another answer to the last prompt; the one there is stays on a branch of its own."""
        self._before = list(self.messages)
        if not self.unanswered:
            self.messages.pop()
        return self._begin()

    def go_on(self) -> Ask:
        """Go on with the last answer, where it was stopped."""
        self._going_on = True
        return self._begin()

    def _begin(self) -> Ask:
        self._fork = self._so_far = None
        self._rests = 0
        self.phase = "answering"
        return Ask(self.turns, self.options)

    def keep_so_far(self, text: str, in_thought: bool = False) -> None:
        """Save what has come of the answer under way, as one that was cut off until its end is saved.

        Whatever becomes of this process, no more is lost than what comes afterwards.
        """
        if not (self.busy and text):
            return
        if self._rests:
            self._rests -= 1
            return
        if unsaved(self.messages):
            self._catch_up()
        last, conversation = self.messages[-1], self.conversation
        if last.id > 0 and conversation is not None:
            self._save_so_far(conversation, last, text, in_thought)
        self._rests = _RESTS if self.trouble else 0

    def _save_so_far(self, conversation: int, last: Message, text: str, in_thought: bool) -> None:
        record, row = {**self.made_with, "in_thought": in_thought}, self._so_far
        if self._going_on:
            # The ids that there are belong to the shorter text.
            whole, record = last.text + text, dict(last.record)
            self._saving.attempt(lambda: self.history.extend(last.id, whole, (), "cut off", record))
        elif row is not None:
            self._saving.attempt(lambda: self.history.extend(row, text, (), "cut off", record))
        else:
            self._so_far = self._saving.attempt(
                lambda: self.history.add(
                    conversation, last.id, "assistant", text, mark="cut off", record=record, pair=self.pair
                )
            )

    def end_answer(
        self, text: str, token_ids: tuple[int, ...] = (), mark: str = "", record: dict[str, Any] | None = None
    ) -> bool:
        """Keep an answer, whole or partial; where it has no text, all is as before it was asked for."""
        self.phase = "ready"
        if self._going_on:
            return self._extend(text, token_ids, mark, record or {})
        row, self._so_far = self._so_far, None
        if text:
            if len(self._before) >= len(self.messages):
                # The branch that this one takes the place of may not be saved.
                self._saving.leave(self.conversation, self.system, self._before)
            self._add("assistant", text, token_ids, mark, record or {}, row)
            return True
        if row is not None:
            self._saving.attempt(lambda: self.history.drop(row))
        self._bring_back()
        return False

    def _bring_back(self) -> None:
        """Forget a prompt that nothing came of; what was in view before it is in view again."""
        if not self.unanswered:
            return
        prompt = self.messages[-1]
        self.messages[:], self._before = self._before, []
        if unsaved(self.messages):
            self._catch_up()
        if prompt.id > 0 and all(message.id != prompt.id for message in self.messages):
            self._saving.attempt(lambda: self.history.drop(prompt.id))
        conversation, head = self.conversation, self.messages[-1].id if self.messages else 0
        if conversation is not None and head > 0:
            self._saving.attempt(lambda: self.history.set_head(conversation, head))

    def _extend(self, text: str, token_ids: tuple[int, ...], mark: str, record: dict[str, Any]) -> bool:
        self._going_on = False
        last = self.messages[-1]
        if isinstance(stats := record.get("stats"), dict):
            # Its rates are those of what has come now; its tokens are all of the answer's.
            stats["completion_tokens"] = len(last.token_ids) + len(token_ids)
        before = self._turn(last).token_ids
        # Ids of a part alone would have the model read that part alone.
        known = (before or not last.text) and (token_ids or not text)
        whole = replace(
            last,
            text=last.text + text,
            token_ids=(*before, *token_ids) if known else (),
            mark=mark,
            record={**last.record, **record},
        )
        if whole.id > 0:
            whole = replace(whole, id=self._saving.new_id(whole.id))
        self.messages[-1] = whole
        self._catch_up()
        return True

    def finished(self, event: Finished) -> bool:
        """Keep a finished answer; say whether there was one."""
        mark = STOPPED.get(event.reason, "")
        token_ids = event.token_ids if event.ids_are_text else ()
        return self.end_answer(event.text, token_ids, mark, self.record(event))

    def record(self, event: Finished) -> dict[str, Any]:
        """What is kept of how an answer was made: the pair, the settings, the figures."""
        return {
            **self.made_with,
            "stats": asdict(event.stats),
            "prompt_tokens": event.prompt_tokens,
            "in_thought": event.in_thought,
        }

    @property
    def made_with(self) -> dict[str, Any]:
        """What an answer is made with: the pair and the settings."""
        return {
            "target": self.loaded.target.path if self.loaded else "",
            "pair": self.pair,
            "options": asdict(self.options),
            "system": self.system,
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
        self._saving.leave(self.conversation, self.system, self.messages)
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
        self._saving.leave(self.conversation, self.system, self.messages)
        self.conversation, self.messages = conversation, messages
        self.system = found.system
        self.editing = None
        if head is not None:
            self._saving.attempt(lambda: self.history.set_head(conversation, head))

    def forks(self) -> list[tuple[list[int], int]]:
        """For each message in view that has others beside it, the last first: their ids, and its place."""
        found: list[tuple[list[int], int]] = []
        for message in reversed(self.messages):
            if message.id > 0:
                beside = self.history.siblings(message.id)
                if len(beside) > 1:
                    found.append((beside, beside.index(message.id)))
        return found

    def versions(self) -> list[str]:
        """Of each message in view, which version it is, in words; empty where there is only one."""
        found: dict[int, tuple[int, int]] = {}
        if self.conversation is not None:
            with suppress(HistoryError):
                found = self.history.versions(self.conversation)
        told = (found.get(message.id) for message in self.messages)
        return [f"version {each[0]} of {each[1]}" if each else "" for each in told]

    def show_version(self, step: int) -> str:
        """Change to the version before or after; say which one is in view now.

        Steps stay at the place where the last one was made, so that one back undoes one forth; where there
        is no version more, the next place that has one is taken.

        Raises:
            HistoryError: it cannot be read.
        """
        forks = self.forks()
        if not forks or self.conversation is None:
            return "nothing here has another version; /regen makes one"
        forks.sort(key=lambda fork: fork[0][0] != self._fork)
        for beside, at in forks:
            if 0 <= at + step < len(beside):
                self.open(self.conversation, self.history.leaf(beside[at + step]))
                self._fork = beside[0]
                return f"version {at + step + 1} of {len(beside)}"
        beside, at = forks[0]
        return f"version {at + 1} of {len(beside)}, and no other that way"

    def set_system(self, text: str) -> None:
        """Change what the model is told first."""
        self.system = text
        if (conversation := self.conversation) is not None:
            self._saving.attempt(lambda: self.history.set_system(conversation, text))

    def save_the_rest(self) -> int:
        """Try once more to save what could not be; how many messages still are not saved."""
        if self._saving.waiting(self.messages):
            self._catch_up()
        return self._saving.waiting(self.messages)

    def _add(
        self,
        role: Literal["user", "assistant"],
        text: str,
        token_ids: tuple[int, ...] = (),
        mark: str = "",
        record: dict[str, Any] | None = None,
        row: int | None = None,
    ) -> None:
        """Add a message, of which the history may have a part already, in that row."""
        parent = self.messages[-1].id if self.messages else None
        self.messages.append(
            Message(
                self._saving.new_id(row), parent, role, text, token_ids, mark, self._clock(), record or {}
            )
        )
        self._catch_up()

    def _catch_up(self) -> None:
        """Save what could not be saved before, in view or left."""
        self.conversation = self._saving.catch_up(self.conversation, self.system, self.messages, self.pair)
