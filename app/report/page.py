"""A comparison as one HTML page that needs nothing else: no network, no script, no other file."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, fields
from importlib import resources

from jinja2 import Environment, StrictUndefined
from markupsafe import Markup

from ..comparison import Comparison
from .canvas import Canvas
from .charts import charts_of
from .drawing import DARK, LIGHT, STYLED, Palette, draw_svg, looks_of
from .table import (
    COLUMNS,
    duration_text,
    file_name,
    kinds_of,
    lines_of,
    memory_text,
    one_line,
    recommended,
    settings_of,
    title_of,
)

_BROAD, _NARROW = 410, 270
"""Pixels within the axes of a chart, on a desk and on a phone."""

_DRAFTS_FROM = {
    "none": "nothing",
    "lookup": "the text so far",
    "model": "the draft model",
    "both": "the draft model and the text so far",
}


@dataclass(frozen=True)
class _Figure:
    title: str
    reading: str
    broad: Markup
    narrow: Markup


def page_of(comparison: Comparison) -> str:
    """The page; whatever strangers wrote, as names of models, stands in it as text."""
    environment = Environment(autoescape=True, undefined=StrictUndefined, finalize=_finalized)
    template = environment.from_string(
        resources.files(__name__.rpartition(".")[0]).joinpath("page.html").read_text(encoding="utf-8")
    )
    return template.render(
        comparison=comparison,
        title=title_of(comparison),
        machine=", ".join(comparison.machine),
        date=comparison.date.replace("T", " "),
        took=duration_text(comparison.seconds),
        light=tuple(_variables(LIGHT)),
        dark=tuple(_variables(DARK)),
        columns=COLUMNS,
        overall=lines_of(comparison, None),
        kinds=[(kind, lines_of(comparison, kind)) for kind in kinds_of(comparison)],
        best=recommended(comparison),
        looks=looks_of(comparison, STYLED),
        charts=_figures(comparison),
        settings=settings_of(comparison),
        drafts_from=_DRAFTS_FROM,
        memory=memory_text,
        file=file_name,
    )


def _figures(comparison: Comparison) -> list[_Figure]:
    broad = charts_of(Canvas(comparison, STYLED, _BROAD, columns=2))
    narrow = charts_of(Canvas(comparison, STYLED, _NARROW))
    return [
        _Figure(wide.title, wide.reading, _svg(wide.spec), _svg(slim.spec))
        for wide, slim in zip(broad, narrow, strict=True)
    ]


def _svg(spec: dict[str, object]) -> Markup:
    """A drawing, in which the library has escaped all text."""
    return Markup(draw_svg(spec, STYLED))


def _variables(palette: Palette) -> Iterable[tuple[str, str]]:
    """The names and values of the page's colours."""
    for field in fields(palette):
        if field.name != "marks":
            yield field.name, getattr(palette, field.name)
    for number, colour in enumerate(palette.marks):
        yield f"mark-{number}", colour


def _finalized(value: object) -> object:
    """What is written for a value: markup as it is, text without what could disturb a line."""
    return value if isinstance(value, Markup) or not isinstance(value, str) else one_line(value)
