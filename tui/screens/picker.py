"""A list to choose from, narrowed down by typing."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from textual import events, on
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Input, OptionList, Static
from textual.widgets.option_list import Option

from ..transcript.ink import printable
from ..widgets.field import Field


@dataclass(frozen=True)
class Choice:
    """One row of the list."""

    value: Any
    title: str
    detail: str = ""
    """What stands behind the title, faint."""
    search: str = ""
    """What else the row is found by."""
    usable: bool = True
    current: bool = False
    """It is what is there now."""

    @property
    def content(self) -> Content:
        """How the row looks."""
        title = Content(printable(self.title)).stylize("" if self.usable else "$text-disabled")
        parts: list[Content | tuple[str, str]] = [("● ", "$text-success"), title] if self.current else [title]
        if self.detail:
            parts.append(("  " + printable(self.detail), "$text-muted"))
        return Content.assemble(*parts)

    def answers(self, words: Sequence[str]) -> bool:
        """Whether all of these words are in it."""
        text = f"{self.title} {self.detail} {self.search}".lower()
        return all(word in text for word in words)


@dataclass(frozen=True)
class Picked:
    """What was chosen, and by which key."""

    value: Any
    key: str = "enter"


class Picker(ModalScreen["Picked | None"]):
    """Shows rows; typing narrows them down, Enter takes one, Esc none."""

    MOVES = {  # noqa: RUF012 (a constant)
        "up": "cursor_up", "down": "cursor_down", "pageup": "page_up", "pagedown": "page_down",
        "ctrl+home": "first", "ctrl+end": "last",
    }  # fmt: skip

    def __init__(
        self,
        title: str,
        choices: Sequence[Choice],
        *,
        keys: Mapping[str, str] | None = None,
        find: Callable[[str], Sequence[Choice]] | None = None,
        empty: str = "Nothing fits.",
    ) -> None:
        """Offer choices.

        Args:
            title: what is to be chosen.
            choices: the rows, all of them.
            keys: further keys that end the choice, each with what it does.
            find: finds the rows of what is typed, where looking into the rows shown is not enough.
            empty: what is said where no row is left.
        """
        super().__init__()
        self._title, self._choices, self._empty = title, list(choices), empty
        self._keys = dict(keys or {})
        self._find = find
        self.shown: list[Choice] = []

    def compose(self) -> ComposeResult:
        """A line to type in, the rows, and the keys."""
        with Vertical(id="picker"):
            with Vertical(id="picker-head"):
                yield Static(Content(printable(self._title)).stylize("bold $text-primary"), id="picker-title")
                yield Field(placeholder="type to narrow down", id="picker-filter")
            yield OptionList(id="picker-rows")
            keys = [("Enter", "take"), *((key.capitalize(), what) for key, what in self._keys.items())]
            parts: list[tuple[str, str]] = []
            for key, what in [*keys, ("Esc", "back")]:
                parts += [(key, "bold $text-primary"), (f" {what}  ", "$text-muted")]
            yield Static(Content.assemble(*parts), id="picker-keys")

    def on_mount(self) -> None:
        """Show all rows."""
        self._rows = self.query_one(OptionList)
        self._rows.can_focus = False
        self._show(self._choices)

    def update(self, value: Any, choice: Choice) -> None:
        """Draw a row anew, by its value."""
        self._choices = [choice if each.value == value else each for each in self._choices]
        for index, each in enumerate(self.shown):
            if each.value == value:
                self.shown[index] = choice
                self._rows.replace_option_prompt_at_index(index, choice.content)

    @on(Input.Changed)
    def _narrow(self, event: Input.Changed) -> None:
        text = event.value.strip()
        if text and self._find is not None:
            self._show(self._find(text))
        else:
            words = text.lower().split()
            self._show([choice for choice in self._choices if choice.answers(words)])

    def _show(self, choices: Sequence[Choice]) -> None:
        self.shown = list(choices)
        self._rows.clear_options()
        self._rows.add_options([Option(choice.content) for choice in self.shown])
        if self.shown:
            self._rows.highlighted = next((at for at, each in enumerate(self.shown) if each.current), 0)
        else:
            self._rows.add_option(
                Option(Content(printable(self._empty)).stylize("$text-muted"), disabled=True)
            )

    def on_key(self, event: events.Key) -> None:
        """Move among the rows while the line keeps the typing."""
        if event.key == "escape":
            self.dismiss(None)
        elif event.key in self.MOVES:
            getattr(self._rows, f"action_{self.MOVES[event.key]}")()
        elif event.key in self._keys:
            self._take(event.key)
        else:
            return
        event.stop()
        event.prevent_default()

    @on(Input.Submitted)
    def _submitted(self) -> None:
        self._take("enter")

    @on(OptionList.OptionSelected)
    def _selected(self, event: OptionList.OptionSelected) -> None:
        if event.option_index < len(self.shown):
            self.dismiss(Picked(self.shown[event.option_index].value))

    def _take(self, key: str) -> None:
        index = self._rows.highlighted
        if index is not None and index < len(self.shown):
            self.dismiss(Picked(self.shown[index].value, key))
