"""What the prompt may be completed to, above it."""

from __future__ import annotations

from collections.abc import Sequence

from textual.content import Content

from ..completion import MOST, Completion
from ..transcript.ink import printable
from .lines import Lines

MORE = "    … and more, as you go on typing"


class Suggestions(Lines):
    """A line for each of the first completions; there only while there are any."""

    def offer(self, completions: Sequence[Completion]) -> None:
        """Show these, or nothing."""
        first = completions[:MOST]
        widest = max((len(each.shown) for each in first), default=0)
        lines: list[Content] = []
        for place, each in enumerate(first):
            key = "Tab " if place == 0 else "    "
            shown = f"{printable(each.shown):<{widest}}"
            lines.append(
                Content.assemble(
                    (key, "$text-disabled"), (shown, "bold"), ("  " + printable(each.help), "$text-muted")
                )
            )
        if len(completions) > len(first):
            lines.append(Content(MORE).stylize("$text-disabled"))
        self.styles.height = len(lines)
        self.set_class(bool(lines), "shown")
        self.show(lines)
