"""What all charts of a comparison have in common: their size, their colours, and whose mark is which."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import cached_property

from ..comparison import Comparison
from .drawing import Look, Palette, Spec, looks_of
from .table import one_line


@dataclass(frozen=True)
class Chart:
    """A chart, and how it is read, in a sentence or two."""

    title: str
    reading: str
    spec: Spec
    height: int
    """Of what lies within the axes, in pixels, about."""


@dataclass(frozen=True)
class Canvas:
    """What is to be drawn, in which size and colours."""

    comparison: Comparison
    palette: Palette
    width: int
    """Of what lies within the axes, in pixels."""
    columns: int = 1
    """Of small charts, where one chart is made of several."""
    legends: bool = True
    """Whether each chart says which mark is whose."""

    @cached_property
    def names(self) -> list[str]:
        """The contenders', as charts call them."""
        return [one_line(contender.name) for contender in self.comparison.contenders]

    @cached_property
    def _looks(self) -> tuple[Look, ...]:
        return looks_of(self.comparison, self.palette)

    def shown(self, names: Collection[str]) -> list[str]:
        """These names in the order of the contenders."""
        return [name for name in self.names if name in names]

    def marks(self, shown: Sequence[str], *channels: str) -> Spec:
        """The encodings that tell these contenders apart: colour, shape and dash, or those asked for."""
        ranges = {
            "color": [look.colour for look in self._looks],
            "shape": [look.shape for look in self._looks],
            "strokeDash": [list(look.dash) for look in self._looks],
        }
        # A name takes about 7 pixels a letter; two columns if they fit.
        longest = max(map(len, shown)) * 7 + 30
        legend: Spec | None = None
        if self.legends:
            columns = 2 if longest * 2 < self.width else 1
            legend = {"values": list(shown), "columns": columns, "labelLimit": self.width - 10}
        return {
            channel: {
                "field": "contender",
                "type": "nominal",
                # All contenders, so that charts side by side in one picture agree.
                "scale": {"domain": self.names, "range": ranges[channel]},
                "legend": legend,
            }
            for channel in channels or ranges
        }
