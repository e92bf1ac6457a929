"""The one thing decoding needs of a loaded model: passes over a cache that can be cut back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np
import numpy.typing as npt


class Vocabulary(Protocol):
    """What decoding asks of a model's vocabulary."""

    @property
    def vocabulary_size(self) -> int:
        """How many token ids there are."""
        ...

    def ends_generation(self, token: int) -> bool:
        """Whether this token ends an answer."""
        ...


class Passes(Protocol):
    """A KV cache over a model; `specchat.models.llama.Context` is one."""

    @property
    def model(self) -> Vocabulary:
        """The model behind the cache."""
        ...

    @property
    def tokens(self) -> list[int]:
        """What the cache holds."""
        ...

    @property
    def size(self) -> int:
        """How many tokens it can hold."""
        ...

    @property
    def chunk(self) -> int:
        """The most tokens of one pass."""
        ...

    @property
    def pass_s(self) -> float:
        """Seconds spent in passes so far."""
        ...

    def decode(self, tokens: Sequence[int], rows: int) -> npt.NDArray[np.float32]:
        """Append tokens to the cache in one pass; the logits of the last `rows`, true until the next."""
        ...

    def decode_tree(self, tokens: Sequence[int], parents: Sequence[int]) -> npt.NDArray[np.float32]:
        """Run one pass over a tree of tokens that continues the cache; all their logits, true until the next.

        `parents[i]` is the index of the i-th token's parent, before i, or -1 where it follows what the cache
        holds. A token sees what the cache holds, its ancestors and itself. Until `keep` is called nothing of
        the tree is held, and any other call drops it.
        """
        ...

    def keep(self, path: Sequence[int]) -> None:
        """Hold the nodes of the last tree on this path from a root downwards, and forget its others."""
        ...

    def truncate(self, length: int) -> None:
        """Forget everything after the first `length` tokens."""
        ...
