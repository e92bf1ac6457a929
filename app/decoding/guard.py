"""Bounds what drafting may lose, whatever the cost model believes."""

from __future__ import annotations

_SHARE = 0.005
"""The share of the time that drafting may lose, beside the passes below."""

_FIRST, _LATER = 2.5, 1.6
"""Plain passes that may be lost before drafting rests for the first time, and after each rest."""

_MOST_GAIN = 8.0
"""Plain passes of former gains that later drafts may risk, at the most."""

_FIRST_REST = 24
"""Rounds of the first rest; each later one is twice as long, until drafting has paid again."""


class Guard:
    """What the rounds of one answer gained or lost against plain decoding, and what the next may risk.

    Estimates can be wrong: a draft that is sure of itself for no reason, a machine that has changed. No draft
    costs more than could be lost without harm, and drafting rests when there is too little left to risk.
    """

    def __init__(self) -> None:
        self._left = _FIRST
        self._rest = 0
        self._next_rest = _FIRST_REST

    def budget(self, least: float) -> float:
        """The plain passes that the next draft may cost beyond one; 0 while drafting rests.

        It rests when not even the `least` that a draft costs may be lost.
        """
        if self._rest > 0:
            self._rest -= 1
            if self._rest > 0:
                return 0.0
            self._left = max(_LATER, least)
        if self._left >= least:
            return self._left
        self._rest, self._next_rest = self._next_rest, 2 * self._next_rest
        return 0.0

    def observe(self, tokens: int, seconds: float, plain_s: float) -> None:
        """Take a round into account: its tokens, its seconds, and those of a plain pass."""
        passes = seconds / plain_s
        self._left = min(self._left + tokens - passes + _SHARE * passes, _FIRST + _MOST_GAIN)
        if self._left > 2.0 * _FIRST:
            self._next_rest = _FIRST_REST
