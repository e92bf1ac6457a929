"""Milliseconds of a round outside passes, at a vocabulary of 152k: the passes are stubs that cost nothing.

python benchmarks/overhead.py [--rounds 300]
"""

import argparse
import itertools
import statistics
import time
from collections.abc import Iterator, Sequence

import numpy as np

from specchat.app.decoding.adaptive import AdaptivePacing
from specchat.app.decoding.costs import Costs
from specchat.app.decoding.drafters import ModelDrafter
from specchat.app.decoding.learned import Learned
from specchat.app.decoding.lookup import LookupDrafter, TextIndex
from specchat.app.decoding.loop import generate
from specchat.app.decoding.pacing import FixedPacing
from specchat.app.decoding.sampling import Sampler
from specchat.app.decoding.settings import Sampling
from specchat.app.decoding.stats import Round

VOCABULARY = 151_936
TEXTS = 64


class Stub:
    """A model whose next token depends on the token before, as a table of rows says."""

    chunk = size = 1 << 20
    vocabulary_size = VOCABULARY

    def __init__(self, rows: np.ndarray, seconds: float) -> None:
        self._rows, self._seconds = rows, seconds
        self._given = np.empty((40, VOCABULARY), np.float32)
        self.model = self
        self.tokens: list[int] = []
        self.pass_s = 0.0
        self.spent_s = 0.0
        self._nodes: list[int] = []

    def ends_generation(self, token: int) -> bool:
        return False

    def decode(self, tokens: Sequence[int], rows: int) -> np.ndarray:
        logits = self._pass(tokens)[len(tokens) - rows :]
        self.tokens.extend(tokens)
        return logits

    def decode_tree(self, tokens: Sequence[int], parents: Sequence[int]) -> np.ndarray:
        self._nodes = list(tokens)
        return self._pass(tokens)

    def _pass(self, tokens: Sequence[int]) -> np.ndarray:
        started = time.perf_counter()
        for place, token in enumerate(tokens):
            # What came before matters a little, so that the text does not run in circles.
            self._given[place] = self._rows[(token + len(self.tokens) + place) % TEXTS]
        self.spent_s += time.perf_counter() - started
        self.pass_s += self._seconds
        return self._given[: len(tokens)]

    def keep(self, path: Sequence[int]) -> None:
        self.tokens.extend(self._nodes[node] for node in path)

    def truncate(self, length: int) -> None:
        del self.tokens[length:]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=300)
    parser.add_argument("--temps", type=float, nargs="+", default=[0.0, 0.8])
    options = parser.parse_args()
    numbers = np.random.default_rng(0)
    target_rows = (3.0 * numbers.standard_normal((TEXTS, VOCABULARY))).astype(np.float32)
    likely = numbers.integers(0, VOCABULARY, (TEXTS, 6))
    for row, tokens in zip(target_rows, likely, strict=True):
        row[tokens] += (13.0, 12.0, 11.5, 11.0, 10.0, 9.0)
    draft_rows = target_rows + numbers.standard_normal(target_rows.shape).astype(np.float32)
    print(
        f"{'temperature':>11} {'pacing':>8} {'ms a round':>10} {'quartiles':>16} {'drafted':>8} {'tokens':>7}"
    )
    for temperature in options.temps:
        for fixed in (0, 2, 4, 8, 16, None):
            sampler, draws = Sampler(Sampling(temperature=temperature)), np.random.default_rng(1)
            prompt = numbers.integers(0, VOCABULARY, 500).tolist()
            target, draft = Stub(target_rows, 0.06), Stub(draft_rows, 0.012)
            target.tokens, draft.tokens = prompt[:-1], prompt[:-1]
            learned = Learned(Costs({1: 0.06, 2: 0.07, 8: 0.09, 32: 0.25}, 0.012))
            model = ModelDrafter(draft, prompt, sampler, draws, sharpness=learned.sharpness)
            lookup = LookupDrafter(TextIndex(), prompt, learned.hits)
            if fixed is None:
                pacing = AdaptivePacing(learned, model=model, lookup=lookup, branches=8)
            else:
                pacing = FixedPacing([model], fixed, 0.0, "", plain_every=1 << 30)
            rounds = generate(target, pacing, prompt, sampler=sampler, draws=draws, clock=time.perf_counter)
            spent, proposed, tokens = measured(rounds, options.rounds, target, draft)
            low, middle, high = statistics.quantiles(spent[10:], n=4)
            print(
                f"{temperature:11} {'auto' if fixed is None else f'always {fixed}':>8} {middle:10.2f} "
                f"{f'{low:.2f} to {high:.2f}':>16} {proposed / len(spent):8.1f} {tokens / len(spent):7.2f}"
            )


def measured(rounds: Iterator[Round], count: int, target: Stub, draft: Stub) -> tuple[list[float], int, int]:
    """Milliseconds of each round less what the stubs took, and how many tokens were drafted and emitted."""
    spent: list[float] = []
    proposed = tokens = 0
    copied = 0.0
    started = time.perf_counter()
    for done in itertools.islice(rounds, count):
        now = time.perf_counter()
        copies = target.spent_s + draft.spent_s
        spent.append(1e3 * (now - started - (copies - copied)))
        proposed += done.proposed
        tokens += len(done.emitted)
        started, copied = time.perf_counter(), copies
    return spent, proposed, tokens


if __name__ == "__main__":
    main()
