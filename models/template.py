"""Conversations to prompts: a model's own chat template, run in jinja2's sandbox.

A template comes out of a downloaded file. It sees the conversation and a clock and no Python object behind
them. What it could still do is waste time and memory: loops, repetition and length are bounded here.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Container, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, NamedTuple, cast

import jinja2
from jinja2 import nodes
from jinja2.ext import Extension
from jinja2.parser import Parser
from jinja2.runtime import Context
from jinja2.sandbox import ImmutableSandboxedEnvironment

from .errors import TemplateError


class Message(NamedTuple):
    """One message, and what the model thought before it: templates know that as `reasoning_content`."""

    role: str
    text: str
    thought: str = ""


Messages = Sequence[tuple[str, str] | Message]
"""Role ("system", "user", "assistant") and text, oldest first."""

_CHATML = (
    "{% for message in messages %}"
    "{{ '<|im_start|>' + message['role'] + '\\n' + message['content'] + '<|im_end|>\\n' }}"
    "{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}"
)
# A line end rather than a space after the role: a prompt that ends in a space tokenizes badly.
_TRANSCRIPT = (
    "{% for message in messages %}"
    "{{ message['role'] | capitalize + ':\\n' + message['content'] + '\\n\\n' }}"
    "{% endfor %}"
    "{% if add_generation_prompt %}{{ 'Assistant:\\n' }}{% endif %}"
)

_MOST_STEPS = 100_000
"""How many numbers all `range`s of one rendering may give."""
_LONGEST_PRODUCT = 100_000
"""How long a repeated text or list may become."""
_MOST_GROWTH = 10_000_000
"""How many characters a rendering may have beyond ten times the conversation's."""


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
    _compiled: jinja2.Template = field(repr=False, compare=False)
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
            source: The template as the model's file has it, None or empty where it has none.
            bos: The text of BOS, empty where there is none; a prompt may begin with it.
            eos: The text of EOS, likewise.
            special_tokens: What is asked whether ChatML's tokens exist; a `Vocabulary` will do.
            now: The clock behind `strftime_now`.

        Raises:
            TemplateError: It cannot be compiled, or not even write down one user message.
        """
        note, stops = None, ()
        if not source:
            if "<|im_start|>" in special_tokens and "<|im_end|>" in special_tokens:
                source = _CHATML
                note = "The model has no chat template; ChatML is used, whose tokens it has."
            else:
                source, stops = _TRANSCRIPT, ("\nUser:", "\nAssistant:")
                note = "The model has no chat template; a plain User/Assistant transcript is used."
        try:
            compiled = _Environment(now).from_string(source)
        except Exception as error:
            raise TemplateError(f"the chat template cannot be compiled: {_first_line(error)}") from None
        template = ChatTemplate(source, bos, eos, note, stops, compiled, _folds_system=False)
        template.render((("user", "Hello"),))
        if template._takes_system():
            return template
        folded = "The chat template takes no system message; its text goes before the first user message."
        return ChatTemplate(source, bos, eos, note or folded, stops, compiled, _folds_system=True)

    def render(self, messages: Messages, add_generation_prompt: bool = True) -> str:
        """The prompt for these messages; with `add_generation_prompt` it ends where the answer begins.

        Where the template writes BOS, the prompt has it: tokenizing must not add another.

        Raises:
            TemplateError: The template refuses these messages, fails on them, or runs away.
        """
        messages = [Message(*message) for message in messages]
        if self._folds_system:
            messages = _folded(messages)
        variables = {
            "messages": [_variables(message) for message in messages],
            "add_generation_prompt": add_generation_prompt,
            "bos_token": self.bos,
            "eos_token": self.eos,
            "tools": None,
            "documents": None,
        }
        room = _MOST_GROWTH + 10 * sum(len(text) + len(thought) for _, text, thought in messages)
        parts: list[str] = []
        try:
            for part in self._compiled.generate(variables, range=_Steps()):
                parts.append(part)
                room -= len(part)
                if room < 0:
                    raise TemplateError("the chat template writes without end")
        except TemplateError:
            raise
        except Exception as error:  # a template may raise anything that Python can
            raise TemplateError(f"the chat template failed: {_first_line(error)}") from None
        return "".join(parts)

    def _takes_system(self) -> bool:
        mark = "a system message"
        try:
            return mark in self.render((("system", mark), ("user", "Hello")))
        except TemplateError:
            return False


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


def _first_line(error: Exception) -> str:
    lines = str(error).splitlines()
    text = lines[0] if lines else type(error).__name__
    where = f" (line {error.lineno})" if isinstance(error, jinja2.TemplateSyntaxError) else ""
    return "".join(c if c.isprintable() else " " for c in text[:300]) + where


class _Environment(ImmutableSandboxedEnvironment):
    """The environment that chat templates are written for, which is that of `transformers`."""

    intercepted_binops = frozenset(("*", "**"))

    def __init__(self, now: Callable[[], datetime]) -> None:
        super().__init__(
            trim_blocks=True, lstrip_blocks=True, extensions=["jinja2.ext.loopcontrols", _GenerationTag]
        )

        def strftime_now(form: str) -> str:
            return now().strftime(form)

        # jinja2 leaves the types of these two tables open.
        filters = cast("dict[str, Any]", self.filters)  # pyright: ignore[reportUnknownMemberType]
        functions = cast("dict[str, Any]", self.globals)  # pyright: ignore[reportUnknownMemberType]
        filters["tojson"] = _to_json
        functions["raise_exception"] = _raise
        functions["strftime_now"] = strftime_now
        # It writes as much nonsense text as it is asked for, and no chat needs it.
        del functions["lipsum"]

    def call_binop(self, context: Context, operator: str, left: Any, right: Any) -> Any:
        if operator == "**":
            raise jinja2.TemplateRuntimeError("powers are not allowed")
        for length, times in ((left, right), (right, left)):
            if (
                isinstance(times, int)
                and hasattr(length, "__len__")
                and len(length) * times > _LONGEST_PRODUCT
            ):
                raise jinja2.TemplateRuntimeError("a repetition is too long")
        return super().call_binop(context, operator, left, right)


class _Steps:
    """`range` for one rendering: nested loops multiply, so what is bounded is the sum of all ranges."""

    def __init__(self) -> None:
        self._left = _MOST_STEPS

    def __call__(self, *bounds: int) -> range:
        numbers = range(*bounds)
        self._left -= len(numbers)
        if self._left < 0:
            raise jinja2.TemplateRuntimeError(f"its loops take more than {_MOST_STEPS:,} steps")
        return numbers


class _GenerationTag(Extension):
    """`{% generation %}` marks the assistant's words for training; here it is its content and no more."""

    tags = {"generation"}  # noqa: RUF012

    def parse(self, parser: Parser) -> list[nodes.Node]:
        next(parser.stream)
        return parser.parse_statements(("name:endgeneration",), drop_needle=True)


def _raise(message: str) -> None:
    raise jinja2.TemplateRuntimeError(message)


def _to_json(
    value: Any,
    ensure_ascii: bool = False,
    indent: int | None = None,
    separators: tuple[str, str] | None = None,
    sort_keys: bool = False,
) -> str:
    # jinja2's own escapes <, > and & for web pages, which no model has seen in its prompts.
    return json.dumps(
        value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys
    )
