"""The last thing that every line of the screen goes through before it is written to the terminal."""

from __future__ import annotations

import re

from rich.cells import cell_len
from rich.segment import Segment
from textual.color import Color
from textual.filter import LineFilter

from ..models.text import MOST_MARKS, STEERING, with_few_marks

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
    """The text without what steers or floods, in as many cells."""
    shown = _STEERING.sub(lambda found: "\ufffd" * cell_len(found[0]), text)
    shown, _ = with_few_marks(shown, lambda mark, _: " " * cell_len(mark))
    # What stands behind a joiner is taken to have no cells, and has some where the joiner is taken out.
    while cell_len(shown) > cell_len(text):
        shown = shown[:-1]
    while cell_len(shown) < cell_len(text):
        shown += " "
    return shown
