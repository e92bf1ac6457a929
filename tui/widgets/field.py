"""Fields to type into, whose cursor stands still as the prompt's does."""

from __future__ import annotations

from textual.reactive import Reactive
from textual.widgets import Input, TextArea


class Field(Input):
    """One line; a cursor that blinks draws the screen twice a second for nothing."""

    cursor_blink = Reactive(False, init=False)


class LongField(TextArea):
    """Several lines."""

    cursor_blink = Reactive(False, init=False)
