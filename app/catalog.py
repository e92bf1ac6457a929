"""What GGUF models lie on this disk: where to look, what is there, and which may draft for which."""

from __future__ import annotations

import contextlib
import json
import os
import re
import stat
import time
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, MutableMapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any, Literal, cast

from ..models.errors import ModelFileError
from ..models.gguf_file import GgufHeader, read_header
from ..models.gguf_layout import shown
from ..models.pair import judge
from ..models.text import printable
from .demo import demo_model

_DEEP, _SHALLOW = 6, 2
"""Levels of folders below a place: applications nest their models, and the working folder may be anything."""
_MOST_ENTRIES = 20_000
"""Files and folders looked at in one place; a picker that has to look at more shows what it found so far."""

Identity = tuple[int, int]
"""A file's device and number, the same by whatever path or link it is reached."""


@dataclass(frozen=True)
class Place:
    """Somewhere models may lie; it need not exist."""

    name: str
    """As a person knows it: "LM Studio"."""
    path: Path
    """A folder, or one file."""
    layout: Literal["files", "ollama"] = "files"
    """Files with names, or Ollama's manifests that name blobs."""
    depth: int = _DEEP
    """How many levels of folders below `path` are looked into."""


@dataclass(frozen=True)
class FoundModel:
    """A file that is a model by its name; nothing of it has been read."""

    path: Path
    """Of a split model the first part."""
    name: str
    """To show before the header is read, fit for one line."""
    place: str
    """The name of the place it was found in."""
    size_bytes: int
    """All parts of a split model together."""
    modified: float
    """In seconds since 1970."""


@dataclass(frozen=True)
class ModelRow:
    """What a picker shows of one model."""

    found: FoundModel
    header_name: str = ""
    architecture: str = ""
    quantization: str = ""
    parameters: int = 0
    train_context: int = 0
    """Tokens; 0 where the file does not say."""
    why_not: str = ""
    """Why no conversation can be held with it, in one line; empty where one can."""

    @property
    def name(self) -> str:
        """The name that the model gives itself, or the one it was found under."""
        return self.header_name or self.found.name

    @property
    def usable(self) -> bool:
        """Whether it is a chat model, and whole."""
        return not self.why_not


HeaderCache = MutableMapping[tuple[str, int, float], ModelRow]
"""Rows by path, size and time of change: a file that was changed is read again."""


@dataclass(frozen=True)
class PairRow:
    """What a picker shows of a draft beside its target."""

    draft: Path
    verdict: Literal["fits", "fits, but", "cannot draft"]
    reason: str
    """The most telling one, a sentence; empty where the draft simply fits."""
    share: float
    """The draft's bytes as a part of the target's."""

    @property
    def usable(self) -> bool:
        """Whether drafting can be tried at all."""
        return self.verdict != "cannot draft"

    @property
    def text(self) -> str:
        """The verdict and its reason in one line."""
        return f"{self.verdict}: {self.reason}" if self.reason else self.verdict


def default_places(environment: Mapping[str, str], home: Path, extra_folders: Sequence[Path]) -> list[Place]:
    """Where models usually lie on this machine, the folders that applications keep first.

    Args:
        environment: Where the variables are looked up by which those folders are moved.
        home: The user's folder.
        extra_folders: Further folders that the user named.
    """

    def named(variable: str) -> Path | None:
        value = environment.get(variable)
        if not value:
            return None
        # expanduser would ask the system for the home folder.
        return home / value[2:] if value.startswith("~/") else Path(value)

    cache = named("XDG_CACHE_HOME") or home / ".cache"
    hub = named("HF_HUB_CACHE") or named("HUGGINGFACE_HUB_CACHE")
    data, mac_data = home / ".local/share", home / "Library/Application Support"
    jan = "Jan/data/llamacpp/models"
    places = [
        Place("Hugging Face", hub or (named("HF_HOME") or cache / "huggingface") / "hub"),
        Place("LM Studio", home / ".lmstudio/models"),
        Place("LM Studio", home / ".cache/lm-studio/models"),
        Place("Ollama", named("OLLAMA_MODELS") or home / ".ollama/models", "ollama"),
        # Where Ollama runs as a service of the system, its models are its own user's.
        Place("Ollama", Path("/usr/share/ollama/.ollama/models"), "ollama"),
        Place("llama.cpp", named("LLAMA_CACHE") or cache / "llama.cpp"),
        Place("llama.cpp", home / "Library/Caches/llama.cpp"),
        *(Place("Jan", folder / jan) for folder in (data, home / ".config", mac_data)),
        *(Place("GPT4All", folder / "nomic.ai/GPT4All") for folder in (data, mac_data)),
        *(Place(shown(folder), folder) for folder in extra_folders),
        # After the models that they were made from: they draft, and are no better for talking.
        Place("derived by specchat", cache / "specchat/derived"),
        Place("derived by specchat", home / "Library/Caches/specchat/derived"),
    ]
    with contextlib.suppress(ModelFileError):
        places.append(Place("demo", demo_model()))
    # There is no working folder once it is deleted.
    with contextlib.suppress(OSError):
        places.append(Place("this folder", Path.cwd(), depth=_SHALLOW))
    return places


def find_models(
    places: Sequence[Place], *, clock: Callable[[], float] = time.monotonic, seconds: float = 2.0
) -> list[FoundModel]:
    """The models in these places, by place and name; nothing is opened but manifests.

    Each file is there once, and so are copies in several places, which have one name and one size.

    What cannot be read is passed over, and so are projectors, empty files and broken links. The search
    ends with what it has found after so many `seconds` of `clock`.
    """
    deadline = clock() + seconds
    found: dict[Identity, FoundModel] = {}
    for place in places:
        look = _in_ollama if place.layout == "ollama" else _in_folder
        elsewhere = {(model.name, model.size_bytes) for model in found.values()}
        models = list(look(place, lambda: clock() > deadline))
        for identity, model in sorted(models, key=lambda one: (one[1].name.lower(), str(one[1].path))):
            if (model.name, model.size_bytes) not in elsewhere:
                found.setdefault(identity, model)
    return list(found.values())


def describe(found: FoundModel, cache: HeaderCache) -> ModelRow:
    """What the model's header says; it takes tens of milliseconds where `cache` does not know it.

    Raises nothing: what is no usable chat model is a row that says why.
    """
    key = (str(found.path), found.size_bytes, found.modified)
    if key not in cache:
        cache[key] = _read(found)
    return replace(cache[key], found=found)


def as_draft(target: GgufHeader, draft: GgufHeader) -> PairRow:
    """How well this draft would serve this target."""
    verdict = judge(target, draft)
    words: Mapping[str, Literal["fits", "fits, but", "cannot draft"]] = {
        "fits": "fits",
        "fits_but": "fits, but",
        "cannot": "cannot draft",
    }
    return PairRow(
        draft=draft.path,
        verdict=words[verdict.kind],
        reason=verdict.reasons[0] if verdict.reasons else "",
        share=draft.size_bytes / target.size_bytes,
    )


def best_first(drafts: Iterable[PairRow]) -> list[PairRow]:
    """The drafts in the order in which to offer them: usable ones first, and the smaller first."""
    return sorted(drafts, key=lambda row: (not row.usable, row.share))


def _read(found: FoundModel) -> ModelRow:
    try:
        header = read_header(found.path)
    except ModelFileError as error:
        # The row says already which file it is about.
        return ModelRow(found, why_not=str(error).removeprefix(f"{shown(found.path)} "))
    return ModelRow(
        found,
        # A file that has no name is called by the stem of its path, which in Ollama's store is a checksum.
        header_name="" if header.name == found.path.stem else header.name,
        architecture=header.architecture,
        quantization=header.quantization,
        parameters=header.parameters,
        train_context=header.train_context,
    )


# Folders ---------------------------------------------------------------------------------------

_PART = re.compile(r"(?P<stem>.+)-(?P<number>\d{5})-of-(?P<count>\d{5})(?P<suffix>\.gguf)", re.IGNORECASE)


def _in_folder(place: Place, late: Callable[[], bool]) -> Iterator[tuple[Identity, FoundModel]]:
    root = _state(place.path)
    if root is not None and stat.S_ISREG(root.st_mode):
        listed = iter([(place.path.parent, _parts(place.path))])
    else:
        listed = _walk(place.path, place.depth, late)
    for folder, names in listed:
        states = {name: _state(folder / name) for name in names if _may_be_a_model(name)}
        files = {name: state for name, state in states.items() if state is not None and _is_whole(state)}
        sizes = Counter[str]()
        for name, state in files.items():
            sizes[_first_part(name)] += state.st_size
        for name, size in sizes.items():
            if name in files:
                path = folder / name
                yield _found(path, _name_of(path), place, files[name], size)


def _parts(path: Path) -> list[str]:
    """The names of the files that the model in this one consists of."""
    if not _PART.fullmatch(path.name):
        return [path.name]
    return [name for name, _ in _entries(path.parent, _MOST_ENTRIES) if _first_part(name) == path.name]


def _may_be_a_model(name: str) -> bool:
    lower = name.lower()
    return lower.endswith(".gguf") and not lower.startswith(".") and "mmproj" not in lower


def _is_whole(state: os.stat_result) -> bool:
    return stat.S_ISREG(state.st_mode) and state.st_size > 0


def _first_part(name: str) -> str:
    """The name of a split model's first part, given any; other names are their own."""
    part = _PART.fullmatch(name)
    return f"{part['stem']}-00001-of-{part['count']}{part['suffix']}" if part else name


def _name_of(path: Path) -> str:
    part = _PART.fullmatch(path.name)
    name = part["stem"] if part else path.stem
    # Jan, among others, calls every file so and its folder by the model.
    return path.parent.name if name.lower() == "model" else name


def _found(
    path: Path, name: str, place: Place, state: os.stat_result, size: int
) -> tuple[Identity, FoundModel]:
    readable = "".join(character if character.isprintable() else "\ufffd" for character in printable(name))
    return (state.st_dev, state.st_ino), FoundModel(path, readable, place.name, size, state.st_mtime)


def _walk(root: Path, depth: int, late: Callable[[], bool]) -> Iterator[tuple[Path, list[str]]]:
    """Each folder with the names of its files, the nearest first.

    Links to folders are followed, as large models often lie on another disk, and no folder is entered
    twice. Hidden folders hold no models, but may hold much else.
    """
    waiting = deque([(root, depth)])
    entered: set[Identity] = set()
    left = _MOST_ENTRIES
    while waiting and left > 0 and not late():
        folder, levels = waiting.popleft()
        state = _state(folder)
        if state is None or (state.st_dev, state.st_ino) in entered:
            continue
        entered.add((state.st_dev, state.st_ino))
        entries = _entries(folder, left)
        left -= len(entries)
        if levels > 0:
            waiting.extend(
                (folder / name, levels - 1) for name, is_folder in entries if is_folder and name[0] != "."
            )
        yield folder, [name for name, is_folder in entries if not is_folder]


def _entries(folder: Path, most: int) -> list[tuple[str, bool]]:
    """What is in a folder, by name, and whether it is a folder itself; nothing where it cannot be read."""
    entries: list[tuple[str, bool]] = []
    with contextlib.suppress(OSError), os.scandir(folder) as listed:
        for entry in islice(listed, most):
            # A link that leads in a circle is neither a file nor a folder.
            with contextlib.suppress(OSError):
                entries.append((entry.name, entry.is_dir()))
    return sorted(entries)


def _state(path: Path) -> os.stat_result | None:
    # ValueError is what a path with a zero byte gets.
    try:
        return path.stat()
    except (OSError, ValueError):
        return None


# Ollama's store --------------------------------------------------------------------------------

_OLLAMA_MODEL = "application/vnd.ollama.image.model"
_OLLAMA_USUAL = ("registry.ollama.ai", "library")
_DIGEST = re.compile(r"sha256[:-](?P<sum>[0-9a-f]{64})")
_LARGEST_MANIFEST = 1_000_000


def _in_ollama(place: Place, late: Callable[[], bool]) -> Iterator[tuple[Identity, FoundModel]]:
    manifests = place.path / "manifests"
    for folder, tags in _walk(manifests, place.depth, late):
        for tag in tags:
            if late():
                return
            where = folder.relative_to(manifests).parts
            checksum = _model_checksum(folder / tag) if len(where) == 3 else None
            if checksum is None:
                continue
            blob = place.path / "blobs" / f"sha256-{checksum}"
            state = _state(blob)
            if state is not None and _is_whole(state):
                yield _found(blob, _ollama_name(where, tag), place, state, state.st_size)


def _ollama_name(where: Sequence[str], tag: str) -> str:
    """As `ollama list` names it: the usual registry and its usual namespace go without saying."""
    for usual in _OLLAMA_USUAL:
        where = where[1:] if where[0] == usual else where
    return f"{'/'.join(where)}:{tag}"


def _model_checksum(manifest: Path) -> str | None:
    """The checksum of the blob that is the model's weights."""
    state = _state(manifest)
    if state is None or not stat.S_ISREG(state.st_mode) or state.st_size > _LARGEST_MANIFEST:
        return None
    try:
        told = json.loads(manifest.read_bytes())
    except (OSError, ValueError, RecursionError):
        return None
    layers = cast("dict[str, Any]", told).get("layers") if isinstance(told, dict) else None
    for layer in cast("list[Any]", layers) if isinstance(layers, list) else []:
        fields = cast("dict[str, Any]", layer) if isinstance(layer, dict) else {}
        digest = _DIGEST.fullmatch(str(fields.get("digest")))
        if digest is not None and fields.get("mediaType") == _OLLAMA_MODEL:
            return digest["sum"]
    return None
