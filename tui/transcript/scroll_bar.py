"""A scroll bar that is drawn only when it looks different."""

from __future__ import annotations

from textual.geometry import Region
from textual.scrollbar import ScrollBar
from textual.strip import Strip


class StillScrollBar(ScrollBar):
    """Textual draws the whole bar for every line that is added; beside a long text that changes nothing."""

    _seen: object = None
    _drawn: tuple[object, list[Strip]] | None = None

    def refresh(
        self, *regions: Region, repaint: bool = True, layout: bool = False, recompose: bool = False
    ) -> StillScrollBar:
        """Draw it, unless the thumb stays where it is, to the eighth of a cell."""
        looks = self._looks()
        if looks == self._seen and not regions and not layout and not recompose:
            return self
        self._seen = looks
        return super().refresh(*regions, repaint=repaint, layout=layout, recompose=recompose)

    def notify_style_update(self) -> None:
        """Other colours are another look."""
        self._seen = self._drawn = None
        super().notify_style_update()

    def render_lines(self, crop: Region) -> list[Strip]:
        """Its lines, made once for each look."""
        looks = crop, self._looks()
        if self._drawn is None or self._drawn[0] != looks:
            self._drawn = looks, super().render_lines(crop)
        return self._drawn[1]

    def _looks(self) -> tuple[object, ...]:
        size = self.size
        eighths = 8 * size.height / max(1.0, self.window_virtual_size)
        thumb = int(self.position * eighths), int(self.window_size * eighths)
        return size, thumb, self.window_size < self.window_virtual_size, self.grabbed, self.mouse_over
