"""Whatever a pacing keeps of a draft, the text is distributed as the target's: by the pacings that are used.

A pacing that looked at a drawn token before it decided whether to have it tested would choose among tokens,
and the rule that accepts them would weigh them by a distribution they no longer have.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from itertools import pairwise

import numpy as np
import pytest
from scipy import stats

from specchat.app.decoding.adaptive import AdaptivePacing
from specchat.app.decoding.costs import Costs
from specchat.app.decoding.drafters import ModelDrafter
from specchat.app.decoding.learned import Learned
from specchat.app.decoding.lookup import LookupDrafter, TextIndex
from specchat.app.decoding.loop import generate
from specchat.app.decoding.pacing import FixedPacing, Pacing, any_size
from specchat.app.decoding.sampling import Sampler
from specchat.app.decoding.settings import Sampling

SAMPLER = Sampler(Sampling(temperature=1.0, top_k=3, top_p=1.0, min_p=0.0))
TARGET = ([0.9, 0.05, 0.05], [0.4, 0.3, 0.3], [0.2, 0.7, 0.1])
DRAFT = ([0.8, 0.1, 0.1], [0.7, 0.2, 0.1], [0.3, 0.4, 0.3])
TOKENS = 6000

STEEP = {1: 1.0, 2: 1.6, 33: 20.0}
LINEAR = {1: 1.0, 2: 1.3, 33: 10.6}
STAIRS = {1: 1.0, 2: 1.65, 3: 1.68, 4: 1.78, 8: 1.94, 16: 2.65, 33: 4.5}
FLAT = {1: 1.0, 33: 1.05}


class Table:
    """A model whose next token is distributed by the token before."""

    vocabulary_size = 16
    size = chunk = 1 << 16

    def __init__(self, chances: Sequence[Sequence[float]], seconds: float) -> None:
        self.rows = np.full((3, self.vocabulary_size), -30.0, np.float32)
        self.rows[:, :3] = np.log(chances)
        self.model = self
        self.tokens: list[int] = []
        self.pass_s = 0.0
        self._seconds = seconds
        self._nodes: list[int] = []

    def ends_generation(self, token: int) -> bool:
        return False

    def decode(self, tokens: Sequence[int], rows: int) -> np.ndarray:
        self.tokens += tokens
        return self._rows(tokens)[len(tokens) - rows :]

    def decode_tree(self, tokens: Sequence[int], parents: Sequence[int]) -> np.ndarray:
        self._nodes = list(tokens)
        return self._rows(tokens)

    def _rows(self, tokens: Sequence[int]) -> np.ndarray:
        self.pass_s += self._seconds
        return self.rows[[token % 3 for token in tokens]]

    def keep(self, path: Sequence[int]) -> None:
        self.tokens += [self._nodes[node] for node in path]

    def truncate(self, length: int) -> None:
        del self.tokens[length:]


def fixed(draft: ModelDrafter) -> Pacing:
    return FixedPacing([draft], 4, 0.5, "")


def adaptive(target_s: dict[int, float], draft_s: float, branches: int = 1, longest: int = 32):
    def make(draft: ModelDrafter) -> Pacing:
        learned = Learned(Costs(target_s, draft_s, frozen=True))
        return AdaptivePacing(learned, model=draft, branches=branches, longest=longest)

    return make


def with_runs(target_s: dict[int, float], draft_s: float, allowed: Callable[[int], bool] = any_size):
    """The draft's tokens lead to runs of the text so far, one token here and none there."""

    def make(draft: ModelDrafter) -> Pacing:
        learned = Learned(Costs(target_s, draft_s, frozen=True))
        lookup = LookupDrafter(TextIndex(), [0], learned.hits)
        return AdaptivePacing(learned, model=draft, lookup=lookup, branches=8, allowed=allowed)

    return make


def in_fours(size: int) -> bool:
    return size in (1, 4, 8)


def up_to_three(draft: ModelDrafter) -> Pacing:
    learned = Learned(Costs(FLAT, 0.05, frozen=True))
    return AdaptivePacing(learned, model=draft, allowed=lambda size: size <= 3)


@pytest.mark.parametrize(
    "pacing",
    [
        fixed,
        adaptive(STEEP, 0.1),
        adaptive(LINEAR, 0.02),
        adaptive(STAIRS, 0.05, branches=8),
        adaptive(FLAT, 0.1, branches=8),
        adaptive(FLAT, 0.02, longest=2),
        up_to_three,
        with_runs(STAIRS, 0.05),
        with_runs(FLAT, 0.3),
        with_runs(FLAT, 0.02),
        with_runs(FLAT, 0.3, in_fours),
        with_runs(STAIRS, 0.3, in_fours),
    ],
)
def test_the_text_is_distributed_as_the_targets(pacing):
    target, draft = Table(TARGET, 1.0), Table(DRAFT, 0.1)
    draws = np.random.default_rng(8)
    rounds = generate(
        target,
        pacing(ModelDrafter(draft, [0], SAMPLER, draws)),
        [0],
        sampler=SAMPLER,
        draws=draws,
        clock=lambda: 0.0,
        max_tokens=TOKENS,
    )
    text, tested = [0], 0
    for done in rounds:
        text += [emitted.token for emitted in done.emitted]
        tested += done.tested
    assert tested > 200, "nothing was drafted, and nothing is shown"
    follows = Counter(pairwise(text))
    for before in range(3):
        found = np.array([follows[before, token] for token in range(3)])
        assert stats.chisquare(found, found.sum() * np.array(TARGET[before])).pvalue > 1e-4
