"""Made-up comparisons: what `specchat compare` might have measured."""

from __future__ import annotations

import random
from collections.abc import Sequence

from specchat.app.comparison import (
    Answered,
    Comparison,
    Contender,
    Drafts,
    PassCosts,
    Recommendation,
    Row,
    Spread,
)
from specchat.app.decoding.stats import AnswerStats
from specchat.app.events import ModelInfo

KINDS = ("code", "edit", "json", "explanation", "story")
_TARGET_S = {1: 0.088, 2: 0.145, 3: 0.148, 4: 0.137, 5: 0.166, 6: 0.169, 8: 0.17, 12: 0.2, 16: 0.23}
_SHARE = {"code": 0.86, "edit": 0.92, "json": 0.8, "explanation": 0.66, "story": 0.5}


def model(name: str, quantization: str = "Q4_K_M", path: str | None = None) -> ModelInfo:
    file = path or f"/home/jane/models/{name.lower().replace(' ', '-')}-{quantization.lower()}.gguf"
    return ModelInfo(name, file, quantization, 1_117_320_736, 1_543_714_304, 32768)


TARGET = model("Qwen2.5 Coder 1.5B Instruct")
DRAFT = model("Qwen2.5 Coder 0.5B Instruct", "Q4_0")


def contender(
    name: str, drafts: Drafts, target: ModelInfo = TARGET, draft: ModelInfo | None = None
) -> Contender:
    return Contender(name, target, draft, drafts, 1_432_000_000)


PLAIN = contender("plain", "none")
LOOKUP = contender("lookup", "lookup")
BOTH = contender("qwen2.5-coder-0.5b-q4_0, both", "both", draft=DRAFT)
MODEL = contender("qwen2.5-coder-0.5b-q4_k_m", "model", draft=model("Qwen2.5 Coder 0.5B Instruct"))


def comparison(
    contenders: Sequence[Contender] = (PLAIN, LOOKUP, BOTH, MODEL),
    kinds: Sequence[str] = KINDS,
    *,
    complete: bool = True,
    seed: int = 1,
) -> Comparison:
    """Every contender on every kind, each asked three times the same; figures within what is usual."""
    chance = random.Random(seed)
    answers = [
        _answered(chance, place, one, kind)
        for kind in kinds
        for place, one in enumerate(contenders)
        for _ in range(3)
    ]
    rows = [
        _row(answers, place, one, kind) for place, one in enumerate(contenders) for kind in (*kinds, None)
    ]
    targets = list(dict.fromkeys(one.target for one in contenders))
    return Comparison(
        date="2026-11-30T14:06:55",
        machine=("AMD EPYC 9B14", "2 cores", "x86_64"),
        build="llama-cpp-python 0.3.36: CPU : SSE3 = 1 | SSSE3 = 1 | AVX = 1 | AVX2 = 1 | FMA = 1",
        settings={
            "temperature": 0.0,
            "max_tokens": 160,
            "ctx_size": 4096,
            "threads": 2,
            "drafting": {"speculate": "auto", "draft_max": None, "strict": False},
            "prompts": "/home/jane/prompts.txt",
        },
        contenders=tuple(contenders),
        rows=tuple(rows),
        costs=tuple(_costs(target, contenders) for target in targets),
        answers=tuple(answers),
        recommendations=tuple(
            Recommendation(
                target,
                next((i for i, one in enumerate(contenders) if one.draft and one.target == target), None),
                f"Use qwen2.5-coder-0.5b-q4_0, both with {target.name}: 1.7x on code, 2.1x on edits, no gain "
                "on stories.",
                (
                    "lookup: 1.4x on edits, as fast as plain elsewhere.",
                    "q4_k_m: slower than plain on stories.",
                ),
            )
            for target in targets
        ),
        complete=complete,
        seconds=412.3,
    )


def empty(contenders: Sequence[Contender] = (PLAIN, BOTH)) -> Comparison:
    """One that was stopped before anything was measured."""
    return Comparison(
        date="2026-11-30T14:06:55",
        machine=(),
        build="",
        settings={},
        contenders=tuple(contenders),
        rows=(),
        costs=(),
        answers=(),
        recommendations=(),
        complete=False,
        seconds=0.4,
    )


def _costs(target: ModelInfo, contenders: Sequence[Contender]) -> PassCosts:
    drafts = [one for one in contenders if one.draft is not None and one.target == target]
    return PassCosts(target, dict(_TARGET_S), {one.name: 0.021 + 0.01 * i for i, one in enumerate(drafts)})


def _answered(chance: random.Random, place: int, one: Contender, kind: str) -> Answered:
    share = {
        "none": 0.0,
        "lookup": _SHARE.get(kind, 0.7) - 0.25,
        "model": _SHARE.get(kind, 0.7),
        "both": _SHARE.get(kind, 0.7),
    }[one.drafts]
    now, passes, times = 0.0, 0, []
    accepted_at, tested_at = [0] * 4, [0] * 4
    slow = chance.uniform(0.97, 1.08)
    while len(times) < 160:
        drafted = 0 if one.drafts == "none" or (one.drafts == "lookup" and chance.random() < 0.6) else 4
        accepted = 0
        while accepted < drafted and chance.random() < share * (1 - 0.03 * accepted):
            accepted += 1
        for position in range(min(accepted + 1, drafted)):
            tested_at[position] += 1
            accepted_at[position] += position < accepted
        now += slow * (_TARGET_S[drafted + 1] + (0.021 * drafted if one.draft else 0.0))
        passes += 1
        times += [now] * (accepted + 1)
    stats = AnswerStats(
        ttft_s=chance.uniform(0.9, 1.4),
        tokens_per_second=len(times) / now,
        tokens_per_pass=len(times) / passes,
        completion_tokens=len(times),
        target_passes=passes,
        drafted=sum(tested_at),
        accepted=sum(accepted_at),
        accepted_by_position=tuple(accepted_at),
        tested_by_position=tuple(tested_at),
    )
    counted = None if one.drafts == "none" else len(times) * _TARGET_S[1] * slow / now
    same = None if one.drafts == "none" else chance.random() < 0.95
    return Answered(place, kind, 0, stats, counted, tuple(times), same)


def _row(answers: Sequence[Answered], place: int, one: Contender, kind: str | None) -> Row:
    own = [answer for answer in answers if answer.contender == place and kind in (None, answer.kind)]
    stats = [answer.stats for answer in own]
    rates = [figures.tokens_per_second or 0.0 for figures in stats]
    plain = 1 / _TARGET_S[1]
    places = range(4)
    return Row(
        contender=place,
        kind=kind,
        tokens_per_second=Spread.of(rates),
        speedup=None if one.drafts == "none" else Spread.of([rate / plain for rate in rates]),
        counted_speedup=Spread.of([a.counted_speedup for a in own if a.counted_speedup is not None]),
        ttft_s=Spread.of([figures.ttft_s or 0.0 for figures in stats]),
        tokens_per_pass=sum(figures.tokens_per_pass or 0.0 for figures in stats) / len(stats)
        if stats
        else None,
        drafted=sum(figures.drafted for figures in stats),
        accepted=sum(figures.accepted for figures in stats),
        accepted_by_position=tuple(sum(f.accepted_by_position[i] for f in stats) for i in places),
        tested_by_position=tuple(sum(f.tested_by_position[i] for f in stats) for i in places),
    )
