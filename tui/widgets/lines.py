"""Lines of text of which only those that change are drawn."""

from __future__ import annotations

from collections.abc import Sequence

from rich.segment import Segment
from textual.color import Color
from textual.content import Content
from textual.geometry import Region
from textual.strip import Strip
from textual.style import Style
from textual.widget import Widget


class Lines(Widget):
    """Shows lines of text, cut at the right edge; a line that stays the same costs nothing.

    It draws without Textual's cache of styled lines, so it takes a background and a colour from the
    style sheet, but neither borders nor padding: `left` and `right` are its margins.
    """

    ALLOW_SELECT = False

    def __init__(self, *, left: int = 3, right: int = 2, id: str | None = None) -> None:
        super().__init__(id=id)
        self._left = left
        self._right = right
        self._shown: list[Content] = []
        self._strips: dict[int, Strip] = {}
        """Lines as they are drawn, through the app's filters."""
        self._styles: dict[str, Style] = {}
        self._ground: tuple[Style, Color] | None = None
        """What every line starts from, and what is behind it."""
        self.drawn_lines = 0
        """How many lines have changed so far."""

    @property
    def room(self) -> int:
        """Cells for a line of text."""
        return max(0, self.size.width - self._left - self._right)

    @property
    def text(self) -> str:
        """What is shown, without its styles."""
        return "\n".join(line.plain for line in self._shown)

    def show(self, lines: Sequence[Content]) -> None:
        """Show these lines from the top."""
        changed = [
            y
            for y in range(max(len(lines), len(self._shown)))
            if y >= len(lines) or y >= len(self._shown) or not lines[y].is_same(self._shown[y])
        ]
        self._shown = list(lines)
        if not changed:
            return
        self.drawn_lines += len(changed)
        for y in changed:
            self._strips.pop(y, None)
        self.refresh(*[Region(0, y, self.size.width, 1) for y in changed])

    def on_resize(self) -> None:
        """Every line has a new width."""
        self._strips.clear()

    def notify_style_update(self) -> None:
        """Every line has new colours."""
        super().notify_style_update()
        self._strips.clear()
        self._styles.clear()
        self._ground = None

    def render_line(self, y: int) -> Strip:
        """One line, made once."""
        strip = self._strips.get(y)
        if strip is None:
            strip = self._strips[y] = self._make(self._shown[y] if y < len(self._shown) else Content(""))
        return strip

    def render_lines(self, crop: Region) -> list[Strip]:
        """The lines in a part of the widget."""
        strips = [self._strips.get(y) or self.render_line(y) for y in crop.line_range]
        if crop.column_span != (0, self.size.width):
            strips = [strip.crop(*crop.column_span) for strip in strips]
        return strips

    def _make(self, content: Content) -> Strip:
        if self._ground is None:
            self._ground = self.visual_style, self.background_colors[1]
        base, background = self._ground
        blank = base.rich_style
        segments = [Segment(" " * self._left, blank)]
        content = content.truncate(self.room, ellipsis=True)
        for text, style in content.render(base, end="", parse_style=self._style):
            segments.append(Segment(text, (base + style).rich_style))
        strip = Strip(segments).adjust_cell_length(self.size.width, blank)
        for each in self.get_line_filters():
            strip = strip.apply_filter(each, background)
        return strip

    def _style(self, style: str | Style) -> Style:
        if isinstance(style, Style):
            return style
        if style not in self._styles:
            self._styles[style] = Style.parse(style)
        return self._styles[style]
