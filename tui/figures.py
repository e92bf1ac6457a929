"""Figures as text: rates, shares, sizes and sparklines; what was not measured is a dash."""

from __future__ import annotations

from collections.abc import Sequence

NOT_MEASURED = "-"
_LEVELS = "▁▂▃▄▅▆▇█"


def rate(value: float | None) -> str:
    """Tokens per second, with one decimal below a hundred."""
    if value is None:
        return NOT_MEASURED
    return f"{value:.1f}" if value < 99.95 else f"{value:.0f}"


def percent(value: float | None) -> str:
    """A share of one as a whole percentage."""
    return NOT_MEASURED if value is None else f"{100 * value:.0f} %"


def times(value: float | None) -> str:
    """A ratio, as in 1.32×."""
    return NOT_MEASURED if value is None else f"{value:.2f}×"


def plain_number(value: float | None, decimals: int = 2) -> str:
    """A number with a fixed count of decimals."""
    return NOT_MEASURED if value is None else f"{value:.{decimals}f}"


def seconds(value: float | None) -> str:
    """A duration, in milliseconds below a second."""
    if value is None:
        return NOT_MEASURED
    return f"{1000 * value:.0f} ms" if value < 0.9995 else f"{value:.1f} s"


def count(value: int) -> str:
    """A whole number with its thousands apart."""
    return f"{value:,}"


def size(value: int | None) -> str:
    """Bytes in the unit that a person would use."""
    if value is None:
        return NOT_MEASURED
    amount = float(value)
    for unit in ("B", "kB", "MB"):
        if amount < 1000:
            return f"{amount:.0f} {unit}"
        amount /= 1000
    return f"{amount:.2f} GB" if amount < 10 else f"{amount:.1f} GB"


def parameters(value: int) -> str:
    """How many weights a model has."""
    if value >= 10**9:
        return f"{value / 10**9:.1f}B"
    if value >= 10**6:
        return f"{value / 10**6:.0f}M"
    return count(value)


def sparkline(values: Sequence[float], width: int, top: float | None = None) -> str:
    """The last `width` values as a line of bars from zero to `top`, or to the largest of them."""
    shown = list(values)[-width:]
    ceiling = max(shown, default=0.0) if top is None else top
    if ceiling <= 0:
        return _LEVELS[0] * len(shown)
    last = len(_LEVELS) - 1
    return "".join(_LEVELS[round(max(0.0, min(1.0, value / ceiling)) * last)] for value in shown)
