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

    def truncate(self, length: int) -> None:
        """Forget everything after the first `length` tokens."""
        ...
