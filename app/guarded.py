"""A command's work in a process of its own, and the one that waits for it and says of what it died.

The user's terminal, files and pipes are the working process's as well; what llama.cpp prints itself is kept
for the case that it dies. Ctrl+C is counted by the waiting process alone, which passes the first one on: a
terminal sends it to both, `kill` to one of them, and `timeout` twice.
"""

from __future__ import annotations

import _thread
import contextlib
import io
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from multiprocessing.context import get_spawning_popen
from pathlib import Path
from types import FrameType
from typing import Any, TextIO, cast

from .deaths import how_it_died
from .ending import exit_code_of
from .exit_codes import FAILED, INTERRUPTED
from .last_words import LastWords, it_last_said, keep_words
from .spawning import SPAWN, ensure_tracker, start
from .terminal import mend_terminal, tell, tell_failure

_AGAIN_AFTER_S = 0.3
"""Ctrl+C that comes sooner after the first is the same one, which reached the process twice."""

_STOP = b"stop"


@dataclass(frozen=True)
class Called:
    """The command, for a person and for a report."""

    name: str
    """As it is called: "specchat run"."""
    models: Sequence[str] = ()
    """What it loads, as it was named."""
    log_file: Path | None = None
    """Takes what llama.cpp prints as well."""
    settings: Mapping[str, object] = field(default_factory=dict[str, object])
    said: Sequence[str] = ()
    """What is left out of a report unless `debug` is set."""
    debug: bool = False


def guarded(work: Callable[..., int], arguments: tuple[object, ...], called: Called) -> int:
    """Do the work in a process of its own; returns its exit code, or that of a failure where it dies.

    Args:
        work: A function of a module, which the other process imports.
        arguments: What it is called with.
        called: Of what command it is the work.
    """
    words = LastWords(called.log_file)
    ours, theirs = SPAWN.Pipe()
    process = SPAWN.Process(
        target=_serve,
        args=(theirs, words.path, words.unnamed, sys.stdout.errors, _Inherited(), work, arguments),
        daemon=True,
    )
    ensure_tracker()  # which lets Ctrl+C through once it has been started
    with _held_back():
        interrupts = _Interrupts(lambda: ours.send_bytes(_STOP), process.kill)
        try:
            start(process)
        except OSError as error:
            tell_failure(called.name, f"no process could be started to load models in: {error.strerror}")
            interrupts.restore()
            words.close()
            return FAILED
    theirs.close()
    try:
        code = _code_from(cast("Connection[Any, Any]", ours))
        if code is not None:
            if called.log_file is None:
                for line in words.lines():
                    tell(line)
            return code
        process.join()
        mend_terminal()
        if not interrupts.ended:
            _tell_death(called, process.exitcode, words.lines())
        return FAILED
    finally:
        process.kill()
        process.join()
        ours.close()
        words.close()
        interrupts.restore()


class _Interrupts:
    """Ctrl+C in the process that waits: the first is passed on, the second ends both, whatever happens."""

    def __init__(
        self,
        pass_on: Callable[[], None],
        kill: Callable[[], None],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.ended = False
        self._pass_on, self._kill, self._clock = pass_on, kill, clock
        self._first: float | None = None
        self._former = signal.signal(signal.SIGINT, self._handle)

    def restore(self) -> None:
        """Handle signals as before, or end as the second one does to a program."""
        signal.signal(signal.SIGINT, signal.SIG_DFL if self.ended else self._former)
        if self.ended:
            signal.raise_signal(signal.SIGINT)

    def _handle(self, _number: int, _frame: FrameType | None) -> None:
        if self._first is None:
            self._first = self._clock()
            with contextlib.suppress(OSError):
                self._pass_on()
        elif self._clock() - self._first >= _AGAIN_AFTER_S:
            self.ended = True
            self._kill()
            signal.signal(signal.SIGINT, signal.SIG_DFL)


class _Inherited:
    """Files that a shell has opened for this process, as for `--prompts <(...)`: the other has them, too."""

    def __reduce__(self) -> tuple[type[_Inherited], tuple[()]]:
        starting = cast("Any", get_spawning_popen())
        for descriptor in _inheritable():
            starting.duplicate_for_child(descriptor)
        return _Inherited, ()


def _inheritable() -> Iterator[int]:
    """Descriptors behind the standard ones; those that Python opens itself are not among them."""
    if os.name != "posix":
        return
    with contextlib.suppress(OSError):
        for descriptor in [int(path.name) for path in Path("/dev/fd").iterdir()]:
            with contextlib.suppress(OSError):  # that of the listing itself is closed
                if descriptor > 2 and os.get_inheritable(descriptor):
                    yield descriptor


@contextlib.contextmanager
def _held_back() -> Generator[None]:
    """Ctrl+C waits meanwhile; a process that is started so never meets one of the terminal's."""
    if os.name != "posix":
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _code_from(connection: Connection[Any, Any]) -> int | None:
    """The exit code that the process says at its end; `None` if it ends without one."""
    with contextlib.suppress(EOFError, OSError):
        return connection.recv_bytes()[0]
    return None


def _tell_death(called: Called, exit_code: int | None, lines: Sequence[str]) -> None:
    from .crash_report import Crash, default_folder, where_it_is, write_report

    crash = Crash(called.name, log=lines, settings=called.settings, said=called.said)
    path = write_report(crash, default_folder(), whole=called.debug)
    models = " and ".join(Path(name).name for name in called.models)
    told = f"the process that loaded {models} {how_it_died(exit_code)}{it_last_said(lines)}"
    tell_failure(called.name, f"{told}; {where_it_is(path, whole=called.debug)}")


def _serve(
    connection: Connection[Any, Any],
    words: Path | None,
    unnamed: bool,
    errors: str | None,
    _inherited: _Inherited,
    work: Callable[..., int],
    arguments: tuple[object, ...],
) -> None:
    """The other process: does the work, and says its exit code."""
    sys.stdout = sys.__stdout__ = _of_its_own(sys.stdout, errors)
    sys.stderr = sys.__stderr__ = _of_its_own(sys.stderr, sys.stderr.errors)
    keep_words(words, unnamed)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        threading.Thread(target=_listen, args=(connection,), daemon=True).start()
        code = _done(work, arguments)
        signal.signal(signal.SIGINT, signal.SIG_IGN)
    except KeyboardInterrupt:
        code = INTERRUPTED
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError):
            stream.flush()
    connection.send_bytes(bytes([code]))
    os._exit(code)  # the system frees a model faster than llama.cpp does


def _of_its_own(stream: TextIO, errors: str | None) -> TextIO:
    """The stream as it is, by a descriptor that nobody but Python knows."""
    like = cast("io.TextIOWrapper", stream)
    buffering = 0 if like.write_through else -1
    return io.TextIOWrapper(
        open(os.dup(like.fileno()), "wb", buffering=buffering),  # noqa: PTH123
        encoding=like.encoding,
        errors=errors,
        line_buffering=like.line_buffering,
        write_through=like.write_through,
    )


def _listen(connection: Connection[Any, Any]) -> None:
    """Stop the work when told to, and end the process when the one that waits is gone."""
    while True:
        try:
            connection.recv_bytes()
        except (EOFError, OSError):
            os._exit(FAILED)
        _thread.interrupt_main()


def _done(work: Callable[..., int], arguments: tuple[object, ...]) -> int:
    try:
        return exit_code_of(lambda: work(*arguments), sys.argv[1:])
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else FAILED
