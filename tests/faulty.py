"""llama.cpp, with calls that fail when a test wants them to."""

from __future__ import annotations

import pytest

from specchat.models import llama
from specchat.models.llama import Context


class Faulty:
    """llama.cpp, with one call that fails: a pass before or after it has run, or a truncation."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._decode, self._forget = llama.api.llama_decode, llama.api.llama_memory_seq_rm
        monkeypatch.setattr(llama.api, "llama_decode", self._run)
        monkeypatch.setattr(llama.api, "llama_memory_seq_rm", self._truncate)
        self._context: Context | None = None
        self._kind, self._after = "", 0
        self.happened = False

    def arm(self, context: Context, kind: str, after: int) -> None:
        """Let a call of this kind fail on this context, once so many have gone well."""
        self._context, self._kind, self._after, self.happened = context, kind, after, False

    def disarm(self) -> None:
        self._context = None

    def _due(self, handle: object, attribute: str, *kinds: str) -> bool:
        if self.happened or self._kind not in kinds or self._context is None:
            return False
        if handle is not getattr(self._context, attribute):
            return False
        self._after -= 1
        self.happened = self._after < 0
        return self.happened

    def _run(self, context: object, batch: object) -> int:
        if self._due(context, "_context", "refused", "half done"):
            if self._kind == "half done":
                self._decode(context, batch)
            return -2
        return self._decode(context, batch)

    def _truncate(self, memory: object, sequence: int, start: int, end: int) -> bool:
        partly = sequence == 0 and start > 0
        if partly and self._due(memory, "_memory", "truncation"):
            return False
        return self._forget(memory, sequence, start, end)
