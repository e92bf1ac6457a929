"""What a comparison is told to do, and what it says while it does it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from .compare_plan import Group
from .compare_prompts import Prompts
from .comparison import Answered, Contender, Row
from .requests import AnswerOptions, LoadOptions


@dataclass(frozen=True)
class Wanted:
    """What to compare, and how thoroughly."""

    targets: tuple[str, ...]
    drafts: tuple[str, ...]
    load: LoadOptions
    """How to load; the models it names are left aside."""
    options: AnswerOptions
    """What every answer is asked with; its drafter is what drafts are used with."""
    prompts: Prompts
    system: str | None = None
    repeats: int = 3
    """How often each prompt is answered at the most."""
    time_limit_s: float = 540.0
    """For all of it, loading included."""


@dataclass(frozen=True)
class Preparing:
    """Something is under way before the answers, in a few words."""

    what: str


@dataclass(frozen=True)
class Noted:
    """What a person should know, a sentence."""

    text: str


@dataclass(frozen=True)
class Answering:
    """A contender begins to answer."""

    name: str
    kind: str
    prompt: int
    answered: int
    """Answers that there are already, of all targets."""
    expected: int
    """Answers that there will be, as far as the time is expected to go."""
    left_s: float
    """Seconds until the end, as expected."""


@dataclass(frozen=True)
class Compared:
    """All contenders have answered a prompt once more; the figures up to now."""

    group: Group
    contenders: tuple[Contender, ...]
    answers: tuple[Answered, ...]
    """Those of the prompt."""
    rows: tuple[Row, ...]


Happening = Preparing | Noted | Answering | Compared
Tell = Callable[[Happening], None]
