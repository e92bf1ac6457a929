"""Self-tests that end as a llama.cpp does: each runs in a process of its own, and some of them end it."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

from specchat.app.self_test import Built, Decoded, Loading, Timed, Trying
from specchat.app.trial import Tell

BUILT = Built("0.3.36: CPU : SSE3 = 1 | AVX2 = 1 | OPENMP = 1 | ", ("A processor",))


def built_wrongly(tell: Tell, target: Path | None, threads: int) -> None:
    tell(BUILT)
    tell(Trying(2))
    os.kill(os.getpid(), signal.SIGILL)


def unloadable(tell: Tell, target: Path | None, threads: int) -> None:
    raise ImportError("libgomp.so.1: cannot open shared object file")


def giving_up(tell: Tell, target: Path | None, threads: int) -> None:
    tell(BUILT)
    os.write(2, b"ggml.c:12: GGML_ASSERT(x > 0)\x1b[2J failed\n")
    os.abort()


def hanging(tell: Tell, target: Path | None, threads: int) -> None:
    tell(BUILT)
    time.sleep(60)


def leaving(tell: Tell, target: Path | None, threads: int) -> None:
    tell(BUILT)
    os._exit(3)


def at_home(tell: Tell, target: Path | None, threads: int) -> None:
    raise OSError(f"{Path.home()}/models/secret.gguf is gone")


def sound(tell: Tell, target: Path | None, threads: int) -> None:
    for told in (BUILT, Loading(0.5), Trying(1), Decoded((1, 2)), Timed({1: 0.1, 4: 0.2}, 10**9)):
        tell(told)
