"""Whether a draft may serve a target, told from the two headers before any weights are loaded."""

from __future__ import annotations

import re
from dataclasses import dataclass
from operator import ne
from typing import Literal

from .derived import ranges
from .errors import TemplateError
from .gguf_file import GgufHeader, Vocabulary
from .text import readable_token

# llama.cpp's own limits: models of one family pad their vocabularies to different sizes, and the first
# ids are where conversions put special tokens under different names.
_MOST_SIZE_DIFFERENCE = 128
_FIRST_COMPARED_TOKEN = 5

LARGE_DRAFT, _SMALL_DRAFT = 0.20, 0.05
"""Shares of the target's bytes: a draft of more costs much of what it saves, one of less is seldom right."""


@dataclass(frozen=True)
class Verdict:
    """May this draft serve this target, and why or how well."""

    kind: Literal["fits", "fits_but", "cannot"]
    reasons: tuple[str, ...]
    """One sentence each, the most telling first; where it simply fits, at most what the draft was made of."""

    @property
    def usable(self) -> bool:
        """Whether drafting can be tried at all."""
        return self.kind != "cannot"


def judge(target: GgufHeader, draft: GgufHeader) -> Verdict:
    """Judge a pair by llama.cpp's rule for vocabularies, and say what else will cost speed."""
    obstacles = _recurrence(target, draft) or _obstacles(target.vocabulary, draft.vocabulary)
    if obstacles:
        return Verdict("cannot", obstacles)
    kinship = _kinship(target, draft)
    warnings = _warnings(target, draft) if kinship is None else _warnings_of_kin(target, draft)
    return Verdict("fits_but" if warnings else "fits", (kinship, *warnings) if kinship else warnings)


def _recurrence(target: GgufHeader, draft: GgufHeader) -> tuple[str, ...]:
    """What recurrent layers make impossible: what they have read cannot be taken out of their state."""
    if not target.shape.tests_drafts:
        return (
            f"The target has recurrent layers ({target.architecture}), whose state cannot be rolled back, "
            "so nothing that is drafted for it can be tested.",
        )
    if draft.shape.recurrent:
        return (
            f"The draft has recurrent layers ({draft.architecture}), whose state cannot be rolled back "
            "to what the target accepts.",
        )
    return ()


def _obstacles(target: Vocabulary, draft: Vocabulary) -> tuple[str, ...]:
    if target.family != draft.family:
        # Sizes, ids and texts of two kinds of vocabulary differ for that reason alone.
        return (
            f"The target's vocabulary is of the kind {target.family} ({target.kind}), "
            f"the draft's {draft.family} ({draft.kind}).",
        )
    reasons: list[str] = []
    if abs(target.size - draft.size) > _MOST_SIZE_DIFFERENCE:
        reasons.append(
            f"The target's vocabulary has {target.size:,} tokens and the draft's {draft.size:,}; "
            f"they may differ by {_MOST_SIZE_DIFFERENCE} at most."
        )
    difference = _token_difference(target, draft)
    if difference is not None:
        reasons.append(difference)
    for name, target_id, draft_id, target_adds, draft_adds in (
        ("BOS", target.bos, draft.bos, target.add_bos, draft.add_bos),
        ("EOS", target.eos, draft.eos, target.add_eos, draft.add_eos),
    ):
        if target_id != draft_id:
            reasons.append(
                f"The {name} token is {_token_of(target, target_id)} in the target "
                f"and {_token_of(draft, draft_id)} in the draft."
            )
        if target_adds != draft_adds:
            adds, does_not = ("target", "draft") if target_adds else ("draft", "target")
            reasons.append(f"The {adds} adds {name} to every text and the {does_not} does not.")
    return tuple(reasons)


def _token_difference(target: Vocabulary, draft: Vocabulary) -> str | None:
    ours, theirs = target.tokens[_FIRST_COMPARED_TOKEN:], draft.tokens[_FIRST_COMPARED_TOKEN:]
    # The two are the same length nearly always, and comparing tuples stops at nothing but a difference.
    count = 0 if ours == theirs else sum(map(ne, ours, theirs))
    if count == 0:
        return None
    first = next(i for i, (a, b) in enumerate(zip(ours, theirs, strict=False)) if a != b)
    token = first + _FIRST_COMPARED_TOKEN
    others = f" (the first of {count:,} that differ)" if count > 1 else ""
    return (
        f"Token {token} is {readable_token(ours[first], target.kind)} in the target "
        f"and {readable_token(theirs[first], draft.kind)} in the draft{others}."
    )


def _token_of(vocabulary: Vocabulary, token: int | None) -> str:
    if token is None:
        return "absent"
    return f"{token} {readable_token(vocabulary.tokens[token], vocabulary.kind)}"


def _kinship(target: GgufHeader, draft: GgufHeader) -> str | None:
    """What the draft is of the target, where one was made from the other or both from the same file."""
    made = draft.origin
    if made is None:
        return None
    # Sizes to the byte stand for checksums, which would take reading the weights.
    of_target = made.source_bytes == target.size_bytes and made.source_layers == target.block_count
    siblings = target.origin is not None and target.origin.source_sha256 == made.source_sha256
    if not of_target and not siblings:
        return None
    missing = sorted(set(made.skipped) - set(target.origin.skipped if siblings and target.origin else ()))
    if missing:
        other = f", as {draft.quantization}" if draft.quantization != target.quantization else ""
        return f"The draft is the target's own layers without {ranges(missing)}{other}."
    if siblings and not of_target:
        return f"The draft is {draft.quantization} of the file that the target was made from."
    return f"The draft is the target itself as {draft.quantization}."


def _warnings_of_kin(target: GgufHeader, draft: GgufHeader) -> tuple[str, ...]:
    """What costs speed where the draft is made of the target: nothing but its size."""
    share = draft.size_bytes / target.size_bytes
    if share <= LARGE_DRAFT:
        return ()
    return (
        f"A pass of it reads {share:.0%} of the target's bytes, which pays only where a pass over several "
        "tokens costs little more than one.",
    )


def _warnings(target: GgufHeader, draft: GgufHeader) -> tuple[str, ...]:
    warnings: list[str] = []
    share = draft.size_bytes / target.size_bytes
    sizes = f"{_megabytes(draft.size_bytes)} of {_megabytes(target.size_bytes)}"
    if share > LARGE_DRAFT:
        warnings.append(
            f"The draft has {share:.0%} of the target's bytes ({sizes}); "
            f"above {LARGE_DRAFT:.0%} drafting costs much of what it saves."
        )
    elif share < _SMALL_DRAFT:
        warnings.append(
            f"The draft has {share:.1%} of the target's bytes ({sizes}); "
            f"below {_SMALL_DRAFT:.0%} a draft is often too weak to guess right."
        )
    if _family(target) != _family(draft):
        warnings.append(
            f"By name the draft is of another family: {_family_name(draft)}, the target "
            f"{_family_name(target)}; fewer of its guesses will be right."
        )
    if 0 < draft.train_context < target.train_context:
        warnings.append(
            f"The draft was trained on {draft.train_context:,} tokens of context and the target on "
            f"{target.train_context:,}; past {draft.train_context:,} its guesses get worse."
        )
    template = _template_warning(target, draft)
    if template is not None:
        warnings.append(template)
    if target.vocabulary.pre != draft.vocabulary.pre:
        warnings.append(
            f"The draft learned from text split another way (pre-tokenizer {draft.vocabulary.pre!r}, the "
            f"target's is {target.vocabulary.pre!r}); fewer of its guesses will be right."
        )
    return tuple(warnings)


def _megabytes(size: int) -> str:
    return f"{size / 1e6:,.0f} MB" if size >= 10_000_000 else f"{size / 1e3:,.0f} kB"


# What a model's name says beside its family.
_NOT_THE_FAMILY = re.compile(
    r"""
    \d+(\.\d+)?[kmbt] | \d+x\d+(\.\d+)?b | [ae]\d+(\.\d+)?b         # how large: 0.5b, 8x7b, a3b, e2b
    | tiny | nano | mini | small | medium | large
    | [it]?q\d\w* | (bf|fp|f|int|w)\d\w* | \d+bit | (mx|nv)fp4\w*   # how quantized: q4_k_m, bf16, w4a16
    | awq | gptq | exl\d | bnb | qat | imat(rix)? | ud
    | gguf | ggml | hf | mlx | model                                 # packed how
    | instruct(ion)? | it | chat | base | pt | sft | dpo             # tuned for what
    | v\d+(\.\d+)* | \d{4,8}                                        # which edition, from when
    | meta                                                           # whose: only Llama's old names say it
    """,
    re.VERBOSE,
)


def _family_name(header: GgufHeader) -> str:
    return header.basename or header.name


def _family(header: GgufHeader) -> str:
    """A name without what differs inside a family: "qwen2.5coder" for "Qwen2.5 Coder 0.5B Instruct AWQ"."""
    # A file's name has its quantization after a dot or a dash: "model.Q4_K_M".
    words = re.split(r"[\s/:-]+|\.(?=[a-z])", _family_name(header).lower())
    return "".join(word for word in words if not _NOT_THE_FAMILY.fullmatch(word)).replace("_", "")


def _template_warning(target: GgufHeader, draft: GgufHeader) -> str | None:
    if target.chat_template == draft.chat_template or target.chat_template is None:
        return None
    if draft.chat_template is None:
        return (
            "The draft has no chat template and the target has; it may not know the shape of a conversation."
        )
    ours, theirs = _sample_conversation(target), _sample_conversation(draft)
    if ours is not None and ours == theirs:
        return None
    return "The draft's chat template is another than the target's; fewer of its guesses will be right."


def _sample_conversation(header: GgufHeader) -> str | None:
    """What its template makes of a short conversation, since two sources may well render the same."""
    # Only here, since jinja2 takes longer to import than all the rest takes to judge.
    from .template import ChatTemplate

    try:
        template = ChatTemplate.from_model(
            header.chat_template, header.vocabulary.bos_text, header.vocabulary.eos_text, header.vocabulary
        )
        turns = (("system", "S"), ("user", "U"), ("assistant", "A"), ("user", "V"))
        return template.render(turns) + template.render(turns[1:])
    except TemplateError:
        return None
