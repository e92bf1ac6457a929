"""The arrays that a pass is asked for with, laid out as llama.cpp's llama_batch points to them."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from .tree_shape import TreeShape


class Batch:
    """Room for the tokens of a pass, filled by a few slices; llama.cpp calls branches sequences."""

    def __init__(self, size: int, branches: int) -> None:
        self._token, self._position, self._counts = np.zeros((3, size), np.int32)
        self._branches = np.zeros((size, branches), np.int32)
        self._output = np.zeros(size, np.int8)
        start, stride = self._branches.ctypes.data, self._branches.strides[0]
        self._branch_rows = np.arange(size, dtype=np.uintp) * stride + start
        self._numbers = np.arange(max(size, branches), dtype=np.int32)

    def pointers(self) -> dict[str, Any]:
        """The fields of a llama_batch over these arrays; they hold as long as the arrays live."""
        int32 = ctypes.POINTER(ctypes.c_int32)
        return {
            "token": self._token.ctypes.data_as(int32),
            "pos": self._position.ctypes.data_as(int32),
            "n_seq_id": self._counts.ctypes.data_as(int32),
            "seq_id": self._branch_rows.ctypes.data_as(ctypes.POINTER(int32)),
            "logits": self._output.ctypes.data_as(ctypes.POINTER(ctypes.c_int8)),
        }

    def fill(self, tokens: Sequence[int], start: int, rows: int, shape: TreeShape | None = None) -> None:
        """Set a chain, or a tree of this shape, from position `start` on, with logits for the last `rows`."""
        count = len(tokens)
        self._token[:count] = tokens
        self._output[: count - rows] = 0
        self._output[count - rows : count] = 1
        if shape is None:
            self._position[:count] = self._numbers[:count] + start
            self._counts[:count] = 1
            self._branches[:count, 0] = 0
        else:
            branches = self._branches[:count]
            self._position[:count] = _column(shape.depths) + start
            self._counts[:count] = shape.counts
            branches[:] = _column(shape.firsts)[:, np.newaxis] + self._numbers[: branches.shape[1]]


def _column(values: Sequence[int]) -> npt.NDArray[np.int32]:
    return np.array(values, np.int32)
