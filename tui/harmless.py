"""The last thing that every line of the screen goes through before it is written to the terminal."""

from __future__ import annotations

import re

from rich.cells import cell_len
from rich.segment import Segment
from textual.color import Color
from textual.filter import LineFilter

from ..models.text import STEERING

_STEERING = re.compile(f"[{''.join(map(chr, STEERING))}]")


class HarmlessLines(LineFilter):
    """Takes out of all text what could steer the terminal, whichever widget drew it and wherever it is from.

    Texts from outside are made printable where they come in, so that they look right; Textual's own widgets
    and what is typed or pasted into them are not. Cells stay where they are.
    """

    def apply(self, segments: list[Segment], background: Color) -> list[Segment]:
        """The segments, with nothing in their text but text."""
        del background
        if not any(_STEERING.search(segment.text) for segment in segments):
            return segments
        return [Segment(_STEERING.sub(_harmless, text), style, control) for text, style, control in segments]


def _harmless(found: re.Match[str]) -> str:
    return "\ufffd" * cell_len(found[0])
