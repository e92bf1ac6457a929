"""What was measured on this machine, kept in a small file from one start to the next."""

from __future__ import annotations

import contextlib
import hashlib
import json
from pathlib import Path
from typing import Any, cast

import platformdirs

from .private_files import write_whole

_MOST_ENTRIES = 200


def default_path() -> Path:
    """The file in the platform's cache folder: losing it costs a second, and what was learned."""
    return platformdirs.user_cache_path("specchat") / "measured.json"


class Remembered:
    """Measurements by what they depend on; a file that cannot be read or written is as good as none."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def recall(self, what: str, depends_on: object) -> dict[str, Any] | None:
        """What was kept for exactly this, if anything."""
        found = self._entries().get(_key(what, depends_on))
        return cast("dict[str, Any]", found) if isinstance(found, dict) else None

    def keep(self, what: str, depends_on: object, measured: dict[str, Any]) -> None:
        """Keep a measurement."""
        entries = self._entries()
        key = _key(what, depends_on)
        entries.pop(key, None)
        entries[key] = measured
        while len(entries) > _MOST_ENTRIES:
            del entries[next(iter(entries))]
        with contextlib.suppress(OSError):
            write_whole(self._path, json.dumps(entries))

    def _entries(self) -> dict[str, Any]:
        try:
            entries = json.loads(self._path.read_text())
        except (OSError, ValueError):
            return {}
        return cast("dict[str, Any]", entries) if isinstance(entries, dict) else {}


def _key(what: str, depends_on: object) -> str:
    return f"{what}-{hashlib.sha256(json.dumps(depends_on, sort_keys=True).encode()).hexdigest()[:32]}"
