"""The transcript: one widget that draws only the lines that are seen."""

from __future__ import annotations

import time
from bisect import bisect_right
from collections.abc import Sequence

from rich.style import Style as RichStyle
from textual.geometry import Region, Size
from textual.message import Message
from textual.reactive import Reactive
from textual.scroll_view import ScrollView
from textual.scrollbar import ScrollBar
from textual.selection import Selection
from textual.strip import Strip

from .entries import AnswerEntry, Entry, View
from .ink import Ink, Line
from .scroll_bar import StillScrollBar

FILL_INTERVAL = 0.05
FILL_SECONDS = 0.02
"""How long the lines of entries out of view are made, at a time."""


def _height(entry: Entry) -> int:
    """Lines of an entry and the blank one after it; none before its lines are made."""
    return len(entry.lines) + 1 if entry.lines else 0


class Transcript(ScrollView, can_focus=False):
    """Prompts, answers and notices, one under the other.

    A transcript of widgets costs a layout of all of them for every line that is added. This one has
    no children: an entry's lines are made when it changes, and only those in view are drawn, so that
    the cost of a token does not grow with the conversation.
    """

    # The size of what is scrolled concerns the scroll bar only: the layout of the screen that Textual
    # would do for it costs as much as drawing the line.
    virtual_size = Reactive(Size(0, 0), repaint=False)

    class FollowChanged(Message):
        """The view has left the end of the transcript, or come back to it."""

        def __init__(self, following: bool) -> None:
            super().__init__()
            self.following = following

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.view: View = "markdown"
        self.thoughts = False
        """What models thought is unfolded."""
        self._answering = False
        self.entries: list[Entry] = []
        self._starts: list[int] = []
        self._stale: list[Entry] = []
        """Entries, from the oldest on, whose lines are still to be made."""
        self._filling = False
        """Their turn comes by itself."""
        self._rising = False
        """The view stays at the start as older lines come in."""
        self._height = 0
        self._ink: Ink | None = None
        self._following = True
        self._blank_strip: Strip | None = None
        self._drawn: list[Strip | None] = []
        self._drawn_for: tuple[Region, int, Selection | None] | None = None

    @property
    def vertical_scrollbar(self) -> ScrollBar:
        """The scroll bar, made when it is first asked for."""
        if self._vertical_scrollbar is None:
            bar = StillScrollBar(vertical=True, name="vertical", thickness=self.scrollbar_size_vertical)
            bar.display = False
            self._vertical_scrollbar = bar
            self.app._start_widget(self, bar)
        return self._vertical_scrollbar

    @property
    def ink(self) -> Ink:
        """The ink for the present width and theme."""
        width = max(1, self.scrollable_content_region.width)
        if self._ink is None or self._ink.width != max(8, width):
            self._ink = Ink(width, self.app.theme_variables)
        return self._ink

    @property
    def following(self) -> bool:
        """Whether the view stays at the end as text comes."""
        return self._following

    @property
    def answering(self) -> bool:
        """Whether an answer is under way: what is far from view waits, since its time is the decoder's."""
        return self._answering

    @answering.setter
    def answering(self, under_way: bool) -> None:
        self._answering = under_way
        self._fill()

    def add(self, entry: Entry) -> None:
        """Put an entry at the end."""
        self.entries.append(entry)
        self._starts.append(0)
        self.changed(entry)

    def show(self, entries: Sequence[Entry]) -> None:
        """Put these in place of all there are; those far from the end are drawn little by little."""
        self.entries = list(entries)
        self._starts = [0] * len(self.entries)
        self._stale.clear()
        self._following = True
        self._layout_all()
        self.to_end()

    def insert(self, entry: Entry, before: Entry) -> None:
        """Put an entry before another."""
        index = self.entries.index(before)
        self.entries.insert(index, entry)
        self._starts.insert(index, self._starts[index])
        self.changed(entry)
        self._redraw(0, self._height)

    def changed(self, entry: Entry) -> None:
        """Draw an entry anew."""
        if not self._laid_out:
            return
        before, end = len(entry.lines), self._height
        entry.layout(self.ink, self.view)
        if entry in self._stale:
            self._stale.remove(entry)
        index = self.entries.index(entry)
        self._place(index)
        first = self._starts[index]
        self._redraw(first, max(end, self._height) if len(entry.lines) != before else first + before)

    def replace(self, entry: Entry, by: Entry) -> None:
        """Put an entry in another's place."""
        by.lines = entry.lines
        self.entries[self.entries.index(entry)] = by
        self.changed(by)

    def drop(self, entry: Entry) -> None:
        """Take an entry away."""
        index, end = self.entries.index(entry), self._height
        del self.entries[index]
        if entry in self._stale:
            self._stale.remove(entry)
        self._place(index)
        self._redraw(0, end)

    def clear(self) -> None:
        """Take all entries away."""
        end = self._height
        self.entries.clear()
        self._stale.clear()
        self._place(0)
        self._redraw(0, end)
        self.to_end()

    def grow(self, entry: AnswerEntry) -> None:
        """Draw what has been added to the answer at the end."""
        if not self._laid_out:
            return
        before, end = len(entry.lines), self._height
        first = entry.grow(self.ink)
        index = len(self.entries) - 1 - self.entries[::-1].index(entry)
        start = self._starts[index]
        if len(entry.lines) != before:
            self._place(index)
            self._redraw(start + first, max(end, self._height))
        else:
            self._redraw(start + first, start + before)

    def show_view(self, view: View) -> None:
        """Show answers as Markdown, or coloured by where their tokens came from."""
        self.view = view
        self._layout_all()

    def show_thoughts(self, shown: bool) -> None:
        """Unfold or fold what models thought."""
        self.thoughts = shown
        for entry in self.entries:
            if isinstance(entry, AnswerEntry):
                entry.unfolded = shown
        self._layout_all()

    def to_end(self) -> None:
        """Scroll to the end, and stay there."""
        self._follow(True)
        self.scroll_end(animate=False, immediate=True)

    def to_start(self) -> None:
        """Scroll to the start, and stay there while older lines are still being made."""
        self._rising = bool(self._stale)
        self.scroll_home(animate=False)

    @property
    def _laid_out(self) -> bool:
        return self.size.width > 0

    def _place(self, index: int) -> None:
        """Work out where the entries from this one on start."""
        del self._starts[index:]
        y = 0 if index == 0 else self._starts[index - 1] + _height(self.entries[index - 1])
        for entry in self.entries[index:]:
            self._starts.append(y)
            y += _height(entry)
        self._height = max(0, y - 1) if self.entries else 0
        size = Size(0, self._height)
        if size != self.virtual_size:
            self.virtual_size = size
            self._scroll_update(size)
            if self._following:
                self.scroll_end(animate=False, immediate=True)

    def _redraw(self, first: int, end: int) -> None:
        """Draw the lines of the transcript from this one to before that one anew, where they are in view."""
        if self._drawn_for is not None:
            crop, top, _ = self._drawn_for
            for row in range(max(first - top - crop.y, 0), min(end - top - crop.y, len(self._drawn))):
                self._drawn[row] = None
        top = self.scroll_offset.y
        first, end = max(first - top, 0), min(end - top, self.size.height)
        if end > first:
            self.refresh(Region(0, first, self.size.width, end - first))

    def _layout_all(self) -> None:
        """Make all lines anew: at once those in view and near it, the older ones little by little."""
        if not self._laid_out:
            return
        top = None if self._following else self._top()
        kept = len(self.entries) if top is None else self.entries.index(top[0])
        for entry in self.entries:
            entry.lines = []
        self._stale = list(self.entries)
        height = 0
        while self._stale and (height < 2 * self.size.height or len(self._stale) > kept):
            height += self._layout_last_stale()
        self._place(0)
        self._drawn_for = None
        if top is not None:
            entry, line = top
            line = min(line, max(0, len(entry.lines) - 1))
            self.scroll_to(y=self._starts[kept] + line, animate=False)
        self.refresh()
        self._fill()

    def _layout_last_stale(self) -> int:
        entry = self._stale.pop()
        entry.layout(self.ink, self.view)
        return _height(entry)

    def _fill(self) -> None:
        """Go on making lines in a moment, unless there are none to make or they have to wait."""
        waits = self._answering and self.scroll_y > self.size.height
        if self._stale and not waits and not self._filling:
            self._filling = True
            self.set_timer(FILL_INTERVAL, self._layout_more)

    def _layout_more(self) -> None:
        self._filling = False
        began = time.thread_time()
        added = 0
        while self._stale and time.thread_time() - began < FILL_SECONDS:
            added += self._layout_last_stale()
        if added:
            at = self.scroll_y
            self._place(0)
            self._drawn_for = None
            if not self._following and not self._rising:
                # The older lines come in above the view, which is to stay where it is.
                self.scroll_to(y=at + added, animate=False)
        if not self._stale:
            self._rising = False
        self._fill()

    def _top(self) -> tuple[Entry, int] | None:
        """The entry at the top of the view, and which of its lines is there."""
        index = bisect_right(self._starts, self.scroll_offset.y) - 1
        return (self.entries[index], self.scroll_offset.y - self._starts[index]) if index >= 0 else None

    def _on_resize(self) -> None:
        self._layout_all()
        if self._following or not (self._stale or self._height > self.size.height):
            self.to_end()

    def notify_style_update(self) -> None:
        """Draw everything in the new theme's colours."""
        super().notify_style_update()
        self._drawn_for = None
        if self._ink is None or self._ink.theme is self.app.theme_variables:
            return
        self._ink = self._blank_strip = None
        self._layout_all()

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        """Notice when the view leaves the end, and when it comes back."""
        super().watch_scroll_y(old_value, new_value)
        if new_value > old_value:
            self._rising = False
        if new_value >= self.max_scroll_y:
            self._follow(True)
        elif new_value < old_value:
            self._follow(False)
            self._fill()

    def _follow(self, following: bool) -> None:
        if following != self._following:
            self._following = following
            self.post_message(self.FollowChanged(following))

    def line_at(self, y: int) -> Line | None:
        """The line at a place in the whole transcript; `None` between entries."""
        index = bisect_right(self._starts, y) - 1
        if index < 0 or y - self._starts[index] >= len(self.entries[index].lines):
            return None
        return self.entries[index].lines[y - self._starts[index]]

    def render_line(self, y: int) -> Strip:
        """One line of what is in view, with the places of its characters, for the mouse to select."""
        y += self.scroll_offset.y
        line = self.line_at(y)
        strip = self._blank if line is None else line.strip
        return strip.apply_offsets(0 if line is None else -line.indent, y)

    def render_lines(self, crop: Region) -> list[Strip]:
        """What is in view, as it is drawn: lines are ready when they come here.

        Textual asks for all of it at every refresh, so what has not changed is kept.
        """
        top, selection = self.scroll_offset.y, self.text_selection
        if (crop, top, selection) != self._drawn_for:
            kept = self._scrolled(crop, top, selection)
            self._drawn_for = (crop, top, selection)
            self._drawn = kept
        drawn = self._drawn
        for row, strip in enumerate(drawn):
            if strip is None:
                drawn[row] = self._paint(top + crop.y + row, crop, selection)
        return [strip for strip in drawn if strip is not None]

    def _scrolled(self, crop: Region, top: int, selection: Selection | None) -> list[Strip | None]:
        """What is drawn already of the lines in view, after the view has moved over them."""
        nothing: list[Strip | None] = [None] * crop.height
        if self._drawn_for is None or selection is not None or self._drawn_for[::2] != (crop, None):
            return nothing
        moved = top - self._drawn_for[1]
        if abs(moved) >= crop.height:
            return nothing
        return [*self._drawn, *nothing][moved : moved + crop.height] if moved > 0 else [
            *nothing[:-moved], *self._drawn[: crop.height + moved]
        ]  # fmt: skip

    def _paint(self, y: int, crop: Region, selection: Selection | None) -> Strip:
        line = self.line_at(y)
        if line is None:
            strip = self._blank
        elif selection is not None and (span := selection.get_span(y)) is not None:
            strip = line.selected(*span, self.screen.get_component_rich_style("screen--selection"))
        else:
            strip = line.strip
        background = self.background_colors[1]
        for each in self.get_line_filters():
            strip = strip.apply_filter(each, background)
        if crop.column_span != (0, strip.cell_length):
            strip = strip.crop_extend(crop.x, crop.right, self._blank_style)
        return strip

    @property
    def _blank_style(self) -> RichStyle:
        return self.visual_style.rich_style

    @property
    def _blank(self) -> Strip:
        if self._blank_strip is None or self._blank_strip.cell_length != self.ink.width:
            self._blank_strip = Strip.blank(self.ink.width, self._blank_style)
        return self._blank_strip

    def get_selection(self, selection: Selection) -> tuple[str, str] | None:
        """The selected text, with its own line breaks and none of the screen's."""
        parts: list[str] = []
        for y in range(self._height):
            if (span := selection.get_span(y)) is None:
                continue
            line = self.line_at(y)
            start, end = span
            text = "" if line is None else line.text[max(0, start) : None if end == -1 else max(0, end)]
            if parts and not (line is not None and line.continues):
                parts.append("\n")
            parts.append(text)
        return "".join(parts), "\n"
