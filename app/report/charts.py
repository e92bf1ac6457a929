"""The charts of a comparison, as Vega-Lite specifications."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence

from ..comparison import Comparison
from .canvas import Canvas, Chart
from .drawing import Spec
from .pass_chart import pass_chart
from .table import kinds_of, one_line

ALL_KINDS = "all kinds"

_HEIGHT, _SMALL_HEIGHT = 240, 130
_STEP, _APART = 17, 0.35
"""Pixels from one contender's bar to the next, and the share of a kind's height that lies between kinds."""
_WINDOW = 32
"""Tokens over which the speed within an answer is taken: several rounds of drafting."""
_POINTS = 80
"""Of one line; more would not be seen."""
_FEWEST_TESTED = 5
"""Draft tokens of a place, below which a share says nothing."""


def charts_of(canvas: Canvas) -> tuple[Chart, ...]:
    """The charts for which there are figures."""
    drawn = (
        _speedups(canvas),
        _acceptance(canvas),
        *(pass_chart(canvas, costs) for costs in canvas.comparison.costs),
        _speed_along(canvas),
    )
    return tuple(chart for chart in drawn if chart is not None)


def _speedups(canvas: Canvas) -> Chart | None:
    """How many times as fast as plain each contender is, on each kind of prompt."""
    values: list[Spec] = [
        {
            "kind": ALL_KINDS if row.kind is None else one_line(row.kind),
            "contender": canvas.names[row.contender],
            "speedup": row.speedup.median,
            "low": row.speedup.low,
            "high": row.speedup.high,
            "text": f"{row.speedup.median:.2f}x",
        }
        for row in canvas.comparison.rows
        if row.speedup is not None
    ]
    if not values:
        return None
    low = min(1.0, *(value["low"] for value in values))
    high = max(1.0, *(value["high"] for value in values))
    # Room for the figure behind the longest bar: about 45 pixels.
    room = max(0.1, high - low) / canvas.width
    x: Spec = {
        "type": "quantitative",
        "title": "times as fast as plain decoding",
        "scale": {"domain": [low - 12 * room, high + 60 * room], "nice": False, "zero": False},
        "axis": {"tickCount": 5, "labelExpr": "datum.label + 'x'"},
    }
    present = {value["kind"] for value in values}
    kinds = [kind for kind in (*map(one_line, kinds_of(canvas.comparison)), ALL_KINDS) if kind in present]
    shown = canvas.shown({value["contender"] for value in values})
    plain: Spec = {
        "data": {"values": [{"plain": 1.0}]},
        "mark": {"type": "rule", "color": canvas.palette.ink, "strokeDash": [4, 3]},
        "encoding": {"x": x | {"field": "plain"}},
    }
    bar: Spec = {
        "mark": {"type": "rule", "strokeWidth": 3, "opacity": 0.6},
        "encoding": {"x": x | {"field": "low"}, "x2": {"field": "high"}},
    }
    median: Spec = {
        "mark": {"type": "point", "filled": True, "size": 80, "opacity": 1},
        "encoding": {"x": x | {"field": "speedup"}, **canvas.marks(shown, "shape")},
    }
    figure: Spec = {
        "mark": {"type": "text", "align": "left", "dx": 9},
        "encoding": {
            "x": x | {"field": "high"},
            "text": {"field": "text"},
            "color": {"value": canvas.palette.ink},
        },
    }
    # Behind a figure, so that the dashed line does not run through it.
    halo: Spec = {
        "mark": {**figure["mark"], "strokeWidth": 5, "strokeJoin": "round", "aria": False},
        "encoding": {**figure["encoding"], "stroke": {"value": canvas.palette.paper}},
    }
    side_by_side: Spec = {
        "y": {
            "field": "kind",
            "type": "nominal",
            "title": None,
            "scale": {"domain": kinds, "paddingInner": _APART, "paddingOuter": 0.15},
            "axis": {"ticks": False, "domain": False, "labelPadding": 8},
        },
        "yOffset": {"field": "contender", "type": "nominal", "scale": {"domain": shown}},
        **canvas.marks(shown, "color"),
    }
    return Chart(
        "Speed-up by kind of prompt",
        "A mark is the median and the bar behind it reaches from the slowest answer to the fastest; right "
        "of the dashed line is faster than plain decoding, left of it slower.",
        {
            "data": {"values": values},
            "width": canvas.width,
            "height": {"step": _STEP, "for": "offset"},
            "layer": [plain, {"encoding": side_by_side, "layer": [halo, bar, median, figure]}],
        },
        round(_STEP * len(shown) * len(kinds) / (1 - _APART)),
    )


def _acceptance(canvas: Canvas) -> Chart | None:
    """The share of the tested draft tokens that were accepted, by their place in the draft."""
    values: list[Spec] = [
        {"contender": name, "place": place, "share": accepted / tested}
        for contender, name in enumerate(canvas.names)
        for place, (accepted, tested) in enumerate(_places(canvas.comparison, contender), 1)
        if tested >= _FEWEST_TESTED
    ]
    if not values:
        return None
    last = max(value["place"] for value in values)
    encoding: Spec = {
        "x": {
            "field": "place",
            "type": "quantitative",
            "title": "place in the draft",
            "scale": {"domain": [0.5, last + 0.5], "nice": False},
            "axis": {"values": list(range(1, last + 1, 1 + last // 13)), "grid": False, "format": "d"},
        },
        "y": {
            "field": "share",
            "type": "quantitative",
            "title": "accepted, of those tested",
            "scale": {"domain": [0, 1]},
            "axis": {"format": ".0%", "tickCount": 5},
        },
        **canvas.marks(canvas.shown({value["contender"] for value in values})),
    }
    return Chart(
        "Acceptance by position",
        "Of the draft tokens that the target tested in the first, second, ... place of a draft, the "
        f"share that it accepted; places tested fewer than {_FEWEST_TESTED} times are left out.",
        {
            "data": {"values": values},
            "width": canvas.width,
            "height": _HEIGHT,
            "mark": {"type": "line", "strokeWidth": 2, "point": {"filled": True, "size": 60}},
            "encoding": encoding,
        },
        _HEIGHT,
    )


def _speed_along(canvas: Canvas) -> Chart | None:
    """Tokens per second along an answer, a small chart for each kind of prompt."""
    values: list[Spec] = [
        {"kind": one_line(kind), "contender": name, "tokens": tokens, "rate": rate, "last": last}
        for kind in kinds_of(canvas.comparison)
        for contender, name in enumerate(canvas.names)
        for tokens, rate, last in _rates(_times(canvas.comparison, kind, contender))
    ]
    if not values:
        return None
    kinds = list(dict.fromkeys(value["kind"] for value in values))
    columns = min(canvas.columns, len(kinds))
    encoding: Spec = {
        "x": {
            "field": "tokens",
            "type": "quantitative",
            "title": "tokens of the answer",
            "axis": {"grid": False, "tickCount": 5},
        },
        "y": {
            "field": "rate",
            "type": "quantitative",
            "title": "tokens/s",
            "scale": {"zero": True},
            "axis": {"tickCount": 4},
        },
        **canvas.marks(canvas.shown({value["contender"] for value in values})),
    }
    end: Spec = {
        "transform": [{"filter": "datum.last"}],
        "mark": {"type": "point", "filled": True, "size": 60, "opacity": 1},
    }
    # Where shapes are encoded, Vega-Lite puts one at every point of a line that does not refuse.
    line: Spec = {"mark": {"type": "line", "strokeWidth": 2, "point": False}}
    small: Spec = {
        "width": (canvas.width - 40 * (columns - 1)) // columns,
        "height": _SMALL_HEIGHT,
        "encoding": encoding,
        "layer": [line, end],
    }
    return Chart(
        "Tokens per second over the answer",
        f"Each line is one answer to the first prompt of its kind, taken over {_WINDOW} tokens at a "
        "time: where it rises the drafts were right more often.",
        {
            "data": {"values": values},
            "facet": {"field": "kind", "type": "nominal", "sort": kinds},
            "columns": columns,
            "spacing": {"row": 14, "column": 24},
            "spec": small,
        },
        (_SMALL_HEIGHT + 35) * -(-len(kinds) // columns),
    )


def _places(comparison: Comparison, contender: int) -> list[tuple[int, int]]:
    """Accepted and tested draft tokens of the first, second, ... place, over all kinds."""
    rows = [row for row in comparison.rows if row.contender == contender]
    rows = [row for row in rows if row.kind is None] or rows
    length = max((len(row.tested_by_position) for row in rows), default=0)
    return [
        (
            sum(sum(row.accepted_by_position[place : place + 1]) for row in rows),
            sum(sum(row.tested_by_position[place : place + 1]) for row in rows),
        )
        for place in range(length)
    ]


def _times(comparison: Comparison, kind: str, contender: int) -> tuple[float, ...]:
    """When the tokens of the first prompt of this kind came: of its answers the one of middling speed."""
    answers = [answer for answer in comparison.answers if answer.kind == kind and answer.times_s]
    first = min((answer.prompt for answer in answers), default=None)
    own = sorted(
        (answer for answer in answers if answer.contender == contender and answer.prompt == first),
        key=lambda answer: answer.stats.tokens_per_second or 0.0,
    )
    return own[len(own) // 2].times_s if own else ()


def _rates(times_s: Sequence[float]) -> list[tuple[int, float, bool]]:
    """Tokens per second around places of an answer: the place, the rate, whether it is the last one.

    A round's tokens are there at one moment, so a rate is taken from the end of one round to that of another:
    of the two that enclose a window, which lies around the place, or at the answer's beginning or end.
    """
    ends = [(time, bisect_right(times_s, time)) for time in dict.fromkeys(times_s)]
    counts = [count for _, count in ends]
    step = max(1, len(ends) // _POINTS)
    found: list[tuple[int, float]] = []
    for _, count in ends[::step]:
        start = max(counts[0], min(count - _WINDOW // 2, counts[-1] - _WINDOW))
        before = bisect_right(counts, start) - 1
        after = min(len(ends) - 1, bisect_left(counts, start + _WINDOW))
        span_s = ends[after][0] - ends[before][0]
        if span_s > 0:
            found.append((count, (counts[after] - counts[before]) / span_s))
    return [(count, rate, place == len(found) - 1) for place, (count, rate) in enumerate(found)]
