"""How much memory a process holds."""

from __future__ import annotations

import psutil


def resident(pid: int | None) -> int | None:
    """Bytes of a process in memory; `None` where there is no such process."""
    if pid is None:
        return None
    try:
        return psutil.Process(pid).memory_info().rss
    except psutil.Error:
        return None
