"""The chart of what a pass costs: the staircase that decides how much can be won by drafting."""

from __future__ import annotations

from collections.abc import Sequence

from ..comparison import PassCosts
from .canvas import Canvas, Chart
from .drawing import Spec
from .table import model_name, one_line

_HEIGHT = 240


def pass_chart(canvas: Canvas, costs: PassCosts) -> Chart | None:
    """What a pass of one target costs, by the tokens in it, and what passes of its drafts cost."""
    sizes = sorted(costs.target_s)
    if not sizes:
        return None
    drafts = {one_line(name): seconds for name, seconds in costs.draft_s.items()}
    top_ms = max(costs.target_s.values()) * 1.3e3
    bottom_ms = min([*costs.target_s.values(), *drafts.values()]) * 0.7e3
    # Logarithms on both axes: a draft's pass is far below a long one, and it is short ones that matter.
    axes: Spec = {
        "x": {
            "field": "tokens",
            "type": "quantitative",
            "title": "tokens in the pass",
            "scale": {"type": "log", "base": 2, "domain": [0.9, sizes[-1] * 1.1], "nice": False},
            "axis": {"grid": False, "format": "d", "values": [2**power for power in range(12)]},
        },
        "y": {
            "field": "ms",
            "type": "quantitative",
            "title": "milliseconds",
            "scale": {"type": "log", "domain": [bottom_ms, top_ms], "nice": False},
            "axis": {"values": [step * 10**power for power in range(-2, 6) for step in (1, 2, 5)]},
        },
    }
    measured: Spec = {
        "data": {"values": [{"tokens": size, "ms": costs.target_s[size] * 1e3} for size in sizes]},
        "mark": {
            "type": "line",
            "color": canvas.palette.ink,
            "strokeWidth": 2,
            "point": {"filled": True, "size": 50, "color": canvas.palette.ink},
        },
        "encoding": axes,
    }
    layers = [measured]
    one_s = costs.target_s.get(1)
    reading = (
        "The solid line is what the target takes for one pass over so many tokens: along the flat line "
        "drafts are tested for nothing, along the steep one testing them costs as much as it saves; both "
        "axes are logarithmic."
    )
    if one_s is not None and sizes[-1] > 1:
        layers += _ideals(canvas, one_s * 1e3, sizes[-1], top_ms, axes)
    shown = [name for name in canvas.names if name in drafts]
    if shown:
        values = [{"contender": name, "tokens": 1, "ms": drafts[name] * 1e3} for name in shown]
        layers.append(
            {
                "data": {"values": values},
                "mark": {"type": "point", "filled": True, "size": 80, "opacity": 1},
                "encoding": axes | canvas.marks(shown, "color", "shape"),
            }
        )
        reading += f" A draft's pass over one token: {_drafts_told(shown, drafts, one_s)}."
    return Chart(
        f"What a pass costs: {one_line(model_name(costs.target))}",
        reading,
        {"width": canvas.width, "height": _HEIGHT, "layer": layers},
        _HEIGHT,
    )


def _ideals(canvas: Canvas, one_ms: float, last: int, top_ms: float, axes: Spec) -> list[Spec]:
    """The line of a pass that costs the same whatever is in it, and that of single passes."""
    end = min(float(last), top_ms / one_ms)
    layers: list[Spec] = []
    for tokens, ms, dash in ((float(last), one_ms, [6, 4]), (end, end * one_ms, [2, 3])):
        line = [{"tokens": 1.0, "ms": one_ms}, {"tokens": tokens, "ms": ms}]
        layers.append(
            {
                "data": {"values": line},
                "mark": {"type": "line", "color": canvas.palette.soft, "strokeDash": dash},
                "encoding": axes,
            }
        )
    steep: Spec = {"align": "right", "dx": -28, "dy": 4}
    if end * end < last:  # it leaves the chart left of the middle
        steep = {"align": "left", "dx": 8, "dy": 6}
    for tokens, ms, text, place in (
        (float(last), one_ms, "flat: as one token", {"align": "right", "dy": -7}),
        (end, end * one_ms, "steep: as single passes", steep),
    ):
        layers.append(
            {
                "data": {"values": [{"tokens": tokens, "ms": ms, "text": text}]},
                "mark": {"type": "text", "color": canvas.palette.soft, **place},
                "encoding": axes | {"text": {"field": "text"}},
            }
        )
    return layers


def _drafts_told(names: Sequence[str], seconds: dict[str, float], one_s: float | None) -> str:
    """What each draft's pass costs, beside the target's."""
    if one_s is None:
        return ", ".join(f"{name} {seconds[name] * 1e3:.1f} ms" for name in names)
    return ", ".join(
        f"{name} {seconds[name] * 1e3:.1f} ms ({seconds[name] / one_s:.0%} of the target's)" for name in names
    )
