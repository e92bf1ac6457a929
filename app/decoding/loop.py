"""The speculative loop: draft, one target pass, accept, cut both caches back, and again."""

from __future__ import annotations

from collections.abc import Callable, Generator

import numpy as np

from ...models.errors import PassError
from .acceptance import Rule, speculative
from .pacing import Pacing
from .passes import Passes
from .sampling import Distribution, Sampler
from .stats import Emitted, FinishReason, Round


def generate(
    target: Passes,
    pacing: Pacing,
    prompt: list[int],
    *,
    sampler: Sampler,
    draws: np.random.Generator,
    clock: Callable[[], float],
    max_tokens: int | None = None,
    cancelled: Callable[[], bool] = lambda: False,
    accept: Rule = speculative,
) -> Generator[Round]:
    """Decode an answer to `prompt`, one round per target pass; the last round says why it was the last.

    On entry the target's cache holds all of the prompt but its last token, and the drafters of `pacing`
    have observed all of it. When a round is yielded, and when the generator ends or is closed in whatever
    way, both caches hold what was accepted and nothing else; the newest token is in neither until the next
    pass, and an end-of-generation token, or what was drafted after one, in neither ever.

    Raises:
        PassError: the target would not run a pass, or its cache does not hold the text: it was lost where
            it had to be cut back. What was yielded stands.
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
            elif len(target.tokens) != len(text) - 1:
                raise PassError("llama.cpp lost what the context held: ask again, and it is read anew")
            # A pass over the newest token and k drafted ones fills k + 1 cells and gives up to k + 1 tokens.
            limit = target.size - len(text) if finish is None else 0
            if max_tokens is not None:
                limit = min(limit, max_tokens - emitted_count - 1)
            target_s, draft_s = target.pass_s, pacing.draft_s
            proposal = pacing.propose(max(limit, 0))
            if finish is not None:
                yield Round((), 0, 0, 0, 0, False, 0.0, 0.0, 0.0, proposal.state, proposal.reason, finish)
                return

            chain = [step.token for step in proposal.steps]
            # Node 0 is the newest token, node i the chain's i-th; leaves follow, beside a chain's token.
            parents = [*range(-1, len(chain)), *(leaf.place for leaf in proposal.leaves)]
            rows = target.decode_tree([text[-1], *chain, *(leaf.token for leaf in proposal.leaves)], parents)

            kept: list[Emitted] = []
            verified: list[Distribution] = []
            accepted = leaves_tested = 0
            bonus: int | None = 0  # the row that gives one more token for nothing
            for place, step in enumerate(proposal.steps):
                p = sampler.distribution(rows[place], text)
                verified.append(p)
                stands = accept(p, step.distribution, step.token, draws)
                text.append(stands)
                if stands == step.token:
                    kept.append(Emitted(stands, "accepted"))
                    accepted += 1
                    bonus = place + 1
                    if target.model.ends_generation(stands):
                        bonus = None
                        break
                    continue
                # The replacement is drawn from the residual. A leaf is a certain proposal against that same
                # residual: it is accepted if it is what was drawn (multi-candidate rule, SpecInfer 2023).
                bonus = None
                for index, leaf in enumerate(proposal.leaves):
                    if leaf.place == place and bonus is None:
                        leaves_tested += 1
                        if leaf.token == stands:
                            bonus = 1 + len(chain) + index
                kept.append(Emitted(stands, "correction" if bonus is None else "accepted"))
                break
            path = [*range(accepted + 1), *([bonus] if bonus is not None and bonus > len(chain) else [])]
            if bonus is not None and not target.model.ends_generation(text[-1]):
                text.append(sampler.distribution(rows[bonus], text).draw(draws.random()))
                kept.append(Emitted(text[-1], "target"))

            if target.model.ends_generation(text[-1]):
                text.pop()
                kept.pop()
                finish = "stop"
            emitted_count += len(kept)
            # All but an end of generation that was drafted, in one step: some caches go back only once.
            target.keep(path[: len(text) - (finish is None) - len(target.tokens)])
            settled = len(text)

            now = clock()
            done = Round(
                emitted=tuple(kept),
                proposed=len(chain) + len(proposal.leaves),
                accepted=accepted,
                tested=len(verified),
                leaves_tested=leaves_tested,
                leaf_accepted=bonus is not None and bonus > len(chain),
                target_s=target.pass_s - target_s,
                draft_s=pacing.draft_s - draft_s,
                wall_s=now - round_ended,
                state=proposal.state,
                reason=proposal.reason,
                finish=finish,
            )
            round_ended = now
            pacing.observe(done, verified)
            yield done
            if finish is not None:
                return
    finally:
        # A round that failed in the middle leaves nothing behind either.
        target.truncate(settled)
        pacing.forget()
