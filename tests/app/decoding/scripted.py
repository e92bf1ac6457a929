"""Pacings that propose what a test wants tested."""

from collections.abc import Callable, Iterator, Sequence
from itertools import count, islice

import numpy as np

from specchat.app.decoding.drafters import Drafter, Step
from specchat.app.decoding.loop import generate
from specchat.app.decoding.pacing import Leaf, Proposal
from specchat.app.decoding.sampling import Distribution, Sampler, Sampling
from specchat.app.decoding.stats import Round
from specchat.models.llama import Context

GREEDY = Sampling(temperature=0.0)

Leaves = Callable[[Sequence[Step], int], Sequence[Leaf]]
"""(a chain, how many more tokens the pass may have) -> the leaves beside it."""


def no_leaves(_chain: Sequence[Step], _room: int) -> Sequence[Leaf]:
    return ()


def own_leaves(most: int) -> Leaves:
    """The draft's own next choices, the first ones beside each token before the second ones."""

    def leaves(chain: Sequence[Step], room: int) -> Sequence[Leaf]:
        found = [
            Leaf(place, step.others[rank][0])
            for rank in range(2)
            for place, step in enumerate(chain)
            if rank < len(step.others)
        ]
        return found[: min(most, room)]

    return leaves


def random_leaves(most: int, numbers: np.random.Generator, vocabulary: Sequence[int]) -> Leaves:
    """Anything, anywhere: also twice the same, or what the chain itself says."""

    def leaves(chain: Sequence[Step], room: int) -> Sequence[Leaf]:
        if not chain:
            return ()
        return [
            Leaf(int(numbers.integers(len(chain))), int(numbers.choice(vocabulary)))
            for _ in range(min(most, room))
        ]

    return leaves


class EveryRound:
    """Has a drafter draft in every round, as long as told."""

    reads_prompt = True

    def __init__(self, drafter: Drafter, length: int, leaves: Leaves = no_leaves) -> None:
        self._drafter, self._length, self._leaves = drafter, length, leaves

    @property
    def draft_s(self) -> float:
        return self._drafter.pass_s

    def propose(self, limit: int) -> Proposal:
        steps = tuple(islice(self._drafter.draft(), min(self._length, limit)))
        leaves = tuple(self._leaves(steps, limit - len(steps)))
        return Proposal(steps, "drafting", "", leaves, self._drafter.source)

    def observe(self, done: Round, verified: Sequence[Distribution]) -> None:
        self._drafter.observe([emitted.token for emitted in done.emitted])

    def forget(self) -> None:
        self._drafter.observe(())


class Recited:
    """Proposes what it is given, round by round, whatever the text: a chain, or a chain and leaves."""

    draft_s = 0.0
    reads_prompt = False

    def __init__(self, chains: Sequence[Sequence[int]], leaves: Sequence[Sequence[Leaf]] = ()) -> None:
        self._chains, self._leaves = iter(chains), iter(leaves)
        self.observed: list[int] = []
        self.verified: list[int] = []
        self.forgotten = 0

    def propose(self, limit: int) -> Proposal:
        tokens = tuple(next(self._chains, ()))[:limit]
        leaves = [leaf for leaf in next(self._leaves, ()) if leaf.place < len(tokens)]
        steps = tuple(Step(token, Distribution.certain(token), 1.0) for token in tokens)
        return Proposal(steps, "drafting", "", tuple(leaves[: limit - len(tokens)]))

    def observe(self, done: Round, verified: Sequence[Distribution]) -> None:
        self.observed += [emitted.token for emitted in done.emitted]
        self.verified.append(len(verified))

    def forget(self) -> None:
        self.forgotten += 1


def rounds(
    target: Context, pacing, prompt: Sequence[int], sampling: Sampling = GREEDY, **more
) -> Iterator[Round]:
    """The loop over a target that has read the prompt, on a clock that counts how often it is read."""
    target.truncate(0)
    if prompt[:-1]:
        target.decode(prompt[:-1], 0)
    ticks = count()
    more.setdefault("draws", np.random.default_rng(sampling.seed))
    more.setdefault("max_tokens", 40)
    return generate(
        target, pacing, list(prompt), sampler=Sampler(sampling), clock=lambda: float(next(ticks)), **more
    )


def tokens_of(given_rounds: Iterator[Round] | Sequence[Round]) -> list[int]:
    return [emitted.token for done in given_rounds for emitted in done.emitted]


def plain(target: Context, prompt: Sequence[int], sampling: Sampling = GREEDY, **more) -> list[int]:
    """What the target says without a draft."""
    return tokens_of(rounds(target, Recited([]), prompt, sampling, **more))


class Ending:
    """A context whose vocabulary says that one ordinary token ends an answer."""

    def __init__(self, context: Context, end: int) -> None:
        self._context, self._end = context, end
        self.model = self
        self.vocabulary_size = context.model.vocabulary_size

    def ends_generation(self, token: int) -> bool:
        return token == self._end

    def __getattr__(self, name: str):
        return getattr(self._context, name)
