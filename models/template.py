"""Conversations to prompts: a model's own chat template, or one that stands in for it."""

from __future__ import annotations

import contextlib
import re
import time
from collections.abc import Callable, Container, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import NamedTuple

from .built_in_templates import BUILT_IN_TEMPLATES
from .errors import TemplateError
from .template_sandbox import TemplateProgram

_INSTEAD = (
    f"--chat-template {' or '.join(BUILT_IN_TEMPLATES)} uses a built-in one instead, "
    "--chat-template FILE one of yours"
)
_SAID = "Is this heard?"
"""What a template is tried with."""
_FORGETS = "The chat template leaves out what was said before the last question; the model will not know it."
_LEFT_OUT = f"the chat template leaves out what the user says; {_INSTEAD}"

_PIECE = re.compile(r"\S{1,20}")
_MOST_PIECES = 64


class Message(NamedTuple):
    """One message, and what the model thought before it: templates know that as `reasoning_content`."""

    role: str
    text: str
    thought: str = ""


Messages = Sequence[tuple[str, str] | Message]
"""Role ("system", "user", "assistant") and text, oldest first."""


@dataclass(frozen=True)
class ChatTemplate:
    """How one model wants a conversation written."""

    source: str
    bos: str
    eos: str
    note: str | None
    """What a person should know, in one sentence: that it is a fallback, or where a system text goes."""
    stops: tuple[str, ...]
    """Texts that end an answer, for a fallback that the model was not trained to end with a token."""
    _program: TemplateProgram = field(repr=False, compare=False)
    _folds_system: bool

    @staticmethod
    def from_model(
        source: str | None,
        bos: str,
        eos: str,
        special_tokens: Container[str],
        now: Callable[[], datetime] = datetime.now,
    ) -> ChatTemplate:
        """The template of a model, or a stated fallback where it has none.

        A template that refuses system messages, or leaves their text out, gets that text before the first
        user message; `note` says so.

        Args:
            source: The template as the model's file has it, None or empty where it has none, or the name of
                a built-in one.
            bos: The text of BOS, empty where there is none; a prompt may begin with it.
            eos: The text of EOS, likewise.
            special_tokens: What is asked whether ChatML's tokens exist; a `Vocabulary` will do.
            now: The clock behind `strftime_now`.

        Raises:
            TemplateError: It cannot be compiled, or does not write down what a user says.
        """
        note, stops = None, ()
        knows_chatml = "<|im_start|>" in special_tokens and "<|im_end|>" in special_tokens
        if not source:
            source = "chatml" if knows_chatml else "transcript"
            whose = ", whose tokens it has" if knows_chatml else ""
            note = f"The model has no chat template; {BUILT_IN_TEMPLATES[source].words} is used{whose}."
        elif source == "chatml" and not knows_chatml:
            note = "The model does not have ChatML's tokens, and reads them as plain text."
        if source in BUILT_IN_TEMPLATES:
            stops = () if source == "chatml" and knows_chatml else BUILT_IN_TEMPLATES[source].stops
            source = BUILT_IN_TEMPLATES[source].source
        try:
            program = TemplateProgram(source, now, time.thread_time)
        except TemplateError as error:
            raise TemplateError(f"{error}; {_INSTEAD}") from None
        template = ChatTemplate(source, bos, eos, note, stops, program, _folds_system=False)
        template._try_out()
        folds = not template._takes_system()
        if folds and note is None:
            note = "The chat template takes no system message; its text goes before the first user message."
        if not template._remembers():
            note = " ".join(filter(None, (note, _FORGETS)))
        return ChatTemplate(source, bos, eos, note, stops, program, folds)

    def render(self, messages: Messages) -> str:
        """The prompt for these messages, which ends where the answer begins.

        Where the template writes BOS, the prompt has it: tokenizing must not add another.

        Raises:
            TemplateError: The template refuses these messages, fails on them, runs away, or leaves most of
                what the user says last out: that it did not when it was tried tells nothing of other texts.
        """
        written = self._written(messages)
        said = next((text for role, text, *_ in reversed(messages) if role == "user"), "")
        if not _mostly_in(said, written):
            raise TemplateError(_LEFT_OUT)
        return written

    def _written(self, messages: Messages) -> str:
        messages = [Message(*message) for message in messages]
        if self._folds_system:
            messages = _folded(messages)
        variables = {
            "messages": [_variables(message) for message in messages],
            "add_generation_prompt": True,
            "bos_token": self.bos,
            "eos_token": self.eos,
            "tools": None,
            "documents": None,
        }
        try:
            return self._program.run(
                variables, sum(len(text) + len(thought) for _, text, thought in messages)
            )
        except TemplateError as error:
            raise TemplateError(f"{error}; {_INSTEAD}") from None

    def _try_out(self) -> None:
        """See that it writes what the user says, at first and later on.

        Raises:
            TemplateError: It does not.
        """
        written = [self._written((("user", _SAID),))]
        with contextlib.suppress(TemplateError):  # it says so itself where it takes no second question
            written.append(self._written((("user", "Hello"), ("assistant", "Hello."), ("user", _SAID))))
        if not all(_SAID in text for text in written):
            raise TemplateError(_LEFT_OUT)

    def _remembers(self) -> bool:
        try:
            return _SAID in self._written((("user", _SAID), ("assistant", "Hello."), ("user", "Hello")))
        except TemplateError:
            return True  # it says itself that it takes no second question

    def _takes_system(self) -> bool:
        try:
            return _SAID in self._written((("system", _SAID), ("user", "Hello")))
        except TemplateError:
            return False


def _mostly_in(said: str, written: str) -> bool:
    """Whether at least half of a text is in another, by pieces: templates may trim it, or change a few."""
    pieces = _PIECE.findall(said)
    looked_at = pieces[:: max(1, len(pieces) // _MOST_PIECES)]
    return 2 * sum(piece in written for piece in looked_at) >= len(looked_at)


def _variables(message: Message) -> dict[str, str]:
    """A message as templates read it; they ask whether there is a thought, so an empty one is none."""
    thought = {"reasoning_content": message.thought} if message.thought else {}
    return {"role": message.role, "content": message.text, **thought}


def _folded(messages: Sequence[Message]) -> list[Message]:
    """The messages with the system texts put before the first user message that follows them."""
    folded: list[Message] = []
    waiting: list[str] = []
    for message in messages:
        if message.role == "system":
            waiting.append(message.text)
        elif message.role == "user" and waiting:
            folded.append(Message("user", "\n\n".join([*waiting, message.text])))
            waiting = []
        else:
            folded.append(message)
    if waiting:
        folded.append(Message("user", "\n\n".join(waiting)))
    return folded
