"""Fetches the models that names on the Hugging Face hub mean, whole, and says what came of each."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from ..models.errors import ModelFileError
from ..models.gguf_file import read_header
from ..models.gguf_layout import is_text, shown
from ..models.locate import locate_in_cache
from ..models.repository import HubName, choose
from .downloading import Progress, download, require_room
from .hub import Listed, list_files


@dataclass(frozen=True)
class Pulled:
    """One model that is in the cache now."""

    name: HubName
    paths: tuple[Path, ...]
    """All its parts, the first one first."""
    problem: str
    """Why no conversation can be held with it, in one line; empty where one can."""

    @property
    def size_bytes(self) -> int:
        """Of all its parts."""
        return sum(path.stat().st_size for path in self.paths)


def pull(names: Sequence[HubName], watch: Callable[[str], Progress]) -> list[Pulled]:
    """Fetch models into the shared Hugging Face cache, unless they are there.

    What a name with a file or a quantization means is looked for in the cache first, and the hub is not
    asked where it is there; a repository alone may mean another file than the one in the cache, so the hub
    is asked unless it may not be (HF_HUB_OFFLINE).

    Args:
        names: What is to be fetched; room for all of it is made sure of first.
        watch: Given a file's name, what is told how far it is; not called for a file that is there.

    Raises:
        SpecchatError: Something cannot be had; what has come so far stays, for the next attempt.
    """
    wanted = [_plan(name) for name in dict.fromkeys(names)]
    require_room((plan.name.repository, file) for plan in wanted for file in plan.missing)
    return [_carry_out(plan, watch) for plan in wanted]


@dataclass(frozen=True)
class _Plan:
    name: HubName
    there: tuple[Path, ...] = ()
    missing: tuple[Listed, ...] = ()


def _plan(name: HubName) -> _Plan:
    from huggingface_hub import constants

    if name.file or name.quantization or constants.HF_HUB_OFFLINE:
        there = locate_in_cache(name)
        if there:
            return _Plan(name, there=there)
    listed = {file.path: file for file in list_files(name.repository)}
    model = choose(name, {path: file.size_bytes for path, file in listed.items()})
    return _Plan(name, missing=tuple(listed[file] for file in model.files))


def _carry_out(plan: _Plan, watch: Callable[[str], Progress]) -> Pulled:
    paths = plan.there or tuple(
        download(
            plan.name.repository,
            file.path,
            on_progress=_when_told(watch, file.path),
            cancelled=lambda: False,
        )
        for file in plan.missing
    )
    try:
        read_header(paths[0])
    except ModelFileError as error:
        with paths[0].open("rb") as file:
            text = is_text(file.read(512))
        problem = f"what arrived is a text file, no GGUF: {shown(paths[0])}" if text else str(error)
        return Pulled(plan.name, paths, problem)
    return Pulled(plan.name, paths, "")


def _when_told(watch: Callable[[str], Progress], file: str) -> Progress:
    """Progress that is first watched when there is some."""
    progress: Progress | None = None

    def tell(done: int, total: int) -> None:
        nonlocal progress
        progress = progress or watch(file)
        progress(done, total)

    return tell
