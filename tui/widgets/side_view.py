"""One side of a comparison: what answers, how it goes, and its answer."""

from __future__ import annotations

import time

from textual import on
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.content import Content

from ...app.decoding.stats import AnswerStats
from ...app.events import Event, Failed, Finished, Loaded, LoadProgress, PrefillProgress, Progress
from .. import figures, texts
from ..transcript.entries import AnswerEntry, NoticeEntry
from ..transcript.ink import printable
from ..transcript.widget import Transcript
from .lines import Lines
from .panel import PairFigures
from .status import StateLine

FIGURES_INTERVAL = 0.5


class SideView(Vertical):
    """Shows one contender's answer as the chat shows its own."""

    def __init__(self, side: str) -> None:
        """`side` is "left" or "right"."""
        super().__init__(id=side)
        self._side = side
        self.waiting = False
        """It has not had its turn."""
        self._answer: AnswerEntry | None = None
        self._stats = AnswerStats()
        self._speed: float | None = None
        self._room_used = (0, 0)
        self._grown = False
        self._figures_due: float | None = None
        self._title = Lines(id="side-title")
        self.state = StateLine()
        self.figures = PairFigures()
        self.transcript = Transcript()

    def compose(self) -> ComposeResult:
        """From the top: who it is, what is going on, the figures, the answer."""
        yield self._title
        yield self.state
        yield self.figures
        yield self.transcript

    def introduce(self, contender: str, runs: int, median: float | None) -> None:
        """Say who answers here, and what it gave so far."""
        parts: list[str | tuple[str, str]] = [
            (f"{self._side:<5}  ", "bold $text-primary"),
            (printable(contender), "bold"),
        ]
        if runs > 1:
            parts.append((f"  median of {runs}: {figures.rate(median)} tok/s", "$text-muted"))
        self._title.show([Content.assemble(*parts)])

    def wait(self, text: str) -> None:
        """Nothing is to be seen here yet, and this is why."""
        self._clear()
        self.waiting = True
        self.transcript.show([NoticeEntry(text)])
        self.state.set(activity=text)

    def begin(self) -> None:
        """The side has its turn."""
        self._clear()
        self._answer = AnswerEntry()
        self._answer.unfolded = self.transcript.thoughts
        self.transcript.show([self._answer])
        self.transcript.answering = True
        self.state.set(activity="getting ready")

    def _clear(self) -> None:
        self.waiting = False
        self._answer = None
        self._stats, self._speed, self._room_used = AnswerStats(), None, (0, 0)
        self._figures_due = None
        self.figures.begin_answer()

    def take(self, event: Event) -> None:
        """One event of this side's load or answer."""
        match event:
            case LoadProgress():
                self.state.set(activity=f"loading the {event.role}, {100 * event.fraction:.0f} %")
            case Loaded():
                self.state.set(state=event.state, reason=event.reason, activity="reading the prompt")
            case PrefillProgress():
                self.state.set(activity=texts.prefill(event))
            case Progress():
                self._progress(event)
            case Finished():
                self._measured(event.stats, event.stats.tokens_per_second, event)
                self._end(event.text, texts.MARKS[event.reason], texts.answer_figures(event.stats))
                self.state.set(activity="done" if event.reason != "cancelled" else "stopped")
            case Failed():
                self.fail(event.message)
            case _:
                pass

    def fail(self, message: str) -> None:
        """Say what went wrong; what has come of the answer stays."""
        if self._answer is not None and not self._answer.text:
            self.transcript.drop(self._answer)
            self._answer = None
        self._end(self._answer.text if self._answer else "", "failed", "")
        self.transcript.add(NoticeEntry(message, "error"))
        self.state.set(activity="failed")

    def end(self, text: str) -> None:
        """Nothing more comes on this side, whatever there is."""
        if self._answer is not None and not self._answer.finished:
            self._end(self._answer.text, text, "")
        self.state.set(activity=text)

    def draw(self, now: float) -> None:
        """Draw what has changed, the figures less often than the text."""
        if self._grown and self._answer is not None:
            self._grown = False
            self.transcript.grow(self._answer)
        if self._figures_due is not None and now >= self._figures_due:
            self._figures_due = None
            self.figures.sample(self._stats, self._speed)
            self._draw_figures()

    def _progress(self, event: Progress) -> None:
        if self._answer is None:
            return
        if event.pieces:
            if not self._answer.pieces:
                self.state.set(activity=texts.ANSWERING)
            self._answer.in_thought = event.in_thought or self._answer.in_thought
            self._answer.take(event.pieces)
            self._grown = True
        self._measured(event.stats, event.live_tokens_per_second, event)
        if self._figures_due is None:
            self._figures_due = time.monotonic() + FIGURES_INTERVAL

    def _measured(self, stats: AnswerStats, speed: float | None, event: Progress | Finished) -> None:
        self._stats, self._speed = stats, speed
        self._room_used = (event.context_used, event.context_size)

    def _end(self, text: str, mark: str, said: str) -> None:
        self.transcript.answering = False
        self._grown = False
        self._figures_due = None
        if self._answer is not None:
            self._answer.finish(text, mark, said)
            self.transcript.changed(self._answer)
        self._draw_figures()

    def _draw_figures(self) -> None:
        self.figures.draw(self._stats, self._speed, *self._room_used)
        if self._stats.target_passes:
            self.state.set(state=self._stats.state, reason=self._stats.reason)

    @on(Transcript.FollowChanged)
    def _follow_changed(self, message: Transcript.FollowChanged) -> None:
        message.stop()
        self.state.set(below=not message.following)
