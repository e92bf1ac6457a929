"""The accept and residual rules: which token stands where a draft token was proposed.

For a draft token x proposed from q where the target's distribution is p, every rule here gives a token
distributed exactly as p, whatever q is (Leviathan et al. 2022, arXiv 2211.17192, appendix A.1; Chen et
al. 2023, arXiv 2302.01318, theorem 1).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from .sampling import Distribution, Probabilities, Tokens

Rule = Callable[[Distribution, Distribution, int, np.random.Generator], int]
"""(p, q, x, random draws) -> the token that stands: x itself when it is accepted."""


def speculative(p: Distribution, q: Distribution, token: int, draws: np.random.Generator) -> int:
    """Accept `token`, drawn from `q`, with min(1, p/q); else draw from what p has over q.

    A proposal that was certain (lookup, an argmax draft, temperature 0) is a `q` of one token: it is
    accepted with p(token), and the residual is p without it.
    """
    wanted = p.probability(token)
    proposed = q.probability(token)
    if draws.random() * proposed < wanted:
        return token
    return residual(p, q).draw(draws.random())


def residual(p: Distribution, q: Distribution) -> Distribution:
    """The distribution norm(max(0, p - q)) of the token that replaces a refused one.

    Where rounding leaves nothing of p over q, the two are equal and p itself is the answer.
    """
    over = p.probabilities - on_tokens_of(p, q.tokens, q.probabilities)
    keep = over > 0.0
    total = over[keep].sum()
    if total <= 0.0:
        return p
    return Distribution(p.tokens[keep], over[keep] / total)


def acceptance_chance(p: Distribution, q: Distribution) -> float:
    """The chance, sum of min(p, q), that a token drawn from `q` is accepted (Leviathan et al., 3.2)."""
    if q.tokens.size == 1:
        return p.probability(int(q.tokens[0]))
    return float(np.minimum(p.probabilities, on_tokens_of(p, q.tokens, q.probabilities)).sum())


def on_tokens_of(p: Distribution, tokens: Tokens, probabilities: Probabilities) -> Probabilities:
    """For each of p's tokens the probability that `tokens` give it, float64 (..., tokens of p).

    `probabilities` is float64 (..., tokens): one distribution over the same tokens, or several.
    """
    if tokens.size == 1:
        return np.where(p.tokens == tokens[0], probabilities, 0.0)
    order = tokens.argsort()
    ordered = tokens[order]
    places = np.minimum(ordered.searchsorted(p.tokens), tokens.size - 1)
    return np.where(ordered[places] == p.tokens, probabilities[..., order[places]], 0.0)
