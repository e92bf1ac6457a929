"""The shape of a token tree: how deep its nodes lie, and which of its branches run through them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class TreeShape:
    """A tree, or several side by side, as each node's parent; a branch is a path from a root to a leaf.

    Branches are numbered as a walk that goes to the first child first meets their leaves, so those through
    a node are `counts[node]` in a row, from `firsts[node]` on. Roots have depth 0.
    """

    parents: tuple[int, ...]
    depths: tuple[int, ...]
    firsts: tuple[int, ...]
    counts: tuple[int, ...]
    branches: int

    @classmethod
    def of(cls, parents: Sequence[int]) -> TreeShape:
        """The shape that these parents give: an earlier node each, or -1 for a root.

        Raises:
            ValueError: a node comes before its parent, or names none.
        """
        size = len(parents)
        if any(not -1 <= parent < node for node, parent in enumerate(parents)):
            raise ValueError("a node's parent is an earlier node, or -1")
        # Every list has one more entry, which index -1 finds: the parent of the roots.
        counts = [0] * (size + 1)
        for node in reversed(range(size)):
            counts[node] = counts[node] or 1
            counts[parents[node]] += counts[node]
        depths, firsts, unclaimed = [-1] * (size + 1), [0] * (size + 1), [0] * (size + 1)
        for node, parent in enumerate(parents):
            depths[node] = depths[parent] + 1
            firsts[node] = unclaimed[node] = unclaimed[parent]
            unclaimed[parent] += counts[node]
        return cls(tuple(parents), tuple(depths[:-1]), tuple(firsts[:-1]), tuple(counts[:-1]), counts[-1])

    def is_path(self, nodes: Sequence[int]) -> bool:
        """Whether the nodes lead from a root downwards, one level after the other; no nodes do."""
        inside = all(0 <= node < len(self.parents) for node in nodes)
        return inside and [self.parents[node] for node in nodes] == [-1, *nodes][: len(nodes)]
