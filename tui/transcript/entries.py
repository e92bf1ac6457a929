"""What the transcript is made of: prompts, answers, notices, and the loading of models."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from textual.content import Content

from ...app.decoding.stats import Origin
from ...app.events import LoadProgress, Piece
from .ink import Ink, Line, Row, printable
from .live import Flow, Live, LiveMarkdown
from .markdown import markdown_rows

View = Literal["markdown", "origin"]
NoticeKind = Literal["info", "warning", "error"]

ORIGIN_STYLES: dict[Origin, str] = {
    "target": "$text",
    "accepted": "underline $text-success",
    "correction": "bold $text-warning",
}
_BAR = "▎ "


class Entry:
    """One thing in the transcript; it knows its own lines."""

    bar = "$text-disabled"
    on: str | None = None

    def __init__(self) -> None:
        self.lines: list[Line] = []

    def layout(self, ink: Ink, view: View) -> None:
        """Make all lines anew, for a width, a theme and a view."""
        self.lines = [line for row in self.rows(ink, view) for line in ink.lines(row, self._bar(), self.on)]

    def rows(self, ink: Ink, view: View) -> list[Row]:
        """The rows to be wrapped."""
        raise NotImplementedError

    def _bar(self) -> Content:
        return Content(_BAR).stylize(self.bar)


class PromptEntry(Entry):
    """What the user sent."""

    bar = "$primary"
    on = "$foreground on $prompt-background"

    def __init__(self, text: str, mark: str = "") -> None:
        super().__init__()
        self.text = printable(text)
        self.mark = mark
        """What is to be said of it: that it waits, or was not answered."""

    def rows(self, ink: Ink, view: View) -> list[Row]:
        """The text as it was typed."""
        first = Content("❯ ").stylize("bold $text-primary")
        rows = [Row(Content(self.text), first, Content("  "))]
        if self.mark:
            rows.append(Row(Content(self.mark).stylize("italic $text-muted"), Content("  "), Content("  ")))
        return rows


class NoticeEntry(Entry):
    """Something specchat has to say."""

    def __init__(self, content: str | Content, kind: NoticeKind = "info") -> None:
        super().__init__()
        self.kind: NoticeKind = kind
        self.content = content if isinstance(content, Content) else Content(printable(content))
        self.bar = {"info": "$text-disabled", "warning": "$warning", "error": "$error"}[kind]

    def rows(self, ink: Ink, view: View) -> list[Row]:
        """The notice, with a sign that tells its kind without colour."""
        sign, style = {
            "info": ("", "$text-muted"),
            "warning": ("! ", "bold $text-warning"),
            "error": ("✗ ", "bold $text-error"),
        }[self.kind]
        content = self.content.stylize_before("$text-muted") if self.kind == "info" else self.content
        return [Row(content, Content(sign).stylize(style), Content(" " * len(sign)))]


class LoadingEntry(Entry):
    """How far each model's weights have been read."""

    def __init__(self) -> None:
        super().__init__()
        self._progress: dict[str, LoadProgress] = {}
        self.message = "starting"

    def take(self, progress: LoadProgress) -> None:
        """Note how far a model is."""
        self._progress[progress.role] = progress

    def rows(self, ink: Ink, view: View) -> list[Row]:
        """A bar for each model."""
        if not self._progress:
            return [Row(Content(self.message).stylize("$text-muted"))]
        room = max(8, min(32, ink.text_width - 44))
        rows: list[Row] = []
        for progress in self._progress.values():
            done = round(progress.fraction * room)
            name = printable(progress.name)
            name = name if len(name) <= 25 else name[:24] + "…"
            rows.append(
                Row(
                    Content.assemble(
                        (f"{progress.role:<7}", "$text-muted"),
                        ("━" * done, "$primary"),
                        ("─" * (room - done), "$text-disabled"),
                        f"{100 * progress.fraction:>5.0f} %  ",
                        (name, "$text-muted"),
                    )
                )
            )
        return rows


class AnswerEntry(Entry):
    """An answer, written or being written."""

    bar = "$secondary"

    def __init__(self) -> None:
        super().__init__()
        self.pieces: list[Piece] = []
        self._final: str | None = None
        self._closing: tuple[Row, ...] = ()
        self._live: Live | None = None
        self._fed = 0

    @property
    def text(self) -> str:
        """The answer so far, or as it ended."""
        return self._final if self._final is not None else "".join(piece.text for piece in self.pieces)

    @property
    def finished(self) -> bool:
        """Whether no more text will come."""
        return self._final is not None

    def take(self, pieces: Sequence[Piece]) -> None:
        """Add text to an answer that is being written."""
        self.pieces.extend(pieces)

    def finish(self, text: str, mark: str = "", figures: str = "") -> None:
        """End the answer with its exact text, what became of it, and its figures."""
        self._final = text
        self._live = None
        parts: list[Content] = []
        if mark:
            parts.append(Content(f"■ {mark}").stylize("bold $text-warning"))
        if figures:
            parts.append(Content(figures).stylize("$text-disabled"))
        self._closing = (Row(Content("  ").join(parts)),) if parts else ()

    def rows(self, ink: Ink, view: View) -> list[Row]:
        """The whole answer."""
        if view == "origin":
            parts = [(printable(piece.text), ORIGIN_STYLES[piece.origin]) for piece in self.pieces]
            text = Content.assemble(*(parts or [printable(self.text)])).rstrip()
            rows = [Row(text)] if text.plain else []
        else:
            rows = markdown_rows(printable(self.text), ink.text_width - 2)
        if self._closing:
            rows += [Row(Content("")), *self._closing] if rows else self._closing
        return rows

    def layout(self, ink: Ink, view: View) -> None:
        """Make all lines anew."""
        if self.finished:
            super().layout(ink, view)
            return
        self._live = Flow() if view == "origin" else LiveMarkdown()
        self._fed = 0
        self.lines = []
        self.grow(ink)

    def grow(self, ink: Ink) -> int:
        """Bring the lines up to date with the text; return the first one that changed."""
        if self._live is None:
            return len(self.lines)
        for piece in self.pieces[self._fed :]:
            self._live.feed(piece.text, ORIGIN_STYLES[piece.origin])
        self._fed = len(self.pieces)
        kept, lines = self._live.draw(ink, self._bar())
        self.lines[kept:] = lines or (ink.lines(Row(Content("…")), self._bar()) if kept == 0 else [])
        return kept
