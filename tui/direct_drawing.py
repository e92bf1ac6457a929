"""Draws what changed straight from the widgets that show it."""

from __future__ import annotations

from rich.console import Console, ConsoleOptions, RenderResult
from rich.control import Control
from textual._compositor import Compositor, CompositorUpdate
from textual.geometry import Region
from textual.strip import Strip
from textual.widget import Widget

Piece = tuple[int, int, Strip]
"""Column, line, and what stands there."""


class PiecesUpdate(CompositorUpdate):
    """Stretches of lines, each put in its place."""

    def __init__(self, pieces: list[Piece]) -> None:
        self.pieces = pieces

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        for x, y, strip in self.pieces:
            yield Control.move_to(x, y).segment
            yield from strip

    def render_segments(self, console: Console) -> str:
        """What a terminal is sent; a strip that was drawn before has its text ready."""
        return "".join(f"\x1b[{y + 1};{x + 1}H{strip.render(console)}" for x, y, strip in self.pieces)


class DirectCompositor(Compositor):
    """Textual's compositor, which for every update cuts all lines of all widgets at each other's edges.

    A text that scrolls is such an update for every line that is added. Here the widgets are asked from the
    front to the back, each only for what is still to be drawn, until nothing is.
    """

    def render_partial_update(self) -> PiecesUpdate | None:  # pyright: ignore[reportIncompatibleMethodOverride]
        """What to draw, or `None` where nothing changed."""
        screen = self.size.region
        open_: dict[int, list[tuple[int, int]]] = {}
        for y, start, end in self._regions_to_spans(self._dirty_regions):
            start, end = max(start, 0), min(end, screen.right)
            if 0 <= y < screen.bottom and start < end:
                open_.setdefault(y, []).append((start, end))
        self._dirty_regions.clear()
        pieces: list[Piece] = []
        for widget, (region, clip) in self.visible_widgets.items():
            if not open_:
                break
            self._take(widget, region, region.intersection(clip).intersection(screen), open_, pieces)
        return PiecesUpdate(pieces) if pieces else None

    @staticmethod
    def _take(
        widget: Widget,
        region: Region,
        seen: Region,
        open_: dict[int, list[tuple[int, int]]],
        into: list[Piece],
    ) -> None:
        """Put a widget's part of the open stretches of lines `into` the pieces, and close them."""
        lines: list[Strip] | None = None
        left, right = seen.column_span
        for y in seen.line_range:
            if y not in open_:
                continue
            still_open: list[tuple[int, int]] = []
            for start, end in open_[y]:
                first, last = max(start, left), min(end, right)
                if first >= last:
                    still_open.append((start, end))
                    continue
                if lines is None:
                    lines = widget.render_lines(seen.translate(-region.offset))
                strip = lines[y - seen.y]
                whole = first == left and last == left + strip.cell_length
                into.append((first, y, strip if whole else strip.crop(first - left, last - left)))
                still_open += [part for part in ((start, first), (last, end)) if part[0] < part[1]]
            if still_open:
                open_[y] = still_open
            else:
                del open_[y]
