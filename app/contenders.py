"""One target, loaded once, and everything that drafts for it, each with what it learns of its own."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from ..models.errors import LoadError
from ..models.gguf_file import GgufHeader
from ..models.memory import together
from ..models.pair import Verdict
from ..models.template import ChatTemplate
from .answering import Answerer
from .comparison import Contender, Drafts
from .decoding.drafters import common_prefix
from .decoding.stats import Round
from .events import Ask, ContextRole, Event, Finished
from .footprint import Machine, context_size, must_fit, needed
from .load_recipe import LoadRecipe
from .loading import Cancelled, Emit, LoadedModel, Pair, in_main_memory, load_model, template_of
from .measuring import DraftFailed
from .remembered import Remembered
from .requests import AnswerOptions, Drafting, LoadOptions, Turn


@dataclass(frozen=True)
class Candidate:
    """A draft that may serve a target, by the headers."""

    header: GgufHeader
    """With its tokens."""
    name: str
    """How it is called here."""
    verdict: Verdict


@dataclass(frozen=True)
class Observed:
    """One answer, and what it was made of."""

    finished: Finished
    times_s: tuple[float, ...]
    """When each token was there, in seconds since decoding began."""
    decided: int
    """Tokens decided in the rounds after the first, whose time tokens per second go by."""
    target_passes: Counter[int]
    """The target's passes of those rounds, by the tokens in them."""
    draft_passes: Counter[int]

    def differs_from(self, other: Observed) -> int | None:
        """The number, from 1, of the first token that differs; `None` where the two are the same."""
        mine, theirs = self.finished.token_ids, other.finished.token_ids
        if mine == theirs:
            return None
        return 1 + common_prefix(mine, theirs)


class Contestant:
    """A contender at work: it answers, keeps what it learned for the next answer, and is counted."""

    def __init__(
        self,
        name: str,
        pair: Pair,
        drafts: Drafts,
        memory_bytes: int,
        cancelled: Cancelled,
        clock: Callable[[], float],
        remembered: Remembered | None,
    ) -> None:
        self.name, self.pair, self._memory_bytes = name, pair, memory_bytes
        self.drafts: Drafts = drafts
        self._answerer = Answerer(
            pair, self._take, cancelled, clock, remembered=remembered, on_round=self._count
        )
        self._finished: Finished | None = None
        self._reset()

    def contender(self) -> Contender:
        """Who it is."""
        target, draft = self.pair.target, self.pair.draft
        return Contender(
            name=self.name,
            target=target.info(),
            draft=draft.info() if draft else None,
            drafts=self.drafts,
            memory_bytes=self._memory_bytes,
        )

    def prepare(self, drafting: Drafting) -> str | None:
        """Make ready for answers that are drafted as this contender drafts; why it cannot, if so."""
        obstacle = self._answerer.prepare(self._drafting(drafting))
        return obstacle if self.drafts != "none" else None

    def answer(self, turns: tuple[Turn, ...], options: AnswerOptions, *, afresh: bool) -> Observed | None:
        """Answer the last turn; `None` where it was cancelled.

        `afresh` as in `Ask`: the time to the first token is then that of the whole prompt.

        Raises:
            SpecchatError: the prompt does not fit, or llama.cpp would not run a pass.
        """
        self._reset()
        options = replace(options, drafting=self._drafting(options.drafting))
        self._answerer.answer(Ask(turns, options, afresh))
        finished = self._finished
        if finished is None or finished.reason == "cancelled":
            return None
        draft_passes = self._draft_passes() - self._draft_passes_before
        return Observed(finished, tuple(self._times_s), self._decided, self._target_passes, draft_passes)

    def _drafting(self, drafting: Drafting) -> Drafting:
        if self.drafts == "none":
            return replace(drafting, speculate="off")
        return replace(drafting, drafter=self.drafts)

    def _reset(self) -> None:
        self._finished = None
        self._times_s: list[float] = []
        self._now_s, self._rounds, self._decided = 0.0, 0, 0
        self._target_passes: Counter[int] = Counter()
        self._draft_passes_before: Counter[int] = Counter()

    def _take(self, event: Event) -> None:
        if isinstance(event, Finished):
            self._finished = event

    def _count(self, done: Round) -> None:
        if not done.took_a_pass:
            return
        self._rounds += 1
        self._now_s += done.wall_s
        self._times_s += [self._now_s] * len(done.emitted)
        if self._rounds == 1:
            self._draft_passes_before = self._draft_passes()
            return
        self._decided += len(done.emitted) + (done.finish == "stop")
        self._target_passes[1 + done.proposed] += 1

    def _draft_passes(self) -> Counter[int]:
        return Counter(self.pair.draft.context.passes) if self.pair.draft else Counter()


class Bench:
    """A target with its contestants, plain decoding first."""

    def __init__(
        self,
        target: LoadedModel,
        drafts: Sequence[LoadedModel],
        template: ChatTemplate,
        contestants: list[Contestant],
    ) -> None:
        self.target, self.drafts, self.template, self.contestants = target, drafts, template, contestants

    def close(self) -> None:
        """Free everything."""
        for model in (*self.drafts, self.target):
            model.close()


def load_bench(
    options: LoadOptions,
    target_header: GgufHeader,
    candidates: Sequence[Candidate],
    drafting: Drafting,
    name: Callable[[str], str],
    machine: Machine,
    *,
    emit: Emit,
    left_out: Callable[[Candidate, str], None],
    cancelled: Cancelled,
    clock: Callable[[], float],
    remembered: Remembered | None,
) -> Bench:
    """Load a target and its drafts; each way of drafting becomes a contestant.

    Args:
        options: how to load; the models they name are left aside.
        target_header: the target.
        candidates: drafts that may serve it; one that cannot be loaded is told to `left_out`.
        drafting: what the drafts are used with, alone or beside the text so far.
        name: the whole name of a contender from what drafts in it.
        machine: what it runs on: memory is told by it, and has to be there.
        emit: is told how far loading is.
        left_out: is told what is left out, and why.
        cancelled: whether to stop.
        clock: seconds.
        remembered: where what is measured and learned is looked up and kept.

    Raises:
        LoadError: there is too little memory for the target, llama.cpp would not load it, or
            `cancelled` said so.
        PassError: the target's first pass failed.
        TemplateError: the chat template cannot be compiled.
    """
    template = template_of(target_header, options)
    size = context_size(options.ctx_size, target_header.train_context)

    def load(role: ContextRole, header: GgufHeader, gpu_layers: int) -> LoadedModel:
        recipe = LoadRecipe.of(header.path, options, gpu_layers, size)
        return load_model(role, header, recipe, options, emit, cancelled, clock)

    def must_have_room(draft: GgufHeader | None, loaded: int) -> None:
        counted = in_main_memory(target_header, draft, options)
        if counted and options.memory_check:
            must_fit(counted, options, processor, machine.room().with_freed(loaded))

    header, processor = target_header.without_tokens(), machine.processor()
    must_have_room(None, 0)
    alone = together(needed([target_header], options, processor))
    target = load("target", header, options.gpu_layers)
    drafts: list[LoadedModel] = []
    contestants: list[Contestant] = []

    def add(
        what: str,
        drafts: Drafts,
        memory_bytes: int,
        verdict: Verdict | None = None,
        draft: LoadedModel | None = None,
    ) -> None:
        paths = str(header.path), str(draft.header.path) if draft else None
        pair = Pair(replace(options, target=paths[0], draft=paths[1]), verdict, template, target, draft)
        contestants.append(Contestant(name(what), pair, drafts, memory_bytes, cancelled, clock, remembered))

    try:
        add("plain", "none", alone)
        add("lookup", "lookup", alone)
        for candidate in candidates:
            try:
                must_have_room(candidate.header, alone)
                drafts.append(load("draft", candidate.header.without_tokens(), options.gpu_layers_draft))
            except (LoadError, DraftFailed) as error:
                if cancelled():
                    raise
                left_out(candidate, str(error))
                continue
            both = together(needed([target_header, candidate.header], options, processor))
            add(candidate.name, drafting.drafter, both, candidate.verdict, drafts[-1])
        return Bench(target, drafts, template, contestants)
    except BaseException:
        for model in (*drafts, target):
            model.close()
        raise
