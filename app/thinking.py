"""What a model thought and what it said: an answer in parts, whole or as it comes.

A thought stands between tags. A tag counts where models write one: at the start of a line or right after
a thought, and not in a code block. So an answer may speak of `<think>` without being torn apart.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

PartKind = Literal["said", "thought"]
Kind = Literal["said", "thought", "was_thought"]
"""`was_thought`, with an empty text: all that has been said so far was a thought. Its opening tag was in
the prompt, and nobody had told."""

_TAGS = {
    "<think>": "</think>",  # Qwen3, DeepSeek-R1, GLM, SmolLM3 and most others
    "<thinking>": "</thinking>",
    "<seed:think>": "</seed:think>",  # Seed-OSS
    "<|channel>thought": "<channel|>",  # Gemma 4
    "<|channel|>analysis<|message|>": "<|end|><|start|>assistant<|channel|>final<|message|>",  # gpt-oss
}
_OPENINGS = tuple(_TAGS)
_CLOSINGS = tuple(_TAGS.values())
_FENCE = re.compile(r"\s*(`{3,}|~{3,})(.*)", re.DOTALL)


@dataclass(frozen=True)
class Part:
    """A stretch of an answer, without tags and without the white space after them."""

    kind: PartKind
    text: str


def opens_thought(prompt: str) -> bool:
    """Whether a rendered prompt ends inside a thought, so that the answer begins in it."""
    return prompt.rstrip().endswith(_OPENINGS)


def knows_thoughts(template: str) -> bool:
    """Whether a chat template's source speaks of thoughts."""
    return any(tag in template for tag in (*_OPENINGS, "reasoning_content"))


def split(text: str, in_thought: bool = False) -> tuple[Part, ...]:
    """An answer in parts; one without thoughts is a single part, unchanged.

    Args:
        text: The answer as it was decoded.
        in_thought: Whether it begins inside a thought: see `opens_thought`.
    """
    splitter = ThoughtSplitter(in_thought)
    told = [part for line in text.splitlines(keepends=True) for part in splitter.feed(line)]
    return joined([*told, *splitter.finish()])


def joined(told: Iterable[tuple[Kind, str]]) -> tuple[Part, ...]:
    """The parts that a splitter told piece by piece."""
    parts: list[tuple[PartKind, list[str]]] = []
    for kind, text in told:
        if kind == "was_thought":
            thought = "".join(piece for _, pieces in parts for piece in pieces).lstrip()
            parts = [("thought", [thought])] if thought else []
        elif parts and parts[-1][0] == kind:
            parts[-1][1].append(text)
        else:
            parts.append((kind, [text]))
    return tuple(Part(kind, "".join(pieces)) for kind, pieces in parts)


class ThoughtSplitter:
    """Tells thought from words as an answer comes; what may yet become a tag is held back.

    Joined, what it tells is `split` of the whole text, however the text is cut.
    """

    def __init__(self, in_thought: bool = False) -> None:
        self._held: str = ""
        self._closings: tuple[str, ...] = _CLOSINGS if in_thought else ()  # what ends the thought
        self._thought_before = in_thought
        self._fresh = True  # nothing of this part has been told
        self._line: str = ""  # what has been told of a line that has not ended
        self._fence: str = ""  # the marker of the code block that is open
        self._told: list[tuple[Kind, str]] = []

    def feed(self, piece: str) -> list[tuple[Kind, str]]:
        """What is certain now that this piece has come."""
        self._held += piece
        while self._held and (self._think() if self._closings else self._say()):
            pass
        told, self._told = self._told, []
        return told

    def finish(self) -> list[tuple[Kind, str]]:
        """What was held back and became no tag."""
        rest, self._held = self._held, ""
        self._tell("thought" if self._closings else "said", rest)
        told, self._told = self._told, []
        return told

    def _think(self) -> bool:
        """Take the thought up to its end or to what may be its end; whether there may be more to take."""
        if self._fresh:
            self._held = self._held.lstrip()
        ends = [(self._held.index(tag), tag) for tag in self._closings if tag in self._held]
        if ends:
            end, tag = min(ends)
            self._tell("thought", self._held[:end])
            self._held = self._held[end + len(tag) :]
            self._begin_saying()
            return True
        end = len(self._held) - _begun(self._held, self._closings)
        self._tell("thought", self._held[:end])
        self._held = self._held[end:]
        return False

    def _say(self) -> bool:
        """Take words up to the end of a line, or a tag; whether there may be more to take."""
        if not self._fence and not self._line.strip():
            bare = self._held.lstrip()
            space = self._held[: len(self._held) - len(bare)]
            opening = next((tag for tag in _OPENINGS if bare.startswith(tag)), None)
            if opening is not None:
                self._space(space, wanted=not self._fresh)
                self._held = bare[len(opening) :]
                self._closings = (_TAGS[opening],)
                self._thought_before = self._fresh = True
                return True
            closing = next((tag for tag in self._strays if bare.startswith(tag)), None)
            if closing is not None:
                self._space(space, wanted=not self._fresh)
                self._told.append(("was_thought", ""))
                self._thought_before = True
                self._held = bare[len(closing) :]
                self._begin_saying()
                return True
            if any(tag.startswith(bare) for tag in _OPENINGS + self._strays):
                if not self._fresh or self._thought_before:
                    self._space(space, wanted=not self._fresh)
                    self._held = bare
                return False
            if self._fresh and self._thought_before:
                self._held = bare
        end = self._held.find("\n") + 1 or len(self._held)
        words, self._held = self._held[:end], self._held[end:]
        self._tell("said", words)
        self._line += words
        if words.endswith("\n"):
            self._fence = _fence_after(self._line, self._fence)
            self._line = ""
        return True

    @property
    def _strays(self) -> tuple[str, ...]:
        """Tags that may end a thought whose beginning was not seen."""
        return () if self._thought_before else _CLOSINGS

    def _begin_saying(self) -> None:
        self._closings = ()
        self._fresh = True
        self._line = self._fence = ""

    def _space(self, space: str, wanted: bool) -> None:
        """White space before a tag; blank lines open no code block."""
        if wanted:
            self._tell("said", space)
            self._line = (self._line + space).rpartition("\n")[2]

    def _tell(self, kind: PartKind, text: str) -> None:
        if text:
            self._fresh = False
            self._told.append((kind, text))


def _begun(text: str, tags: tuple[str, ...]) -> int:
    """How many characters at the end of a text may be the beginning of one of these tags."""
    longest = max(map(len, tags)) - 1
    sizes = range(min(longest, len(text)), 0, -1)
    return next((size for size in sizes if any(tag.startswith(text[-size:]) for tag in tags)), 0)


def _fence_after(line: str, fence: str) -> str:
    """The marker of the code block that is open after this line."""
    mark = _FENCE.match(line)
    if mark is None:
        return fence
    if fence:
        return "" if mark[1].startswith(fence) and not mark[2].strip() else fence
    return "" if mark[1][0] == "`" and "`" in mark[2] else mark[1]
