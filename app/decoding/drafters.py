"""What proposes: a draft model, the text so far, or nothing. A drafter knows nothing of acceptance."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from .passes import Passes
from .sampling import Distribution, Sampler, confidence


@dataclass(frozen=True)
class Proposal:
    """Draft tokens, in order, and the distribution each was drawn from."""

    tokens: tuple[int, ...] = ()
    distributions: tuple[Distribution, ...] = ()


NOTHING = Proposal()


class Drafter(Protocol):
    """Anything that proposes what may come after the tokens it has observed."""

    @property
    def pass_s(self) -> float:
        """Seconds spent in llama.cpp's passes so far."""
        ...

    def observe(self, tokens: Sequence[int]) -> None:
        """These tokens stand after those observed before; what was proposed instead is forgotten."""
        ...

    def propose(self, limit: int) -> Proposal:
        """Up to `limit` tokens that may come next."""
        ...


class NoDrafter:
    """Proposes nothing: plain decoding."""

    pass_s = 0.0

    def observe(self, tokens: Sequence[int]) -> None:
        """Nothing to remember."""

    def propose(self, limit: int) -> Proposal:
        """Nothing."""
        return NOTHING


class ModelDrafter:
    """A draft model that continues the text token by token.

    Its cache may lag behind the text: what it lacks is decoded, a pass at a time, when it is asked.
    At temperature 0 and with `argmax` it proposes its likeliest token; else it draws from its own
    distribution, made by the target's sampler chain, which the acceptance rule then weighs.
    """

    def __init__(
        self,
        context: Passes,
        tokens: Sequence[int],
        sampler: Sampler,
        draws: np.random.Generator,
        *,
        p_min: float = 0.0,
        argmax: bool = False,
        vocabulary_size: int | None = None,
    ) -> None:
        """Draft after `tokens`; the context's cache has to be a prefix of them.

        Tokens from `vocabulary_size` on are never proposed: a target may have fewer than its draft.
        """
        self._context = context
        self._tokens = list(tokens)
        self._sampler = sampler
        self._draws = draws
        self._p_min = p_min
        self._argmax = argmax
        self._vocabulary_size = vocabulary_size

    @property
    def pass_s(self) -> float:
        """Seconds spent in the draft's passes so far."""
        return self._context.pass_s

    def observe(self, tokens: Sequence[int]) -> None:
        """Extend the text, and keep of the cache what agrees with it."""
        start = len(self._tokens)
        self._tokens.extend(tokens)
        cached = self._context.tokens
        agreed = min(start, len(cached))
        while agreed < min(len(cached), len(self._tokens)) and cached[agreed] == self._tokens[agreed]:
            agreed += 1
        self._context.truncate(agreed)

    def propose(self, limit: int) -> Proposal:
        """Draft until `limit`, the end of the context, or a token the draft itself doubts."""
        context = self._context
        context.truncate(len(self._tokens) - 1)  # the last token's row of logits is what is drafted from
        if self._lags():
            return NOTHING
        history = list(self._tokens)
        distributions: list[Distribution] = []
        for _ in range(limit):
            pending = history[len(context.tokens) :]
            # A token that only the target's vocabulary has cannot be fed to the draft.
            if len(history) > context.size or max(pending) >= context.model.vocabulary_size:
                break
            logits = context.decode(pending, 1)[0][: self._vocabulary_size]
            if confidence(logits) < self._p_min:
                break
            distribution = self._sampler.distribution(logits, history)
            if self._argmax:
                distribution = Distribution.certain(int(distribution.tokens[0]))
            history.append(distribution.draw(self._draws.random()))
            distributions.append(distribution)
            if context.model.ends_generation(history[-1]):
                break
        return Proposal(tuple(history[len(self._tokens) :]), tuple(distributions))

    def _lags(self) -> bool:
        """Whether more than one pass is missing; if so, one is made up, so that no round takes long."""
        held, chunk = len(self._context.tokens), self._context.chunk
        if len(self._tokens) - held <= chunk:
            return False
        part = self._tokens[held : held + chunk]
        if max(part) < self._context.model.vocabulary_size:
            self._context.decode(part, 0)
        return True


class LookupDrafter:
    """The text so far as a draft: what followed the last time the same few tokens stood there.

    (Prompt lookup decoding, Saxena 2023.) The index grows with the text, one entry a token and length,
    so a proposal costs no scan of what came before.
    """

    pass_s = 0.0

    def __init__(self, tokens: Sequence[int], *, longest: int = 4, shortest: int = 2) -> None:
        """Draft after `tokens`, by the longest match from `longest` down to `shortest` tokens."""
        self._lengths = range(longest, shortest - 1, -1)
        self._tokens: list[int] = []
        self._ends: dict[tuple[int, ...], int] = {}
        self.observe(tokens)

    def observe(self, tokens: Sequence[int]) -> None:
        """Extend the text; a match is indexed once it has a continuation."""
        for token in tokens:
            end = len(self._tokens)
            for length in self._lengths:
                if length <= end:
                    self._ends[tuple(self._tokens[end - length :])] = end
            self._tokens.append(token)

    def propose(self, limit: int) -> Proposal:
        """Up to `limit` tokens that followed the latest longest match.

        A match that overlaps the end of the text goes on into the proposal itself: a loop is continued.
        """
        text = list(self._tokens)
        for length in self._lengths:
            start = self._ends.get(tuple(text[-length:])) if length <= len(text) else None
            if start is not None:
                for place in range(start, start + limit):
                    text.append(text[place])
                tokens = tuple(text[len(self._tokens) :])
                return Proposal(tokens, tuple(Distribution.certain(token) for token in tokens))
        return NOTHING


class FirstOf:
    """Asks several drafters in turn, and takes the first proposal that is one."""

    def __init__(self, *drafters: Drafter) -> None:
        self._drafters = drafters

    @property
    def pass_s(self) -> float:
        """Seconds spent in passes by all of them."""
        return sum(drafter.pass_s for drafter in self._drafters)

    def observe(self, tokens: Sequence[int]) -> None:
        """Tell all of them."""
        for drafter in self._drafters:
            drafter.observe(tokens)

    def propose(self, limit: int) -> Proposal:
        """The first proposal with a token in it."""
        for drafter in self._drafters:
            proposal = drafter.propose(limit)
            if proposal.tokens:
                return proposal
        return NOTHING
