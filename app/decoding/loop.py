"""The speculative loop: draft, one target pass, accept, cut both caches back, and again."""

from __future__ import annotations

from collections.abc import Callable, Generator

import numpy as np

from .acceptance import Rule, speculative
from .drafters import NOTHING, Drafter
from .pacing import Pacing
from .passes import Passes
from .sampling import Sampler
from .stats import Emitted, FinishReason, Round


def generate(
    target: Passes,
    drafter: Drafter,
    prompt: list[int],
    *,
    sampler: Sampler,
    pacing: Pacing,
    draws: np.random.Generator,
    clock: Callable[[], float],
    max_tokens: int | None = None,
    cancelled: Callable[[], bool] = lambda: False,
    accept: Rule = speculative,
) -> Generator[Round]:
    """Decode an answer to `prompt`, one round per target pass; the last round says why it was the last.

    On entry the target's cache holds all of the prompt but its last token, and `drafter` has observed
    all of it. When a round is yielded, and when the generator ends or is closed in whatever way, both
    caches hold what was accepted and nothing else; the newest token is in neither until the next pass,
    and an end-of-generation token, or what was drafted after one, in neither ever.
    """
    text = list(prompt)
    settled = len(text)  # tokens that no failure can take back
    emitted_count = 0
    round_ended = clock()
    try:
        while True:
            finish: FinishReason | None = None
            if cancelled():
                finish = "cancelled"
            elif len(text) > target.size:
                finish = "context"
            elif max_tokens is not None and emitted_count >= max_tokens:
                finish = "length"
            # A pass over the newest token and k drafted ones fills k + 1 cells and gives up to k + 1 tokens.
            limit = target.size - len(text)
            if max_tokens is not None:
                limit = min(limit, max_tokens - emitted_count - 1)
            plan = pacing.plan(max(limit, 0))
            if finish is not None:
                yield Round((), 0, 0, 0, 0.0, 0.0, 0.0, plan.state, plan.reason, finish)
                return

            target_s, draft_s = target.pass_s, drafter.pass_s
            proposal = drafter.propose(plan.length) if plan.length > 0 else NOTHING
            drafted = proposal.tokens
            rows = target.decode([text[-1], *drafted], len(drafted) + 1)

            kept: list[Emitted] = []
            accepted = tested = 0
            for token, q, logits in zip(drafted, proposal.distributions, rows, strict=False):
                p = sampler.distribution(logits, text)
                stands = accept(p, q, token, draws)
                tested += 1
                text.append(stands)
                kept.append(Emitted(stands, "accepted" if stands == token else "correction"))
                if stands != token:
                    break
                accepted += 1
                if target.model.ends_generation(stands):
                    break
            else:
                # Every drafted token stands: the last row is one more token for nothing.
                text.append(sampler.distribution(rows[-1], text).draw(draws.random()))
                kept.append(Emitted(text[-1], "target"))

            if target.model.ends_generation(text[-1]):
                text.pop()
                kept.pop()
                finish = "stop"
            emitted_count += len(kept)
            target.truncate(len(text) - (finish is None))
            drafter.observe([emitted.token for emitted in kept])
            settled = len(text)

            now = clock()
            done = Round(
                emitted=tuple(kept),
                proposed=len(drafted),
                accepted=accepted,
                tested=tested,
                target_s=target.pass_s - target_s,
                draft_s=drafter.pass_s - draft_s,
                wall_s=now - round_ended,
                state=plan.state,
                reason=plan.reason,
                finish=finish,
            )
            round_ended = now
            pacing.observe(done)
            yield done
            if finish is not None:
                return
    finally:
        # A round that failed in the middle leaves nothing behind either.
        target.truncate(settled)
        drafter.observe([])
