"""Two GGUF files to a loaded pair: judged by their headers, then models, contexts and a first pass."""

from __future__ import annotations

import platform
import time
from collections.abc import Callable, Sequence
from datetime import datetime
from pathlib import Path

from ..models.errors import LoadError, PairError, PassError
from ..models.gguf_file import GgufHeader, read_header
from ..models.llama import Context, Model, build, devices
from ..models.locate import locate_model
from ..models.pair import Verdict, judge
from ..models.template import ChatTemplate
from .events import ContextRole, Event, LoadProgress, ModelInfo
from .footprint import (
    BRANCHES,
    CPU_CHUNK,
    GPU_CHUNK,
    Machine,
    context_size,
    must_fit,
    needed,
    rows_of,
)
from .load_recipe import LoadRecipe
from .measuring import DraftFailed
from .processor import thread_count
from .requests import LoadOptions

Emit = Callable[[Event], None]
Cancelled = Callable[[], bool]


class LoadedModel:
    """One model's header, weights and context, and what they were made from."""

    def __init__(self, recipe: LoadRecipe, header: GgufHeader, model: Model, context: Context) -> None:
        self.recipe, self.header, self.model, self.context = recipe, header, model, context

    def info(self) -> ModelInfo:
        """What to tell a person about it."""
        return ModelInfo(
            name=self.header.name,
            path=str(self.header.path),
            quantization=self.header.quantization,
            size_bytes=self.model.size_bytes,
            parameters=self.model.parameters,
            train_context=self.model.train_context,
        )

    def close(self) -> None:
        """Free the context, then the weights."""
        self.context.close()
        self.model.close()


class Pair:
    """A target and perhaps a draft, loaded with one set of options."""

    def __init__(
        self,
        options: LoadOptions,
        verdict: Verdict | None,
        template: ChatTemplate,
        target: LoadedModel,
        draft: LoadedModel | None,
        left_out: str = "",
    ) -> None:
        """`left_out` says why a draft that was asked for is not there, in words that follow "the draft"."""
        self.options, self.verdict, self.template, self.left_out = options, verdict, template, left_out
        self.target, self.draft = target, draft
        self.threads = thread_count(options.threads)
        self.devices = devices(options.gpu_layers)
        self.identity = self._identity()
        """What a measurement of this pair depends on."""

    def _identity(self) -> dict[str, object]:
        options, loaded = self.options, (self.target, self.draft)
        return {
            "format": 1,
            "models": [
                [one.header.path.name, one.header.name, one.header.quantization, one.model.size_bytes]
                if one
                else None
                for one in loaded
            ],
            "threads": self.threads,
            "devices": [*self.devices, platform.machine()],
            "gpu_layers": [options.gpu_layers, options.gpu_layers_draft],
            "caches": [options.cache_type_k, options.cache_type_v, options.flash_attn],
            "build": build(),
        }

    @property
    def warnings(self) -> tuple[str, ...]:
        """What a person should know about this pair before trusting its speed or its manners."""
        notes = list(self.verdict.reasons) if self.verdict else []
        if self.left_out:
            notes.append(f"The draft is left out: it {self.left_out}. Loading it again tries it again.")
        if self.template.note:
            notes.append(self.template.note)
        size, trained = self.target.context.size, self.target.model.train_context
        if size > trained:
            notes.append(f"The context is {size:,} tokens, and the target was trained for {trained:,}.")
        return tuple(notes)

    def is_still(self, options: LoadOptions) -> bool:
        """Whether loading with these options would give the same: all of it, from the same files."""
        draft = self.draft is None or self.draft.recipe.unchanged
        return self.options == options and not self.left_out and self.target.recipe.unchanged and draft


class PairLoader:
    """Loads one pair after another; a model that the next one has as well stays loaded, cache and all."""

    def __init__(
        self,
        emit: Emit,
        cancelled: Cancelled,
        clock: Callable[[], float] = time.perf_counter,
        machine: Machine | None = None,
    ) -> None:
        """Load on this machine, unless told what another one has."""
        self._emit, self._cancelled, self._clock = emit, cancelled, clock
        self._machine = machine or Machine()
        self._models: dict[ContextRole, LoadedModel] = {}
        self._bytes: dict[ContextRole, int] = {}
        """What those loaded take of main memory."""
        self._pair: Pair | None = None

    def load(self, options: LoadOptions) -> Pair:
        """Judge the pair from the headers, then load what is not loaded already.

        The former pair is not to be used any more, unless it is the one that is returned: with the same
        options and the same files it is. When this raises, what both have in common stays for the next.
        A draft that is loaded, but whose first pass fails, is left out.

        Raises:
            ModelFileError: a file is no usable model.
            PairError: the draft cannot serve the target; no weights have been loaded.
            LoadError: there is too little memory, llama.cpp would not load them, or `cancelled` said so.
            PassError: the target's first pass failed.
            TemplateError: the chat template cannot be compiled.
        """
        if self._pair is not None and self._pair.is_still(options):
            return self._pair
        self._pair = None
        target_header = read_header(locate_model(options.target))
        draft_header = read_header(locate_model(options.draft)) if options.draft else None
        verdict = judge(target_header, draft_header) if draft_header else None
        if verdict is not None and draft_header is not None and not verdict.usable:
            another = "Choose a draft of the target's own family, or start without --draft."
            raise PairError(
                f"{draft_header.path.name} cannot draft for {target_header.path.name}. "
                f"{' '.join(verdict.reasons[:2])} "
                f"{another if target_header.shape.tests_drafts else 'Start without --draft.'}"
            )
        template = template_of(target_header, options)
        size = context_size(options.ctx_size, target_header.train_context)
        takes = self._fitting(in_main_memory(target_header, draft_header, options), options)
        # Vocabularies are megabytes of texts that nothing asks for any more.
        headers: dict[ContextRole, GgufHeader] = {"target": target_header.without_tokens()}
        if draft_header is not None:
            headers["draft"] = draft_header.without_tokens()
        del target_header, draft_header
        draft_error: DraftFailed | None = None
        try:
            self._load(options, size, headers, takes)
        except DraftFailed as error:
            draft_error = error
        self._pair = Pair(options, verdict, template, self._models["target"], self._models.get("draft"))
        return self._pair if draft_error is None else self.leave_out_draft(draft_error)

    def leave_out_draft(self, error: DraftFailed) -> Pair:
        """Free the draft of the pair that is loaded; returns the pair that the target makes alone."""
        assert self._pair is not None
        if (draft := self._models.pop("draft", None)) is not None:
            draft.close()
        self._bytes.pop("draft", None)
        why = f"failed when it was first used: {error}"
        self._pair = Pair(self._pair.options, None, self._pair.template, self._pair.target, None, why)
        return self._pair

    def close(self) -> None:
        """Free everything."""
        self._pair = None
        self._bytes.clear()
        while self._models:
            self._models.popitem()[1].close()

    def _fitting(self, headers: Sequence[GgufHeader], options: LoadOptions) -> dict[ContextRole, int]:
        """What each takes of main memory, once it is sure that there is room.

        Raises:
            LoadError: there is not.
        """
        if not headers:
            return {}
        processor = self._machine.processor()
        if options.memory_check:
            # What is loaded now stays, or is freed first. As part of the sum it is part of the room.
            room = self._machine.room().with_freed(sum(self._bytes.values()))
            must_fit(headers, options, processor, room)
        roles: tuple[ContextRole, ...] = ("target", "draft")
        estimates = needed(headers, options, processor)
        return {role: one.total for role, one in zip(roles, estimates, strict=False)}

    def _load(
        self,
        options: LoadOptions,
        size: int,
        headers: dict[ContextRole, GgufHeader],
        takes: dict[ContextRole, int],
    ) -> None:
        """Free what is not wanted, so that there is room, then load what is missing."""
        layers = {"target": options.gpu_layers, "draft": options.gpu_layers_draft}
        wanted = {
            role: LoadRecipe.of(header.path, options, layers[role], size) for role, header in headers.items()
        }
        unwanted: list[ContextRole] = [
            role for role, model in self._models.items() if model.recipe != wanted.get(role)
        ]
        for role in unwanted:
            self._models.pop(role).close()
            self._bytes.pop(role, None)
        for role, header in headers.items():
            if role in self._models:
                continue
            try:
                self._models[role] = load_model(
                    role, header, wanted[role], options, self._emit, self._cancelled, self._clock
                )
            except LoadError as error:
                if role == "target" or self._cancelled():
                    raise
                raise LoadError(f"{error}; name another draft, or start without --draft") from None
            self._bytes[role] = takes.get(role, 0)


def load_model(
    role: ContextRole,
    header: GgufHeader,
    recipe: LoadRecipe,
    options: LoadOptions,
    emit: Emit,
    cancelled: Cancelled,
    clock: Callable[[], float],
) -> LoadedModel:
    """Load one model and its context, and run a first pass.

    Raises:
        LoadError: llama.cpp would not load it, or `cancelled` said so.
        DraftFailed: it is a draft, and llama.cpp would not run its first pass.
        PassError: it is a target, and so.
    """
    told = -1

    def on_progress(fraction: float) -> bool:
        nonlocal told
        if int(fraction * 100) > told:
            told = int(fraction * 100)
            emit(LoadProgress(role, header.name, fraction))
        return not cancelled()

    on_progress(0.0)
    gpu_layers = recipe.gpu_layers
    try:
        model = Model(Path(header.path), gpu_layers=gpu_layers, on_progress=on_progress)
    except LoadError:
        if cancelled():
            raise LoadError("loading was stopped") from None
        raise
    try:
        context = Context(
            model,
            size=recipe.context_size,
            threads=recipe.threads,
            chunk=CPU_CHUNK if gpu_layers == 0 or not _has_gpu() else GPU_CHUNK,
            rows=rows_of(role),
            branches=BRANCHES if role == "target" and model.drops_suffixes else 1,
            rollback=header.shape.rollback if role == "target" else 0,
            cache_type_k=options.cache_type_k,
            cache_type_v=options.cache_type_v,
            flash_attn=options.flash_attn,
            clock=clock,
        )
    except BaseException:
        model.close()
        raise
    loaded = LoadedModel(recipe, header, model, context)
    try:
        # The first pass reads the weights in from the disk: it belongs to loading, not to an answer.
        context.decode([max(model.bos, 0)] * 2, 1)
        context.truncate(0)
    except BaseException as error:
        loaded.close()
        if isinstance(error, PassError) and role == "draft":
            raise DraftFailed(str(error)) from error
        raise
    context.pass_s = 0.0
    emit(LoadProgress(role, header.name, 1.0))
    return loaded


def in_main_memory(
    target: GgufHeader, draft: GgufHeader | None, options: LoadOptions
) -> tuple[GgufHeader, ...]:
    """What goes into main memory of a target and its draft: nothing where the target's layers do not."""
    gpu = _has_gpu()
    if gpu and options.gpu_layers != 0:
        return ()
    if draft is None or (gpu and options.gpu_layers_draft != 0):
        return (target,)
    return (target, draft)


def template_of(target: GgufHeader, options: LoadOptions) -> ChatTemplate:
    """The chat template to talk to this target with.

    Raises:
        TemplateError: it cannot be compiled.
    """
    vocabulary = target.vocabulary
    return ChatTemplate.from_model(
        options.chat_template or target.chat_template,
        vocabulary.bos_text,
        vocabulary.eos_text,
        vocabulary,
        datetime.now,
    )


def _has_gpu() -> bool:
    return devices(-1) != devices(0)
