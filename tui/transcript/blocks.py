"""Cuts a growing Markdown text into blocks that will not change any more, and the one still open."""

from __future__ import annotations

import re
from dataclasses import dataclass

_FENCE = re.compile(r"( {0,3})(`{3,}|~{3,})([^\n]*)")
_LIST_ITEM = re.compile(r" {0,3}(?:[-*+]|\d{1,9}[.)])(?:\s|$)")
_HEADING = re.compile(r" {0,3}#{1,6}(?:\s|$)")
_ENOUGH_TO_TELL = 4
"""Characters of an unfinished line that say what kind of line it is."""


@dataclass(frozen=True)
class Fence:
    """A fence's opening: its marks and the language it names."""

    mark: str
    language: str

    def is_closed_by(self, line: str) -> bool:
        """Whether this line ends the fence."""
        stripped = line.strip()
        return (
            len(stripped) >= len(self.mark)
            and not stripped.strip(self.mark[0])
            and len(line) - len(line.lstrip(" ")) <= 3
        )


class BlockSplitter:
    """Takes text as it comes; gives back each block once it is complete.

    A block ends with its closing fence, after a heading, and at a blank line outside fences, unless
    what follows the blank line still belongs to it: an indented line, or the next item of a list.
    Every character is looked at once, and the blocks and the open rest join to the text as it came.
    """

    def __init__(self) -> None:
        self._lines: list[str] = []
        self._partial = ""
        self._fence: Fence | None = None
        self._top_fence = False
        self._in_list = False
        self._blank_seen = False

    @property
    def open_lines(self) -> list[str]:
        """The complete lines of the block that is still being written."""
        return self._lines

    @property
    def partial(self) -> str:
        """The line that is still being written."""
        return self._partial

    @property
    def open_text(self) -> str:
        """The block that is still being written."""
        return "".join(self._lines) + self._partial

    @property
    def fence(self) -> Fence | None:
        """The fence that the open block is, if it is nothing but a fence."""
        return self._fence if self._top_fence else None

    def feed(self, text: str) -> list[str]:
        """Take more text; return the blocks that it completes."""
        blocks: list[str] = []
        *complete, rest = text.split("\n")
        for line in complete:
            self._take_line(self._partial + line + "\n", blocks)
            self._partial = ""
        self._partial += rest
        if self._blank_seen and len(self._partial.rstrip()) >= _ENOUGH_TO_TELL:
            self._end_at_gap(self._partial, blocks)
        return blocks

    def _take_line(self, line: str, blocks: list[str]) -> None:
        if self._fence is not None:
            self._lines.append(line)
            if self._fence.is_closed_by(line.lstrip(" ") if not self._top_fence else line):
                top = self._top_fence
                self._fence, self._top_fence = None, False
                if top:
                    self._end(blocks)
            return
        if not line.strip():
            self._lines.append(line)
            self._blank_seen = any(part.strip() for part in self._lines)
            return
        if self._blank_seen:
            self._end_at_gap(line, blocks)
        opening = _FENCE.match(line.lstrip(" ") if self._in_list else line)
        if opening is not None and not (opening[2][0] == "`" and "`" in opening[3]):
            self._fence = Fence(opening[2], opening[3].strip().split(" ")[0])
            self._top_fence = not (self._in_list and line.startswith(" "))
            if self._top_fence:
                self._end(blocks)
            self._lines.append(line)
            return
        if _HEADING.match(line) and not self._in_list:
            self._end(blocks)
            self._lines.append(line)
            self._end(blocks)
            return
        self._in_list = self._in_list or _LIST_ITEM.match(line) is not None
        self._lines.append(line)

    def _end_at_gap(self, line: str, blocks: list[str]) -> None:
        self._blank_seen = False
        goes_on = line[0] in " \t" or (self._in_list and _LIST_ITEM.match(line) is not None)
        if not goes_on:
            self._end(blocks)

    def _end(self, blocks: list[str]) -> None:
        if any(part.strip() for part in self._lines):
            blocks.append("".join(self._lines))
            self._lines = []
        self._in_list = False
        self._blank_seen = False
