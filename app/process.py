"""The engine in a process of its own, and the chat's end of the pipe to it.

llama.cpp can die of a signal, and its process with it; the screen's process then says so and starts
another. Nor does the screen's Python ever hold the lock that the loop needs between two passes.

The pipe is a pair of connected sockets of this machine without a name, which only these two processes have.
What goes through it is pickled by the one and unpickled by the other: both are this program, and what a model
or a user has written is text inside of frozen dataclasses, never a pickle of its own.
"""

from __future__ import annotations

import contextlib
import itertools
import logging
import os
import queue
import signal
import sys
import threading
from multiprocessing.connection import Connection
from multiprocessing.context import SpawnProcess
from pathlib import Path
from typing import Any, cast

from .crash_report import traceback_lines
from .deaths import how_it_died
from .events import Ask, Cancel, Command, Died, Event, Failed, Load, Quit
from .last_words import LastWords, keep_words
from .spawning import SPAWN, ensure_tracker, start
from .terminal import log_to

_QUIT_WITHIN_S = 0.7


class EngineProcess:
    """Starts the engine's process, sends it commands, and collects what it says; never blocks."""

    def __init__(self, log_file: Path | None = None) -> None:
        """`log_file` gets llama.cpp's log and what the process prints; `None` keeps it for `Died` alone."""
        self._log_file = log_file
        self._words: LastWords | None = None
        self._process: SpawnProcess | None = None
        self._connection: Connection[Any, Any] | None = None
        ensure_tracker()  # now, since it wants a real stderr, and a screen takes that away

    @property
    def pid(self) -> int | None:
        """The process's id, while there is one."""
        return self._process.pid if self._process is not None and self._process.is_alive() else None

    def start(self) -> None:
        """Start the process, in place of one that has died."""
        self.close()
        ours, theirs = SPAWN.Pipe(duplex=True)
        self._words = LastWords(self._log_file)
        process = SPAWN.Process(
            target=serve, args=(theirs, self._words.path, self._words.unnamed), name="specchat-engine",
            daemon=True,
        )  # fmt: skip
        start(process)
        theirs.close()
        self._connection, self._process = cast("Connection[Any, Any]", ours), process

    def send(self, command: Command) -> None:
        """Hand over a command; one for a process that is gone is lost, and `drain` says `Died`."""
        if self._connection is not None:
            with contextlib.suppress(OSError):
                self._connection.send(command)

    def drain(self) -> list[Event]:
        """What the engine has said since the last call; ends with `Died`, once, if its process is gone."""
        events: list[Event] = []
        if self._connection is None:
            return events
        try:
            while self._connection.poll():
                events.append(self._connection.recv())
        except (EOFError, OSError):
            events.append(Died(self._how_it_died(), self._words.lines() if self._words else ()))
            self._connection.close()
            self._connection = None
        return events

    def close(self) -> None:
        """End the process: ask, wait a moment, then kill."""
        if self._connection is not None:
            self.send(Cancel())
            self.send(Quit())
        if self._process is not None:
            self._process.join(_QUIT_WITHIN_S)
            if self._process.is_alive():
                self._process.kill()
                self._process.join()
        if self._connection is not None:
            self._connection.close()
        if self._words is not None:
            self._words.close()
        self._process = self._connection = self._words = None

    def _how_it_died(self) -> str:
        assert self._process is not None
        self._process.join(1.0)
        return f"the engine's process {how_it_died(self._process.exitcode)}"


def serve(connection: Connection[Any, Any], log_file: Path | None, unnamed: bool = False) -> None:
    """The process: carry out commands until told to quit or until the other end is gone.

    Args:
        connection: Commands come from it, and events go to it.
        log_file: Takes what the process logs and prints.
        unnamed: Whether the log's name is taken away, so that it is gone when both processes are.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl+C belongs to the chat
    keep_words(log_file, unnamed)  # the terminal is the screen's
    if log_file is not None:
        log_to(logging.StreamHandler(sys.stderr), "%(asctime)s %(levelname)s %(message)s")
    from .engine import Engine  # only this process loads llama.cpp
    from .remembered import Remembered, default_path

    inbox = _Inbox(connection)

    def emit(event: Event) -> None:
        try:
            connection.send(event)
        except OSError:
            os._exit(0)  # the chat is gone, and nobody is left to tell

    engine = Engine(emit, inbox.cancelled, remembered=Remembered(default_path()))
    while True:
        command = inbox.next()
        try:
            if isinstance(command, Load):
                engine.load(command)
            elif isinstance(command, Ask):
                engine.ask(command)
        except Exception as error:
            logging.getLogger("specchat").exception("a command failed")
            told = f"something went wrong that should not have: {error!r}"
            emit(Failed(told, tuple(traceback_lines(error))))


class _Inbox:
    """Commands in their order; a cancel acts at once, on all that was sent before it."""

    def __init__(self, connection: Connection[Any, Any]) -> None:
        self._connection = connection
        self._commands: queue.SimpleQueue[tuple[int, Command]] = queue.SimpleQueue()
        self._cancelled_through = 0
        self._current = 0
        threading.Thread(target=self._listen, daemon=True).start()

    def next(self) -> Command:
        """The next command, once there is one."""
        self._current, command = self._commands.get()
        return command

    def cancelled(self) -> bool:
        """Whether a cancel has come for the command that `next` gave last."""
        return self._current <= self._cancelled_through

    def _listen(self) -> None:
        for number in itertools.count(1):
            try:
                command: Command = self._connection.recv()
            except (EOFError, OSError):
                os._exit(0)
            if isinstance(command, Quit):
                os._exit(0)  # the system frees a model faster than llama.cpp does
            if isinstance(command, Cancel):
                self._cancelled_through = number
            else:
                self._commands.put((number, command))
