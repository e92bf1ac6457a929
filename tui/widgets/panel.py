"""The panel at the right: speed, acceptance, context, memory, and what is loaded."""

from __future__ import annotations

from collections import deque

from textual.content import Content

from ...app.decoding.stats import AnswerStats
from ...app.events import Loaded, ModelInfo
from .. import figures
from .lines import Lines
from .status import NEARLY_FULL

INNER = 30
HISTORY = INNER
POSITIONS = 8
"""Draft positions that get a bar."""
NOTHING = Content("")
_DIM = "$text-muted"
_FAINT = "$text-disabled"


def _pair(label: str, value: str, styles: tuple[str, str] = (_DIM, "")) -> Content:
    gap = " " * max(1, INNER - len(label) - len(value))
    return Content.assemble((label, styles[0]), gap, (value, styles[1]))


def _title(text: str) -> Content:
    return Content.assemble((text, "bold $text-primary"))


class Panel(Lines):
    """Shows figures as they are measured; the app tells it when."""

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(left=2, right=2, id=id)
        self._speeds: deque[float] = deque(maxlen=HISTORY)
        self._rates: deque[float] = deque(maxlen=HISTORY)
        self._drafted = 0
        self._accepted = 0
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
        self._drafted = self._accepted = 0

    def sample(self, stats: AnswerStats, tokens_per_second: float | None) -> None:
        """Add a point to each sparkline: the speed now, and the acceptance since the last point."""
        if tokens_per_second is not None:
            self._speeds.append(tokens_per_second)
        if stats.drafted > self._drafted:
            share = (stats.accepted - self._accepted) / (stats.drafted - self._drafted)
            self._rates.append(share)
            self._drafted, self._accepted = stats.drafted, stats.accepted

    def figures(self, stats: AnswerStats, tokens_per_second: float | None) -> None:
        """Take the figures of an answer."""
        speedup = figures.times(stats.speedup)
        speed = f"{figures.rate(tokens_per_second)} tok/s"
        self._show(
            "speed",
            _title("Speed"),
            _pair(speed, speedup, ("bold", "bold $text-success")),
            Content(figures.sparkline(self._speeds, INNER)).stylize("$primary 70%"),
            _pair("plain baseline", f"{figures.rate(stats.baseline_tokens_per_second)} tok/s"),
            _pair("first token after", figures.seconds(stats.ttft_s)),
        )
        rate = figures.percent(stats.acceptance_rate)
        of = f"{stats.accepted} of {stats.drafted}" if stats.drafted else ""
        self._show(
            "acceptance",
            _title("Acceptance"),
            _pair(rate, of, ("bold", _DIM)),
            Content(figures.sparkline(self._rates, INNER, top=1.0)).stylize("$secondary 80%"),
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
        lines.append(_pair("on", ", ".join(loaded.devices)[: INNER - 3] or "CPU"))
        self._show("models", *lines)

    def _model(self, role: str, model: ModelInfo) -> list[Content]:
        name = model.name if len(model.name) <= INNER - 7 else model.name[: INNER - 8] + "…"
        facts = f"{model.quantization} · {figures.size(model.size_bytes)}"
        return [
            Content.assemble((f"{role:<7}", _DIM), name),
            Content.assemble(" " * 7, (facts[: INNER - 7], _DIM)),
        ]

    def _show(self, section: str, *lines: Content) -> None:
        self._sections[section] = list(lines)
