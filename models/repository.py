"""A model named by its repository on the Hugging Face hub, and which of the repository's files it means."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import unquote, urlsplit

from .errors import ModelFileError
from .text import is_plain

_NAME = re.compile(
    r"(?P<repository>\w[\w.-]*/\w[\w.-]*)"
    r"(?:[/:](?P<file>[^:\\]+\.gguf)|:(?P<quantization>[\w-]+))?"
)
_PART = re.compile(r"(?P<stem>.+)-(?P<number>\d{5})-of-(?P<count>\d{5})\.gguf")
# As a word of its own, so that no model's name is taken for one: "Qwen2", "q4-mini" have none.
_QUANTIZATION = re.compile(
    r"(?<![a-z0-9])(?P<unsloth>ud-)?"
    r"(?P<kind>(?:iq|tq|q)[1-8](?:_(?:\d|k|xxs|xs|s|m|nl|xxl|xl|l|h))*|mxfp4(?:_moe)?|nvfp4|bf16|f16|fp16|f32|fp32)"
    r"(?![a-z0-9])",
    re.IGNORECASE,
)
# Projectors, importance matrices and heads for multi-token prediction lie beside models and are none.
_NO_MODEL = re.compile(r"mmproj|imatrix|(?<![a-z0-9])mtp(?![a-z0-9])", re.IGNORECASE)
_MOST_LISTED = 30


@dataclass(frozen=True)
class HubName:
    """What a person wrote: a repository, and at most one of a file in it and a quantization."""

    repository: str
    file: str | None = None
    quantization: str | None = None

    def __str__(self) -> str:
        """As it is written to name it again."""
        if self.file is not None:
            return f"{self.repository}/{self.file}"
        return f"{self.repository}:{self.quantization}" if self.quantization else self.repository


@dataclass(frozen=True)
class RepositoryModel:
    """One model of a repository, all its parts."""

    files: tuple[str, ...]
    """By their paths in the repository; of a split model the first part first."""
    size_bytes: int
    quantization: str
    """By the file's name, as in "Q4_K_M"; empty where it has none."""


class NotInRepositoryError(ModelFileError):
    """A repository without what was asked for."""


def parse_name(text: str) -> HubName | None:
    """`owner/name`, `owner/name:QUANTIZATION`, `owner/name/file.gguf` or `owner/name:file.gguf`.

    None for what is no such name. `owner/file.gguf` is none either: it is a path.
    """
    named = _NAME.fullmatch(text)
    if named is None or not is_plain(text):
        return None
    file = named["file"]
    if file is not None:
        return None if {"", ".", ".."} & set(file.split("/")) else HubName(named["repository"], file)
    if named["quantization"] is None and text.lower().endswith(".gguf"):
        return None
    return HubName(named["repository"], quantization=named["quantization"])


def parse_address(text: str, hosts: Collection[str]) -> HubName | None:
    """What the address of a page or a file on one of `hosts` means, as it is copied from a browser.

    The address is of a repository, or of a file on its branch `main`; None for what is no such address.
    """
    try:
        parts = urlsplit(text if "://" in text else f"//{text}")
    except ValueError:  # as of "http://["
        return None
    if parts.scheme not in ("", "http", "https") or parts.netloc.lower() not in hosts:
        return None
    owner, _, rest = unquote(parts.path).strip("/").partition("/")
    name, *where = rest.split("/", 3)
    if not where or where == ["tree", "main"]:
        return parse_name(f"{owner}/{name}")
    if len(where) == 3 and where[0] in ("blob", "resolve", "raw") and where[1] == "main":
        return parse_name(f"{owner}/{name}/{where[2]}")
    return None


def choose(name: HubName, sizes: Mapping[str, int]) -> RepositoryModel:
    """Which model of a repository the name means.

    Where it says no quantization this is the first there of: Q4_K_M, Q4_0, the largest other one of four
    bits, the largest of three, the smallest of five, of six, of eight or more, the largest of two or one,
    and a file that does not say. Never one that is no whole model: a projector, an importance matrix, a
    head for multi-token prediction, a split model that lacks a part.

    Args:
        name: What is asked for; a part of a split model stands for all of it.
        sizes: The repository's files by path, in bytes.

    Raises:
        NotInRepositoryError: It is not there; the message lists what is.
        ModelFileError: Several models are meant alike; the message lists them.
    """
    whole = list(_whole_models(sizes))
    if name.file is not None:
        return _by_file(name, name.file, whole, sizes)
    models = [model for model in whole if not _NO_MODEL.search(model.files[0])]
    if not models:
        beside = sorted(model.files[0] for model in whole)
        listed = f"; beside models it has {_listed(beside)}, to be named by the file" if beside else ""
        raise NotInRepositoryError(f"{name.repository} has no GGUF file that is a whole model{listed}")
    if name.quantization is None:
        first = min(models, key=_reluctance)
        return _only(name, [model for model in models if model.quantization == first.quantization])
    asked = _canonical(name.quantization)
    # "Q4_K_XL" means Unsloth's "UD-Q4_K_XL" where there is no other.
    for wanted in (asked, f"UD-{asked}"):
        if found := [model for model in models if model.quantization == wanted]:
            return _only(name, found)
    there = sorted({model.quantization for model in models if model.quantization})
    listed = _listed(there) if there else "no file that says its quantization"
    raise NotInRepositoryError(f"{name.repository} has no {name.quantization}; it has {listed}")


def quantization_of(path: str) -> str:
    """The quantization that a file's name says, or else its folder; empty where neither does."""
    part = _PART.fullmatch(path)
    for step in reversed((part["stem"] if part else path.removesuffix(".gguf")).split("/")):
        if said := list(_QUANTIZATION.finditer(step)):
            return _canonical(said[-1][0])
    return ""


def _by_file(
    name: HubName, file: str, whole: Sequence[RepositoryModel], sizes: Mapping[str, int]
) -> RepositoryModel:
    for model in whole:
        if file in model.files:
            return model
    if file in sizes:
        raise NotInRepositoryError(f"{name.repository} does not have all parts of {file}")
    there = sorted(model.files[0] for model in whole)
    listed = _listed(there) if there else "no GGUF file that is whole"
    raise NotInRepositoryError(f"{name.repository} has no file {file}; it has {listed}")


def _whole_models(sizes: Mapping[str, int]) -> Iterable[RepositoryModel]:
    parts: dict[tuple[str, int], dict[int, str]] = {}
    for path in sizes:
        # What cannot be written on one line cannot be asked for either.
        if not path.endswith(".gguf") or not is_plain(path):
            continue
        named = _PART.fullmatch(path)
        number, count = (int(named["number"]), int(named["count"])) if named else (1, 1)
        parts.setdefault((named["stem"] if named else path, count), {})[number] = path
    for (_, count), numbered in parts.items():
        if len(numbered) == count and min(numbered) == 1 and max(numbered) == count:
            files = tuple(path for _, path in sorted(numbered.items()))
            yield RepositoryModel(files, sum(sizes[file] for file in files), quantization_of(files[0]))


def _only(name: HubName, models: Sequence[RepositoryModel]) -> RepositoryModel:
    """The one model that these are: the same one may be there whole and in parts."""
    by_stem: dict[str, list[RepositoryModel]] = {}
    for model in models:
        by_stem.setdefault(_stem(model.files[0]), []).append(model)
    if len(by_stem) > 1:
        files = sorted(min(model.files[0] for model in same) for same in by_stem.values())
        raise ModelFileError(
            f"{name} may be any of {len(files)} models; name one by its file: "
            f"{_listed([str(HubName(name.repository, file)) for file in files])}"
        )
    [same] = by_stem.values()
    return min(same, key=lambda model: (len(model.files), model.files[0]))


def _stem(path: str) -> str:
    """A model's name in its file's, without its quantization."""
    last = path.rsplit("/", 1)[-1].lower()
    part = _PART.fullmatch(last)
    return _QUANTIZATION.sub("", part["stem"] if part else last.removesuffix(".gguf")).strip("-._")


def _reluctance(model: RepositoryModel) -> tuple[int, int]:
    """The less, the sooner this model is what somebody wants who did not say."""
    first = ("Q4_K_M", "Q4_0")
    if model.quantization in first:
        return first.index(model.quantization), model.size_bytes
    bits = _bits(model.quantization)
    order = (4, 3, 5, 6, 8, 16, 32, 2, 1, 0)
    rank = order.index(bits) if bits in order else len(order)
    smaller_first = bits >= 5
    return len(first) + rank, model.size_bytes if smaller_first else -model.size_bytes


def _bits(quantization: str) -> int:
    found = re.search(r"\d+", quantization)
    return int(found[0]) if found else 0


def _canonical(quantization: str) -> str:
    upper = quantization.upper()
    return {"FP16": "F16", "FP32": "F32"}.get(upper, upper)


def _listed(names: Sequence[str]) -> str:
    more = len(names) - _MOST_LISTED
    return ", ".join(names[:_MOST_LISTED]) + (f" and {more} more" if more > 0 else "")
