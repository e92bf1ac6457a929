"""Above temperature 0 the text is distributed as the target's: chi-square on real tiny F32 models.

The exact probability of each continuation is computed from plain passes; speculative continuations are
then drawn, by the thousand, through the whole loop, and counted against it.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import count

import numpy as np
import pytest
from scipy import stats

from specchat.app.decoding.acceptance import Rule, residual, speculative
from specchat.app.decoding.drafters import ModelDrafter, Sharpness, Step, argmax, as_it_is
from specchat.app.decoding.loop import generate
from specchat.app.decoding.pacing import Leaf
from specchat.app.decoding.sampling import Distribution, Sampler, Sampling
from specchat.app.decoding.sharpness import POWERS
from specchat.models.llama import Context, Model
from tests.app.decoding.scripted import EveryRound, Leaves, no_leaves, own_leaves
from tests.tiny_models import EXACT

PROMPT = [104, 101, 108, 108, 111]
LENGTH = 3
DRAWN, FEWER = 20_000, 7_000


class Recalled:
    """A context that runs each pass once: asked for the same pass over the same cache, it recalls the rows.

    Three tokens have a few hundred continuations, drawn tens of thousands of times. What a pass gives is a
    matter of the tokens in it and before it alone: test_trees.py and test_loop.py prove it.
    """

    def __init__(self, context: Context) -> None:
        self._context = context
        self._rows: dict[tuple, np.ndarray] = {}
        self._tree: list[int] = []
        self.model, self.size, self.chunk = context.model, context.size, context.chunk
        self.tokens: list[int] = []
        self.pass_s = 0.0

    def decode(self, tokens: Sequence[int], rows: int) -> np.ndarray:
        found = self._recall(("chain", tuple(self.tokens), tuple(tokens), rows))
        self.tokens += tokens
        return found

    def decode_tree(self, tokens: Sequence[int], parents: Sequence[int]) -> np.ndarray:
        self._tree = list(tokens)
        return self._recall(("tree", tuple(self.tokens), tuple(tokens), tuple(parents)))

    def keep(self, path: Sequence[int]) -> None:
        self.tokens += [self._tree[node] for node in path]

    def truncate(self, length: int) -> None:
        del self.tokens[length:]

    def _recall(self, asked: tuple) -> np.ndarray:
        if asked not in self._rows:
            kind, held, tokens, shape = asked
            self._context.truncate(0)
            if held:
                self._context.decode(held, 0)
            run = self._context.decode if kind == "chain" else self._context.decode_tree
            self._rows[asked] = run(tokens, shape).copy()
        return self._rows[asked]


class RecalledSampler(Sampler):
    """A sampler without penalties that makes each recalled row's distribution once."""

    def __init__(self, settings: Sampling) -> None:
        super().__init__(settings)
        self._made: dict[tuple[str, int], object] = {}

    def distribution(self, logits: np.ndarray, history: Sequence[int]):
        key = "distribution", logits.__array_interface__["data"][0]
        if key not in self._made:
            self._made[key] = super().distribution(logits, history)
        return self._made[key]

    def outlook(self, logits: np.ndarray, history: Sequence[int]):
        key = "outlook", logits.__array_interface__["data"][0]
        if key not in self._made:
            self._made[key] = super().outlook(logits, history)
        return self._made[key]


@pytest.fixture(scope="module")
def recalled(models: tuple[Model, Model]) -> Iterator[tuple[Recalled, Recalled]]:
    """The tiny pair, the target's passes with room for trees."""
    target, draft = (
        Context(model, size=64, threads=1, chunk=64, branches=branches, **EXACT)
        for model, branches in zip(models, (8, 1), strict=True)
    )
    yield Recalled(target), Recalled(draft)
    target.close()
    draft.close()


def chain(temperature: float) -> Sampling:
    return Sampling(temperature=temperature, top_k=6, top_p=0.97, min_p=0.03)


def exact(target: Recalled | Context, sampling: Sampling) -> dict[tuple[int, ...], float]:
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
    contexts: tuple[Recalled, Recalled] | tuple[Context, Context],
    sampling: Sampling,
    rule: Rule = speculative,
    *,
    sharpness: Sharpness = as_it_is,
    leaves: Leaves = no_leaves,
    times: int = DRAWN,
) -> tuple[Counter[tuple[int, ...]], float, float]:
    """Counts of speculative continuations, and which shares of drafted tokens and leaves were accepted.

    Two tokens are drafted each round: rounds end accepted, refused at the first, and at the second.
    """
    target, draft = contexts
    sampler = RecalledSampler(sampling) if isinstance(target, Recalled) else Sampler(sampling)
    draws = np.random.default_rng(11)
    ticks = count()
    counts: Counter[tuple[int, ...]] = Counter()
    tested = accepted = leaves_tested = leaves_accepted = 0
    target.truncate(0)
    draft.truncate(0)
    target.decode(PROMPT[:-1], 0)
    for _ in range(times):
        target.truncate(len(PROMPT) - 1)
        draft.truncate(len(PROMPT) - 1)
        drafter = ModelDrafter(draft, PROMPT, sampler, draws, sharpness=sharpness)
        tokens: list[int] = []
        for done in generate(
            target, EveryRound(drafter, 2, leaves), PROMPT, sampler=sampler, draws=draws,
            clock=lambda: float(next(ticks)), max_tokens=LENGTH + 3, accept=rule,
        ):  # fmt: skip
            tokens += [emitted.token for emitted in done.emitted]
            tested += done.tested
            accepted += done.accepted
            leaves_tested += done.leaves_tested
            leaves_accepted += done.leaf_accepted
            if len(tokens) >= LENGTH:
                break
        counts[tuple(tokens[:LENGTH])] += 1
    return counts, accepted / tested, leaves_accepted / max(1, leaves_tested)


def p_value(
    counts: Counter[tuple[int, ...]], expected: dict[tuple[int, ...], float], times: int = DRAWN
) -> float:
    """Of the chi-square test; continuations expected fewer than ten times are counted together."""
    assert set(counts) <= set(expected)
    common = [tokens for tokens, chance in expected.items() if chance * times >= 10]
    observed = [counts[tokens] for tokens in common]
    wanted = [expected[tokens] * times for tokens in common]
    if times - sum(wanted) > 1:
        observed.append(times - sum(observed))
        wanted.append(times - sum(wanted))
    assert len(wanted) > 20
    wanted = np.array(wanted) * sum(observed) / sum(wanted)
    return float(stats.chisquare(observed, wanted).pvalue)


@pytest.mark.parametrize(
    ("temperature", "sharpness"), [(1.3, as_it_is), (0.7, argmax)], ids=["sampled", "argmax"]
)
def test_speculative_text_is_distributed_as_plain_text(
    recalled: tuple[Recalled, Recalled], temperature: float, sharpness: Sharpness
):
    sampling = chain(temperature)
    counts, acceptance, _ = drawn(recalled, sampling, sharpness=sharpness, times=FEWER)
    assert 0.1 < acceptance < 0.95
    assert p_value(counts, exact(recalled[0], sampling), FEWER) > 1e-3


def test_what_is_recalled_draws_what_passes_draw(
    models: tuple[Model, Model], recalled: tuple[Recalled, Recalled]
):
    """The same seed, a thousand times, through the contexts and through what is recalled of them."""
    sampling = chain(1.3)
    target, draft = (
        Context(model, size=64, threads=1, chunk=64, branches=branches, **EXACT)
        for model, branches in zip(models, (8, 1), strict=True)
    )
    leaves = own_leaves(4)
    assert drawn((target, draft), sampling, leaves=leaves, times=1000) == drawn(
        recalled, sampling, leaves=leaves, times=1000
    )
    target.close()
    draft.close()


def by_confidence(confidence: float) -> float:
    """Every power there is, the surer the draft the sharper."""
    return POWERS[min(int(confidence * 8), len(POWERS) - 1)]


@pytest.mark.parametrize(
    ("temperature", "sharpness"),
    [(1.3, as_it_is), (0.7, argmax), (1.3, by_confidence)],
    ids=["sampled", "argmax", "sharpened"],
)
def test_text_from_trees_is_distributed_as_plain_text(
    recalled: tuple[Recalled, Recalled], temperature: float, sharpness: Sharpness
):
    sampling = chain(temperature)
    counts, acceptance, of_leaves = drawn(recalled, sampling, sharpness=sharpness, leaves=own_leaves(4))
    assert 0.1 < acceptance < 0.95
    assert 0.1 < of_leaves < 0.9
    assert p_value(counts, exact(recalled[0], sampling)) > 1e-3


def test_text_from_trees_with_any_leaves_is_distributed_as_plain_text(recalled: tuple[Recalled, Recalled]):
    """Among them leaves twice the same, out of order, and the chain's own token again."""
    sampling = chain(1.3)
    expected = exact(recalled[0], sampling)
    likely = [token for token, _ in Counter(token for tokens in expected for token in tokens).most_common(6)]
    numbers = np.random.default_rng(4)

    def leaves(steps: Sequence[Step], room: int) -> Sequence[Leaf]:
        choices = (
            [Leaf(1, likely[0]), Leaf(0, likely[1]), Leaf(0, likely[2]), Leaf(0, likely[1])],
            [Leaf(0, steps[0].token), Leaf(0, likely[3])],
            [Leaf(len(steps) - 1, token) for token in likely[:4]],
        )
        chosen = choices[numbers.integers(3)] if steps else ()
        return [leaf for leaf in chosen if leaf.place < len(steps)][:room]

    counts, _, of_leaves = drawn(recalled, sampling, leaves=leaves, times=FEWER)
    assert of_leaves > 0.01
    assert p_value(counts, expected, FEWER) > 1e-3


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


@pytest.mark.parametrize("wrong", [draws_again_from_the_target, accepts_too_little])
def test_a_wrong_rule_is_found_out(recalled: tuple[Recalled, Recalled], wrong: Rule):
    sampling = chain(1.3)
    counts, *_ = drawn(recalled, sampling, wrong, times=FEWER)
    assert p_value(counts, exact(recalled[0], sampling), FEWER) < 1e-6


class HalfOfLeaves:
    """Wrong: a leaf beside a refused token takes its place half of the time, whatever the residual says."""

    def __init__(self, leaves: Leaves) -> None:
        self._leaves = leaves
        self.beside: dict[int, int] = {}
        self._numbers = np.random.default_rng(3)

    def leaves(self, steps, room: int):
        found = self._leaves(steps, room)
        self.beside = {steps[leaf.place].token: leaf.token for leaf in found}
        return found

    def rule(self, p: Distribution, q: Distribution, token: int, draws: np.random.Generator) -> int:
        stands = speculative(p, q, token, draws)
        other = self.beside.get(token, -1)
        return other if stands != token and p.probability(other) and self._numbers.random() < 0.5 else stands


def test_a_wrong_rule_for_leaves_is_found_out(recalled: tuple[Recalled, Recalled]):
    sampling = chain(1.3)
    wrong = HalfOfLeaves(own_leaves(2))
    counts, *_ = drawn(recalled, sampling, wrong.rule, leaves=wrong.leaves, times=FEWER)
    assert p_value(counts, exact(recalled[0], sampling), FEWER) < 1e-6
