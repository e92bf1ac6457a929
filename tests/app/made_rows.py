"""Contenders, answers and rows as a comparison would hold them, for the tests of its figures."""

from __future__ import annotations

from specchat.app.comparison import Answered, Contender, Drafts, Row, Spread
from specchat.app.decoding.stats import AnswerStats
from specchat.app.events import ModelInfo


def model(name: str) -> ModelInfo:
    return ModelInfo(name, f"/models/{name}.gguf", "Q4_0", 1_000_000, 1_000_000, 2048)


TARGET = model("big")


def contender(
    name: str, drafts: Drafts = "both", target: ModelInfo = TARGET, memory: int = 10**9
) -> Contender:
    draft = model(name) if drafts in ("both", "model") else None
    return Contender(name, target, draft, drafts, memory)


PLAIN, LOOKUP = contender("plain", "none"), contender("lookup", "lookup")


def answered(
    contender: int, rate: float | None, kind: str = "code", prompt: int = 0, repeat: int = 0, **stats
) -> Answered:
    figures = AnswerStats(tokens_per_second=rate, **{"drafted": 1, **stats})
    return Answered(contender, kind, prompt, figures, None, (), None, None, repeat)


def row(contender: int, kind: str | None, speedup: Spread | None, counted: float | None = None) -> Row:
    return Row(
        contender=contender,
        kind=kind,
        tokens_per_second=None,
        speedup=speedup,
        counted_speedup=Spread(counted, counted, counted, 1) if counted else None,
        ttft_s=None,
        tokens_per_pass=None,
        drafted=0,
        accepted=0,
        accepted_by_position=(),
        tested_by_position=(),
    )


def rows(contender: int, overall: float, **kinds: tuple[float, float]) -> list[Row]:
    """Rows with these least and largest speed-ups by kind."""
    made = [
        row(contender, kind, Spread((low + high) / 2, low, high, 3)) for kind, (low, high) in kinds.items()
    ]
    return [*made, row(contender, None, Spread(overall, overall, overall, len(kinds)))]
