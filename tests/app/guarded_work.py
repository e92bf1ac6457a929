"""Work that ends as llama.cpp does, hangs as it does, or goes well; each is done in a guarded process."""

from __future__ import annotations

import ctypes
import os
import shutil
import signal
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path

from specchat.app.guarded import Called, guarded
from specchat.app.interrupt import Interrupt
from tests.full_disk import full_disk


def streams() -> int:
    """Tells all that it knows of its streams, and uses them."""
    for stream in (sys.stdout, sys.stderr):
        told = (stream.isatty(), stream.encoding, stream.errors, stream.line_buffering, stream.write_through)
        print(told, shutil.get_terminal_size(), "\u00e9", file=stream, flush=True)
    warnings.warn("a warning", stacklevel=1)
    return 7


def reading() -> int:
    """Reads a file that the caller has opened."""
    print(Path(f"/dev/fd/{os.environ['OPENED']}").read_text())
    return 0


def murmuring() -> int:
    os.write(2, b"OMP: Warning: \x1b[31m nothing of importance\n")
    return 0


def asserting() -> int:
    print("half an ans", end="", flush=True)
    os.write(
        2, b"/llama.cpp/ggml/src/ggml.c:12: GGML_ASSERT(x > 0)\x1b[2J failed\nlibggml.so(+0x12) [0x7f]\n"
    )
    os.abort()


def throwing() -> int:
    os.write(2, b"terminate called after throwing an instance of 'std::runtime_error'\n  what():  too far\n")
    os.abort()


def reading_nothing() -> int:
    ctypes.string_at(0)
    return 0


def out_of_memory() -> int:
    os.kill(os.getpid(), signal.SIGKILL)
    return 0


def leaving() -> int:
    os._exit(0)


def ended_by_argparse() -> int:
    sys.stderr.write("specchat run: bad usage\n")
    sys.exit(2)


def failing() -> int:
    raise LookupError("a secret")


def unread() -> int:
    raise BrokenPipeError


def on_a_full_disk() -> int:
    with full_disk():
        print("x" * 10, flush=True)
    return 0


def stoppable() -> int:
    """Ends as a command does at Ctrl+C, and takes its time for it."""
    interrupt = Interrupt()
    print("ready", os.getpid(), flush=True)
    while not interrupt.came():
        time.sleep(0.005)
    time.sleep(0.1)
    print("what there is", flush=True)
    return 130


def loading() -> int:
    """Takes Ctrl+C as Python does by itself."""
    print("ready", os.getpid(), flush=True)
    while True:
        time.sleep(0.005)


def hanging() -> int:
    """Never comes back to Python."""
    Interrupt()
    print("ready", os.getpid(), flush=True)
    ctypes.CDLL(None).sleep(60)
    return 0


def main(*names: str) -> int:
    """Do each work in turn; the exit code of the last one, and all of them, each behind its output."""
    code = 0
    for name in names:
        work: Callable[[], int] = globals()[name]
        code = guarded(work, (), Called("specchat run", ("models/q4.gguf",), said=("a secret",)))
        if len(names) > 1:
            for stream in (sys.stdout, sys.stderr):
                print(f"\0{code}", end="\0", file=stream, flush=True)
    return code


if __name__ == "__main__":
    sys.exit(streams() if sys.argv[1:] == ["streams", "alone"] else main(*sys.argv[1:]))
