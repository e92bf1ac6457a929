"""Plays recorded traces through the real loop and pacing, at given costs of passes, on a clock that counts them."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from traces import Step as Recorded
from traces import Trace

from specchat.app.decoding.drafters import Step
from specchat.app.decoding.loop import generate
from specchat.app.decoding.pacing import Pacing
from specchat.app.decoding.sampling import Distribution, Sampler
from specchat.app.decoding.settings import Sampling


@dataclass(frozen=True)
class PassCosts:
    """Seconds of a target pass by its size, and of a draft pass."""

    target_s: Mapping[int, float]
    draft_s: float

    def target(self, size: int) -> float:
        sizes = sorted(self.target_s)
        return float(np.interp(size, sizes, [self.target_s[one] for one in sizes]))


class Target:
    """The target, by its text: the right next token after what agrees with it, nonsense after what does not."""

    def __init__(self, trace: Trace, costs: PassCosts) -> None:
        self.ids = {token: place for place, token in enumerate(all_tokens(trace))}
        self.prompt = [self.ids[token] for token in trace.prompt]
        self.text = [self.ids[token] for token in trace.text]
        self.vocabulary_size = len(self.ids) + 1
        self.model = self
        self.size = self.chunk = 1 << 20
        self.tokens: list[int] = self.prompt[:-1]
        self.pass_s = 0.0
        self._costs = costs
        self._nodes: list[int] = []

    def ends_generation(self, token: int) -> bool:
        return False

    def decode(self, tokens: Sequence[int], rows: int) -> np.ndarray:
        raise NotImplementedError

    def decode_tree(self, tokens: Sequence[int], parents: Sequence[int]) -> np.ndarray:
        self.pass_s += self._costs.target(len(tokens))
        start = len(self.tokens) - len(self.prompt) + 1  # the place in the answer that node 0 leads to
        rows = np.zeros((len(tokens), self.vocabulary_size), np.float32)
        places: list[int] = []
        for node, parent in enumerate(parents):
            if parent < 0:
                place = start
            else:
                before = places[parent]
                agrees = 0 <= before < len(self.text) and tokens[node] == self.text[before]
                place = before + 1 if agrees else -1
            places.append(place)
            known = 0 <= place < len(self.text)
            rows[node, self.text[place] if known else self.vocabulary_size - 1] = 9.0
        self._nodes = list(tokens)
        return rows

    def keep(self, path: Sequence[int]) -> None:
        self.tokens += [self._nodes[node] for node in path]

    def truncate(self, length: int) -> None:
        del self.tokens[length:]


class Draft:
    """The draft model, by its recorded rollouts."""

    source = "model"

    def __init__(self, trace: Trace, target: Target, costs: PassCosts) -> None:
        self._rollouts, self._ids, self._costs = trace.rollouts, target.ids, costs
        self._place = 0
        self.pass_s = 0.0
        self.behind = 0

    def observe(self, tokens: Sequence[int]) -> None:
        self._place += len(tokens)
        self.behind = 0

    def draft(self) -> Iterator[Step]:
        for step in self._rollouts[self._place] if self._place < len(self._rollouts) else ():
            self.pass_s += self._costs.draft_s
            first, second, third = (self._ids[token] for token in step.tokens)
            others = ((second, step.chances[1]), (third, step.chances[2]))
            yield Step(first, Distribution.certain(first), step.chances[0], step.chances[0], others)


def all_tokens(trace: Trace) -> list[int]:
    drafted = (token for rollout in trace.rollouts for step in rollout for token in step.tokens)
    return list(dict.fromkeys([*trace.prompt, *trace.text, *drafted]))


def play(trace: Trace, costs: PassCosts, pace: Callable[[Draft, list[int]], Pacing]) -> tuple[int, float]:
    """Tokens of the trace's text, and the seconds of the passes that a pacing spends on them."""
    target = Target(trace, costs)
    draft = Draft(trace, target, costs)
    rounds = generate(
        target,
        pace(draft, target.prompt),
        target.prompt,
        sampler=Sampler(Sampling(temperature=0.0)),
        draws=np.random.default_rng(0),
        clock=lambda: target.pass_s + draft.pass_s,
        max_tokens=len(trace.text),
    )
    found = [emitted.token for done in rounds for emitted in done.emitted]
    assert found == target.text, "the loop has to reproduce the recorded text"
    return len(found), target.pass_s + draft.pass_s


def accepted(rollout: Sequence[Recorded], text: Sequence[int]) -> int:
    """How many of a rollout's tokens agree with what the text says there."""
    count = 0
    for step, token in zip(rollout, text, strict=False):
        if step.tokens[0] != token:
            break
        count += 1
    return count
