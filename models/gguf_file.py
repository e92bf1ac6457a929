"""A GGUF model's header, read without loading its weights; what is no chat model is refused here."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import NamedTuple

from .derived import Origin
from .errors import ModelFileError
from .gguf_layout import TOKENS_KEY, Layout, damaged, read_layout, shown
from .loadable import refuse_unloadable
from .shape import Shape, shape_of
from .split_parts import read_further_parts
from .tensors import TensorGroup, block_of, grouped, type_name
from .text import on_one_line


@dataclass(frozen=True)
class Vocabulary:
    """A model's tokens and what llama.cpp does with them; `"<|im_end|>" in vocabulary` asks for a token."""

    kind: str
    """`tokenizer.ggml.model`: "gpt2", "llama", ..."""
    pre: str
    """How text is split before it is tokenized, by llama.cpp's name."""
    tokens: tuple[bytes, ...] = field(repr=False)
    """As the file stores them, by id."""
    bos: int | None
    eos: int | None
    add_bos: bool
    """Whether llama.cpp puts BOS before a text."""
    add_eos: bool

    @property
    def size(self) -> int:
        """How many tokens there are."""
        return len(self.tokens)

    @property
    def family(self) -> str:
        """What llama.cpp treats this kind as, in words; kinds of one family tokenize by the same code."""
        return _TOKENIZERS[self.kind].family if self.kind in _TOKENIZERS else self.kind

    @property
    def bos_text(self) -> str:
        """The text of BOS, empty where there is none."""
        return "" if self.bos is None else self.tokens[self.bos].decode("utf-8", "replace")

    @property
    def eos_text(self) -> str:
        """The text of EOS, empty where there is none."""
        return "" if self.eos is None else self.tokens[self.eos].decode("utf-8", "replace")

    def __contains__(self, text: object) -> bool:
        """Whether a token is stored as exactly this text."""
        return isinstance(text, str) and text.encode("utf-8", "replace") in self.tokens


@dataclass(frozen=True)
class GgufHeader:
    """What a model's file says about it before its weights."""

    path: Path
    size_bytes: int
    """All parts of a split model together."""
    architecture: str
    name: str
    """`general.name`, or the file's name where it has none."""
    basename: str
    """`general.basename`, the family as its makers call it ("Qwen2.5-Coder"); often empty."""
    organisation: str
    quantization: str
    """As people say it: "Q4_K_M"."""
    parameters: int
    train_context: int
    """Tokens; 0 where the file does not say."""
    block_count: int
    embedding_length: int
    vocabulary: Vocabulary
    chat_template: str | None = field(repr=False)
    parts: int = 1
    """Files that the model is split into."""
    author: str = ""
    licence: str = ""
    shape: Shape = field(default_factory=Shape)
    tensors: tuple[TensorGroup, ...] = ()
    origin: Origin | None = None
    """What specchat made it from, if it did."""

    @property
    def has_output_matrix(self) -> bool:
        """Whether it has one of its own; otherwise the embedding serves as that, too."""
        return any(group.part == "output" and group.parameters > 0 for group in self.tensors)

    def without_tokens(self) -> GgufHeader:
        """The same without the vocabulary's texts, which are megabytes."""
        return replace(self, vocabulary=replace(self.vocabulary, tokens=(), bos=None, eos=None))


def read_header(path: str | Path, *, weights: bool = True) -> GgufHeader:
    """The header of a chat model.

    Args:
        path: A GGUF file; of a split model its first part.
        weights: Whether the weights must be there as well, all parts of them and to the last byte.
            False reads this one file and allows a header alone.

    Raises:
        ModelFileError: The file is missing, no GGUF, cut off, damaged, or no chat model. The message
            is one line with the path and what to do.
    """
    path = Path(path)
    first = read_layout(path)
    metadata = _Metadata(first)
    _refuse_other_than_chat(path, metadata)
    architecture = metadata.text("general.architecture")
    layouts = [first, *read_further_parts(first, metadata)] if weights else [first]
    if weights:
        if not any(layout.tensors for layout in layouts):
            raise ModelFileError(f"{shown(path)} holds a vocabulary and no weights; download the whole model")
        for layout in layouts:
            _refuse_cut_off_weights(layout)
    vocabulary = _vocabulary(path, metadata)
    if weights:
        refuse_unloadable(layouts, vocabulary)
    return GgufHeader(
        path=path,
        size_bytes=sum(layout.size_bytes for layout in layouts),
        architecture=on_one_line(architecture),
        name=on_one_line(metadata.text("general.name")) or on_one_line(path.stem),
        basename=on_one_line(metadata.text("general.basename")),
        organisation=on_one_line(metadata.text("general.organization")),
        quantization=_quantization(metadata, layouts),
        parameters=sum(tensor.elements for layout in layouts for tensor in layout.tensors),
        train_context=metadata.number(f"{architecture}.context_length"),
        block_count=metadata.number(f"{architecture}.block_count"),
        embedding_length=metadata.number(f"{architecture}.embedding_length"),
        vocabulary=vocabulary,
        chat_template=metadata.text("tokenizer.chat_template") or None,
        parts=len(layouts),
        author=on_one_line(metadata.text("general.author")),
        licence=on_one_line(metadata.text("general.license")),
        shape=shape_of(architecture, metadata),
        tensors=grouped(tensor for layout in layouts for tensor in layout.tensors),
        origin=Origin.read(first.values),
    )


_MOST_LAYERS = 1024


class _Metadata:
    """A file's keys, each asked for as the type it has to be; an absent one is empty, 0 or False."""

    def __init__(self, layout: Layout) -> None:
        self._path = layout.path
        self._values = layout.values

    def text(self, key: str) -> str:
        value = self._values.get(key, "")
        if not isinstance(value, str):
            raise damaged(self._path, f"its key {key!a} is no text")
        return value

    def number(self, key: str) -> int:
        number = self.number_or_none(key) or 0
        if number < 0:
            raise damaged(self._path, f"its key {key!a} is below zero")
        return number

    def number_or_none(self, key: str) -> int | None:
        value = self._values.get(key)
        if value is None or (isinstance(value, int) and not isinstance(value, bool)):
            return value
        raise damaged(self._path, f"its key {key!a} is no whole number")

    def fraction(self, key: str) -> float:
        value = self._values.get(key, 0.0)
        if isinstance(value, float | int) and not isinstance(value, bool) and math.isfinite(value):
            return float(value)
        raise damaged(self._path, f"its key {key!a} is no number")

    def numbers(self, key: str, count: int, default: int) -> tuple[int, ...]:
        """A number for each layer: one for all, or a list of so many; `default` where there is no key."""
        value = self._values.get(key)
        if count > _MOST_LAYERS:
            raise damaged(self._path, f"it claims {count:,} layers")
        if not isinstance(value, tuple):
            return (self.number(key) if key in self._values else default,) * count
        numbers = tuple(entry for entry in value if isinstance(entry, int))
        if min(numbers, default=0) < 0:
            raise damaged(self._path, f"its key {key!a} has a number below zero")
        return (*numbers, *(default,) * (count - len(numbers)))[: max(0, count)]

    def flag(self, key: str, default: bool) -> bool:
        value = self._values.get(key, default)
        if not isinstance(value, bool):
            raise damaged(self._path, f"its key {key!a} is neither true nor false")
        return value

    def tokens(self) -> tuple[bytes, ...]:
        value = self._values.get(TOKENS_KEY, ())
        if not isinstance(value, tuple):
            raise damaged(self._path, f"its key {TOKENS_KEY!a} is no list")
        texts = tuple(text for text in value if isinstance(text, bytes))
        if len(texts) < len(value):
            raise damaged(self._path, f"its key {TOKENS_KEY!a} is no list of texts")
        return texts


# What cannot hold a conversation ---------------------------------------------------------------

_EMBEDDING = "an embedding model, which turns text into vectors and writes none"
_PROJECTOR = "the image or sound part of a model, not the model itself"
_HEAD = "a speculative head, which works only inside its own target"
_DIFFUSION = "a diffusion model, which does not write one token after another"
_SPEECH = "a speech model"

_NO_CHAT_TYPES = {
    "adapter": "a LoRA adapter, not a model",
    "imatrix": "an importance matrix, not a model",
    "mmproj": _PROJECTOR,
}
_NO_CHAT_ARCHITECTURES = {
    "clip": _PROJECTOR,
    "mmproj": _PROJECTOR,
    "imatrix": _NO_CHAT_TYPES["imatrix"],
    "gemma-embedding": _EMBEDDING,
    "llama-embed": _EMBEDDING,
    "t5encoder": _EMBEDDING,
    "t5": "an encoder-decoder model, which holds no conversation",
    "eagle3": _HEAD,
    "dflash": _HEAD,
    "dream": _DIFFUSION,
    "llada": _DIFFUSION,
    "llada-moe": _DIFFUSION,
    "rnd1": _DIFFUSION,
    "wavtokenizer-dec": _SPEECH,
    "qwen3tts": _SPEECH,
    "pockettts": _SPEECH,
}


def _refuse_other_than_chat(path: Path, metadata: _Metadata) -> None:
    architecture = metadata.text("general.architecture")
    is_what = _NO_CHAT_TYPES.get(metadata.text("general.type")) or _NO_CHAT_ARCHITECTURES.get(architecture)
    if is_what is None and (
        "bert" in architecture
        or metadata.text("tokenizer.ggml.model") == "bert"  # llama.cpp dies of a prompt in WordPiece
        or metadata.number(f"{architecture}.pooling_type") > 0
        or not metadata.flag(f"{architecture}.attention.causal", default=True)
    ):
        is_what = _EMBEDDING
    if is_what is not None:
        raise ModelFileError(f"{shown(path)} is {is_what}; choose a chat model")
    if not architecture:
        raise ModelFileError(
            f"{shown(path)} is a GGUF that names no architecture, so no model; choose a chat model"
        )


# The weights -----------------------------------------------------------------------------------


def _refuse_cut_off_weights(layout: Layout) -> None:
    expected = 0
    for tensor in layout.tensors:
        end = tensor.offset
        # A quantization newer than the gguf package has a size unknown here; llama.cpp checks it on loading.
        if (block := block_of(tensor.kind)) is not None:
            values, size = block
            if tensor.shape and tensor.shape[0] % values:
                raise damaged(
                    layout.path, f"the tensor {tensor.name[:60]!a} cannot be {type_name(tensor.kind)}"
                )
            end += tensor.elements // values * size
        expected = max(expected, end)
    if layout.size_bytes < expected:
        raise ModelFileError(
            f"{shown(layout.path)} has {layout.size_bytes:,} of {expected:,} bytes, "
            f"{expected - layout.size_bytes:,} are missing; download it again"
        )


def _quantization(metadata: _Metadata, layouts: list[Layout]) -> str:
    # gguf brings numpy, and a plain import of this module is to stay cheap.
    from gguf.constants import LlamaFileType

    # llama.cpp adds this flag to a file type that it guessed.
    guessed = int(LlamaFileType.GUESSED)
    code = metadata.number_or_none("general.file_type")
    if code is not None and code != guessed:
        try:
            return LlamaFileType(code & ~guessed).name.removeprefix("MOSTLY_").removeprefix("ALL_")
        except ValueError:
            pass
    elements = Counter[int]()
    for layout in layouts:
        for tensor in layout.tensors:
            elements[tensor.kind] += tensor.elements
    return type_name(elements.most_common(1)[0][0]) if elements else "unknown"


# The vocabulary --------------------------------------------------------------------------------


class _Tokenizer(NamedTuple):
    """llama.cpp's defaults for one kind of vocabulary, where the file's keys are silent."""

    family: str
    bos: int | None
    eos: int | None
    add_bos: bool
    add_eos: bool


_TOKENIZERS = {
    "llama": _Tokenizer("SentencePiece", 1, 2, True, False),
    "bert": _Tokenizer("WordPiece", 101, None, True, False),
    "gpt2": _Tokenizer("byte-pair", 11, 11, False, False),
    "hybriddna": _Tokenizer("byte-pair", 11, 11, False, False),
    "whitespace": _Tokenizer("byte-pair", 11, 11, False, False),
    "gemma4": _Tokenizer("byte-pair", None, None, True, False),
    "t5": _Tokenizer("unigram", None, 1, False, True),
    "rwkv": _Tokenizer("RWKV", None, None, False, False),
    "plamo2": _Tokenizer("PLaMo-2", 1, 2, False, False),
}
# Byte-pair vocabularies that differ from those defaults, by how they split text.
_PRE_WITH_BOS = {
    *("llama3", "llama-v3", "llama-bpe", "falcon3", "falcon-h1", "pixtral"),
    *("midm-2.0", "lfm2", "jina-v5-nano", "tekken", "chameleon"),
}
_PRE_WITHOUT_BOS_TOKEN = {"chatglm-bpe", "glm4", "glm5"}


def _vocabulary(path: Path, metadata: _Metadata) -> Vocabulary:
    kind = metadata.text("tokenizer.ggml.model")
    tokens = metadata.tokens()
    if not kind or not tokens:
        raise ModelFileError(f"{shown(path)} holds no vocabulary; download a file that does")
    pre = metadata.text("tokenizer.ggml.pre") or "default"
    defaults = _TOKENIZERS.get(kind, _Tokenizer(kind, None, None, False, False))
    if defaults.family == "byte-pair":
        if pre in _PRE_WITH_BOS:
            defaults = defaults._replace(add_bos=True)
        if pre in _PRE_WITHOUT_BOS_TOKEN:
            defaults = defaults._replace(bos=None)

    def special(key: str, default: int | None) -> int | None:
        # As llama.cpp does, an id outside the vocabulary counts as none at all.
        for token in (metadata.number_or_none(key), default):
            if token is not None and 0 <= token < len(tokens):
                return token
        return None

    return Vocabulary(
        kind=on_one_line(kind),
        pre=on_one_line(pre),
        tokens=tokens,
        bos=special("tokenizer.ggml.bos_token_id", defaults.bos),
        eos=special("tokenizer.ggml.eos_token_id", defaults.eos),
        # llama.cpp overrides Gemma 4's key, which early conversions have wrong.
        add_bos="gemma4" in (kind, pre) or metadata.flag("tokenizer.ggml.add_bos_token", defaults.add_bos),
        add_eos=metadata.flag("tokenizer.ggml.add_eos_token", defaults.add_eos),
    )
