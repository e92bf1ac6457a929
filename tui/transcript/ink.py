"""Turns styled text into lines of the transcript, at one width and in one theme."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from rich.cells import cell_len
from rich.segment import Segment
from rich.style import Style as RichStyle
from textual.content import Content
from textual.strip import Strip
from textual.style import Style

from ...models.text import PrintableText as PrintableText
from ...models.text import printable as printable

READABLE = 112
"""Text is set no wider than this, however wide the terminal is."""

NOTHING = Content("")
_GOES_ON = Content("↪ ").stylize("$text-disabled")
"""Stands before the rest of a line of code that is wider than the screen."""


@dataclass(frozen=True)
class Line:
    """One line on the screen and the text in it that can be selected."""

    strip: Strip
    text: str
    indent: int
    """Characters before the text that are decoration."""
    continues: bool
    """The text goes on from the line above, without a line break between them."""

    def selected(self, start: int, end: int, selection: RichStyle) -> Strip:
        """The line with its text from `start` to `end` (-1 is all of it) in the style of what is selected."""
        start, end = self.indent + max(0, start), self.indent + (len(self.text) if end == -1 else end)
        segments: list[Segment] = []
        at = 0
        for segment in self.strip:
            text = segment.text
            a, b = min(max(start - at, 0), len(text)), min(max(end - at, 0), len(text))
            for part, chosen in ((text[:a], False), (text[a:b], True), (text[b:], False)):
                if part:
                    under = segment.style + selection if chosen and segment.style else segment.style
                    segments.append(Segment(part, under))
            at += len(text)
        return Strip(segments, self.strip.cell_length)


@dataclass(frozen=True)
class Row:
    """A stretch of text to be wrapped, with what stands before its first and its other lines."""

    content: Content
    first: Content = NOTHING
    rest: Content = NOTHING
    code: bool = False
    """Break anywhere, on the background of code."""


class Ink:
    """The width and the theme that lines are made for."""

    def __init__(self, width: int, theme: Mapping[str, str]) -> None:
        self.width = max(8, width)
        self.text_width = min(self.width - 1, READABLE)
        self.theme = theme
        """The values of the design tokens."""
        self._styles: dict[str, Style] = {}
        self.drawn = 0
        """Characters laid out so far: what drawing costs, told without a clock."""

    def style(self, style: str | Style) -> Style:
        """A style from a string with the theme's names in it."""
        if isinstance(style, Style):
            return style
        found = self._styles.get(style)
        if found is None:
            try:
                found = Style.parse(style, dict(self.theme))
            except Exception:  # Textual's parser raises several kinds; an unknown style is no style
                found = Style.null()
            self._styles[style] = found
        return found

    def lines(self, row: Row, bar: Content, on: str | None = None) -> list[Line]:
        """Wrap a row; each line starts with the bar and ends at the right edge."""
        base = self.style(on or "$foreground on $background")
        inner = self.style("on $code-background") if row.code else None
        made: list[Line] = []
        prefix_width = bar.cell_length + max(row.first.cell_length, row.rest.cell_length)
        width = max(4, self.text_width - prefix_width - (_GOES_ON.cell_length if row.code else 0))
        first = True
        for logical in row.content.split("\n", allow_blank=True):
            self.drawn += len(logical.plain)
            cuts = breaks(logical.plain, width, anywhere=row.code)
            parts = logical.divide(cuts) if cuts else [logical]
            for index, part in enumerate(parts):
                prefix = row.first if first else row.rest
                made.append(self._line(part, bar, prefix, base, inner, index > 0))
                first = False
        return made

    def _line(
        self,
        part: Content,
        bar: Content,
        prefix: Content,
        base: Style,
        inner: Style | None,
        continues: bool,
    ) -> Line:
        segments = self._segments(bar, base) + self._segments(prefix, base)
        indent = len(bar.plain) + len(prefix.plain)
        cells = bar.cell_length + prefix.cell_length
        shown = part.rstrip() if inner is None else part
        under = base if inner is None else base + inner
        if continues and inner is not None:
            segments += self._segments(_GOES_ON, under)
            indent += len(_GOES_ON.plain)
            cells += _GOES_ON.cell_length
        segments += self._segments(shown, under)
        cells += shown.cell_length
        if inner is not None:
            room = self.text_width - cells
            if room > 0:
                segments.append(Segment(" " * room, under.rich_style))
                cells += room
        strip = Strip(segments, cells)
        if cells < self.width:
            strip = strip.extend_cell_length(self.width, base.rich_style)
        elif cells > self.width:
            strip = strip.crop(0, self.width)
        return Line(strip, part.plain, indent, continues)

    def _segments(self, content: Content, base: Style) -> list[Segment]:
        if not content.plain:
            return []
        return [
            Segment(text, (base + style).rich_style if style is not base else base.rich_style)
            for text, style in content.render(base, end="", parse_style=self.style)
        ]


def breaks(text: str, width: int, anywhere: bool = False) -> list[int]:
    """Where to cut a line of text so that no part is wider than `width` cells.

    Cuts come after white space where there is some, else inside a word.
    """
    wide = not text.isascii()
    if (cell_len(text) if wide else len(text)) <= width:
        return []
    cuts: list[int] = []
    start = used = 0
    last_space = -1
    index = 0
    while index < len(text):
        character = text[index]
        cells = cell_len(character) if wide else 1
        # White space may hang over the edge: it is not drawn there.
        if used + cells > width and (anywhere or not character.isspace()) and index > start:
            cut = last_space if not anywhere and last_space > start else index
            cuts.append(cut)
            start = cut
            last_space = -1
            used = cell_len(text[start:index]) if wide else index - start
            continue
        used += cells
        index += 1
        if character.isspace():
            last_space = index
    return cuts
