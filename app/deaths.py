"""How a process with llama.cpp in it died, in words that say what to do."""

from __future__ import annotations

import signal

REBUILD = "CXXFLAGS=-fno-dse pip install --force-reinstall --no-cache-dir llama-cpp-python==0.3.36"
"""Builds llama.cpp for the machine at hand; the flag is for GCC, and does no harm with it anywhere."""

_HINTS = {
    "SIGILL": "this llama.cpp was built for another processor, or by a compiler that breaks it (the README's "
    f"build flags say more); build it again here: {REBUILD}",
    "SIGKILL": "the system may have been out of memory: try a smaller model or --ctx-size",
    "SIGSEGV": f"if it does so again, this llama.cpp may be damaged; build it again here: {REBUILD}",
    "SIGABRT": "llama.cpp found that something was wrong and gave up; its log has the reason",
}


def how_it_died(exit_code: int | None) -> str:
    """What became of a process, by its exit code, as the rest of a sentence about it."""
    if exit_code is None or exit_code >= 0:
        return f"ended unexpectedly (exit code {exit_code})"
    try:
        name = signal.Signals(-exit_code).name
    except ValueError:
        return f"was killed by signal {-exit_code}"
    return f"was killed by {name}{f'; {_HINTS[name]}' if name in _HINTS else ''}"
