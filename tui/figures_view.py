"""The figures of the answer and of the processes, put where there is room for them."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from ..app.decoding.stats import AnswerStats
from .resident import resident

if TYPE_CHECKING:
    from .app import SpecchatApp


PANEL_INTERVAL = 0.5
MEMORY_INTERVAL = 2.0


class FiguresView:
    """What was measured last; drawn into the panel, the line of figures and the state line."""

    def __init__(self, app: SpecchatApp) -> None:
        self._app = app
        self.stats = AnswerStats()
        self.speed: float | None = None
        self.context: tuple[int, int] = (0, 0)
        """Tokens in the context, and how many it holds; 0 where that is not known."""
        self.changed = False
        """Whether there is anything that was not drawn."""
        self._due = self._memory_due = 0.0

    def forget(self) -> None:
        """Nothing is measured."""
        self.stats, self.speed = AnswerStats(), None

    def begin_answer(self) -> None:
        """Nothing is measured of this answer yet; what plain decoding gives here is still true."""
        self.stats = AnswerStats(baseline_tokens_per_second=self.stats.baseline_tokens_per_second)
        self.speed = None
        self._app.panel.begin_answer()

    def draw_what_is_due(self, now: float, *, answering: bool, loading: bool) -> None:
        """Draw what changed, but not so often that it takes much of the processor."""
        if self.changed and now >= self._due:
            self._due = now + PANEL_INTERVAL
            self.changed = False
            self.draw(sample=answering)
        if (answering or loading) and now >= self._memory_due:
            self._memory_due = now + MEMORY_INTERVAL
            self.draw_memory()

    def draw(self, sample: bool) -> None:
        """Bring everything up to date; with `sample` the sparklines get a point each."""
        app = self._app
        if sample:
            app.panel.sample(self.stats, self.speed)
        app.panel.figures(self.stats, self.speed)
        app.panel.context(*self.context)
        app.panel.draw()
        app.figures.draw(self.stats, self.speed, *self.context)
        if self.stats.target_passes:
            app.state.set(state=self.stats.state, reason=self.stats.reason)

    def draw_memory(self) -> None:
        """How much the engine's process and this one hold."""
        self._app.panel.memory(resident(self._app.engine.pid), resident(os.getpid()))
        self._app.panel.draw()
