"""What the prompt may be completed to, above it."""

from __future__ import annotations

from collections.abc import Sequence

from textual.content import Content

from ..completion import Completion
from ..transcript.ink import printable
from .lines import Lines


class Suggestions(Lines):
    """A line for each completion; there only while there are any."""

    def offer(self, completions: Sequence[Completion]) -> None:
        """Show these, or nothing."""
        self.styles.height = len(completions)
        self.set_class(bool(completions), "shown")
        widest = max((len(each.shown) for each in completions), default=0)
        lines: list[Content] = []
        for place, each in enumerate(completions):
            key = "Tab " if place == 0 else "    "
            shown = f"{printable(each.shown):<{widest}}"
            lines.append(
                Content.assemble(
                    (key, "$text-disabled"), (shown, "bold"), ("  " + printable(each.help), "$text-muted")
                )
            )
        self.show(lines)
