"""How a comparison is drawn: colours, a look for each contender, and Vega-Lite to SVG and PNG, offline."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Any

from ..comparison import Comparison

Spec = dict[str, Any]
"""A Vega-Lite specification, or a part of one."""

_FONT = "Arial, Liberation Sans, Helvetica, sans-serif"
"""Widths are measured with Liberation Sans, which comes with the library and is as wide as Arial."""

_PLAIN_SIGNS = {"circle": "●", "triangle-right": "▶", "triangle-left": "◀"}
_DRAFTED_SIGNS = {"square": "■", "triangle-up": "▲", "diamond": "◆", "triangle-down": "▼", "cross": "✚"}
_DASHES = ((1, 0), (7, 3), (2, 2), (8, 3, 2, 3), (12, 4))


@dataclass(frozen=True)
class Palette:
    """Colours, as a chart or a page names them."""

    paper: str
    ink: str
    soft: str
    grid: str
    marks: tuple[str, ...]
    """Apart for the colour-blind too: the order and hues follow Okabe and Ito's set, with contrast added."""


LIGHT = Palette(
    paper="#ffffff",
    ink="#1b1f24",
    soft="#57606a",
    grid="#e3e6ea",
    marks=("#0072b2", "#c14f00", "#007a5a", "#a8568a", "#8a6a00", "#3a3f9e"),
)
DARK = Palette(
    paper="#14171c",
    ink="#e8eaed",
    soft="#a3abb5",
    grid="#30363d",
    marks=("#56b4e9", "#f08a4b", "#2fc39a", "#e08fc0", "#e6b800", "#a9b0ff"),
)
STYLED = Palette(
    paper="var(--paper)",
    ink="var(--ink)",
    soft="var(--soft)",
    grid="var(--grid)",
    marks=tuple(f"var(--mark-{number})" for number in range(len(LIGHT.marks))),
)
"""Takes its colours from the page that the chart stands in."""


@dataclass(frozen=True)
class Look:
    """How a contender is told apart, never by its colour alone."""

    colour: str
    shape: str
    dash: tuple[int, ...]

    @property
    def sign(self) -> str:
        """The shape as a character."""
        return (_PLAIN_SIGNS | _DRAFTED_SIGNS)[self.shape]


def looks_of(comparison: Comparison, palette: Palette) -> tuple[Look, ...]:
    """A look for each contender; plain decoding is always grey and nothing else is.

    Shapes and colours go around at different paces, so that many contenders differ in one or the other.
    """
    drafted, plain = itertools.count(), itertools.count()
    looks: list[Look] = []
    for contender in comparison.contenders:
        is_plain = contender.drafts == "none"
        place = next(plain if is_plain else drafted)
        shapes = list(_PLAIN_SIGNS if is_plain else _DRAFTED_SIGNS)
        colours = (palette.soft,) if is_plain else palette.marks
        looks.append(
            Look(colours[place % len(colours)], shapes[place % len(shapes)], _DASHES[place % len(_DASHES)])
        )
    return tuple(looks)


def draw_svg(spec: Spec, palette: Palette) -> str:
    """The chart as an SVG element."""
    import vl_convert  # 85 MB, which only a report needs

    return vl_convert.vegalite_to_svg(_configured(spec, palette), allowed_base_urls=[])


def draw_png(spec: Spec, palette: Palette, scale: float) -> bytes:
    """The chart as a PNG on the palette's paper, at this many dots per pixel."""
    import vl_convert

    whole = _configured(spec, palette) | {"background": palette.paper}
    return vl_convert.vegalite_to_png(whole, scale=scale, allowed_base_urls=[])


def _configured(spec: Spec, palette: Palette) -> Spec:
    """The specification with the fonts and colours that all charts share."""
    labels = {"labelColor": palette.ink, "labelFontSize": 12}
    titles = {"titleColor": palette.soft, "titleFontSize": 12, "titleFontWeight": "normal"}
    lines = {"gridColor": palette.grid, "domainColor": palette.soft, "tickColor": palette.soft}
    return spec | {
        "config": {
            "background": None,
            "font": _FONT,
            "view": {"stroke": None},
            "axis": labels | titles | lines | {"labelLimit": 110},
            "legend": labels
            | {"orient": "top", "title": None, "labelOffset": 6}
            | {"symbolSize": 80, "symbolOpacity": 1, "symbolStrokeWidth": 0},
            "header": labels | {"title": None, "labelFontWeight": "bold", "labelLimit": 300},
            "title": {
                "color": palette.ink,
                "fontSize": 14,
                "anchor": "start",
                "frame": "group",
                "subtitleColor": palette.soft,
                "subtitleFontSize": 12,
            },
            "text": {"color": palette.ink, "fontSize": 11},
        },
    }
