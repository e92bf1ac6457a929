"""What a context is compared with: one that has seen nothing else."""

from collections.abc import Sequence

import numpy as np

from specchat.models.llama import Context


def fresh_row(context: Context, tokens: Sequence[int]) -> np.ndarray:
    """The row after these tokens in a context like this one that has seen nothing else."""
    fresh = context.fresh(len(tokens) + 8, branches=1)
    for start in range(0, len(tokens), 32):
        rows = fresh.decode(tokens[start : start + 32], 1)
    found = rows[0].copy()
    fresh.close()
    return found
