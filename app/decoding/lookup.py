"""The text so far as a draft: what followed the latest place where the longest ending stood before."""

from __future__ import annotations

import bisect
import itertools
import math
from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt

from .drafters import Source, Step
from .sampling import Distribution

_MOST_HOPS = 32
"""Endings of one token that are told their latest place; shorter ones keep an older one."""

_LENGTHS = (1, 2, 3, 4, 5, 6, 8, 12, 16, 32)
"""From these match lengths on a proposal counts as of another kind."""

_GIVEN_PRIOR = (0.2, 0.6, 0.75, 0.83, 0.86, 0.88, 0.93, 0.95, 0.96, 0.97)
_OWN_PRIOR = (0.3, 0.36, 0.42, 0.58, 0.68, 0.7, 0.85, 0.88, 0.94, 0.97)
_PRIOR_WEIGHT = 3.0
_CAUTION = 1.0
"""Standard errors that an estimate is taken down by."""

_BEGINNING = 4
"""Places of a round that are told apart from those behind them."""

_SURE_MATCH = 3
"""Tokens that have to match where some of them are only drafted: a shorter match would mostly mislead."""

_MEMORY, _BEGIN_MEMORY = 100.0, 20.0


class TextIndex:
    """A suffix automaton of the text so far (Blumer et al. 1985), grown a token at a time.

    Each state stands for the stretches of text that end at the same places. The link of the newest state
    is the longest ending that stood somewhere before; so finding it costs nothing, and a token costs O(1)
    amortised. A state also knows the latest of its places.
    """

    def __init__(self) -> None:
        self.tokens: list[int] = []
        self._next: list[dict[int, int]] = [{}]
        self._link = [-1]
        self._length = [0]
        self._end = [0]
        self._newest = 0
        self.matched = 0
        """How many of the last tokens stood somewhere before."""
        self.place = 0
        """Where the text went on after the latest such place."""

    def append(self, token: int) -> None:
        """Grow by one token."""
        self.tokens.append(token)
        end = len(self.tokens)
        following, link, length = self._next, self._link, self._length
        state = self._add(end, {}, 0, end)
        before = self._newest
        while before != -1 and token not in following[before]:
            following[before][token] = state
            before = link[before]
        if before != -1:
            known = following[before][token]
            if length[before] + 1 == length[known]:
                link[state] = known
            else:
                # The state stands for longer stretches too, and those have not ended here: it is split.
                part = self._add(length[before] + 1, dict(following[known]), link[known], self._end[known])
                while before != -1 and following[before].get(token) == known:
                    following[before][token] = part
                    before = link[before]
                link[known] = link[state] = part
        self._newest = state
        ending = link[state]
        self.matched, self.place = length[ending], self._end[ending]
        for _ in range(_MOST_HOPS):
            if ending <= 0:
                break
            self._end[ending] = end
            ending = link[ending]

    def match_after(self, tokens: Sequence[int]) -> tuple[int, int]:
        """What `matched` and `place` were if these tokens followed; only what stands is matched with them."""
        if not tokens:
            return self.matched, self.place
        state, matched = max(self._link[self._newest], 0), self.matched
        for token in tokens:
            while state and token not in self._next[state]:
                state = self._link[state]
                matched = self._length[state]
            state = self._next[state].get(token, 0)
            matched = matched + 1 if state else 0
        return matched, self._end[state]

    def _add(self, length: int, following: dict[int, int], link: int, end: int) -> int:
        self._next.append(following)
        self._link.append(link)
        self._length.append(length)
        self._end.append(end)
        return len(self._length) - 1


class HitRates:
    """How often the token that a match proposes is the one that comes.

    By the match's length, and by where it lies: what a prompt gives is copied more faithfully than an answer
    repeats itself. And by the place in the round, for the first ones: rounds tend to begin where a run has
    just ended, at an edit, which a match knows nothing of.
    """

    def __init__(self) -> None:
        self._weights = np.full((_BEGINNING + 1, 2, len(_LENGTHS)), _PRIOR_WEIGHT)
        self._hits = _PRIOR_WEIGHT * np.array([[_OWN_PRIOR, _GIVEN_PRIOR]] * (_BEGINNING + 1))

    @property
    def arrays(self) -> tuple[npt.NDArray[np.float64], ...]:
        """What is learned, to be kept and filled in again."""
        return self._weights, self._hits

    def rate(self, matched: int, given: bool, place: int) -> float:
        """The share of hits lately, of matches as long, in what was given or in the answer itself, in this
        place of a round.

        Less what it may be off by: the longest run looks best where least is known.
        """
        kind = self._kind(matched, given, place)
        rate = float(self._hits[kind] / self._weights[kind])
        return max(0.0, rate - _CAUTION * math.sqrt(rate * (1.0 - rate) / float(self._weights[kind])))

    def observe(self, matched: int, given: bool, place: int, hit: bool) -> None:
        """Learn from one token that came."""
        kind = self._kind(matched, given, place)
        keep = 1.0 - 1.0 / (_BEGIN_MEMORY if place < _BEGINNING else _MEMORY)
        self._weights[kind] = keep * self._weights[kind] + 1.0
        self._hits[kind] = keep * self._hits[kind] + hit

    @staticmethod
    def _kind(matched: int, given: bool, place: int) -> tuple[int, int, int]:
        return int(min(place, _BEGINNING)), int(given), bisect.bisect_right(_LENGTHS, matched) - 1


class LookupDrafter:
    """Proposes what followed the latest longest match (prompt lookup decoding, Saxena 2023).

    What it would have proposed is compared with every token that comes, drafted or not: it learns what
    its matches are worth where nothing is risked on them.
    """

    source: Source = "lookup"
    pass_s = 0.0
    behind = 0

    def __init__(self, index: TextIndex, tokens: Sequence[int], rates: HitRates) -> None:
        """Draft after `tokens`; the index holds a prefix of them."""
        self._index, self._rates = index, rates
        self._given = len(tokens)
        for token in tokens[len(index.tokens) :]:
            index.append(token)

    def observe(self, tokens: Sequence[int]) -> None:
        """Extend the text, and learn from it."""
        index = self._index
        for count, token in enumerate(tokens):
            if index.matched:
                hit = index.tokens[index.place] == token
                self._rates.observe(index.matched, index.place < self._given, count, hit)
            index.append(token)

    def draft(self, after: Sequence[int] = ()) -> Iterator[Step]:
        """What followed the match, were the tokens of `after` to stand.

        One that overlaps the end of the text goes on into the draft itself.
        """
        text = self._index.tokens
        matched, first = self._index.match_after(after)
        if not matched or (after and matched < _SURE_MATCH):
            return
        drafted = list(after)
        for count in itertools.count():
            place = first + count
            drafted.append(text[place] if place < len(text) else drafted[place - len(text)])
            rate = self._rates.rate(matched + count, place < self._given, count)
            yield Step(drafted[-1], Distribution.certain(drafted[-1]), rate)
