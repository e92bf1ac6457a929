"""A comparison as tables that fit 80 columns and are read without colours."""

from __future__ import annotations

from collections.abc import Sequence

from rich import box
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from .comparison import Comparison, Contender, Row, Spread
from .terminal import one_line

_NONE = "-"
_COLUMNS = 6
"""Kinds side by side, so that the table fits."""

_WHY_TEXTS_DIFFER = "Kernels for several tokens may round differently from those for one: see --strict."


def tables(contenders: Sequence[Contender], rows: Sequence[Row]) -> RenderableType:
    """Speed-ups by kind, then the other figures of all kinds together."""
    kinds = [*dict.fromkeys(row.kind for row in rows if row.kind is not None), None]
    found = {(row.contender, row.kind): row for row in rows}
    seen = [(index, one) for index, one in enumerate(contenders) if (index, None) in found]
    parts: list[RenderableType] = []
    for start in range(0, len(kinds), _COLUMNS):
        shown = kinds[start : start + _COLUMNS]
        speed = _table("speed-up", *(one_line(kind) if kind else "all" for kind in shown))
        for index, contender in seen:
            if contender.drafts != "none":
                speed.add_row(
                    Text(one_line(contender.name)), *(_ratio(found.get((index, kind))) for kind in shown)
                )
        parts.append(speed)
    figures = _table("all kinds", "tok/s", "counted", "accepted", "tok/pass", "first", "memory")
    for index, contender in seen:
        row = found[index, None]
        figures.add_row(
            Text(one_line(contender.name)),
            _middle(row.tokens_per_second, "{:.1f}"),
            _middle(row.counted_speedup, "{:.2f}x"),
            _NONE if row.acceptance_rate is None else f"{row.acceptance_rate:.0%}",
            _NONE if row.tokens_per_pass is None else f"{row.tokens_per_pass:.2f}",
            _middle(row.ttft_s, "{:.2f} s"),
            f"{contender.memory_bytes / 1e6:,.0f} MB",
        )
    return Group(*parts, Text(), figures)


def texts(comparison: Comparison) -> list[str]:
    """Whether contenders wrote what plain decoding did, in sentences; none above temperature 0."""
    compared = [one for one in comparison.answers if one.same_as_plain is not None]
    if all(one.same_as_plain for one in compared):
        return ["All texts are the plain ones, token by token."] if compared else []
    said: list[str] = []
    for index, contender in enumerate(comparison.contenders):
        mine = [one for one in compared if one.contender == index]
        differs = [one.differs_from for one in mine if one.differs_from is not None]
        if mine:
            sentence = f"{contender.name}: {len(mine) - len(differs)} of {len(mine)} texts are the plain ones"
            first = f", others differ from token {min(differs)} on or later" if differs else ""
            said.append(f"{sentence}{first}.")
    return [*said, _WHY_TEXTS_DIFFER]


def _table(*columns: str) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1), collapse_padding=True, show_edge=False)
    table.add_column(Text(columns[0]), overflow="fold")
    for column in columns[1:]:
        table.add_column(Text(column), justify="right", no_wrap=True)
    return table


def _ratio(row: Row | None) -> str:
    """The median, and below it the least and the largest."""
    if row is None or row.speedup is None:
        return _NONE
    spread = row.speedup
    middle = f"{spread.median:.2f}x"
    return middle if spread.count == 1 else f"{middle}\n{spread.low:.2f}-{spread.high:.2f}"


def _middle(spread: Spread | None, form: str) -> str:
    return _NONE if spread is None else form.format(spread.median)
