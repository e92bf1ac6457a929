"""What can be changed from one answer to the next: how each parameter is read, judged and set."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from ..app.requests import MAX_DRAFT, AnswerOptions
from .actions import CommandError

HOTTEST = 5.0
_MOST = 10**9


@dataclass(frozen=True)
class Parameter:
    """One parameter of an answer."""

    name: str
    title: str
    help: str
    part: str
    """The part of the options that holds it, `sampling` or `drafting`; empty for the options themselves."""
    attribute: str
    read: Callable[[str], Any] = field(repr=False)
    """The value of a text; raises ValueError."""
    allowed: str
    """What a value may be, in words."""
    choices: tuple[str, ...] = ()
    nothing: str = ""
    """The word for no value, where there may be none."""

    def value(self, options: AnswerOptions) -> Any:
        """What it is now."""
        return getattr(getattr(options, self.part) if self.part else options, self.attribute)

    def text(self, options: AnswerOptions) -> str:
        """What it is now, as it would be typed."""
        value = self.value(options)
        if value is None:
            return self.nothing
        if isinstance(value, bool):
            return "on" if value else "off"
        return f"{value:g}" if isinstance(value, float) else str(value)

    def parse(self, text: str) -> Any:
        """The value of what was typed.

        Raises:
            CommandError: it can have no such value.
        """
        word = text.strip()
        if self.nothing and word.lower() == self.nothing:
            return None
        try:
            return self.read(word)
        except ValueError:
            raise CommandError(f"/{self.name} is {self.allowed}, not “{word}”") from None

    def set(self, options: AnswerOptions, value: Any) -> AnswerOptions:
        """The options with another value."""
        if not self.part:
            return replace(options, **{self.attribute: value})
        part = replace(getattr(options, self.part), **{self.attribute: value})
        return replace(options, **{self.part: part})


def _number(low: float, high: float, *, above: bool = False) -> Callable[[str], float]:
    def read(word: str) -> float:
        value = float(word.replace(",", "."))
        if not (low < value if above else low <= value) or not value <= high:
            raise ValueError(word)
        return value

    return read


def _whole(low: int, high: int = _MOST) -> Callable[[str], int]:
    def read(word: str) -> int:
        if not word.isdecimal() or not low <= int(word) <= high:
            raise ValueError(word)
        return int(word)

    return read


def _one_of(**words: Any) -> Callable[[str], Any]:
    def read(word: str) -> Any:
        if word.lower() not in words:
            raise ValueError(word)
        return words[word.lower()]

    return read


PARAMETERS = (
    Parameter(
        "temp", "Temperature", f"temperature, from 0 to {HOTTEST:g}", "sampling", "temperature",
        _number(0.0, HOTTEST), f"a number from 0 (the likeliest token) to {HOTTEST:g}",
    ),
    Parameter(
        "top-k", "Top-k", "sample among the N likeliest; 0 is all", "sampling", "top_k",
        _whole(0), "a whole number from 0 on",
    ),
    Parameter(
        "top-p", "Top-p", "sample among the likeliest that hold this much", "sampling", "top_p",
        _number(0.0, 1.0), "a number from 0 to 1",
    ),
    Parameter(
        "min-p", "Min-p", "leave out what is less likely than so many times the likeliest", "sampling",
        "min_p", _number(0.0, 1.0), "a number from 0 to 1",
    ),
    Parameter(
        "repeat-penalty", "Repeat penalty", "make the last tokens less likely; 1 is off", "sampling",
        "repeat_penalty", _number(0.0, 10.0, above=True), "a number above 0, at most 10",
    ),
    Parameter(
        "repeat-last-n", "Penalty reaches", "over so many tokens", "sampling", "repeat_last_n",
        _whole(0), "a whole number from 0 on",
    ),
    Parameter(
        "seed", "Seed", "the same seed, pair and machine: the same text", "sampling", "seed",
        _whole(0, 2**63), "a whole number from 0 on, or “random”", nothing="random",
    ),
    Parameter(
        "max-tokens", "Longest answer", "the most tokens of an answer", "", "max_tokens",
        _whole(1), "a whole number from 1 on, or “none”", nothing="none",
    ),
    Parameter(
        "spec", "Speculate", "draft where it pays, never, or always", "drafting", "speculate",
        _one_of(on="auto", auto="auto", off="off", always="always"), "on, off or always",
        choices=("auto", "always", "off"),
    ),
    Parameter(
        "drafter", "Drafter", "draft with the model, from the text so far, or with both", "drafting",
        "drafter", _one_of(model="model", lookup="lookup", both="both"), "model, lookup or both",
        choices=("both", "model", "lookup"),
    ),
    Parameter(
        "draft-max", "Longest draft", f"draft tokens per pass, from 1 to {MAX_DRAFT}", "drafting",
        "draft_max", _whole(1, MAX_DRAFT),
        f"a whole number from 1 to {MAX_DRAFT}, or “auto”; /spec off stops drafting", nothing="auto",
    ),
    Parameter(
        "strict", "Strict", "bit for bit the plain text", "drafting", "strict",
        _one_of(on=True, off=False), "on or off", choices=("off", "on"),
    ),
)  # fmt: skip

BY_NAME = {parameter.name: parameter for parameter in PARAMETERS}
