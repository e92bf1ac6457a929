"""A comparison as one picture: what to use, the figures over all kinds of prompts, and the charts."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

from ..comparison import Comparison
from .canvas import Canvas, Chart
from .charts import charts_of
from .drawing import LIGHT, Spec, draw_png, looks_of
from .table import (
    COLUMNS,
    NOT_MEASURED,
    duration_text,
    lines_of,
    memory_text,
    one_line,
    recommended,
    title_of,
)

_CHART_WIDTH = 420
_WIDTH = 920
"""Of the table, which the two columns of charts are about as wide as."""
_ROW_HEIGHT = 24
_LETTERS = 120
"""Of a line of the text above the table."""
_SCALE = 2.0
_NAME_LETTERS = 38
_AROUND = 90
"""Pixels that a chart's title and axis take above and below it."""
_COLUMN_WIDTH = 100
_HEADINGS = ("speed-up", "tokens/s", "accepted", "tokens per pass", "first token after", "memory")


def picture_of(comparison: Comparison) -> bytes:
    """A PNG, legible where it is shown at half its width."""
    charts = charts_of(Canvas(comparison, LIGHT, _CHART_WIDTH, columns=2, legends=False))
    columns = _balanced(charts)
    rows: list[Spec] = [_figures(comparison)]
    if columns:
        rows.append(
            {
                "hconcat": [{"vconcat": list(map(_titled, column)), "spacing": 30} for column in columns],
                "spacing": 20,
            }
        )
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
    if comparison.unrest:
        lines.append(comparison.unrest)
    if not comparison.complete:
        lines.append(f"Incomplete: stopped after {len(comparison.answers)} answers.")
    for recommendation in comparison.recommendations:
        lines += _wrapped(recommendation.sentence, _LETTERS)
    return [one_line(line) for line in lines]


def _figures(comparison: Comparison) -> Spec:
    """The table of all kinds of prompts together, which is also what says whose mark is which."""
    looks = looks_of(comparison, LIGHT)
    best = recommended(comparison)
    right = [_WIDTH - _COLUMN_WIDTH * place for place in reversed(range(len(_HEADINGS)))]
    heads = [{"x": x, "y": 0, "text": text} for x, text in zip(right, _HEADINGS, strict=True)]
    texts: list[Spec] = []
    marks: list[Spec] = []
    for row, line in enumerate(lines_of(comparison, None), 1):
        contender, look = comparison.contenders[line.contender], looks[line.contender]
        cells = {heading: cell.text for heading, cell in zip(COLUMNS, line.cells, strict=True)}
        cells["memory"] = memory_text(contender.memory_bytes)
        here: Spec = {"y": row * _ROW_HEIGHT, "bold": line.contender in best}
        marks.append(here | {"x": 8, "colour": look.colour, "shape": look.shape})
        texts.append(here | {"x": 22, "text": _shortened(one_line(contender.name)), "align": "left"})
        texts += [
            here | {"x": x, "text": cells[heading], "align": "right"}
            for x, heading in zip(right, _HEADINGS, strict=True)
        ]
    place: Spec = {
        "x": {"field": "x", "type": "quantitative", "scale": None, "axis": None},
        "y": {"field": "y", "type": "quantitative", "scale": None, "axis": None},
    }
    look_of: Spec = {
        "color": {"field": "colour", "type": "nominal", "scale": None},
        "shape": {"field": "shape", "type": "nominal", "scale": None},
    }
    weight = {"expr": "datum.bold ? 'bold' : 'normal'"}
    return {
        "width": _WIDTH,
        "height": _ROW_HEIGHT * (len(comparison.contenders) + 1) - 8,
        "layer": [
            {
                "data": {"values": heads},
                "mark": {"type": "text", "align": "right", "fontSize": 12, "color": LIGHT.soft},
                "encoding": place | {"text": {"field": "text"}},
            },
            {
                "data": {"values": texts},
                "mark": {
                    "type": "text",
                    "align": {"expr": "datum.align"},
                    "fontWeight": weight,
                    "fontSize": 14,
                },
                "encoding": place | {"text": {"field": "text"}},
            },
            {
                "data": {"values": marks},
                "mark": {"type": "point", "filled": True, "size": 90, "opacity": 1},
                "encoding": place | look_of,
            },
        ],
    }


def _balanced(charts: Sequence[Chart]) -> list[list[Chart]]:
    """The charts in two columns of about one height: the largest first, each where there is more room."""
    columns: tuple[list[int], list[int]] = ([], [])
    heights = [0, 0]
    for place in sorted(range(len(charts)), key=lambda place: -charts[place].height):
        column = heights.index(min(heights))
        columns[column].append(place)
        heights[column] += charts[place].height + _AROUND
    return [[charts[place] for place in column] for column in sorted(map(sorted, columns)) if column]


def _shortened(name: str) -> str:
    """A name that fits its column: what tells names apart is at their beginning or their end."""
    half = _NAME_LETTERS // 2
    return name if len(name) <= _NAME_LETTERS else f"{name[: half - 1]}…{name[-half:]}"


def _titled(chart: Chart) -> Spec:
    return chart.spec | {"title": {"text": _wrapped(chart.title, 60), "offset": 12}}


def _wrapped(text: str, letters: int) -> list[str]:
    return textwrap.wrap(one_line(text), letters)
