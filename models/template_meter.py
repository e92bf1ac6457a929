"""What one run of a chat template may make, and what its calls would make, told before they are made."""

from __future__ import annotations

import re
import string
from collections.abc import Callable, ItemsView, Iterable, KeysView, Mapping, Sequence, Sized, ValuesView
from types import MappingProxyType
from typing import Any, TypeAlias, cast

from jinja2 import TemplateRuntimeError

SECONDS = 2.0
"""Of the processor's time, for one run."""
_LONGEST_REPEAT = 100_000
"""How long a repeated text or list may become."""
_LARGEST_INT = 10_000
"""Bits."""
LONGEST_NEEDLE = 1_000
"""Characters to look for from the right, or to strip: looking for many takes the product of both lengths."""


class Meter:
    """What one run may still make, and until when."""

    def __init__(self, room: int, clock: Callable[[], float]) -> None:
        self._left = self._most = room
        self._steps = 0
        self._clock, self._ends = clock, clock() + SECONDS
        self._weights: dict[int, tuple[object, int]] = {}
        """Of lists and dictionaries by their ids. They never change, and stay here, so ids stay theirs."""

    def pay(self, amount: int) -> None:
        """Take from what may be made; a step that makes nothing pays 0.

        Raises:
            TemplateRuntimeError: The time or the room is used up.
        """
        self._left -= amount
        if self._left < 0:
            raise TemplateRuntimeError("it makes texts or lists without end")
        self._steps += 1
        if (amount > 1_000 or self._steps % 8 == 0) and self._clock() > self._ends:
            raise TemplateRuntimeError(f"it takes more than {SECONDS:g} seconds")

    def afford(self, amount: int) -> None:
        """Take nothing, but see that there would be enough.

        Raises:
            TemplateRuntimeError: There would not.
        """
        if amount > self._left:
            raise TemplateRuntimeError("it makes texts or lists without end")

    def weight(self, value: object) -> int:
        """How many characters and items are in a value, counted as often as they would be written.

        Raises:
            TemplateRuntimeError: More than a run may make: such a value is never to be walked through.
        """
        if isinstance(value, str | bytes):
            return len(value)
        if isinstance(value, int):
            return 1 + value.bit_length() // 8
        if not isinstance(value, list | tuple | dict):
            return 1
        container = cast("list[object] | tuple[object, ...] | dict[object, object]", value)
        if id(container) not in self._weights:
            weight = len(container)
            for part in container:
                weight += self.weight(part)
                if isinstance(container, dict):
                    weight += self.weight(container[part])
                if weight > self._most:
                    raise TemplateRuntimeError("it makes lists in lists without end")
            self._weights[id(container)] = container, weight
        return self._weights[id(container)][1]

    def made(self, value: Any) -> Any:
        """The value, paid for: a text by its length, and a list by its own, its parts having been paid."""
        if isinstance(value, KeysView | ValuesView | ItemsView):
            value = list(cast("Iterable[Any]", value))
        if isinstance(value, str | bytes | list | tuple | dict):
            self.pay(len(cast("str | bytes | list[Any] | tuple[Any, ...] | dict[Any, Any]", value)))
            self.weight(cast("object", value))
        else:
            self.pay(0)
        return cast("Any", value)

    def written(self, value: Any) -> Any:
        """The value, paid for as often as its parts are written."""
        self.pay(self.weight(value))
        return value


_WIDE_PERCENT = re.compile(r"%(\([^()]*\))?[-#0 +]*(\d*\.)?(\*|\d{5})|%\([^()]*\(")

Check: TypeAlias = Callable[[Meter, tuple[Any, ...], Mapping[str, Any]], None]


def check_product(left: Any, right: Any) -> None:
    """What `*` makes: no number and no repeated text or list may be huge."""
    if isinstance(left, int) and isinstance(right, int):
        if left.bit_length() + right.bit_length() > _LARGEST_INT:
            raise TemplateRuntimeError("a number is too large")
        return
    for length, times in ((left, right), (right, left)):
        if isinstance(times, int) and isinstance(length, Sized) and len(length) * times > _LONGEST_REPEAT:
            raise TemplateRuntimeError("a repetition is too long")


def check_percent(meter: Meter, form: str, values: Any) -> None:
    """What `%` writes: no field may be made wide, and none may be written very often."""
    if _WIDE_PERCENT.search(form):
        raise TemplateRuntimeError("a field is too wide")
    meter.pay(_widths(form) + form.count("%") * meter.weight(values))


def check_braces(meter: Meter, form: str, values: Any) -> None:
    """What `format` writes, likewise; a width that is itself a field could be any."""
    fields = 0
    for _, field, spec, _ in string.Formatter().parse(form):
        if re.search(r"\{|\d{5}", spec or ""):
            raise TemplateRuntimeError("a field is too wide")
        fields += field is not None
    meter.pay(_widths(form) + fields * meter.weight(values))


def _widths(form: str) -> int:
    """How wide a text's own characters and its fields are, if every number in it is the width of one."""
    return len(form) + sum(map(int, re.findall(r"\d{1,5}", form)))


def _check_replace(meter: Meter, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
    said = {**dict(zip(("s", "old", "new"), args, strict=False)), **kwargs}
    text, old, new = (str(said[name]) for name in ("s", "old", "new"))
    meter.pay(len(text) + text.count(old) * len(new))


def _check_join(meter: Meter, args: tuple[Any, ...], _kwargs: Mapping[str, Any]) -> None:
    if len(args) > 1 and isinstance(args[1], list | tuple | str | dict):
        parts = cast("Sequence[Any]", args[1])
        meter.pay(meter.weight(parts) + len(parts) * len(args[0]))
    elif len(args) > 1:
        raise TemplateRuntimeError("join takes a list")


def _check_needle(_meter: Meter, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
    if any(isinstance(part, str) and len(part) > LONGEST_NEEDLE for part in (*args[1:], *kwargs.values())):
        raise TemplateRuntimeError("what is looked for is too long")


def _check_indent(meter: Meter, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
    text = str(args[0])
    for width in (*args[1:], *kwargs.values()):
        by = len(width) if isinstance(width, str) else int(width)
        meter.pay((text.count("\n") + 1) * by)


def _check_round(_meter: Meter, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
    if any(isinstance(part, int) and abs(part) > 100 for part in (*args[1:], *kwargs.values())):
        raise TemplateRuntimeError("a number has too many digits")


def _check_sum(_meter: Meter, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
    start = args[2] if len(args) > 2 else kwargs.get("start", 0)
    if not isinstance(start, int | float):
        raise TemplateRuntimeError("sum adds numbers")


def _check_characters(meter: Meter, args: tuple[Any, ...], _kwargs: Mapping[str, Any]) -> None:
    """A text in many parts takes many times its room."""
    if isinstance(args[0], str):
        meter.afford(20 * len(args[0]))


def _check_format(meter: Meter, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
    check_percent(meter, str(args[0]), dict(kwargs) or args[1:])


def _check_written(meter: Meter, args: tuple[Any, ...], _kwargs: Mapping[str, Any]) -> None:
    meter.written(args[0])


CHECKS: Mapping[str, Check] = MappingProxyType({
    "format": _check_format, "indent": _check_indent, "join": _check_join, "replace": _check_replace,
    "round": _check_round, "string": _check_written, "safe": _check_written, "sum": _check_sum,
    **dict.fromkeys(("lstrip", "rstrip", "strip", "trim", "rfind", "rindex", "rpartition", "rsplit"),
                    _check_needle),
    **dict.fromkeys(("list", "map", "reject", "select", "sort", "unique", "groupby", "split", "splitlines"),
                    _check_characters),
})  # fmt: skip
"""By the name of a filter or of a text's method; each is given what it works on first."""
