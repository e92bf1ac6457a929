"""A world of known costs and chances: a text, a target that says it, a draft that is right so often.

Its clock counts passes, so what comes of it is the same on any machine.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from specchat.app.decoding.adaptive import AdaptivePacing
from specchat.app.decoding.costs import Costs
from specchat.app.decoding.drafters import Step
from specchat.app.decoding.learned import Learned
from specchat.app.decoding.lookup import LookupDrafter, TextIndex
from specchat.app.decoding.loop import generate
from specchat.app.decoding.sampling import Distribution, Sampler, Sampling
from specchat.app.decoding.stats import Round

VOCABULARY = 400
NONSENSE = VOCABULARY - 1
READING = 0.2
"""Draft passes that reading a token takes among others."""

AMX = {1: 1.0, 2: 1.65, 3: 1.68, 4: 1.78, 5: 1.89, 8: 1.94, 12: 2.26, 16: 2.65, 33: 4.5}
FLAT = {1: 1.0, 33: 1.05}
STEEP = {1: 1.0, 33: 33.0}


@dataclass(frozen=True)
class Place:
    """What a draft says of one place of the text."""

    right: bool
    confidence: float
    second_right: bool = False


@dataclass
class World:
    text: Sequence[int]
    places: Sequence[Place]
    target_s: dict[int, float]
    draft_s: float
    prompt: Sequence[int] = (0,)

    def play(
        self,
        learned: Learned | None = None,
        *,
        model: bool = True,
        lookup: bool = False,
        **pacing,
    ) -> Played:
        learned = learned or self.learned()
        target, draft = _Target(self), _Draft(self)
        looked_up = LookupDrafter(TextIndex(), list(self.prompt), learned.hits) if lookup else None
        pacer = AdaptivePacing(learned, model=draft if model else None, lookup=looked_up, **pacing)
        if not pacer.reads_prompt:
            draft.held = -len(self.prompt)
        seen: list[Round] = []
        proposals = []
        propose = pacer.propose

        def watched(limit: int):
            proposals.append(propose(limit))
            return proposals[-1]

        pacer.propose = watched  # type: ignore[method-assign]
        for done in generate(
            target, pacer, list(self.prompt), sampler=Sampler(Sampling(temperature=0.0)),
            draws=np.random.default_rng(0), clock=lambda: target.pass_s + draft.pass_s,
            max_tokens=len(self.text),
        ):  # fmt: skip
            seen.append(done)
        found = [emitted.token for done in seen for emitted in done.emitted]
        assert found == list(self.text), "whatever is drafted, the text is the target's"
        seconds = target.pass_s + draft.pass_s
        return Played(seen[:-1], proposals[:-1], len(found) * target.cost(1) / seconds, draft.passes)

    def learned(self, **costs) -> Learned:
        """What measuring passes of a few sizes gives."""
        target = _Target(self)
        return Learned(Costs({size: target.cost(size) for size in (1, 2, 4, 16)}, self.draft_s, **costs))


@dataclass(frozen=True)
class Played:
    rounds: list[Round]
    proposals: list
    speed: float
    """Times plain decoding."""
    draft_passes: int

    @property
    def drafted(self) -> list[int]:
        return [done.proposed for done in self.rounds]

    def drafted_at(self, first: int, last: int) -> list[int]:
        """Tokens proposed by each round that began in this stretch of the text."""
        found, place = [], 0
        for done in self.rounds:
            if first <= place < last:
                found.append(done.proposed)
            place += len(done.emitted)
        return found


class _Target:
    def __init__(self, world: World) -> None:
        self._world = world
        self.model = self
        self.vocabulary_size = VOCABULARY
        self.size = self.chunk = 1 << 20
        self.tokens = list(world.prompt[:-1])
        self.pass_s = 0.0
        self._nodes: list[int] = []

    def cost(self, size: int) -> float:
        known = sorted(self._world.target_s)
        return float(np.interp(size, known, [self._world.target_s[one] for one in known]))

    def ends_generation(self, token: int) -> bool:
        return False

    def decode_tree(self, tokens: Sequence[int], parents: Sequence[int]) -> np.ndarray:
        self.pass_s += self.cost(len(tokens))
        text = self._world.text
        rows = np.zeros((len(tokens), VOCABULARY), np.float32)
        places: list[int] = []
        for node, parent in enumerate(parents):
            if parent < 0:
                place = len(self.tokens) + 1 - len(self._world.prompt)
            else:
                before = places[parent]
                place = before + 1 if 0 <= before < len(text) and tokens[node] == text[before] else -1
            places.append(place)
            rows[node, text[place] if 0 <= place < len(text) else NONSENSE] = 9.0
        self._nodes = list(tokens)
        return rows

    def keep(self, path: Sequence[int]) -> None:
        self.tokens += [self._nodes[node] for node in path]

    def truncate(self, length: int) -> None:
        del self.tokens[length:]


class _Draft:
    """It has read the prompt where it was to; what it lacks of the text it reads when it is asked."""

    source = "model"

    def __init__(self, world: World) -> None:
        self._world = world
        self._place = 0
        self.held = 0
        self._right: set[int] = set()
        self.pass_s = 0.0
        self.passes = 0

    @property
    def behind(self) -> int:
        return max(0, self._place - self.held)

    def observe(self, tokens: Sequence[int]) -> None:
        text = self._world.text
        while self.held < self._place + len(tokens) and self.held in self._right:
            self.held += 1
        self._place += len(tokens)
        self.held = min(self.held, self._place)
        assert list(tokens) == list(text[self._place - len(tokens) : self._place])

    def draft(self) -> Iterator[Step]:
        world = self._world
        self.pass_s += READING * world.draft_s * self.behind
        self.held, self._right = self._place, set()
        for index in range(self._place, len(world.text)):
            self.pass_s += world.draft_s
            self.passes += 1
            place, token = world.places[index], world.text[index]
            first = token if place.right else NONSENSE
            second = token if place.second_right and not place.right else NONSENSE - 1
            rest = (1.0 - place.confidence) / 2
            others = ((second, rest), (NONSENSE - 2, rest / 2))
            yield Step(first, Distribution.certain(first), place.confidence, place.confidence, others)
            if place.right:  # asked to go on: the token is fed to it, and held if it comes about
                self._right.add(index)


def random_text(count: int, seed: int = 0) -> list[int]:
    """A text that hardly repeats itself."""
    return np.random.default_rng(seed).integers(1, VOCABULARY - 10, count).tolist()


def sure(count: int) -> list[Place]:
    """A draft that is mostly right, and knows it."""
    numbers = np.random.default_rng(1)
    return [Place(bool(numbers.random() < 0.93), 0.93) for _ in range(count)]


def useless(count: int, confidence: Callable[[np.random.Generator], float] | float = 0.3) -> list[Place]:
    """A draft that is hardly ever right."""
    numbers = np.random.default_rng(2)
    return [
        Place(
            bool(numbers.random() < 0.02),
            confidence if isinstance(confidence, float) else confidence(numbers),
        )
        for _ in range(count)
    ]
