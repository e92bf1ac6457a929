"""A comparison as one picture: what to use, the figures over all kinds of prompts, and the charts."""

from __future__ import annotations

import textwrap

from ..comparison import Comparison
from .canvas import Canvas, Chart
from .charts import charts_of
from .drawing import LIGHT, Spec, draw_png, looks_of
from .table import COLUMNS, NOT_MEASURED, duration_text, lines_of, memory_text, one_line, title_of

_CHART_WIDTH = 420
_WIDTH = 920
"""Of the table, which the two columns of charts are about as wide as."""
_ROW_HEIGHT = 24
_LETTERS = 120
"""Of a line of the text above the table."""
_SCALE = 2.0
_NAME_LETTERS = 40
_SHOWN = ("speed-up", "tokens/s", "accepted", "tokens per pass", "first token after")


def picture_of(comparison: Comparison) -> bytes:
    """A PNG, legible where it is shown at half its width."""
    charts = charts_of(Canvas(comparison, LIGHT, _CHART_WIDTH, columns=2, legends=False))
    drawn = [_titled(chart) for chart in charts]
    columns: list[Spec] = [
        {"vconcat": column, "spacing": 30} for column in (drawn[::2], drawn[1::2]) if column
    ]
    rows: list[Spec] = [_figures(comparison)]
    if columns:
        rows.append({"hconcat": columns, "spacing": 20})
    spec: Spec = {
        "title": {
            "text": _wrapped(title_of(comparison), 85),
            "fontSize": 19,
            "subtitle": _said(comparison),
            "subtitleFontSize": 14,
            "subtitleColor": LIGHT.ink,
            "subtitleLineHeight": 20,
            "subtitlePadding": 8,
            "offset": 16,
        },
        "padding": 24,
        "vconcat": rows,
        "spacing": 34,
    }
    return draw_png(spec, LIGHT, _SCALE)


def _said(comparison: Comparison) -> list[str]:
    """Under what conditions, and what to use, in lines."""
    lines = [f"{', '.join(comparison.machine) or NOT_MEASURED} · {comparison.date.replace('T', ' ')}"]
    lines[0] += f" · specchat compare, {duration_text(comparison.seconds)}"
    if not comparison.complete:
        lines.append(f"Incomplete: stopped after {len(comparison.answers)} answers.")
    for recommendation in comparison.recommendations:
        lines += _wrapped(recommendation.sentence, _LETTERS)
    return [one_line(line) for line in lines]


def _figures(comparison: Comparison) -> Spec:
    """The table of all kinds of prompts together, which is also what says whose mark is which."""
    looks = looks_of(comparison, LIGHT)
    headings = ("", *_SHOWN, "memory")
    right = [_WIDTH - 100 * (len(headings) - 1 - column) for column in range(len(headings))]
    texts: list[Spec] = []
    marks: list[Spec] = []
    for row, line in enumerate(lines_of(comparison, None), 1):
        contender = comparison.contenders[line.contender]
        cells = dict(zip(COLUMNS, line.cells, strict=True))
        y = row * _ROW_HEIGHT
        look = looks[line.contender]
        marks.append({"x": 8, "y": y, "colour": look.colour, "shape": look.shape})
        name = textwrap.shorten(one_line(contender.name), _NAME_LETTERS, placeholder="...")
        texts.append({"x": 22, "y": y, "text": name, "align": "left"})
        figures = [cells[heading].text for heading in _SHOWN] + [memory_text(contender.memory_bytes)]
        texts += [
            {"x": x, "y": y, "text": text, "align": "right"}
            for x, text in zip(right[1:], figures, strict=True)
        ]
    heads = [
        {"x": x, "y": 0, "text": heading, "align": "right"}
        for x, heading in zip(right, headings, strict=True)
        if heading
    ]
    place: Spec = {
        "x": {"field": "x", "type": "quantitative", "scale": None, "axis": None},
        "y": {"field": "y", "type": "quantitative", "scale": None, "axis": None},
    }
    return {
        "width": _WIDTH,
        "height": _ROW_HEIGHT * (len(comparison.contenders) + 1) - 8,
        "layer": [
            *(
                {
                    "data": {"values": [text for text in texts if text["align"] == align]},
                    "mark": {"type": "text", "align": align, "fontSize": 14},
                    "encoding": place | {"text": {"field": "text"}},
                }
                for align in ("left", "right")
            ),
            {
                "data": {"values": heads},
                "mark": {"type": "text", "align": "right", "fontSize": 12, "color": LIGHT.soft},
                "encoding": place | {"text": {"field": "text"}},
            },
            {
                "data": {"values": marks},
                "mark": {"type": "point", "filled": True, "size": 90, "opacity": 1},
                "encoding": place
                | {
                    "color": {"field": "colour", "type": "nominal", "scale": None},
                    "shape": {"field": "shape", "type": "nominal", "scale": None},
                },
            },
        ],
    }


def _titled(chart: Chart) -> Spec:
    return chart.spec | {"title": {"text": _wrapped(chart.title, 60), "offset": 12}}


def _wrapped(text: str, letters: int) -> list[str]:
    return textwrap.wrap(one_line(text), letters)
