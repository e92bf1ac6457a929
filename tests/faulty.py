"""llama.cpp, with calls that fail when a test wants them to."""

from __future__ import annotations

import pytest

from specchat.models import llama
from specchat.models.llama import Context


class Faulty:
    """llama.cpp, with one call that fails: a pass before or after it has run, a truncation, a new context."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._decode, self._forget = llama.api.llama_decode, llama.api.llama_memory_seq_rm
        self._make = llama.api.llama_init_from_model
        monkeypatch.setattr(llama.api, "llama_init_from_model", self._made)
        monkeypatch.setattr(llama.api, "llama_decode", self._run)
        monkeypatch.setattr(llama.api, "llama_memory_seq_rm", self._truncate)
        self._context: Context | None = None
        self._kind, self._after = "", 0
        self._wait: int | None = None
        self._new: object = None
        self.happened = False

    def arm(self, context: Context, kind: str, after: int) -> None:
        """Let a call of this kind fail on this context, once so many have gone well."""
        self._context, self._kind, self._after, self.happened = context, kind, after, False

    def arm_new(self, place: int, kind: str, after: int = 0) -> None:
        """The same for a context that is yet to be made, by its place among them; or let it not be made."""
        self._context, self._new, self._wait = None, None, place
        self._kind, self._after, self.happened = kind, after, False

    def disarm(self) -> None:
        self._context = self._new = self._wait = None

    def _made(self, model: object, parameters: object) -> object:
        due = self._wait == 0
        self._wait = None if self._wait in (0, None) else self._wait - 1
        if due and self._kind == "not made":
            self.happened = True
            return None
        made = self._make(model, parameters)
        if due:
            self._new = made
        return made

    def _due(self, handle: object, attribute: str, *kinds: str) -> bool:
        if self.happened or self._kind not in kinds:
            return False
        armed = self._new if self._context is None else getattr(self._context, attribute)
        if armed is None or handle is not armed:
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
