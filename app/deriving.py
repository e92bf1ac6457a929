"""Makes a draft out of a model's file: where it goes, what it is called, and that no half of it stays."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import re
import shutil
import tempfile
from collections.abc import Callable, Generator
from dataclasses import dataclass, replace
from pathlib import Path

import platformdirs
import psutil

from ..models.derived import Origin, Recipe
from ..models.errors import LoadError, ModelFileError, SpecchatError
from ..models.gguf_file import GgufHeader, read_header
from ..models.gguf_layout import Layout, read_layout, shown
from ..models.pruning import refuse_unprunable
from ..models.quantizing import FILE_TYPES, quantize
from ..models.tensors import block_named
from .private_files import make_folder

Progress = Callable[[float], None]
"""Told which part is done, from 0 to 1."""

_PIECE = 1 << 22
_SCRATCH = ".specchat-"
_OF_A_PROCESS = re.compile(re.escape(_SCRATCH) + r"(?P<process>\d+)-.*")
_PART = re.compile(r"(?P<stem>.+)-\d{5}-of-(?P<count>\d{5})")

_OF_A_STREAM = "iostream error"

_MIXED = 1.3
"""How much larger a file may get than its main type: output matrices, and rows that it does not fit."""


class DeriveError(SpecchatError):
    """A draft that could not be written."""


class NameTakenError(DeriveError):
    """What was made, whose name something else got meanwhile."""


@dataclass(frozen=True)
class Source:
    """The file that drafts are made from."""

    header: GgufHeader
    layout: Layout
    """With the tensors of all parts, where it is split."""
    sha256: str
    """Of all parts, one after the other."""

    @property
    def path(self) -> Path:
        """Where it is."""
        return self.header.path

    @property
    def stem(self) -> str:
        """Its name without its suffix and its number among parts."""
        part = _PART.fullmatch(self.path.stem)
        return part["stem"] if part else self.path.stem

    @property
    def tied(self) -> bool:
        """Whether its embeddings serve as the output matrix."""
        return all(tensor.name != "output.weight" for tensor in self.layout.tensors)

    def origin(self, recipe: Recipe) -> Origin:
        """What is noted in a file that is made of it."""
        header = self.header
        return Origin(
            shown(Path(self.path.name)), header.size_bytes, self.sha256, header.block_count,
            str(recipe), recipe.skipped,
        )  # fmt: skip


@dataclass(frozen=True)
class Derived:
    """A draft that is there."""

    path: Path
    recipe: Recipe
    size_bytes: int
    reused: bool
    """Whether it was there before."""


def default_folder() -> Path:
    """Where drafts go that are given no other place."""
    return platformdirs.user_cache_path("specchat") / "derived"


def open_source(path: Path, on_progress: Progress) -> Source:
    """Read a file's header, and sum its bytes, which tells whether a draft was made of the same.

    Raises:
        ModelFileError: It is no usable model.
    """
    header = read_header(path)
    part = _PART.fullmatch(path.stem)
    count = int(part["count"]) if part else 1
    parts = (
        [path.with_name(f"{part['stem']}-{number:05}-of-{count:05}.gguf") for number in range(1, count + 1)]
        if part
        else [path]
    )
    summed, done = hashlib.sha256(), 0
    try:
        for one in parts:
            with one.open("rb") as file:
                while piece := file.read(_PIECE):
                    summed.update(piece)
                    done += len(piece)
                    on_progress(done / max(header.size_bytes, 1))
    except OSError as error:
        raise ModelFileError(
            f"{shown(path)} cannot be read: {error.strerror or error}; check its permissions and its disk"
        ) from None
    layout = read_layout(path)
    others = [tensor for other in parts[1:] for tensor in read_layout(other).tensors]
    return Source(header, replace(layout, tensors=(*layout.tensors, *others)), summed.hexdigest())


def destination(source: Source, recipe: Recipe, output: Path | None) -> Path:
    """Where a draft of this recipe goes: the file, or its name in the folder, that `output` names.

    Raises:
        DeriveError: That is the source itself.
    """
    if output is not None and output.suffix.lower() == ".gguf" and not output.is_dir():
        path = output
    else:
        path = (output or default_folder()) / f"{source.stem}.{recipe.in_a_name}.gguf"
    if path.exists() and path.samefile(source.path):
        raise DeriveError(f"{shown(path)} is what the draft is made from; name another file with -o")
    return path


def made_before(source: Source, recipe: Recipe, path: Path) -> Derived | None:
    """The draft of this recipe if it is there already, whole, and made from this very source.

    Raises:
        DeriveError: Something else has its name, which is never overwritten.
    """
    if not path.exists():
        return None
    try:
        header = read_header(path)
    except ModelFileError:
        header = None
    if header is None or header.origin is None:
        raise DeriveError(f"{shown(path)} is there and is no draft that specchat made; name another with -o")
    if header.origin.source_sha256 != source.sha256 or header.origin.recipe != str(recipe):
        raise DeriveError(
            f"{shown(path)} is there and was made from another file or by another recipe; "
            "name another with -o"
        )
    return Derived(path, recipe, header.size_bytes, reused=True)


@contextlib.contextmanager
def scratch(folder: Path) -> Generator[Path, None, None]:
    """A hidden folder inside, for what is being made; it goes when this ends, however it ends.

    What a killed process left there goes, too.

    Raises:
        DeriveError: Nothing can be written there.
    """
    try:
        if folder == default_folder():
            make_folder(folder)
        folder.mkdir(parents=True, exist_ok=True)
        for left in folder.glob(f"{_SCRATCH}*"):
            process = _OF_A_PROCESS.fullmatch(left.name)
            if process is not None and not _is_at_work(int(process["process"])):
                shutil.rmtree(left, ignore_errors=True)
        made = Path(tempfile.mkdtemp(dir=folder, prefix=f"{_SCRATCH}{os.getpid()}-"))
    except OSError as error:
        raise _unwritable(folder, error) from None
    try:
        yield made
    finally:
        shutil.rmtree(made, ignore_errors=True)


def _is_at_work(number: int) -> bool:
    """Whether there is a process of this number, and it has not ended."""
    try:
        return psutil.Process(number).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False
    except psutil.AccessDenied:
        return True


def write(source: Source, recipe: Recipe, folder: Path, threads: int) -> Path:
    """Make the draft in a scratch folder, and look that it is whole.

    Raises:
        ModelFileError: The layers cannot be left out of this model.
        DeriveError: There is too little room, or it could not be written.
    """
    if recipe.skipped:
        refuse_unprunable(source.layout, recipe.skipped)
    path = folder / f"{source.stem[:100]}.{recipe.in_a_name}.gguf"
    refuse_for_want_of_room(folder, estimated_bytes(source, recipe))
    try:
        quantize(
            source.path, path, recipe.quant or None, output=recipe.output or None, tied=source.tied,
            without=recipe.skipped, notes=source.origin(recipe).notes(), threads=threads,
        )  # fmt: skip
        read_header(path)
    except (LoadError, ModelFileError) as error:
        # The quantizer may only learn that a disk is full when it closes the file. What a quota or a limit
        # refuses it calls an error of its stream.
        full = isinstance(error, ModelFileError) or shutil.disk_usage(folder).free < _PIECE
        if full or _OF_A_STREAM in str(error):
            raise DeriveError(
                f"{shown(Path(path.name))} could not be written whole in {shown(folder.parent)}; "
                "free some of its disk, or name a folder on another with -o"
            ) from None
        raise DeriveError(str(error)) from None
    return path


def put(made: Path, recipe: Recipe, path: Path) -> Derived:
    """Give what was made its name, at once and whole, over nothing that is there.

    Raises:
        NameTakenError: Something else got the name meanwhile.
        DeriveError: The name cannot be written.
    """
    size = made.stat().st_size
    try:
        try:
            os.link(made, path)
            made.unlink()
        except FileExistsError:
            raise
        except OSError:  # a disk that knows no second names
            if path.exists():
                raise FileExistsError(errno.EEXIST, "it is there already") from None
            made.rename(path)
    except FileExistsError:
        raise NameTakenError(f"{shown(path)} is there already; name another with -o") from None
    except OSError as error:
        raise DeriveError(f"{shown(path)} cannot be written: {error.strerror or error}") from None
    return Derived(path, recipe, size, reused=False)


def estimated_bytes(source: Source, recipe: Recipe) -> int:
    """About how large the draft will be, rather too large than too small."""
    layers = max(source.header.block_count, 1)
    kept = 1.0
    if recipe.skipped:
        in_layers = sum(t.elements for t in source.layout.tensors if t.name.startswith("blk."))
        whole = max(sum(t.elements for t in source.layout.tensors), 1)
        kept = 1.0 - in_layers / whole * len(recipe.skipped) / layers
    if not recipe.quant:
        return int(source.header.size_bytes * kept)
    values, size = block_named(FILE_TYPES[recipe.quant].tensors)
    return int(source.header.parameters * kept * size / values * _MIXED)


def refuse_for_want_of_room(folder: Path, needed: int) -> None:
    """Say so where the folder's disk has too little room.

    Raises:
        DeriveError: It has.
    """
    free = shutil.disk_usage(folder).free
    if needed > free:
        raise DeriveError(
            f"{shown(folder.parent)} has room for {free / 1e6:,.0f} MB and about {needed / 1e6:,.0f} MB "
            "are to be written; free some, or name a folder on another disk with -o"
        )


def _unwritable(folder: Path, error: OSError) -> DeriveError:
    if isinstance(error, (FileExistsError, NotADirectoryError)):
        return DeriveError(f"{shown(folder)} is no folder; name another with -o")
    return DeriveError(
        f"{shown(folder)} cannot be written: {error.strerror or error}; name another folder with -o"
    )
