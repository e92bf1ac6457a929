"""What the terminal sends: a paste is taken whole, whatever is in it, and all else as Textual takes it."""

from __future__ import annotations

import codecs
import contextlib
import os
import selectors
from collections.abc import Iterator

from textual import events
from textual._parser import ParseError
from textual._xterm_parser import BRACKETED_PASTE_END, BRACKETED_PASTE_START, XTermParser
from textual.driver import Driver
from textual.drivers.linux_driver import LinuxDriver
from textual.message import Message

ESCAPE = "\x1b"
_READ_BYTES = 65_536
_WAIT_S = 0.1
"""How long to wait for input before looking whether the program has ended."""


class TerminalParser:
    """Keys, the mouse, and pastes out of what a terminal sends.

    Textual's parser looks for escape sequences within a paste, too, and takes what it does not know for keys
    that were pressed: a text with an escape character would be typed instead of pasted, the Enter and the
    Ctrl+Q in it included.
    """

    def __init__(self) -> None:
        self._others = XTermParser()
        self._pasted: list[str] | None = None
        """What has come of a paste so far; `None` outside of one."""
        self._held = ""
        """The end of what has come, where it may be the beginning of a mark."""

    def feed(self, data: str) -> Iterator[Message]:
        """What this completes."""
        data, self._held = self._held + data, ""
        while data:
            mark = BRACKETED_PASTE_START if self._pasted is None else BRACKETED_PASTE_END
            before, found, data = data.partition(mark)
            if not found:
                self._held = _begun(before, mark)
                before = before[: len(before) - len(self._held)]
            if self._pasted is not None:
                self._pasted.append(before)
            elif before:
                yield from self._others.feed(before)
            if found:
                yield from self._turn()

    def tick(self) -> Iterator[Message]:
        """What is complete since nothing more has come for a moment."""
        if self._held and self._pasted is None:
            held, self._held = self._held, ""
            if held == ESCAPE:
                yield events.Key("escape", ESCAPE)
            else:
                yield from self._others.feed(held)
        yield from self._others.tick()

    def close(self) -> None:
        """Nothing more comes."""
        with contextlib.suppress(EOFError, ParseError):
            list(self._others.feed(""))

    def _turn(self) -> Iterator[Message]:
        """A paste begins, or ends."""
        if self._pasted is None:
            self._pasted = []
        else:
            pasted, self._pasted = "".join(self._pasted), None
            yield events.Paste(pasted.replace("\0", ""))


class TerminalDriver(LinuxDriver):
    """Textual's driver, which reads what the terminal sends by `TerminalParser`.

    Bytes that are no UTF-8 become U+FFFD; Textual's own thread ends with the first of them.
    """

    def run_input_thread(self) -> None:
        """Read until the program ends."""
        decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
        parser = TerminalParser()
        with selectors.SelectSelector() as selector:
            selector.register(self.fileno, selectors.EVENT_READ)
            while not self.exit_event.is_set():
                if selector.select(_WAIT_S):
                    data = os.read(self.fileno, _READ_BYTES)
                    if not data:  # the terminal is gone
                        break
                    for message in parser.feed(decoder.decode(data)):
                        self.process_message(message)
                else:
                    for message in parser.tick():
                        self.process_message(message)
        parser.close()


def driver_for(textuals: type[Driver]) -> type[Driver]:
    """Our driver in place of Textual's; any other one as it is."""
    return TerminalDriver if textuals is LinuxDriver else textuals


def _begun(text: str, mark: str) -> str:
    """The end of the text that may be the beginning of the mark."""
    return next((mark[:size] for size in range(len(mark) - 1, 0, -1) if text.endswith(mark[:size])), "")
