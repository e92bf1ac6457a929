"""What the C library keeps of freed memory, given back to the system."""

from __future__ import annotations

import ctypes
import sys


def give_back_freed_memory() -> None:
    """Return what glibc would keep for later; other libraries are left to themselves.

    Reading a vocabulary frees megabytes, which nothing needs again.
    """
    if sys.platform == "linux" and (trim := getattr(ctypes.CDLL(None), "malloc_trim", None)):
        trim(0)
