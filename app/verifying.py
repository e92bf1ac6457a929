"""Plain against drafted: the first difference, and whether the kernels' own rounding explains it.

llama.cpp's batch kernels may round differently from its single-row kernels. At temperature 0 that can
turn a near tie: the margin between the two tokens is then below what the same logits differ by when the
same text is decoded in passes of one and in passes of several. That noise is measured here, on the
answer's own text.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

from ..models.llama import Context
from .conversation import build_prompt
from .decoding.sampling import Sampler
from .engine import Engine
from .events import Ask, Finished
from .loading import LoadedModel
from .requests import AnswerOptions, Turn

_TYPICAL_DRAFT = 8


@dataclass(frozen=True)
class Difference:
    """Where two answers part."""

    position: int
    """Tokens of the answer before it."""
    plain_token: int | None
    drafted_token: int | None
    """`None` where that answer had ended."""
    plain_text: str
    drafted_text: str
    margin: float
    """How much larger the plain token's logit is, in a pass of one."""


@dataclass(frozen=True)
class Verification:
    """What came of comparing a plain and a drafted answer."""

    equal: bool
    tokens_compared: int
    pass_size: int
    """Tokens of the passes that the noise was measured with: as many as the largest that counted."""
    difference: Difference | None = None
    noise: float | None = None
    """The largest difference of a logit between passes of one and of `pass_size` over the same text."""
    drafted: int = 0
    accepted: int = 0
    strict: bool = False

    @property
    def explained(self) -> bool:
        """Whether the answers are equal, or differ by less than the noise, which strict does not excuse."""
        if self.strict and self.difference is not None:
            return False
        return self.difference is None or (self.noise is not None and self.difference.margin < self.noise)

    def told(self) -> str:
        """One line for a person."""
        tested = f"{self.accepted} of {self.drafted} drafted tokens accepted"
        if not self.drafted:
            return "[verify: nothing was drafted, so nothing was compared]"
        if self.difference is None:
            return f"[verify: {self.tokens_compared} tokens, plain and drafted are equal; {tested}]"
        found = self.difference
        return (
            f"[verify: the first difference is token {found.position + 1}: plain {found.plain_text!r}, "
            f"drafted {found.drafted_text!r}, a margin of {found.margin:.3f}; passes of 1 and of "
            f"{self.pass_size} over this text differ by up to {self.noise or 0.0:.3f}: "
            + (
                "strict allows no difference; "
                if self.strict
                else "rounding explains it; "
                if self.explained
                else "rounding does NOT explain it; "
            )
            + f"{tested}]"
        )


class Collector(Protocol):
    """Holds the last finished answer that the engine told of."""

    finished: Finished | None


def verify_answer(
    engine: Engine, turns: tuple[Turn, ...], options: AnswerOptions, heard: Collector
) -> Verification | None:
    """Answer plain and drafted at temperature 0, and compare token by token.

    `None` where one of the answers failed or was cancelled: half an answer proves nothing.
    """
    pair = engine.pair
    assert pair is not None

    def answered(speculate: str) -> Finished | None:
        # From an empty cache: how a prompt was cut into passes is part of how its results are rounded.
        pair.target.context.truncate(0)
        heard.finished = None
        drafting = replace(options.drafting, speculate=speculate)
        engine.ask(Ask(turns, replace(options, drafting=drafting)))
        return heard.finished if heard.finished and heard.finished.reason != "cancelled" else None

    plain = answered("off")
    drafted = answered(options.drafting.speculate) if plain else None
    if plain is None or drafted is None:
        return None
    stats = drafted.stats
    pass_size = 1 + max(options.drafting.draft_max or _TYPICAL_DRAFT, len(stats.tested_by_position))
    shared = next(
        (
            index
            for index, (left, right) in enumerate(zip(plain.token_ids, drafted.token_ids, strict=False))
            if left != right
        ),
        min(len(plain.token_ids), len(drafted.token_ids)),
    )
    if plain.token_ids == drafted.token_ids:
        return Verification(True, shared, pass_size, drafted=stats.drafted, accepted=stats.accepted)
    prompt = build_prompt(turns, pair.template, pair.target.model, pair.target.context.size).tokens
    noise, row = _measure(pair.target, prompt, list(plain.token_ids), shared, pass_size)
    logits = Sampler(options.sampling).adjusted(row, [*prompt, *plain.token_ids[:shared]])
    model = pair.target.model

    def token_at(answer: Finished) -> tuple[int | None, str, float]:
        if shared < len(answer.token_ids):
            token = answer.token_ids[shared]
            return token, model.piece(token, special=True).decode("utf-8", "replace"), float(logits[token])
        ends = max(logits[token] for token in range(logits.size) if model.ends_generation(token))
        return None, "(end of the answer)", float(ends)

    plain_token, plain_text, plain_logit = token_at(plain)
    drafted_token, drafted_text, drafted_logit = token_at(drafted)
    difference = Difference(
        shared, plain_token, drafted_token, plain_text, drafted_text, plain_logit - drafted_logit
    )
    return Verification(
        False,
        shared,
        pass_size,
        difference,
        noise,
        drafted=stats.drafted,
        accepted=stats.accepted,
        strict=options.drafting.strict,
    )


def _pass(context: Context, part: list[int]) -> np.ndarray[tuple[int, int], np.dtype[np.float32]]:
    """The rows of a pass over these tokens, in a tree with a decoy branch where the context has trees."""
    if context.branches == 1 or len(part) < 2:
        return context.decode(part, len(part))
    last = len(part) - 1
    rows = context.decode_tree([*part[:last], part[0], part[last]], [*range(-1, last), last - 1])
    kept = [*range(last), last + 1]
    context.keep(kept)
    return rows[kept]


def _measure(
    target: LoadedModel, prompt: list[int], answer: list[int], position: int, pass_size: int
) -> tuple[float, np.ndarray[tuple[int], np.dtype[np.float32]]]:
    """The noise over the answer's text, and the row of logits, float32 (vocabulary,), at `position`.

    Two fresh contexts read the same text side by side, one token by token, the other in passes. Where drafts
    may be trees, a decoy branch is laid before each pass's last token, so that cells end up out of order.
    """
    text = [prompt[-1], *answer]
    like = target.context
    make: Callable[[], Context] = lambda: like.fresh(len(prompt) + len(text) + pass_size)  # noqa: E731
    ones, several = make(), make()
    try:
        for context in (ones, several):
            for start in range(0, len(prompt) - 1, like.chunk):
                context.decode(prompt[start : min(start + like.chunk, len(prompt) - 1)], 0)
        noise = 0.0
        found = None
        for start in range(0, len(text), pass_size):
            part = text[start : start + pass_size]
            together = _pass(several, part)
            for offset, token in enumerate(part):
                alone = ones.decode([token], 1)[0]
                noise = max(noise, float(np.abs(alone - together[offset]).max()))
                if start + offset == position:
                    found = alone.copy()
        assert found is not None
        return noise, found
    finally:
        ones.close()
        several.close()
