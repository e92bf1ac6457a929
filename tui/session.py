"""The conversation and where it stands, without a screen: turns, options, and what may happen next."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

from ..app.events import Ask, Finished, Loaded
from ..app.requests import AnswerOptions, Speculate, Turn

Phase = Literal["loading", "ready", "answering", "stopping", "unloaded", "dead"]
"""`unloaded`: the engine is there, but loading failed; `dead`: the engine is gone."""


class Session:
    """What has been said, what the next answer is made with, and what the engine is doing."""

    def __init__(self, options: AnswerOptions, system: str | None) -> None:
        self.phase: Phase = "loading"
        self.options = options
        self.system = system or ""
        self.turns: list[Turn] = []
        self.loaded: Loaded | None = None
        self.waiting: str | None = None
        """A prompt that is sent once the models are loaded."""
        self.clear_when_stopped = False
        self.refused: str | None = None
        """Why the models could not be loaded, if that is how things stand."""

    @property
    def busy(self) -> bool:
        """Whether an answer is under way."""
        return self.phase in ("answering", "stopping")

    def ask(self, prompt: str) -> Ask:
        """Begin an answer to this prompt."""
        self.turns.append(Turn("user", prompt))
        self.phase = "answering"
        first = (Turn("system", self.system),) if self.system else ()
        return Ask((*first, *self.turns), self.options)

    def end_answer(self, text: str, token_ids: tuple[int, ...] = ()) -> bool:
        """Keep an answer, whole or partial; one without text takes its prompt with it.

        Chat templates want turns to alternate, so a prompt without an answer cannot stay.
        """
        self.phase = "ready"
        if not text:
            if self.turns and self.turns[-1].role == "user":
                self.turns.pop()
            return False
        self.turns.append(Turn("assistant", text, token_ids))
        return True

    def finished(self, event: Finished) -> bool:
        """Keep a finished answer; say whether there was one."""
        return self.end_answer(event.text, event.token_ids)

    def clear(self) -> None:
        """Forget what has been said."""
        self.turns.clear()
        self.clear_when_stopped = False

    def set_temperature(self, value: float) -> None:
        """Change the temperature from the next answer on."""
        self.options = replace(self.options, sampling=replace(self.options.sampling, temperature=value))

    def set_speculate(self, mode: Speculate) -> None:
        """Change whether drafts are made, from the next answer on."""
        self.options = replace(self.options, drafting=replace(self.options.drafting, speculate=mode))

    def set_draft_max(self, value: int) -> None:
        """Change how long a draft may be, from the next answer on."""
        self.options = replace(self.options, drafting=replace(self.options.drafting, draft_max=value))
