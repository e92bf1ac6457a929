"""One answer: prompt, prefill of what is new, rounds, figures, and the way each of them is told."""

from __future__ import annotations

import itertools
import secrets
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import replace

import numpy as np

from ..models.errors import PassError
from ..models.llama import Context
from ..models.text import StopTexts, TextDecoder
from .conversation import Prompt, build_prompt
from .decoding.acceptance import Rule, speculative
from .decoding.drafters import common_prefix
from .decoding.failsafe import Failsafe, draft_failed
from .decoding.loop import generate
from .decoding.pacing import Baseline, PlainPacing
from .decoding.sampling import Sampler
from .decoding.stats import FinishReason, Origin, Round, Tally
from .events import Ask, ContextRole, Finished, Piece, PrefillProgress, Progress
from .loading import Cancelled, Emit, Pair
from .pacers import Pacers
from .remembered import Remembered
from .requests import Drafting

_PROGRESS_EVERY_S = 0.04
"""Rounds of a fast pair are told together: nobody reads faster, and telling takes time."""


class Answerer:
    """Answers with one pair, and keeps what is learned about it from one answer to the next."""

    def __init__(
        self,
        pair: Pair,
        emit: Emit,
        cancelled: Cancelled,
        clock: Callable[[], float],
        accept: Rule = speculative,
        remembered: Remembered | None = None,
        on_round: Callable[[Round], None] = lambda _round: None,
    ) -> None:
        """Answer with this pair; `on_round` is told every round before its text is."""
        self._pair, self._on_round = pair, on_round
        self._pacers = Pacers(pair, clock, cancelled, remembered)
        self._emit, self._cancelled, self._clock, self._accept = emit, cancelled, clock, accept
        self._baseline = Baseline()

    def answer(self, command: Ask) -> None:
        """Answer the last turn; the last event is `Finished`. In any case the caches stay true.

        A draft that fails costs the answer nothing but its drafts. Where the target fails, what there is of
        the answer has been told.

        Raises:
            ContextFullError: the last turn alone does not fit the context.
            TemplateError: the chat template refuses the conversation.
            PassError: llama.cpp would not run a pass.
        """
        submitted = self._clock()
        pair, options = self._pair, command.options
        target = pair.target.context
        prompt = build_prompt(command.turns, pair.template, pair.target.model, target.size)
        if command.afresh:
            for loaded in (pair.target, pair.draft):
                if loaded is not None:
                    loaded.context.truncate(0)
        draws = np.random.default_rng(
            options.sampling.seed if options.sampling.seed is not None else secrets.randbits(64)
        )
        sampler = Sampler(options.sampling)
        pacing = self._pacing(options.drafting, prompt.tokens, sampler, draws)
        told = _Telling(self._emit, pair, self._baseline, prompt, self._clock)
        if not self._prefill("target", target, prompt.tokens):
            told.end("cancelled")
            return
        # A draft that cannot pay need not read the prompt: what it lacks it reads when it is asked.
        draft = pair.draft if pacing.reads_prompt else None
        try:
            if draft is not None and not self._prefill("draft", draft.context, prompt.tokens):
                told.end("cancelled")
                return
        except PassError as error:
            pacing.fail(error)
        told.begin(self._clock() - submitted)
        with closing(
            generate(
                target,
                pacing,
                prompt.tokens,
                sampler=sampler,
                draws=draws,
                clock=self._clock,
                max_tokens=options.max_tokens,
                cancelled=self._cancelled,
                accept=self._accept,
            )
        ) as rounds:
            try:
                for done in rounds:
                    self._baseline.observe(done)
                    self._on_round(done)
                    if told.add(done):
                        break
            except PassError:
                told.break_off()
                raise
        self._pacers.remember()

    def prepare(self, drafting: Drafting) -> str | None:
        """Make ready for answers that are drafted like this; returns why nothing can be drafted, if so.

        Raises:
            DraftFailed: the draft's passes cannot be timed.
            PassError: the target's cannot.
        """
        self._pacers.prepare(drafting)
        return self._pacers.obstacle(drafting)

    def notes(self, drafting: Drafting) -> tuple[str, ...]:
        """What a person should know of answers that are drafted like this."""
        note = self._pacers.strict_note(drafting)
        return (note,) if note else ()

    def _pacing(
        self, drafting: Drafting, prompt: Sequence[int], sampler: Sampler, draws: np.random.Generator
    ) -> Failsafe:
        try:
            return Failsafe(self._pacers.pacing(drafting, prompt, sampler, draws))
        except PassError as error:
            # Passes were timed, and one failed. If it was the target's, the answer will meet it again.
            return Failsafe(PlainPacing(draft_failed(error)))

    def _prefill(self, role: ContextRole, context: Context, prompt: Sequence[int]) -> bool:
        """Decode what the cache lacks of the prompt, all but its last token; False when cancelled.

        A draft may have fewer tokens than its target, and reads up to the first that it lacks.
        """
        size = context.model.vocabulary_size
        wanted = list(itertools.takewhile(lambda token: token < size, prompt[:-1]))
        context.truncate(common_prefix(context.tokens, wanted))
        reused = len(context.tokens)
        total = len(wanted) - reused
        self._emit(PrefillProgress(role, 0, total, reused))
        for start in range(reused, len(wanted), context.chunk):
            if self._cancelled():
                return False
            context.decode(wanted[start : start + context.chunk], 0)
            self._emit(PrefillProgress(role, len(context.tokens) - reused, total, reused))
        return True


class _Telling:
    """Turns rounds into events: text by token, figures, and the end."""

    def __init__(
        self, emit: Emit, pair: Pair, baseline: Baseline, prompt: Prompt, clock: Callable[[], float]
    ) -> None:
        self._emit, self._baseline, self._prompt, self._clock = emit, baseline, prompt, clock
        self._model, self._context = pair.target.model, pair.target.context
        self._decoder, self._stops = TextDecoder(), StopTexts(pair.template.stops)
        self._tally = Tally(0.0)
        self._told_at = clock()
        self._pieces: list[Piece] = []
        self._text: list[str] = []
        self._tokens: list[tuple[int, int]] = []  # each with the length of the text up to its end
        self._decoded = 0

    def begin(self, prefill_s: float) -> None:
        """Decoding begins, so many seconds after the prompt was submitted."""
        self._tally = Tally(prefill_s)

    def add(self, done: Round) -> bool:
        """Tell a round, now or together with the next one; True once the answer has ended."""
        self._tally.add(done, self._baseline.seconds_per_token)
        finish = done.finish
        for emitted in done.emitted:
            text = self._decoder.decode(self._model.piece(emitted.token))
            self._decoded += len(text)
            self._tokens.append((emitted.token, self._decoded))
            self._say(self._stops.take(text), emitted.origin)
            if self._stops.found:
                finish = "stop"
                break
        if finish is not None:
            self._say_rest()
        now = self._clock()
        if self._pieces and (finish or now - self._told_at >= _PROGRESS_EVERY_S):
            self._told_at = now
            self._tell_pieces()
        if finish is not None:
            self.end(finish)
        return finish is not None

    def break_off(self) -> None:
        """Tell what has not been told yet of an answer that nothing more will come of."""
        self._say_rest()
        self._tell_pieces()

    def _say_rest(self) -> None:
        """Say what waited for more: bytes of a character, and what could have become a stop text."""
        self._say(self._stops.take(self._decoder.finish()), "target")
        self._say(self._stops.finish(), "target")

    def _tell_pieces(self) -> None:
        if not self._pieces:
            return
        self._emit(
            Progress(
                pieces=tuple(self._pieces),
                stats=self._tally.stats(self._baseline.tokens_per_second),
                live_tokens_per_second=self._tally.live_tokens_per_second,
                context_used=len(self._context.tokens),
                context_size=self._context.size,
                in_thought=self._prompt.in_thought,
            )
        )
        self._pieces = []

    def _say(self, text: str, origin: Origin) -> None:
        if text:
            self._text.append(text)
            self._pieces.append(Piece(text, origin))

    def end(self, reason: FinishReason) -> None:
        """Tell that the answer has ended; a token that belongs to a stop text does not belong to it."""
        text = "".join(self._text)
        cut = len(text) if self._stops.found else self._decoded
        token_ids = tuple(token for token, end in self._tokens if end <= cut)
        covered = max((end for _, end in self._tokens if end <= cut), default=0)
        stats = self._tally.stats(self._baseline.tokens_per_second)
        self._emit(
            Finished(
                reason=reason,
                text=text,
                token_ids=token_ids,
                prompt_tokens=len(self._prompt.tokens),
                dropped_turns=self._prompt.dropped_turns,
                stats=replace(stats, completion_tokens=len(token_ids)),
                context_used=len(self._context.tokens),
                context_size=self._context.size,
                in_thought=self._prompt.in_thought,
                ids_are_text=covered == cut,
            )
        )
