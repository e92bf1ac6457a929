"""An answer's lines while it is being written: the cost of a token grows with neither answer nor block."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Protocol

from textual.content import Content

from .blocks import Block, BlockSplitter
from .code import highlighted
from .ink import Ink, Line, PrintableText, Row
from .markdown import markdown_rows

TAIL_LIMIT = 2000
"""An open block up to this long is drawn as Markdown each time; a longer one as plain text."""
SLICE = 4
"""Lines of code that are coloured together; those before them stay as they are."""

Patch = tuple[int, list[Line]]
"""Keep this many of the answer's lines, then put these."""


class Live(Protocol):
    """Text that grows, drawn piece by piece."""

    def feed(self, text: str, style: str = "") -> None:
        """Take more text."""
        ...

    def draw(self, ink: Ink, bar: Content) -> Patch:
        """What to change on the screen since the last drawing."""
        ...


class Flow:
    """Plain text in runs of style; a line that is full is never drawn again."""

    def __init__(self) -> None:
        self._printable = PrintableText()
        self._fresh: list[tuple[str, str]] = []
        self._open = Content("")
        self._open_continues = False
        self._kept = 0

    def feed(self, text: str, style: str = "") -> None:
        """Take more text."""
        self._fresh.append((self._printable.take(text), style))

    def draw(self, ink: Ink, bar: Content) -> Patch:
        """The lines from the one that was still open."""
        kept = self._kept
        text = Content.assemble(self._open, *self._fresh)
        self._fresh.clear()
        lines = ink.lines(Row(text), bar)
        if self._open_continues:
            lines[0] = replace(lines[0], continues=True)
        last = lines[-1]
        self._kept += len(lines) - 1
        self._open = text[len(text.plain) - len(last.text) :] if last.text else Content("")
        self._open_continues = last.continues
        return kept, lines


class CodeFlow:
    """A fence that is being written: whole lines in colour, a slice at a time, the last one plain.

    A string over many lines may have the wrong colour until the answer ends and is drawn as a whole.
    """

    def __init__(self, language: str) -> None:
        self._language = language
        self._slice: list[str] = []
        self._slice_height = 0
        self._partial = ""
        self._kept = 0
        self._changed = True

    def feed_lines(self, lines: Iterable[str], partial: str) -> None:
        """Take more whole lines, and the one that is not whole yet."""
        before = len(self._slice)
        self._slice.extend(line.removesuffix("\n") for line in lines)
        self._changed = self._changed or len(self._slice) > before
        self._partial = partial

    def draw(self, ink: Ink, bar: Content) -> Patch:
        """The lines of the slice that grew, or only the last line."""
        unfinished = ink.lines(Row(Content(self._partial), code=True), bar) if self._partial else []
        if not self._changed:
            return self._kept + self._slice_height, unfinished
        kept = self._kept
        drawn: list[Line] = []
        self._slice_height = 0
        while self._slice:
            part = self._slice[:SLICE]
            lines = ink.lines(Row(highlighted("\n".join(part), self._language), code=True), bar)
            drawn += lines
            if len(part) < SLICE:
                self._slice_height = len(lines)
                break
            self._kept += len(lines)
            del self._slice[:SLICE]
        self._changed = False
        if not drawn and not unfinished and not kept:
            # A fence of no lines yet is seen as an empty one.
            self._changed = True
            return 0, ink.lines(Row(Content(""), code=True), bar)
        return kept, drawn + unfinished


class LiveMarkdown:
    """Markdown that grows: complete blocks are drawn once, and only the open one again."""

    def __init__(self) -> None:
        self._printable = PrintableText()
        self._splitter = BlockSplitter()
        self._blocks: list[Block] = []
        self._kept = 0
        """Lines of complete blocks."""
        self._gap = 0
        """Blank lines between them and the open block."""
        self._long: Flow | None = None
        self._fresh: list[str] = []
        """Text since the last drawing."""
        self._code: CodeFlow | None = None
        self._code_seen = 0

    def feed(self, text: str, style: str = "") -> None:
        """Take more text; in Markdown every origin looks the same."""
        del style
        text = self._printable.take(text)
        self._fresh.append(text)
        self._blocks += self._splitter.feed(text)

    def draw(self, ink: Ink, bar: Content) -> Patch:
        """The lines of blocks completed since, and of the one still open."""
        kept = self._kept
        lines: list[Line] = []
        if self._blocks:
            if self._code is not None:
                # What is drawn of the fence stands; drawing it anew would cost all its lines at once.
                kept, lines = self._end_fence(self._code, self._blocks.pop(0).text, ink, bar)
            for block in self._blocks:
                lines += _below(kept + len(lines), block.tight, _block_lines(block.text, ink, bar), ink, bar)
            self._blocks.clear()
            self._kept = kept + len(lines)
            self._long = self._code = None
        open_kept, open_lines = self._draw_open(ink, bar)
        self._fresh.clear()
        if open_kept:
            return self._kept + self._gap + open_kept, open_lines
        spaced = _below(self._kept, self._splitter.open.tight, open_lines, ink, bar)
        self._gap = len(spaced) - len(open_lines)
        return kept, lines + spaced

    def _draw_open(self, ink: Ink, bar: Content) -> Patch:
        splitter = self._splitter
        if splitter.fence is not None:
            return self._draw_fence(ink, bar, splitter.fence.language)
        if self._long is None:
            text = splitter.open.text
            if len(text) <= TAIL_LIMIT:
                return 0, _block_lines(text, ink, bar)
            self._long = Flow()
            self._long.feed(text.lstrip("\n"))
        else:
            self._long.feed("".join(self._fresh))
        return self._long.draw(ink, bar)

    def _draw_fence(self, ink: Ink, bar: Content, language: str) -> Patch:
        lines = self._splitter.open_lines
        if self._code is None:
            self._code = CodeFlow(language)
            # Blank lines may stand before the fence's opening; the code starts after it.
            self._code_seen = next(i for i, line in enumerate(lines) if line.strip()) + 1
        self._code.feed_lines(lines[self._code_seen :], self._splitter.partial)
        self._code_seen = len(lines)
        return self._code.draw(ink, bar)

    def _end_fence(self, code: CodeFlow, source: str, ink: Ink, bar: Content) -> Patch:
        code.feed_lines(source.splitlines(keepends=True)[self._code_seen : -1], "")
        code_kept, lines = code.draw(ink, bar)
        return self._kept + self._gap + code_kept, lines


def _below(above: int, tight: bool, lines: list[Line], ink: Ink, bar: Content) -> list[Line]:
    """The lines, after a blank one where something stands above them."""
    return ink.lines(Row(Content("")), bar) + lines if lines and above and not tight else lines


def _block_lines(source: str, ink: Ink, bar: Content) -> list[Line]:
    if not source.strip():
        return []
    return [line for row in markdown_rows(source, ink.text_width - 2) for line in ink.lines(row, bar)]
