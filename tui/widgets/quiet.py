"""A text on the screen that is only drawn when it changes."""

from __future__ import annotations

from textual.content import Content
from textual.widgets import Static


class Quiet(Static):
    """Holds a text; showing the same again costs nothing."""

    def __init__(self, *, id: str | None = None, classes: str | None = None) -> None:
        super().__init__(id=id, classes=classes, markup=False)
        self._shown = Content("")
        self.draws = 0
        """How often the text has changed."""

    def show(self, content: Content) -> None:
        """Show a text; the layout is only made anew where its height changes."""
        if content.is_same(self._shown):
            return
        taller = content.plain.count("\n") != self._shown.plain.count("\n") or not self._shown.plain
        self._shown = content
        self.draws += 1
        self.update(content, layout=taller)
