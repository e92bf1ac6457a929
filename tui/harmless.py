"""The last thing that every line of the screen goes through before it is written to the terminal."""

from __future__ import annotations

import re

from rich.cells import cell_len
from rich.segment import Segment
from textual.color import Color
from textual.filter import LineFilter

from ..models.text import MOST_MARKS, STEERING, takes_no_cell

_STEERING = re.compile(f"[{''.join(map(chr, STEERING))}]")


class HarmlessLines(LineFilter):
    """Takes out of all text what could steer the terminal, whichever widget drew it and wherever it is from.

    Texts from outside are made printable where they come in, so that they look right; Textual's own widgets
    and what is typed or pasted into them are not. Cells stay where they are.
    """

    def apply(self, segments: list[Segment], background: Color) -> list[Segment]:
        """The segments, with nothing in their text but text."""
        del background
        if all(map(_is_harmless, segments)):
            return segments
        return [Segment(_harmless(text), style, control) for text, style, control in segments]


def _is_harmless(segment: Segment) -> bool:
    text = segment.text
    if text.isascii() or len(text) <= MOST_MARKS:
        return _STEERING.search(text) is None
    return _harmless(text) == text


def _harmless(text: str) -> str:
    """The text without what steers, and with no more than `MOST_MARKS` marks in a row."""
    text = _STEERING.sub(lambda found: "\ufffd" * cell_len(found[0]), text)
    kept: list[str] = []
    marks = 0
    for character in text:
        marks = marks + 1 if takes_no_cell(character) else 0
        kept.append(character if marks <= MOST_MARKS else " " * cell_len(character))
    return "".join(kept)
