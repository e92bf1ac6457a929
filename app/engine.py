"""Owns everything llama.cpp: commands in, events out, one at a time.

The same engine runs in a process of its own for the chat, and in-process for `run` and the tests.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from ..models.errors import SpecchatError
from .answering import Answerer
from .clocks import steady
from .decoding.acceptance import Rule, speculative
from .events import Ask, Failed, Load, Loaded
from .footprint import Machine
from .loading import Cancelled, Emit, Pair, PairLoader
from .measuring import DraftFailed
from .remembered import Remembered


class Engine:
    """One pair at a time."""

    def __init__(
        self,
        emit: Emit,
        cancelled: Cancelled = lambda: False,
        clock: Callable[[], float] = time.perf_counter,
        accept: Rule = speculative,
        remembered: Remembered | None = None,
        machine: Machine | None = None,
    ) -> None:
        """Events go to `emit`; `cancelled` is looked at between rounds and between prefill passes.

        What is measured here is looked up in `remembered`, and kept there, if it is given; models are loaded
        on this machine, unless told what another one has.
        """
        self._emit, self._cancelled, self._clock, self._accept = emit, cancelled, steady(clock), accept
        self._remembered = remembered
        self._loader = PairLoader(emit, cancelled, self._clock, machine)
        self.pair: Pair | None = None
        self._answerer: Answerer | None = None

    def load(self, command: Load) -> None:
        """Load a pair in place of what is loaded; the last event is `Loaded` or `Failed`.

        A model that both have stays as it is, its cache included, also after `Failed`: then nothing can be
        asked, but the next load need not read it again. A draft that is loaded and fails when it is first
        used is left out, and `Loaded` says why.
        """
        before, answerer = self.pair, self._answerer
        self.pair = self._answerer = None
        try:
            pair = self._loader.load(command.options)
            if answerer is None or pair is not before:
                answerer = self._answerer_of(pair)
            try:
                obstacle = answerer.prepare(command.drafting)
            except DraftFailed as error:
                pair = self._loader.leave_out_draft(error)
                answerer = self._answerer_of(pair)
                obstacle = answerer.prepare(command.drafting)
            notes = answerer.notes(command.drafting)
        except SpecchatError as error:
            self._emit(Failed(str(error)))
            return
        self.pair, self._answerer = pair, answerer
        self._emit(
            Loaded(
                target=pair.target.info(),
                draft=pair.draft.info() if pair.draft else None,
                context_size=pair.target.context.size,
                threads=pair.threads,
                devices=pair.devices,
                warnings=(*pair.warnings, *notes),
                state="plain" if obstacle else "drafting",
                reason=obstacle or (f"the draft {pair.left_out}" if pair.left_out else "ready"),
            )
        )

    def ask(self, command: Ask) -> None:
        """Answer the last turn; the last event is `Finished` or `Failed`, and the caches are true."""
        if self._answerer is None:
            self._emit(Failed("no model is loaded"))
            return
        try:
            self._answerer.answer(command)
        except SpecchatError as error:
            self._emit(Failed(str(error)))

    def _answerer_of(self, pair: Pair) -> Answerer:
        return Answerer(pair, self._emit, self._cancelled, self._clock, self._accept, self._remembered)

    def close(self) -> None:
        """Free what is loaded."""
        self._loader.close()
        self.pair = self._answerer = None
