"""`specchat inspect`: what files are, whether they make pairs, and what memory they take, from headers."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from ..models.errors import ModelFileError, TemplateError
from ..models.gguf_file import GgufHeader, Vocabulary, read_header
from ..models.gguf_layout import shown
from ..models.locate import locate_model
from ..models.memory import MemoryEstimate
from ..models.pair import Verdict, judge
from ..models.text import on_one_line
from .exit_codes import DONE, UNUSABLE
from .footprint import context_size, needed
from .processor import Processor
from .requests import LoadOptions
from .terminal import one_line, show, show_json, tell_failure
from .thinking import knows_thoughts

_LABELS = {"fits": "fits", "fits_but": "fits, but", "cannot": "cannot draft for it"}
_LABEL_CELLS, _COLUMNS = 16, 80


@dataclass(frozen=True)
class _Inspected:
    """A model, and beside the first one its verdict as that one's draft."""

    header: GgufHeader
    memory: MemoryEstimate
    context: int
    """Tokens of the context that the memory is estimated for."""
    verdict: Verdict | None


def inspect(
    options: LoadOptions, others: Sequence[str], processor: Processor, as_json: bool, name: str
) -> int:
    """Say what the headers of the target and of `others`, its drafts, have; returns the exit code.

    A file that is no usable model is a line on stderr, behind the command's `name`, and the rest goes on.
    """
    headers: dict[str, GgufHeader] = {}
    unusable: dict[str, str] = {}
    # A draft that is named twice is judged once; the target may be named as its own draft.
    drafts = list(dict.fromkeys(others))
    for file in dict.fromkeys((options.target, *drafts)):
        try:
            headers[file] = read_header(locate_model(file))
        except ModelFileError as error:
            unusable[file] = str(error)
    target = headers.get(options.target)
    models = _inspected(target, [headers[file] for file in drafts if file in headers], options, processor)
    if as_json:
        show_json(_as_json(models, options, unusable), indent=2)
    else:
        for index, model in enumerate(models):
            show("\n".join(["", *_described(model, options)][index == 0 :]))
        for model in models[1:]:
            show("\n".join(["", *_pair_described(models[0], model)]))
    for reason in unusable.values():
        tell_failure(name, reason)
    verdicts = [model.verdict for model in models if model.verdict is not None]
    return UNUSABLE if unusable or not all(verdict.usable for verdict in verdicts) else DONE


def _inspected(
    target: GgufHeader | None, drafts: Sequence[GgufHeader], options: LoadOptions, processor: Processor
) -> list[_Inspected]:
    """The models; where the target is unusable nothing is judged, and each is looked at as if it were one."""
    if target is None:
        return [_beside_none(header, options, processor) for header in drafts]
    context = context_size(options.ctx_size, target.train_context)
    estimates = needed([target, *drafts], options, processor)[1:]
    return [
        _beside_none(target, options, processor),
        *(
            _Inspected(draft, memory, context, judge(target, draft))
            for draft, memory in zip(drafts, estimates, strict=True)
        ),
    ]


def _beside_none(header: GgufHeader, options: LoadOptions, processor: Processor) -> _Inspected:
    (memory,) = needed([header], options, processor)
    return _Inspected(header, memory, context_size(options.ctx_size, header.train_context), None)


def _template(header: GgufHeader) -> dict[str, Any] | None:
    """What a chat template is, without its text; whether it takes a system turn only if it works."""
    if header.chat_template is None:
        return None
    # Only here, since jinja2 takes longer to import than all the rest takes to say.
    from ..models.template import ChatTemplate

    vocabulary = header.vocabulary
    try:
        template = ChatTemplate.from_model(
            header.chat_template, vocabulary.bos_text, vocabulary.eos_text, vocabulary
        )
        system = template.note is None
    except TemplateError:
        system = None
    return {
        "characters": len(header.chat_template),
        "system": system,
        "thinking": knows_thoughts(header.chat_template),
    }


# For people ------------------------------------------------------------------------------------


def _described(model: _Inspected, options: LoadOptions) -> list[str]:
    header, shape = model.header, model.header.shape
    makers = ", ".join(filter(None, (header.organisation, header.author)))
    lines = [
        ("file", f"{_megabytes(header.size_bytes)}{f' in {header.parts} parts' if header.parts > 1 else ''}"),
        ("name", header.name + (f" ({makers})" if makers else "")),
        ("licence", header.licence),
        ("made from", _origin_line(header)),
        ("architecture", f"{header.architecture}, {_counted(header.parameters)} parameters"),
        ("quantization", header.quantization),
        *(("", line) for line in _tensor_lines(header)),
        ("vocabulary", _vocabulary_line(header.vocabulary)),
        ("", _special_line(header.vocabulary)),
        ("trained for", _tokens(header.train_context)),
        (
            "layers",
            f"{header.block_count}, embeddings of {header.embedding_length:,}, "
            f"feed-forward of {shape.feed_forward_length:,}",
        ),
        (
            "heads",
            f"{shape.heads}, {shape.kv_heads} for K and V, of {shape.key_length} and {shape.value_length}"
            if shape.heads
            else "",
        ),
        ("experts", f"{shape.experts}, {shape.experts_used} used per token" if shape.experts else ""),
        ("sliding window", _tokens(shape.sliding_window) if shape.sliding_window else ""),
        ("rope", _rope(header)),
        ("chat template", _template_line(header)),
        ("memory", _memory_line(model, options)),
        ("", _memory_parts(model.memory)),
        ("", _beyond_training(model)),
    ]
    return [
        shown(header.path),
        *(line for label, text in lines if text for line in _wrapped(f"  {label:{_LABEL_CELLS}}", text)),
    ]


def _pair_described(target: _Inspected, draft: _Inspected) -> list[str]:
    assert draft.verdict is not None
    both = _megabytes(target.memory.total + draft.memory.total)
    told = f"{_LABELS[draft.verdict.kind]}{':' if draft.verdict.reasons else ''}"
    together = (f"Together they take about {both} of memory.",) if draft.verdict.usable else ()
    reasons = (*draft.verdict.reasons, *together)
    return [
        f"{shown(draft.header.path)}",
        f"as the draft of {shown(target.header.path)} {told}",
        *(line for reason in reasons for line in _wrapped("  ", reason)),
    ]


def _wrapped(start: str, text: str) -> list[str]:
    return textwrap.wrap(
        text, _COLUMNS, initial_indent=start, subsequent_indent=" " * len(start), drop_whitespace=True
    )


def _tensor_lines(header: GgufHeader) -> Iterable[str]:
    for group in header.tensors:
        count = f"{group.count:>5} {'tensor' if group.count == 1 else 'tensors'}"
        yield f"{group.part:13} {group.type:7} {count:13} {_megabytes(group.size_bytes):>12}"


def _origin_line(header: GgufHeader) -> str:
    origin = header.origin
    return f"{one_line(origin.source)} by specchat derive: {one_line(origin.recipe)}" if origin else ""


def _vocabulary_line(vocabulary: Vocabulary) -> str:
    return f"{vocabulary.size:,} tokens, {vocabulary.kind} ({vocabulary.family}, split as {vocabulary.pre})"


def _special_line(vocabulary: Vocabulary) -> str:
    told = [
        f"{name} {on_one_line(text)!r} ({token}{', added' if added else ', not added'})"
        for name, token, text, added in (
            ("BOS", vocabulary.bos, vocabulary.bos_text, vocabulary.add_bos),
            ("EOS", vocabulary.eos, vocabulary.eos_text, vocabulary.add_eos),
        )
        if token is not None
    ]
    return ", ".join(told) or "neither BOS nor EOS"


def _rope(header: GgufHeader) -> str:
    shape = header.shape
    told = [
        f"base {shape.rope_base:,.0f}" if shape.rope_base else "",
        f"{shape.rope_dimensions} dimensions" if shape.rope_dimensions else "",
        shape.rope_scaling and f"scaling {shape.rope_scaling}",
    ]
    return ", ".join(filter(None, told))


def _template_line(header: GgufHeader) -> str:
    template = _template(header)
    if template is None:
        return "none"
    told = [f"{template['characters']:,} characters"]
    if template["system"] is None:
        return f"{told[0]}, which cannot be used"
    told.append("a system turn" if template["system"] else "no system turn")
    if template["thinking"]:
        told.append("knows of thoughts")
    return ", ".join(told)


def _memory_line(model: _Inspected, options: LoadOptions) -> str:
    types = "/".join(dict.fromkeys((options.cache_type_k, options.cache_type_v)))
    total = _megabytes(model.memory.total)
    role = "as a draft, " if model.verdict is not None else ""
    return f"{role}about {total} with {model.context:,} tokens of context (cache {types})"


def _beyond_training(model: _Inspected) -> str:
    trained = model.header.train_context
    if not 0 < trained < model.context:
        return ""
    return f"a context of more than the {trained:,} tokens it was trained for: answers may get worse beyond"


def _memory_parts(memory: MemoryEstimate) -> str:
    weights = memory.weights + memory.vocabulary
    passes = memory.compute + memory.logits
    return f"weights {_megabytes(weights)}, cache {_megabytes(memory.cache)}, passes {_megabytes(passes)}"


def _tokens(count: int) -> str:
    return f"{count:,} tokens" if count else ""


def _megabytes(size: int) -> str:
    return f"{size / 1e6:,.0f} MB" if size >= 10_000_000 else f"{size / 1e6:,.1f} MB"


def _counted(number: int) -> str:
    return f"{number / 1e9:.2f} billion" if number >= 10_000_000 else f"{number:,}"


# For programs ----------------------------------------------------------------------------------


def _as_json(
    models: Sequence[_Inspected], options: LoadOptions, unusable: Mapping[str, str]
) -> dict[str, Any]:
    return {
        "models": [_model_json(model, options) for model in models],
        "pairs": [
            {
                "target": str(models[0].header.path),
                "draft": str(model.header.path),
                "verdict": model.verdict.kind,
                "reasons": list(model.verdict.reasons),
                "memory_bytes": models[0].memory.total + model.memory.total,
            }
            for model in models
            if model.verdict is not None
        ],
        "unusable": [{"file": file, "reason": reason} for file, reason in unusable.items()],
    }


def _model_json(model: _Inspected, options: LoadOptions) -> dict[str, Any]:
    """What is known of a model; what the header does not say is None."""
    header, shape, vocabulary = model.header, model.header.shape, model.header.vocabulary
    return {
        "path": str(header.path),
        "size_bytes": header.size_bytes,
        "parts": header.parts,
        "architecture": header.architecture,
        "name": header.name,
        "basename": header.basename or None,
        "organisation": header.organisation or None,
        "author": header.author or None,
        "licence": header.licence or None,
        "made_from": asdict(header.origin) if header.origin else None,
        "parameters": header.parameters,
        "quantization": header.quantization,
        "tensors": [asdict(group) for group in header.tensors],
        "vocabulary": {
            "kind": vocabulary.kind,
            "pre": vocabulary.pre,
            "size": vocabulary.size,
            "bos": vocabulary.bos,
            "bos_text": vocabulary.bos_text if vocabulary.bos is not None else None,
            "add_bos": vocabulary.add_bos,
            "eos": vocabulary.eos,
            "eos_text": vocabulary.eos_text if vocabulary.eos is not None else None,
            "add_eos": vocabulary.add_eos,
        },
        "train_context": header.train_context or None,
        "layers": header.block_count or None,
        "embedding_length": header.embedding_length or None,
        "feed_forward_length": shape.feed_forward_length or None,
        "heads": shape.heads or None,
        "kv_heads": shape.kv_heads or None,
        "key_length": shape.key_length or None,
        "value_length": shape.value_length or None,
        "sliding_window": shape.sliding_window or None,
        "rope": {
            "base": shape.rope_base or None,
            "dimensions": shape.rope_dimensions or None,
            "scaling": shape.rope_scaling or None,
        },
        "experts": {"count": shape.experts, "used": shape.experts_used} if shape.experts else None,
        "chat_template": _template(header),
        "memory": {
            "context": model.context,
            "cache_type_k": options.cache_type_k,
            "cache_type_v": options.cache_type_v,
            "weights_bytes": model.memory.weights,
            "vocabulary_bytes": model.memory.vocabulary,
            "cache_bytes": model.memory.cache,
            "compute_bytes": model.memory.compute,
            "logits_bytes": model.memory.logits,
            "total_bytes": model.memory.total,
        },
    }
