"""Turns to prompt tokens: the template, the context budget, and the ids that answers were decoded as."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from itertools import count
from typing import Protocol

from ..models.errors import ContextFullError, TemplateError
from ..models.template import Message
from .requests import Turn
from .thinking import opens_thought, split

ANSWER_ROOM = 64
"""Tokens of the context that a prompt leaves for the answer, at the least."""


class Template(Protocol):
    """A chat template; `specchat.models.template.ChatTemplate` is one."""

    def render(self, messages: Sequence[Message]) -> str:
        """The text that the model reads for these messages."""
        ...


class Tokenizer(Protocol):
    """A vocabulary's tokenizer; `specchat.models.llama.Model` is one."""

    def tokenize(self, text: str, *, add_special: bool) -> list[int]:
        """Token ids of a text."""
        ...


@dataclass(frozen=True)
class Prompt:
    """What the model reads, and what of the conversation is in it."""

    tokens: list[int]
    dropped_turns: int
    """How many of the oldest turns were left out for want of room; never the system's."""
    in_thought: bool = False
    """Whether it ends inside a thought, so that the answer begins in one."""


def build_prompt(turns: Sequence[Turn], template: Template, tokenizer: Tokenizer, room: int) -> Prompt:
    """The prompt for these turns, the oldest left out in whole exchanges where `room` tokens are too few.

    Where the last turn is an answer, the prompt ends with it as far as it goes, to be gone on with.

    Raises:
        ContextFullError: the system prompt and the last turn alone do not fit.
    """
    head = [turn for turn in turns[:1] if turn.role == "system"]
    rest = list(turns[len(head) :])
    begun: tuple[int, ...] = ()
    if rest and rest[-1].role == "assistant":
        answer = rest.pop()
        begun = answer.token_ids or tuple(tokenizer.tokenize(answer.text, add_special=False))

    @cache
    def tokens_from(start: int) -> list[int]:
        return [*prompt_tokens([*head, *rest[start:]], template, tokenizer), *begun]

    def fits(start: int) -> bool:
        length = len(tokens_from(start))
        return length + ANSWER_ROOM <= room or (start >= len(rest) - 1 and length < room)

    # Each look at a start renders and tokenizes all behind it: a long conversation affords only a few.
    starts = [0, *(index for index, turn in enumerate(rest) if index and turn.role == "user")]
    chosen = 0 if fits(0) else bisect_left(starts, True, lo=1, key=fits)
    if chosen == len(starts):
        raise ContextFullError(
            f"the prompt is {len(tokens_from(starts[-1]))} tokens and the context holds {room}: "
            "shorten it, or start with a larger --ctx-size"
        )
    start = starts[chosen]
    in_thought = opens_thought(template.render(_messages([*head, *rest[start:]])))
    return Prompt(tokens_from(start), start, in_thought)


def prompt_tokens(turns: Sequence[Turn], template: Template, tokenizer: Tokenizer) -> list[int]:
    """Tokens of the rendered turns, in which each answer keeps the ids it was decoded as.

    An answer tokenized anew may get other ids than it was decoded as, and the cache would no longer be
    true from there on. Where the template changes an answer's text (it trims it, or drops what the model
    thought), that answer is tokenized from the text.
    """
    messages = _messages(turns)
    whole = template.render(messages)
    tokens: list[int] = []
    at = 0
    for turn, place in zip(turns, _places(turns, messages, whole, template), strict=True):
        if place is None or place < at or not whole.startswith(turn.text, place):
            continue
        tokens += tokenizer.tokenize(whole[at:place], add_special=at == 0)
        tokens += turn.token_ids
        at = place + len(turn.text)
    if at < len(whole):
        tokens += tokenizer.tokenize(whole[at:], add_special=at == 0)
    return tokens


def _places(
    turns: Sequence[Turn], messages: Sequence[Message], whole: str, template: Template
) -> list[int | None]:
    """Where in the rendered text each turn that has ids begins, if it is there as it was.

    What an answer says may be said elsewhere as well. So all is rendered once more with a mark in front of
    what each answer says, behind the white space that a template may trim; a template on which the marks
    have any other effect than being there tells no places.
    """
    places: list[int | None] = [None] * len(turns)
    mark = next(mark for mark in map("Mark{}x".format, count()) if mark not in whole)
    marked, said = list(messages), dict[int, str]()
    for index, (turn, message) in enumerate(zip(turns, messages, strict=True)):
        words = message.text.lstrip()
        if turn.token_ids and words:
            indent = message.text[: -len(words)]
            marked[index], said[index] = message._replace(text=indent + mark + words), words
    try:
        first, *pieces = template.render(marked).split(mark)
    except TemplateError:
        return places
    if len(pieces) != len(said) or first + "".join(pieces) != whole:
        return places
    at = len(first)
    for (index, words), piece in zip(said.items(), pieces, strict=True):
        # What was thought stands before what is said, if it stands anywhere.
        places[index] = at + len(words) - len(turns[index].text)
        at += len(piece)
    return places


def _messages(turns: Sequence[Turn]) -> list[Message]:
    """The turns for a template, what the model thought apart from what it said.

    So a thought is read again only where a template has a place for it; most have none for what was
    thought before the last question. In an answer's text it would be read again wherever a template
    writes that text as it is.
    """
    return [_answer(turn) if turn.role == "assistant" else Message(turn.role, turn.text) for turn in turns]


def _answer(turn: Turn) -> Message:
    parts = split(turn.text, turn.in_thought)
    said = "".join(part.text for part in parts if part.kind == "said")
    thought = "\n".join(part.text.strip() for part in parts if part.kind == "thought")
    return Message(turn.role, said, thought)
