"""The panel at the right: speed, acceptance, context, memory, and what is loaded."""

from __future__ import annotations

from collections import deque

from textual.content import Content

from ...app.decoding.stats import AnswerStats
from ...app.events import Loaded, ModelInfo
from ...models.text import on_one_line
from .. import figures
from .lines import Lines
from .status import NEARLY_FULL

INNER = 30
HISTORY = INNER
POSITIONS = 8
"""Draft positions that get a bar."""
CELL, GAP = 21, 2
"""Cells that a figure takes at the least, and between two of them."""
NOTHING = Content("")
_DIM = "$text-muted"
_FAINT = "$text-disabled"


def _pair(label: str, value: str, styles: tuple[str, str] = (_DIM, ""), width: int = INNER) -> Content:
    gap = " " * max(1, width - len(label) - len(value))
    return Content.assemble((label, styles[0]), gap, (value, styles[1]))


def _title(text: str) -> Content:
    return Content.assemble((text, "bold $text-primary"))


class Course:
    """How speed and acceptance went, a point at a time, for the sparklines."""

    def __init__(self) -> None:
        self._speeds: deque[float] = deque(maxlen=HISTORY)
        self._rates: deque[float] = deque(maxlen=HISTORY)
        self._drafted = self._accepted = 0

    def begin_answer(self) -> None:
        """A new answer counts from nothing."""
        self._drafted = self._accepted = 0

    def sample(self, stats: AnswerStats, tokens_per_second: float | None) -> None:
        """Add a point to each: the speed now, and the acceptance since the last point."""
        if tokens_per_second is not None:
            self._speeds.append(tokens_per_second)
        if stats.drafted > self._drafted:
            share = (stats.accepted - self._accepted) / (stats.drafted - self._drafted)
            self._rates.append(share)
            self._drafted, self._accepted = stats.drafted, stats.accepted

    def speeds(self, width: int = INNER) -> Content:
        """The sparkline of the speeds."""
        return Content(figures.sparkline(self._speeds, width)).stylize("$primary 70%")

    def rates(self, width: int = INNER) -> Content:
        """The sparkline of the acceptance."""
        return Content(figures.sparkline(self._rates, width, top=1.0)).stylize("$secondary 80%")


class Panel(Lines):
    """Shows figures as they are measured; the app tells it when."""

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(left=2, right=2, id=id)
        self._course = Course()
        self._sections: dict[str, list[Content]] = {}
        self.figures(AnswerStats(), None)
        self.context(0, 0)
        self.memory(None, None)
        self.models(None)

    def on_mount(self) -> None:
        """Everything is there from the start, not measured."""
        self.draw()

    def draw(self) -> None:
        """Bring what is seen up to date."""
        lines = [NOTHING]
        for section in self._sections.values():
            lines += [*section, NOTHING]
        self.show(lines)

    def begin_answer(self) -> None:
        """A new answer counts from nothing."""
        self._course.begin_answer()

    def sample(self, stats: AnswerStats, tokens_per_second: float | None) -> None:
        """Add a point to each sparkline: the speed now, and the acceptance since the last point."""
        self._course.sample(stats, tokens_per_second)

    def figures(self, stats: AnswerStats, tokens_per_second: float | None) -> None:
        """Take the figures of an answer."""
        speedup = figures.times(stats.speedup)
        speed = f"{figures.rate(tokens_per_second)} tok/s"
        self._show(
            "speed",
            _title("Speed"),
            _pair(speed, speedup, ("bold", "bold $text-success")),
            self._course.speeds(),
            _pair("plain baseline", f"{figures.rate(stats.baseline_tokens_per_second)} tok/s"),
            _pair("first token after", figures.seconds(stats.ttft_s)),
        )
        rate = figures.percent(stats.acceptance_rate)
        of = f"{stats.accepted} of {stats.drafted}" if stats.drafted else ""
        self._show(
            "acceptance",
            _title("Acceptance"),
            _pair(rate, of, ("bold", _DIM)),
            self._course.rates(),
            _pair("tokens per pass", figures.plain_number(stats.tokens_per_pass)),
            *self._positions(stats),
        )

    def _positions(self, stats: AnswerStats) -> list[Content]:
        rows: list[Content] = []
        width = INNER - 9
        for position, tested in enumerate(stats.tested_by_position[:POSITIONS]):
            by_position = stats.accepted_by_position
            accepted = by_position[position] if position < len(by_position) else 0
            share = accepted / tested if tested else None
            filled = "━" * round((share or 0.0) * width)
            rows.append(
                Content.assemble(
                    (f"{position + 1:>2} ", _DIM),
                    (filled, "$secondary"),
                    ("─" * (width - len(filled)), _FAINT),
                    f"{figures.percent(share):>6}",
                )
            )
        return rows

    def context(self, used: int, size: int) -> None:
        """Take how full the context is."""
        if not size:
            self._show("context", _title("Context"), Content(figures.NOT_MEASURED))
            return
        share = used / size
        full = share >= NEARLY_FULL
        done = round(min(1.0, share) * INNER)
        amount = f"{figures.count(used)} of {figures.count(size)}"
        note = f"{figures.percent(share)}{' nearly full' if full else ''}"
        self._show(
            "context",
            _title("Context"),
            Content.assemble(
                ("━" * done, "$warning" if full else "$primary"), ("─" * (INNER - done), _FAINT)
            ),
            _pair(amount, note, ("", "bold $text-warning" if full else _DIM)),
        )

    def memory(self, engine: int | None, own: int | None) -> None:
        """Take how much memory the engine and the screen hold."""
        self._show(
            "memory",
            _title("Memory"),
            _pair(f"engine {figures.size(engine)}", f"screen {figures.size(own)}", ("", "")),
        )

    def models(self, loaded: Loaded | None) -> None:
        """Take what is loaded."""
        if loaded is None:
            self._show("models", _title("Models"), Content.assemble(("none loaded", _DIM)))
            return
        lines = [_title("Models"), *self._model("target", loaded.target)]
        lines += self._model("draft", loaded.draft) if loaded.draft else [_pair("draft", "none")]
        lines.append(_pair("threads", str(loaded.threads)))
        lines.append(_pair("on", on_one_line(", ".join(loaded.devices))[: INNER - 3] or "CPU"))
        self._show("models", *lines)

    def _model(self, role: str, model: ModelInfo) -> list[Content]:
        name = on_one_line(model.name)
        name = name if len(name) <= INNER - 7 else name[: INNER - 8] + "…"
        facts = f"{model.quantization} · {figures.size(model.size_bytes)}"
        return [
            Content.assemble((f"{role:<7}", _DIM), name),
            Content.assemble(" " * 7, (on_one_line(facts)[: INNER - 7], _DIM)),
        ]

    def _show(self, section: str, *lines: Content) -> None:
        self._sections[section] = list(lines)


class PairFigures(Lines):
    """The figures of one answer in two or three lines, for a screen that shows two answers."""

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._course = Course()
        self._last: tuple[AnswerStats, float | None, int, int] = AnswerStats(), None, 0, 0

    def on_resize(self) -> None:
        """Use the new width; Textual calls the base class's handler as well."""
        self.draw(*self._last)

    def begin_answer(self) -> None:
        """Nothing is measured yet."""
        self._course = Course()
        self.draw(AnswerStats(), None, 0, 0)

    def sample(self, stats: AnswerStats, tokens_per_second: float | None) -> None:
        """Add a point to each sparkline."""
        self._course.sample(stats, tokens_per_second)

    def draw(self, stats: AnswerStats, tokens_per_second: float | None, used: int, size: int) -> None:
        """Show these figures, as many beside each other as there is room for."""
        self._last = stats, tokens_per_second, used, size
        if not self.room:
            return
        columns = max(1, min(3, (self.room + GAP) // (CELL + GAP)))
        width = (self.room - GAP * (columns - 1)) // columns
        full = bool(size) and used >= NEARLY_FULL * size
        of = f" of {stats.drafted}" if stats.drafted else ""
        context = f"{figures.percent(used / size)} of {figures.count(size)}" if size else figures.NOT_MEASURED
        speed = f"{figures.rate(tokens_per_second)} tok/s"
        cells = [
            _pair(speed, figures.times(stats.speedup), ("bold", "bold $text-success"), width),
            _pair("accepted", f"{figures.percent(stats.acceptance_rate)}{of}", width=width),
            _pair("first token", figures.seconds(stats.ttft_s), width=width),
            _pair("tokens per pass", figures.plain_number(stats.tokens_per_pass), width=width),
            _pair("plain", f"{figures.rate(stats.baseline_tokens_per_second)} tok/s", width=width),
            _pair("context", context, (_DIM, "bold $text-warning" if full else ""), width),
        ]
        courses = [self._course.speeds(width), self._course.rates(width)][:columns]
        rows = [cells[first : first + columns] for first in range(0, len(cells), columns)] + [courses]
        gap = Content(" " * GAP)
        self.show([gap.join(cell.truncate(width, pad=True) for cell in row) for row in rows])
        self.styles.height = len(rows)
