"""An engine that says what a test tells it to, and remembers what it was told."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from textual.pilot import Pilot

from specchat.app.decoding.stats import AnswerStats, FinishReason, Origin
from specchat.app.events import (
    Ask,
    Command,
    Event,
    Finished,
    Load,
    Loaded,
    LoadProgress,
    ModelInfo,
    Piece,
    Progress,
)
from specchat.app.history import IN_MEMORY, History
from specchat.app.requests import AnswerOptions, LoadOptions
from specchat.tui.app import SpecchatApp

TARGET = ModelInfo("Big 1.5B", "/models/big.gguf", "Q4_K_M", 1_117_000_000, 1_543_000_000, 32768)
DRAFT = ModelInfo("Small 0.5B", "/models/small.gguf", "Q4_0", 428_000_000, 494_000_000, 32768)
LOADED = Loaded(TARGET, DRAFT, 4096, 2, ("CPU",), (), "drafting", "up to 4 tokens")


class ScriptedEngine:
    """Fills the place of the engine's client."""

    def __init__(self, *, loads: bool = True) -> None:
        self.told: list[Command] = []
        self.starts = 0
        self.closed = False
        self.start_error: OSError | None = None
        self.send_error: OSError | None = None
        self._loads = loads
        self._said: list[Event] = []
        self._pid: int | None = None

    @property
    def pid(self) -> int | None:
        return self._pid

    def start(self) -> None:
        if self.start_error is not None:
            raise self.start_error
        self.starts += 1
        self._pid = 999_999_999

    def send(self, command: Command) -> None:
        if self.send_error is not None:
            raise self.send_error
        self.told.append(command)
        if isinstance(command, Load) and self._loads:
            self.say(LoadProgress("target", TARGET.name, 1.0), LOADED)

    def drain(self) -> list[Event]:
        said, self._said = self._said, []
        return said

    def close(self) -> None:
        self.closed = True

    # What a test uses.

    def say(self, *events: Event) -> None:
        self._said.extend(events)

    def write(self, text: str, origin: Origin = "target", stats: AnswerStats | None = None) -> None:
        self.say(Progress((Piece(text, origin),), stats or AnswerStats(), 10.0, 100, 4096))

    def finish(self, text: str, reason: FinishReason = "stop", ids: tuple[int, ...] = (1, 2), **more) -> None:
        stats = more.pop("stats", AnswerStats())
        dropped = more.pop("dropped_turns", 0)
        self.say(Finished(reason, text, ids, 10, dropped, stats, 120, 4096))

    @property
    def asks(self) -> list[Ask]:
        return [command for command in self.told if isinstance(command, Ask)]

    @property
    def last_ask(self) -> Ask:
        return self.asks[-1]


def chat(engine: ScriptedEngine, **more) -> SpecchatApp:
    """The chat on this engine; it looks at it when a test waits, since a timer would never let it idle."""
    more.setdefault("delays", (60.0, 60.0, 60.0))
    load = more.pop("load", LoadOptions("big.gguf", "small.gguf"))
    more.setdefault("history", History(IN_MEMORY))
    return SpecchatApp(engine, load, AnswerOptions(), **more)


async def wait_until(pilot: Pilot, true: Callable[[], bool], seconds: float = 5.0) -> None:
    """Let the app go on until something is so."""
    deadline = asyncio.get_running_loop().time() + seconds
    while not true():
        if asyncio.get_running_loop().time() > deadline:
            raise AssertionError(f"still not so after {seconds} s:\n{seen(pilot.app)}")
        pilot.app.look()
        await pilot.pause()


def seen(app) -> str:
    """What stands in the transcript, all of it, and in the lines below."""
    lines = [line for entry in app.transcript.entries for line in entry.lines]
    text = "".join(("" if line.continues else "\n") + line.text for line in lines)
    return "\n".join([text, app.state.text, app.figures.text])


async def loading(pilot: Pilot, engine: ScriptedEngine) -> None:
    """Wait until the engine has been told to load."""
    await wait_until(pilot, lambda: bool(engine.told))


async def ready(pilot: Pilot) -> None:
    await wait_until(pilot, lambda: pilot.app.session.phase == "ready")


async def type_in(pilot: Pilot, text: str, *keys: str) -> None:
    """Put a text into the prompt as a paste does, then press keys (Enter when none are given)."""
    pilot.app.prompt.insert(text)
    await pilot.press(*(keys or ("enter",)))
