"""A process that loads files with llama.cpp, one after another, so that one that kills it is known.

Run as a module it reads a path a line, and answers each with a line: what became of it.
"""

from __future__ import annotations

import contextlib
import os
import resource
import select
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO

_MOST_MEMORY = 6 << 30


@dataclass(frozen=True)
class Outcome:
    """What became of a file that was given to llama.cpp."""

    kind: str
    """"loaded", "refused", or how the process ended: "died", "hung"."""
    told: str
    seconds: float
    grown: int
    """Bytes by which the process's peak grew."""


class LoadingProcess:
    """The other end; started again after each death."""

    def __init__(self, words: Path, *, limit_s: float = 20.0, quantizes: bool = False) -> None:
        self._words, self._limit_s, self._quantizes = words, limit_s, quantizes
        self._process: subprocess.Popen[str] | None = None

    def load(self, path: Path) -> Outcome:
        """Give a file to llama.cpp."""
        process = self._process or self._start()
        assert process.stdin is not None
        assert process.stdout is not None
        started = time.monotonic()
        process.stdin.write(f"{path}\n")
        process.stdin.flush()
        ready, _, _ = select.select([process.stdout], [], [], self._limit_s)
        line = process.stdout.readline() if ready else ""
        seconds = time.monotonic() - started
        if line:
            kind, grown, told = line.rstrip("\n").split(" ", 2)
            return Outcome(kind, told, seconds, int(grown))
        process.kill()
        code = process.wait()
        self._process = None
        words = [line for line in self._words.read_text(errors="replace").split("\n") if line.strip()]
        told = " | ".join(line.rsplit("/", 1)[-1] for line in words[-2:])
        return Outcome("died" if ready else "hung", f"{code} {told}"[:300], seconds, 0)

    def close(self) -> None:
        """End it."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    def _start(self) -> subprocess.Popen[str]:
        with self._words.open("w") as words:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "tests.models.loading_process", *(["quantize"] * self._quantizes)],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=words, text=True,
                # llama.cpp would have a debugger say where it was, which takes seconds.
                env={**os.environ, "GGML_NO_BACKTRACE": "1"},
            )  # fmt: skip
        return self._process


@contextlib.contextmanager
def loading_process(words: Path, **settings: object) -> Iterator[LoadingProcess]:
    """A process that ends with the block."""
    process = LoadingProcess(words, **settings)  # type: ignore[arg-type]
    try:
        yield process
    finally:
        process.close()


def _answer(path: Path, quantizes: bool) -> str:
    """Load a file as the chat does, say something with it, and make a draft of it."""
    from specchat.app.footprint import BRANCHES, CPU_CHUNK, rows_of
    from specchat.models.errors import SpecchatError
    from specchat.models.llama import Context, Model
    from specchat.models.quantizing import quantize

    before = _peak()
    try:
        with Model(path, gpu_layers=0) as model:
            branches = BRANCHES if model.drops_suffixes else 1
            context = Context(
                model, size=512, threads=1, chunk=CPU_CHUNK, rows=rows_of("target"), branches=branches
            )
            try:
                context.decode([max(model.bos, 0)] * 2, 1)
                context.truncate(0)
                tokens = model.tokenize("<|im_start|>Hé \n\U0001f642", add_special=True)
                if tokens:
                    context.decode(tokens[:16], min(len(tokens), 4))
                for token in range(min(model.vocabulary_size, 300)):
                    model.piece(token, special=True)
                    model.ends_generation(token)
            finally:
                context.close()
        if quantizes:
            quantize(path, path.with_suffix(".made"), "Q4_0", threads=1)
            quantize(path, path.with_suffix(".made"), None, without=(0,), threads=1)
        kind, told = "loaded", ""
    except SpecchatError as error:
        kind, told = "refused", str(error).replace("\n", "\\n")
    return f"{kind} {_peak() - before} {told}"


def _peak() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def _serve(paths: IO[str], answers: IO[str], quantizes: bool) -> None:
    resource.setrlimit(resource.RLIMIT_AS, (_MOST_MEMORY, _MOST_MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    for path in paths:
        answers.write(_answer(Path(path.rstrip("\n")), quantizes) + "\n")
        answers.flush()


if __name__ == "__main__":
    # What llama.cpp prints itself is no answer.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    _serve(sys.stdin, answers, "quantize" in sys.argv)
