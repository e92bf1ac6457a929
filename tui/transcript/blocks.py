"""Cuts a growing Markdown text into blocks that will not change any more, and the one still open."""

from __future__ import annotations

import re
from dataclasses import dataclass

_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})([^\n]*)")
_LIST_ITEM = re.compile(r"( {0,3})([-*+]|\d{1,9}[.)])(?:\s|$)")
_HEADING = re.compile(r" {0,3}#{1,6}(?:\s|$)")
_ENOUGH_TO_TELL = 4
"""Characters of an unfinished line that say what kind of line it is."""


@dataclass(frozen=True)
class Block:
    """A stretch of Markdown that is rendered by itself."""

    text: str
    tight: bool = False
    """The next item of a list without a blank line before it."""


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

    A block ends with its closing fence, after a heading, before the next item of a list, and at a
    blank line outside fences unless an indented line follows it. Every character is looked at once,
    and the blocks and the open rest join to the text as it came.
    """

    def __init__(self) -> None:
        self._lines: list[str] = []
        self._partial = ""
        self._written = False
        """The open block has a line that is not blank."""
        self._tight = False
        self._fence: Fence | None = None
        self._top_fence = False
        self._item_indent: int | None = None
        """In a list: from which column on a line belongs to the open item."""
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
    def open(self) -> Block:
        """The block that is still being written."""
        text = "".join(self._lines) + self._partial
        return Block(text, self._tight and _LIST_ITEM.match(text) is not None)

    @property
    def fence(self) -> Fence | None:
        """The fence that the open block is, if it is nothing but a fence."""
        return self._fence if self._top_fence else None

    def feed(self, text: str) -> list[Block]:
        """Take more text; return the blocks that it completes."""
        blocks: list[Block] = []
        *complete, rest = text.split("\n")
        for line in complete:
            self._take_line(self._partial + line + "\n", blocks)
            self._partial = ""
        self._partial += rest
        if self._blank_seen and len(self._partial.rstrip()) >= _ENOUGH_TO_TELL:
            self._end_at_gap(self._partial, blocks)
        return blocks

    def _take_line(self, line: str, blocks: list[Block]) -> None:
        if self._fence is not None:
            self._lines.append(line)
            if self._fence.is_closed_by(line if self._top_fence else line.lstrip(" ")):
                top = self._top_fence
                self._fence, self._top_fence = None, False
                if top:
                    self._end(blocks)
            return
        if not line.strip():
            self._lines.append(line)
            self._blank_seen = self._written
            return
        if self._blank_seen:
            self._end_at_gap(line, blocks)
        item = _LIST_ITEM.match(line)
        if item is not None and (self._item_indent is None or len(item[1]) < self._item_indent):
            in_list = self._item_indent is not None
            self._end(blocks)
            # Blank lines that follow an item end its block, so that only a tight list arrives here.
            self._tight = in_list and not any(not part.strip() for part in self._lines)
            self._item_indent = len(item[1]) + len(item[2]) + 1
        elif self._starts_otherwise(line, blocks):
            return
        self._written = True
        self._lines.append(line)

    def _starts_otherwise(self, line: str, blocks: list[Block]) -> bool:
        """Take a line that begins a fence or is a heading."""
        nested = self._item_indent is not None and line.startswith(" ")
        opening = _FENCE.match(line.lstrip(" ") if nested else line)
        if opening is not None and not (opening[1][0] == "`" and "`" in opening[2]):
            self._fence = Fence(opening[1], opening[2].strip().split(" ")[0])
            self._top_fence = not nested
            if not nested:
                self._end(blocks)
        elif nested or not _HEADING.match(line):
            return False
        else:
            self._end(blocks)
            self._lines.append(line)
            self._written = True
            self._end(blocks)
            return True
        self._written = True
        self._lines.append(line)
        return True

    def _end_at_gap(self, line: str, blocks: list[Block]) -> None:
        self._blank_seen = False
        if line[0] not in " \t":
            self._end(blocks)

    def _end(self, blocks: list[Block]) -> None:
        if self._written:
            blocks.append(Block("".join(self._lines), self._tight))
            self._lines = []
        self._written = self._tight = self._blank_seen = False
        self._item_indent = None
