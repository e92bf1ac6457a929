"""The figures of a comparison as text, as its page and its picture print them."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from ...models.text import printable
from ..comparison import Comparison, Row, Spread
from ..events import ModelInfo

NOT_MEASURED = "-"

COLUMNS = (
    "speed-up",
    "counted",
    "tokens/s",
    "accepted",
    "tokens per pass",
    "first token after",
    "text as plain",
)
"""Headings of a line's cells."""


@dataclass(frozen=True)
class Cell:
    """A figure, and how far it went from one answer to the next."""

    text: str
    spread: str = ""
    """Empty where there is one value only."""


@dataclass(frozen=True)
class Line:
    """What one contender did, on one kind of prompt or on all of them."""

    contender: int
    cells: tuple[Cell, ...]


def kinds_of(comparison: Comparison) -> tuple[str, ...]:
    """The kinds of prompts, in the order in which they come."""
    return tuple(dict.fromkeys(row.kind for row in comparison.rows if row.kind is not None))


def lines_of(comparison: Comparison, kind: str | None) -> tuple[Line, ...]:
    """A line for each contender, with all its figures, measured or not; kind `None` is all together."""
    rows = {row.contender: row for row in comparison.rows if row.kind == kind}
    return tuple(
        Line(contender, _cells(rows.get(contender), _same_text(comparison, contender, kind)))
        for contender in range(len(comparison.contenders))
    )


def memory_text(size_bytes: int) -> str:
    """A size for a person; one that is not known is not measured."""
    return f"{size_bytes / 1e9:.1f} GB" if size_bytes else NOT_MEASURED


def title_of(comparison: Comparison) -> str:
    """What was compared, and on which machine."""
    *rest, last = dict.fromkeys(model_name(contender.target) for contender in comparison.contenders)
    targets = f"{', '.join(rest)} and {last}" if rest else last
    return f"Speculative decoding of {targets}" + (
        f" on {comparison.machine[0]}" if comparison.machine else ""
    )


def recommended(comparison: Comparison) -> frozenset[int]:
    """The contenders to use, one for each target; plain decoding where that is best."""
    return frozenset(
        place
        for recommendation in comparison.recommendations
        for place, contender in enumerate(comparison.contenders)
        if (
            place == recommendation.best
            if recommendation.best is not None
            else contender.drafts == "none" and contender.target == recommendation.target
        )
    )


def duration_text(seconds: float) -> str:
    """How long something took, for a person."""
    return f"{seconds:.0f} s" if seconds < 90 else f"{seconds / 60:.0f} min"


def model_name(model: ModelInfo) -> str:
    """A model's name with its quantization."""
    return f"{model.name} ({model.quantization})" if model.quantization else model.name


def file_name(path: str) -> str:
    """The last part of a path of any system: the folders before it are nobody's business."""
    return re.split(r"[\\/]", path.rstrip("\\/"))[-1]


def settings_of(comparison: Comparison) -> tuple[tuple[str, str], ...]:
    """The settings as pairs of texts, nested ones under their joined names, files without their folders."""
    return tuple(_flat("", comparison.settings))


def one_line(text: str) -> str:
    """A text that a stranger may have written, without what moves a cursor or turns the direction."""
    return "".join(c if c.isprintable() else " " for c in printable(text))


def _cells(row: Row | None, same_text: str) -> tuple[Cell, ...]:
    if row is None:
        return (*(Cell(NOT_MEASURED) for _ in COLUMNS[:-1]), Cell(same_text))
    rate = row.acceptance_rate
    return (
        _spread_cell(row.speedup, 2, "x"),
        _spread_cell(row.counted_speedup, 2, "x"),
        _spread_cell(row.tokens_per_second, 1),
        Cell(NOT_MEASURED) if rate is None else Cell(f"{rate:.0%}", f"{row.accepted} of {row.drafted}"),
        Cell(NOT_MEASURED if row.tokens_per_pass is None else f"{row.tokens_per_pass:.2f}"),
        _spread_cell(row.ttft_s, 2, " s"),
        Cell(same_text),
    )


def _spread_cell(spread: Spread | None, digits: int, unit: str = "") -> Cell:
    if spread is None:
        return Cell(NOT_MEASURED)
    text = f"{spread.median:.{digits}f}{unit}"
    if spread.count < 2:
        return Cell(text)
    return Cell(text, f"{spread.low:.{digits}f}–{spread.high:.{digits}f}")


def _same_text(comparison: Comparison, contender: int, kind: str | None) -> str:
    compared = [
        answer.same_as_plain
        for answer in comparison.answers
        if answer.contender == contender and kind in (None, answer.kind) and answer.same_as_plain is not None
    ]
    if not compared:
        return NOT_MEASURED
    return "yes" if all(compared) else f"{sum(compared)} of {len(compared)}"


def _flat(prefix: str, settings: dict[str, object]) -> Iterable[tuple[str, str]]:
    for key, value in settings.items():
        name = f"{prefix}{key}".replace("_", " ")
        if isinstance(value, dict):
            yield from _flat(f"{name} ", {str(inner): held for inner, held in value.items()})  # pyright: ignore
        else:
            yield name, _setting_text(value)


def _setting_text(value: object) -> str:
    if value is None or value == "":
        return NOT_MEASURED
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:g}"
    if isinstance(value, (list, tuple)):
        return ", ".join(_setting_text(item) for item in value) or NOT_MEASURED  # pyright: ignore
    text = str(value)
    return file_name(text) if re.match(r"(~|[A-Za-z]:)?[\\/]", text) else text
