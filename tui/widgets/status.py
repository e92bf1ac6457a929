"""The lines around the prompt: how answers are made, the figures where the panel has no room, the keys."""

from __future__ import annotations

from collections.abc import Sequence

from textual.content import Content

from ...app.decoding.stats import AnswerStats, State
from ...models.text import on_one_line
from .. import figures
from ..registry import BY_NAME, FOOTER
from .lines import Lines

NEARLY_FULL = 0.8
"""From here on the context meter warns."""
MORE_BELOW = "↓ more below, End"


class StateLine(Lines):
    """Drafting or plain, and why; at the right, what is going on."""

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._state: State | None = None
        self._reason = ""
        self._activity = ""
        self._below = False

    def set(
        self,
        *,
        state: State | None = None,
        reason: str | None = None,
        activity: str | None = None,
        below: bool | None = None,
    ) -> None:
        """Change what is given."""
        self._state = state or self._state
        self._reason = self._reason if reason is None else on_one_line(reason)
        self._activity = self._activity if activity is None else on_one_line(activity)
        self._below = self._below if below is None else below
        self.draw()

    def forget(self) -> None:
        """Nothing is loaded that could draft."""
        self._state, self._reason = None, ""

    def on_resize(self) -> None:
        """Use the new width; Textual calls the base class's handler as well."""
        self.draw()

    def draw(self) -> None:
        """Bring the line up to date."""
        width = self.room
        if not width:
            return
        if self._state == "drafting":
            left = Content.assemble(("▶ drafting", "bold $text-success"))
        elif self._state == "plain":
            left = Content.assemble(("■ plain", "bold $text-warning"))
        else:
            left = Content.assemble(("□ not loaded", "$text-muted"))
        if self._reason:
            left = Content.assemble(left, ("  " + self._reason, "$text-muted"))
        right = Content.assemble((MORE_BELOW, "bold $text-accent")) if self._below else Content("")
        if self._activity:
            right = Content.assemble(self._activity, *(["   ", right] if self._below else []))
        room = width - right.cell_length - 2
        left = left.truncate(max(12, room), ellipsis=True)
        gap = max(1, width - left.cell_length - right.cell_length)
        self.show([Content.assemble(left, " " * gap, right)])


class CompactFigures(Lines):
    """The figures that matter most, on one line, for a screen without room for the panel."""

    def draw(self, stats: AnswerStats, tokens_per_second: float | None, used: int, size: int) -> None:
        """Show these figures."""
        full = " nearly full" if size and used >= NEARLY_FULL * size else ""
        parts = [
            f"{figures.rate(tokens_per_second)} tok/s",
            f"accepted {figures.percent(stats.acceptance_rate)}",
            f"speed-up {figures.times(stats.speedup)}",
            f"context {figures.count(used)}/{figures.count(size)}{full}" if size else "context -",
        ]
        self.show([Content(" · ".join(parts))])


class Keys(Lines):
    """The keys, from the registry: as many of the first ones as there is room for."""

    def __init__(self, names: Sequence[str] = FOOTER, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._names = names

    def on_resize(self) -> None:
        """Use the new width; Textual calls the base class's handler as well."""
        parts, width = list[tuple[str, str]](), 0
        for key in (BY_NAME[name] for name in self._names):
            if key.footer:
                entry = [(key.shown, "bold $text-primary"), (f" {key.footer}  ", "$text-muted")]
                width += sum(len(text) for text, _ in entry)
                if width - len("  ") > self.room:
                    break
                parts += entry
        self.show([Content.assemble(*parts).rstrip()])
