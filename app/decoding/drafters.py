"""What proposes: a draft model here, the text so far in `lookup`. A drafter knows nothing of acceptance."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

import numpy as np

from .passes import Passes
from .sampling import Distribution, Sampler

Source = Literal["model", "lookup"]


@dataclass(frozen=True)
class Step:
    """One drafted token."""

    token: int
    distribution: Distribution
    """What the token was drawn from."""
    confidence: float
    """How sure the drafter is of this place, whatever it drew there: above temperature 0 a place may be kept
    or left by this, never by the token, or what is kept would no longer be distributed as drawn."""
    chance: float = 1.0
    """The chance that the drafter gives the token."""
    others: tuple[tuple[int, float], ...] = ()
    """Its next choices in this place, each with the chance it gives them."""
    unsharpened: Distribution | None = None
    """Above temperature 0, the draft's own distribution by the sampler chain."""


class Drafter(Protocol):
    """Anything that proposes what may come after the tokens it has observed."""

    @property
    def source(self) -> Source:
        """What kind of drafter it is."""
        ...

    @property
    def pass_s(self) -> float:
        """Seconds spent in llama.cpp's passes so far."""
        ...

    @property
    def behind(self) -> int:
        """How many tokens it has to read before it can draft."""
        ...

    def observe(self, tokens: Sequence[int]) -> None:
        """These tokens stand after those observed before; what was drafted instead is forgotten."""
        ...

    def draft(self) -> Iterator[Step]:
        """What may come next, a token at a time, each drafted when it is asked for."""
        ...


class Lookup(Drafter, Protocol):
    """A drafter that can also go on from what another one drafted."""

    def draft(self, after: Sequence[int] = ()) -> Iterator[Step]:
        """What may come next, should the tokens of `after` come first."""
        ...


Sharpness = Callable[[float], float]
"""The power that a draft's distribution is raised to, by its confidence; infinity is its likeliest token."""


def as_it_is(_confidence: float) -> float:
    """Draw from the draft's own distribution."""
    return 1.0


def argmax(_confidence: float) -> float:
    """Take the draft's likeliest token."""
    return np.inf


def common_prefix(cached: Sequence[int], wanted: Sequence[int]) -> int:
    """How many tokens the two have in common from the start."""
    for index, (have, want) in enumerate(zip(cached, wanted, strict=False)):
        if have != want:
            return index
    return min(len(cached), len(wanted))


class ModelDrafter:
    """A draft model that continues the text token by token.

    Its cache may lag behind the text: what it lacks is decoded, a pass at a time, when it is asked.
    At temperature 0 it proposes its likeliest token. Above, it draws from its own distribution, made by
    the target's sampler chain and perhaps sharpened, which the acceptance rule then weighs.
    """

    source: Source = "model"

    def __init__(
        self,
        context: Passes,
        tokens: Sequence[int],
        sampler: Sampler,
        draws: np.random.Generator,
        *,
        sharpness: Sharpness = as_it_is,
        vocabulary_size: int | None = None,
    ) -> None:
        """Draft after `tokens`; of what the context's cache holds, what agrees with them is kept.

        Tokens from `vocabulary_size` on are never proposed: a target may have fewer than its draft.
        """
        self._context = context
        self._tokens = list(tokens)
        self._sampler = sampler
        self._draws = draws
        self._sharpness = sharpness
        self._vocabulary_size = vocabulary_size
        context.truncate(common_prefix(context.tokens, tokens))

    @property
    def pass_s(self) -> float:
        """Seconds spent in the draft's passes so far."""
        return self._context.pass_s

    @property
    def behind(self) -> int:
        """How many tokens of the text the cache lacks, the last one not counted."""
        return max(0, len(self._tokens) - 1 - len(self._context.tokens))

    def observe(self, tokens: Sequence[int]) -> None:
        """Extend the text, and keep of the cache what agrees with it."""
        start = len(self._tokens)
        self._tokens.extend(tokens)
        cached = self._context.tokens
        held = min(start, len(cached))
        self._context.truncate(held + common_prefix(cached[held:], self._tokens[held:]))

    def draft(self) -> Iterator[Step]:
        """Draft until the end of the context or of the answer."""
        context = self._context
        context.truncate(len(self._tokens) - 1)  # the last token's row of logits is what is drafted from
        if self._lags():
            return
        history = list(self._tokens)
        while True:
            pending = history[len(context.tokens) :]
            # A token that only the target's vocabulary has cannot be fed to the draft.
            if len(history) > context.size or max(pending) >= context.model.vocabulary_size:
                return
            step = self._step(context.decode(pending, 1)[0][: self._vocabulary_size], history)
            history.append(step.token)
            yield step
            if context.model.ends_generation(step.token):
                return

    def _step(self, logits: np.ndarray, history: Sequence[int]) -> Step:
        outlook = self._sampler.outlook(logits, history)
        chances = dict(zip(outlook.tokens.tolist(), outlook.chances.tolist(), strict=True))
        own = outlook.distribution
        if self._sampler.greedy:
            token = int(own.tokens[0])
            chance = chances.pop(token)
            return Step(token, own, chance, chance, tuple(chances.items())[:2])
        surest = float(outlook.chances[0])
        used = own.sharpened(self._sharpness(surest))
        token = used.draw(self._draws.random())
        chance = chances.pop(token, 0.0)
        return Step(token, used, surest, chance, tuple(chances.items())[:2], own)

    def _lags(self) -> bool:
        """Whether more than one pass is missing; if so, one is made up, so that no round takes long."""
        held, chunk = len(self._context.tokens), self._context.chunk
        if len(self._tokens) - held <= chunk:
            return False
        part = self._tokens[held : held + chunk]
        if max(part) < self._context.model.vocabulary_size:
            self._context.decode(part, 0)
        return True
