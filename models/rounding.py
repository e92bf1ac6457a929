"""Finds which pass sizes give rows that are bit for bit those of passes of one token, here and now."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass

import numpy as np

from .llama import Context, Logits

_PAD = 256
"""llama.cpp looks at its cells in multiples of this, and its kernels choose by that multiple."""

_PREFIX, _BRANCHES = 6, 50
"""What is held before the passes: 6 tokens, in the deep test in all branches, which fill 300 cells."""

# Sums in another order differ in their last bit, and most of these are lost where activations are rounded
# to half precision or eight bits: in a row of a model of 100 million parameters some always stay, in one of
# a tiny model seldom. So a small model is tried on more texts.
_ENOUGH_PARAMETERS, _MOST_TEXTS = 100_000_000, 32


@dataclass(frozen=True)
class EqualSizes:
    """Sizes of passes, all above 1, whose rows equal those of single-token passes bit for bit.

    `shallow` holds while a pass ends within the first `deep_from` - 1 cells, `deep` from there on.
    """

    shallow: tuple[int, ...]
    deep: tuple[int, ...]
    deep_from: int = _PAD + 1

    def at(self, cells: int) -> tuple[int, ...]:
        """The sizes that hold for a pass after which so many cells are in use."""
        return self.shallow if cells < self.deep_from else self.deep


def find_equal_sizes(
    context: Context,
    sizes: Sequence[int] = (2, 3, 4, 5, 6, 8, 12, 16),
    cancelled: Callable[[], bool] = lambda: False,
) -> EqualSizes:
    """Try ascending sizes up to the first that rounds differently, in contexts like the given one.

    Only sizes that were tried and found equal are returned, fewer once `cancelled`. A model that cannot
    forget a suffix has none. The given context is left alone.

    Raises:
        LoadError: there is no memory for two small contexts more.
        PassError: llama.cpp would not run a pass.
    """
    fitting = [size for size in sizes if size <= min(context.rows, context.chunk)]
    if not context.model.drops_suffixes or cancelled():
        return EqualSizes((), ())
    with (
        closing(context.fresh(2 * _PAD, branches=_BRANCHES)) as alone,
        closing(context.fresh(2 * _PAD, branches=_BRANCHES)) as together,
    ):
        probe = _Probe(alone, together)
        shallow = probe.equal_sizes(fitting, cancelled)
        probe.go_deep()
        return EqualSizes(shallow, probe.equal_sizes(fitting, cancelled))


class _Probe:
    """Two caches that hold the same few tokens; one goes on alone, token by token, the other by passes."""

    def __init__(self, alone: Context, together: Context) -> None:
        self._alone, self._together = alone, together
        model = alone.model
        texts = min(_MOST_TEXTS, max(1, _ENOUGH_PARAMETERS // model.parameters))
        # Ids all over the vocabulary, in no order that a model could have learnt.
        draws = np.random.default_rng(0)
        prefix: list[int] = draws.integers(0, model.vocabulary_size, _PREFIX).tolist()
        self._texts: list[list[int]] = draws.integers(0, model.vocabulary_size, (texts, _PAD // 2)).tolist()
        for context in (alone, together):
            context.decode(prefix, 0)

    def go_deep(self) -> None:
        """Go on behind cell 256: what attention sums then lies in both halves of the cells it looks at."""
        for context in (self._alone, self._together):
            context.truncate(_PREFIX)
            context.crowd()

    def equal_sizes(self, sizes: Sequence[int], cancelled: Callable[[], bool]) -> tuple[int, ...]:
        """The sizes before the first that is not equal on some text."""
        for text in self._texts:
            self._alone.truncate(_PREFIX)
            rows: list[Logits] = []
            equal: list[int] = []
            for size in sizes:
                if cancelled() or not self._is_equal(text, size, rows):
                    break
                equal.append(size)
            sizes = equal
        return tuple(sizes)

    def _is_equal(self, text: list[int], size: int, alone: list[Logits]) -> bool:
        """Whether a pass gives the rows of single ones, and leaves a cache that gives the next one too.

        The single rows are computed as far as they are needed and kept in `alone`.
        """

        def is_row(row: Logits, index: int) -> bool:
            while len(alone) <= index:
                alone.append(self._alone.decode([text[len(alone)]], 1)[0].copy())
            return np.array_equal(row, alone[index])

        self._together.truncate(_PREFIX)
        rows = self._together.decode(text[:size], size)
        if not all(map(is_row, rows, range(size))):
            return False
        return is_row(self._together.decode([text[size]], 1)[0], size)
