"""Above temperature 0 the text is distributed as the target's: chi-square on real tiny F32 models.

The exact probability of each continuation is computed from plain passes; speculative continuations are
then drawn, by the thousand, through the whole loop, and counted against it.
"""

from collections import Counter
from itertools import count

import numpy as np
import pytest
from scipy import stats

from specchat.app.decoding.acceptance import Rule, residual, speculative
from specchat.app.decoding.drafters import ModelDrafter
from specchat.app.decoding.loop import generate
from specchat.app.decoding.pacing import Plan
from specchat.app.decoding.sampling import Distribution, Sampler, Sampling
from specchat.models.llama import Context

PROMPT = [104, 101, 108, 108, 111]
LENGTH = 3
DRAWN = 20_000


class TwoEachRound:
    """Pacing that drafts two tokens: rounds end accepted, refused at the first, and at the second."""

    rests_long = False

    def plan(self, limit: int) -> Plan:
        return Plan(min(2, limit), "drafting", "")

    def observe(self, done) -> None:
        pass


def chain(temperature: float) -> Sampling:
    return Sampling(temperature=temperature, top_k=6, top_p=0.97, min_p=0.03)


def exact(target: Context, sampling: Sampling) -> dict[tuple[int, ...], float]:
    """The probability of every continuation, from passes of one."""
    sampler = Sampler(sampling)
    found: dict[tuple[int, ...], float] = {}

    def walk(tokens: tuple[int, ...], chance: float) -> None:
        if len(tokens) == LENGTH:
            found[tokens] = chance
            return
        target.truncate(0)
        text = [*PROMPT, *tokens]
        p = sampler.distribution(target.decode(text, 1)[0].copy(), text)
        for token, share in zip(p.tokens.tolist(), p.probabilities.tolist(), strict=True):
            walk((*tokens, token), chance * share)

    walk((), 1.0)
    return found


def drawn(
    contexts: tuple[Context, Context], sampling: Sampling, rule: Rule, *, argmax: bool, seed: int
) -> tuple[Counter[tuple[int, ...]], float]:
    """Counts of speculative continuations, and the share of drafted tokens that were accepted."""
    target, draft = contexts
    sampler = Sampler(sampling)
    draws = np.random.default_rng(seed)
    ticks = count()
    counts: Counter[tuple[int, ...]] = Counter()
    tested = accepted = 0
    target.truncate(0)
    draft.truncate(0)
    target.decode(PROMPT[:-1], 0)
    for _ in range(DRAWN):
        target.truncate(len(PROMPT) - 1)
        draft.truncate(len(PROMPT) - 1)
        drafter = ModelDrafter(draft, PROMPT, sampler, draws, argmax=argmax)
        tokens: list[int] = []
        for done in generate(
            target, drafter, PROMPT, sampler=sampler, pacing=TwoEachRound(), draws=draws,
            clock=lambda: float(next(ticks)), max_tokens=LENGTH, accept=rule,
        ):  # fmt: skip
            tokens += [emitted.token for emitted in done.emitted]
            tested += done.tested
            accepted += done.accepted
        counts[tuple(tokens)] += 1
    return counts, accepted / tested


def p_value(counts: Counter[tuple[int, ...]], expected: dict[tuple[int, ...], float]) -> float:
    """Of the chi-square test; continuations expected fewer than ten times are counted together."""
    assert set(counts) <= set(expected)
    common = [tokens for tokens, chance in expected.items() if chance * DRAWN >= 10]
    observed = [counts[tokens] for tokens in common]
    wanted = [expected[tokens] * DRAWN for tokens in common]
    if DRAWN - sum(wanted) > 1:
        observed.append(DRAWN - sum(observed))
        wanted.append(DRAWN - sum(wanted))
    assert len(wanted) > 20
    wanted = np.array(wanted) * sum(observed) / sum(wanted)
    return float(stats.chisquare(observed, wanted).pvalue)


@pytest.mark.timeout(300)
@pytest.mark.parametrize("temperature", [0.7, 1.3])
@pytest.mark.parametrize("argmax", [False, True], ids=["sampled", "argmax"])
def test_speculative_text_is_distributed_as_plain_text(
    contexts: tuple[Context, Context], temperature: float, argmax: bool
):
    sampling = chain(temperature)
    counts, acceptance = drawn(contexts, sampling, speculative, argmax=argmax, seed=11)
    assert 0.1 < acceptance < 0.95
    assert p_value(counts, exact(contexts[0], sampling)) > 1e-3


def draws_again_from_the_target(p: Distribution, q: Distribution, token: int, draws) -> int:
    """Wrong: a refused token is replaced from p instead of from the residual."""
    if draws.random() * q.probability(token) < p.probability(token):
        return token
    return p.draw(draws.random())


def accepts_too_little(p: Distribution, q: Distribution, token: int, draws) -> int:
    """Wrong: a token is accepted with p instead of min(1, p/q)."""
    if draws.random() < p.probability(token):
        return token
    return residual(p, q).draw(draws.random())


@pytest.mark.timeout(300)
@pytest.mark.parametrize("wrong", [draws_again_from_the_target, accepts_too_little])
def test_a_wrong_rule_is_found_out(contexts: tuple[Context, Context], wrong: Rule):
    sampling = chain(1.3)
    counts, _ = drawn(contexts, sampling, wrong, argmax=False, seed=11)
    assert p_value(counts, exact(contexts[0], sampling)) < 1e-6
