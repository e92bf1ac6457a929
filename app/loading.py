"""Two GGUF files to a loaded pair: judged by their headers, then models, contexts and a first pass."""

from __future__ import annotations

import platform
import time
from collections.abc import Callable
from datetime import datetime
from pathlib import Path

import psutil

from ..models.errors import LoadError, PairError
from ..models.gguf_file import GgufHeader, read_header
from ..models.llama import Context, Model, build, devices
from ..models.locate import locate_model
from ..models.pair import Verdict, judge
from ..models.template import ChatTemplate
from .events import ContextRole, Event, LoadProgress, ModelInfo
from .footprint import BRANCHES, CPU_CHUNK, GPU_CHUNK, context_size, rows_of
from .requests import LoadOptions

Emit = Callable[[Event], None]
Cancelled = Callable[[], bool]


class LoadedModel:
    """One model's header, weights and context."""

    def __init__(self, header: GgufHeader, model: Model, context: Context) -> None:
        self.header, self.model, self.context = header, model, context

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
    ) -> None:
        self.options, self.verdict, self.template = options, verdict, template
        self.target, self.draft = target, draft
        self.threads = thread_count(options)
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
        if self.template.note:
            notes.append(self.template.note)
        size, trained = self.target.context.size, self.target.model.train_context
        if size > trained:
            notes.append(f"The context is {size:,} tokens, and the target was trained for {trained:,}.")
        return tuple(notes)

    def close(self) -> None:
        """Free everything."""
        if self.draft:
            self.draft.close()
        self.target.close()


def load_pair(
    options: LoadOptions,
    emit: Emit,
    cancelled: Cancelled,
    clock: Callable[[], float] = time.perf_counter,
) -> Pair:
    """Judge the pair from the headers, then load what was asked for.

    Raises:
        ModelFileError: a file is no usable model.
        PairError: the draft cannot serve the target; no weights have been loaded.
        LoadError: llama.cpp would not load them, or `cancelled` said so.
        TemplateError: the chat template cannot be compiled.
    """
    target_header = read_header(locate_model(options.target))
    draft_header = read_header(locate_model(options.draft)) if options.draft else None
    verdict = judge(target_header, draft_header) if draft_header else None
    if verdict is not None and draft_header is not None and not verdict.usable:
        raise PairError(
            f"{draft_header.path.name} cannot draft for {target_header.path.name}. "
            f"{' '.join(verdict.reasons[:2])} "
            "Choose a draft of the target's own family, or start without --draft."
        )
    template = template_of(target_header, options)
    loader = Loader(options, target_header, emit, cancelled, clock)
    # Vocabularies are megabytes of texts that nothing asks for any more.
    target_header = target_header.without_tokens()
    draft_header = draft_header and draft_header.without_tokens()
    target = loader.load("target", target_header, options.gpu_layers)
    draft = None
    try:
        if draft_header is not None:
            draft = loader.load("draft", draft_header, options.gpu_layers_draft)
        return Pair(options, verdict, template, target, draft)
    except BaseException:
        if draft is not None:
            draft.close()
        target.close()
        raise


def thread_count(options: LoadOptions) -> int:
    """The asked number of threads, or one per physical core."""
    return options.threads or psutil.cpu_count(logical=False) or 1


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


class Loader:
    """Loads a target and what drafts for it, with contexts of one size."""

    def __init__(
        self,
        options: LoadOptions,
        target: GgufHeader,
        emit: Emit,
        cancelled: Cancelled,
        clock: Callable[[], float],
    ) -> None:
        self._options = options
        self._size = context_size(options.ctx_size, target.train_context)
        self._emit, self._cancelled, self._clock = emit, cancelled, clock

    def load(self, role: ContextRole, header: GgufHeader, gpu_layers: int) -> LoadedModel:
        """Load one model and its context, and run a first pass.

        Raises:
            LoadError: llama.cpp would not load it, or `cancelled` said so.
        """
        told = -1

        def on_progress(fraction: float) -> bool:
            nonlocal told
            if int(fraction * 100) > told:
                told = int(fraction * 100)
                self._emit(LoadProgress(role, header.name, fraction))
            return not self._cancelled()

        on_progress(0.0)
        try:
            model = Model(Path(header.path), gpu_layers=gpu_layers, on_progress=on_progress)
        except LoadError:
            if self._cancelled():
                raise LoadError("loading was stopped") from None
            raise
        try:
            options = self._options
            context = Context(
                model,
                size=self._size,
                threads=thread_count(options),
                chunk=CPU_CHUNK if gpu_layers == 0 or not _has_gpu() else GPU_CHUNK,
                rows=rows_of(role),
                branches=BRANCHES if role == "target" and model.drops_suffixes else 1,
                cache_type_k=options.cache_type_k,
                cache_type_v=options.cache_type_v,
                flash_attn=options.flash_attn,
                clock=self._clock,
            )
        except BaseException:
            model.close()
            raise
        # The first pass reads the weights in from the disk: it belongs to loading, not to an answer.
        context.decode([max(model.bos, 0)] * 2, 1)
        context.truncate(0)
        context.pass_s = 0.0
        self._emit(LoadProgress(role, header.name, 1.0))
        return LoadedModel(header, model, context)


def _has_gpu() -> bool:
    return devices(-1) != devices(0)
