"""What the transcript is made of: prompts, answers, notices, and the loading of models."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from textual.content import Content

from ...app.decoding.stats import Origin
from ...app.events import LoadProgress, Piece
from ...app.thinking import ThoughtSplitter, split
from .ink import Ink, Line, PrintableText, Row, breaks, printable
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
MOST_CHARACTERS, MOST_LINES = 20_000, 400
"""Of a prompt that are seen: each line takes time to lay out, and a paste may have any number."""


class Entry:
    """One thing in the transcript; it knows its own lines."""

    bar = "$text-disabled"
    on: str | None = None

    def __init__(self) -> None:
        self.lines: list[Line] = []
        self.version = ""
        """Which version it is of a message that has several."""

    def layout(self, ink: Ink, view: View) -> None:
        """Make all lines anew, for a width, a theme and a view."""
        self.lines = [line for row in self.rows(ink, view) for line in ink.lines(row, self._bar(), self.on)]

    def rows(self, ink: Ink, view: View) -> list[Row]:
        """The rows to be wrapped."""
        raise NotImplementedError

    def _bar(self) -> Content:
        return Content(_BAR).stylize(self.bar)


def _beginning(text: str) -> str:
    """As much of a text as can be laid out at once, to the end of a line where there are many."""
    return "".join(text[:MOST_CHARACTERS].splitlines(keepends=True)[:MOST_LINES])


class PromptEntry(Entry):
    """What the user sent."""

    bar = "$primary"
    on = "$foreground on $prompt-background"

    def __init__(self, text: str, mark: str = "") -> None:
        super().__init__()
        self.text = printable(text)
        self._head = _beginning(self.text)
        self.mark = mark
        """What is to be said of it: that it waits, or was not answered."""

    def rows(self, ink: Ink, view: View) -> list[Row]:
        """The text as it was typed; of a very long one how it begins."""
        first = Content("❯ ").stylize("bold $text-primary")
        rows = [Row(Content(self._head), first, Content("  "))]
        if unseen := len(self.text) - len(self._head):
            more = f"… and {unseen:,} characters more, which the model reads as well"
            rows.append(Row(Content(more).stylize("italic $text-muted"), Content("  "), Content("  ")))
        below = printable(" · ".join(part for part in (self.mark, self.version) if part))
        if below:
            rows.append(Row(Content(below).stylize("italic $text-muted"), Content("  "), Content("  ")))
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


class HelpEntry(Entry):
    """Names at the left, and beside them what they stand for, in a column of its own."""

    def __init__(self, lines: Sequence[tuple[Content, Content]]) -> None:
        super().__init__()
        self._lines = lines

    def rows(self, ink: Ink, view: View) -> list[Row]:
        """A row for each line on the screen; a name that is longer than its column has one to itself."""
        widest = max((left.cell_length for left, right in self._lines if right.plain), default=0)
        column = min(widest, ink.text_width // 3)
        width = max(8, ink.text_width - len(_BAR) - column)
        rows: list[Row] = []
        for left, right in self._lines:
            alone = not right.plain or left.cell_length > column
            if alone:
                rows.append(Row(left.rstrip()))
            parts = right.divide(breaks(right.plain, width)) if right.plain else []
            for place, part in enumerate(parts):
                before = Content("") if alone or place else left
                gap = " " * (column - before.cell_length)
                rows.append(Row(Content.assemble(before, gap, part.rstrip())))
        return rows


class ContextEntry(Entry):
    """From where on the model still sees the talk."""

    bar = "$warning"

    def __init__(self, unseen: int) -> None:
        super().__init__()
        self.unseen = unseen

    def rows(self, ink: Ink, view: View) -> list[Row]:
        """One line, between what it does not see and what it sees."""
        messages = "message above no longer fits" if self.unseen == 1 else "messages above no longer fit"
        text = f"↑ {self.unseen} {messages} the context; the model sees the talk from here on"
        return [Row(Content(text).stylize("bold $text-warning"))]


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
    """An answer, written or being written; what the model thought before it is folded away."""

    bar = "$secondary"

    def __init__(self) -> None:
        super().__init__()
        self.pieces: list[Piece] = []
        self.unfolded = False
        self.in_thought = False
        """The answer begins inside a thought, whose opening is in the prompt."""
        self._final: str | None = None
        self._before = 0
        """Characters that were there before the answer was gone on with."""
        self._closing: list[Content] = []
        """What became of it, and its figures."""
        self._live: Live | None = None
        self._fed = 0
        self._view: View = "markdown"
        self._splitter: ThoughtSplitter | None = None
        self._thinking = Flow()
        self._thought_tokens = 0
        self._thought_ended = False
        self._head: list[Line] = []
        """The lines of what was thought, while the answer is being written."""

    @property
    def text(self) -> str:
        """The answer so far, or as it ended."""
        return self._final if self._final is not None else "".join(piece.text for piece in self.pieces)

    @property
    def new_text(self) -> str:
        """What has come since the answer was begun or gone on with."""
        return self.text[self._before :]

    @property
    def finished(self) -> bool:
        """Whether no more text will come."""
        return self._final is not None

    def take(self, pieces: Sequence[Piece]) -> None:
        """Add text to an answer that is being written."""
        self.pieces.extend(pieces)

    def reopen(self) -> None:
        """More text comes to an answer that has ended."""
        text = self.text
        if "".join(piece.text for piece in self.pieces) != text:
            self.pieces = [Piece(text, "target")]
        self._before, self._final = len(text), None
        self._closing.clear()

    def finish(self, text: str, mark: str = "", figures: str = "") -> None:
        """End the answer with its exact text, what became of it, and its figures."""
        self._final = text
        self._live = None
        self._closing.clear()
        if mark:
            self._closing.append(Content(printable(f"■ {mark}")).stylize("bold $text-warning"))
        if figures:
            self._closing.append(Content(figures).stylize("$text-disabled"))

    def rows(self, ink: Ink, view: View) -> list[Row]:
        """The whole answer."""
        if view == "origin":
            whole = PrintableText()
            parts = [(whole.take(piece.text), ORIGIN_STYLES[piece.origin]) for piece in self.pieces]
            text = Content.assemble(*(parts or [printable(self.text)])).rstrip()
            rows = [Row(text)] if text.plain else []
        else:
            parts = split(self.text, self.in_thought)
            thought = "\n\n".join(part.text.strip() for part in parts if part.kind == "thought")
            said = "".join(part.text for part in parts if part.kind == "said")
            rows = self._thought_rows(thought)
            answer = markdown_rows(printable(said), ink.text_width - 2)
            rows += [Row(Content("")), *answer] if rows and answer else answer
        closing = [*self._closing]
        if self.version:
            closing.append(Content(self.version).stylize("italic $text-muted"))
        if closing:
            rows += [*([Row(Content(""))] if rows else []), Row(Content("  ").join(closing))]
        return rows

    def _thought_rows(self, thought: str) -> list[Row]:
        if not thought.strip():
            return []
        size = f"{self._thought_tokens} tokens" if self._thought_tokens else f"{len(thought.split())} words"
        rows = [self._thought_header(f"thought for {size}")]
        if self.unfolded:
            rows.append(Row(Content(printable(thought.strip())).stylize("italic $text-muted")))
        return rows

    def _thought_header(self, what: str) -> Row:
        sign, does = ("▾", "folds") if self.unfolded else ("▸", "unfolds")
        return Row(
            Content.assemble((f"{sign} {what}", "$text-muted"), (f"  Ctrl+T {does}", "$text-disabled"))
        )

    def layout(self, ink: Ink, view: View) -> None:
        """Make all lines anew."""
        if self.finished:
            super().layout(ink, view)
            return
        self._view = view
        self._live = Flow() if view == "origin" else LiveMarkdown()
        self._splitter = None if view == "origin" else ThoughtSplitter(self.in_thought)
        self._thinking = Flow()
        self._fed = self._thought_tokens = 0
        self._thought_ended = False
        self._head = []
        self.lines = []
        self.grow(ink)

    def grow(self, ink: Ink) -> int:
        """Bring the lines up to date with the text; return the first one that changed."""
        if self._live is None:
            return len(self.lines)
        thought = self._feed()
        if thought is None:
            # All that was shown turned out to be a thought.
            self.in_thought = True
            self.layout(ink, self._view)
            return 0
        kept, lines = self._live.draw(ink, self._bar())
        first = len(self._head) + kept
        if thought:
            first = 0
            body = self.lines[len(self._head) :]
            self._draw_thought(ink)
            self.lines = [*self._head, *body]
            kept += len(self._head)
        else:
            kept = first
        self.lines[kept:] = lines or (ink.lines(Row(Content("…")), self._bar()) if kept == 0 else [])
        return first

    def _feed(self) -> bool | None:
        """Hand the new pieces on; say whether any of it was thought, `None` if all before was."""
        assert self._live is not None
        thought = False
        for piece in self.pieces[self._fed :]:
            style = ORIGIN_STYLES[piece.origin]
            if self._splitter is None:
                self._live.feed(piece.text, style)
                continue
            for kind, text in self._splitter.feed(piece.text):
                if kind == "was_thought":
                    return None
                if kind == "thought":
                    self._thinking.feed(text, "italic $text-muted")
                    self._thought_tokens += 1
                    thought = True
                else:
                    thought = thought or (self._thought_tokens > 0 and not self._thought_ended)
                    self._thought_ended = True
                    self._live.feed(text, style)
        self._fed = len(self.pieces)
        return thought

    def _draw_thought(self, ink: Ink) -> None:
        what = "thought for" if self._thought_ended else "thinking,"
        header = ink.lines(self._thought_header(f"{what} {self._thought_tokens} tokens"), self._bar())
        kept, lines = self._thinking.draw(ink, self._bar())
        flow = [*self._head[1 : 1 + kept], *lines] if self.unfolded else []
        gap = ink.lines(Row(Content("")), self._bar()) if self._thought_ended else []
        self._head = [*header, *flow, *gap]
