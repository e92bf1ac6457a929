"""An answer needs no draft: where a drafter fails, the rest of the answer is decoded plainly."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence

from ...models.errors import PassError
from .pacing import Pacing, PlainPacing, Proposal
from .sampling import Distribution
from .stats import Round


def draft_failed(error: PassError) -> str:
    """Why nothing is drafted any more, for a person."""
    return f"the draft failed and is left alone for the rest of this answer: {error}"


class Failsafe:
    """Paces as another pacing does until its draft fails, and drafts nothing after that.

    The draft's cache says itself what it holds, so the next answer may try it again.
    """

    def __init__(self, pacing: Pacing) -> None:
        self._pacing, self._now = pacing, pacing

    @property
    def draft_s(self) -> float:
        """Seconds spent in draft passes so far, the one that failed among them."""
        return self._pacing.draft_s

    @property
    def reads_prompt(self) -> bool:
        """Whether the draft model is soon to be asked."""
        return self._now.reads_prompt

    def propose(self, limit: int) -> Proposal:
        """What to test in the next round; nothing, once the draft has failed."""
        try:
            return self._now.propose(limit)
        except PassError as error:
            self.fail(error)
            return self._now.propose(limit)

    def observe(self, done: Round, verified: Sequence[Distribution]) -> None:
        """Learn from a round."""
        try:
            self._now.observe(done, verified)
        except PassError as error:
            self.fail(error)

    def forget(self) -> None:
        """What was proposed last has not come about."""
        try:
            self._now.forget()
        except PassError as error:
            self.fail(error)

    def fail(self, error: PassError) -> None:
        """Leave the draft alone from now on, its cache cut back to what stands."""
        self._now = PlainPacing(draft_failed(error))
        with contextlib.suppress(PassError):
            self._pacing.forget()
