"""Models that would take more memory than there is are refused unread, and what would fit is said."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from specchat.app import loading, memory_room
from specchat.app.cli import main
from specchat.app.compare_events import Noted, Wanted
from specchat.app.comparing import compare
from specchat.app.engine import Engine
from specchat.app.events import Event, Failed, Load, Loaded, LoadProgress
from specchat.app.footprint import Machine, must_fit, needed
from specchat.app.memory_room import Room
from specchat.app.processor import Processor
from specchat.app.requests import AnswerOptions, LoadOptions
from specchat.models.errors import LoadError
from specchat.models.gguf_file import read_header
from specchat.models.memory import together
from tests.tiny_models import EXACT, TinyPair, write_tiny_model

PROCESSOR = Processor("", frozenset())


class Memory:
    """A machine with so many bytes available, of which what is loaded is taken by the estimate."""

    def __init__(self, available: int) -> None:
        self.available = available
        self.events: list[Event] = []
        self.engine = Engine(
            self.events.append, machine=Machine(lambda: PROCESSOR, lambda: Room(self.available))
        )

    def load(self, options: LoadOptions) -> Event:
        self.events.clear()
        self.engine.load(Load(options))
        return self.events[-1]

    @property
    def read(self) -> set[str]:
        return {event.role for event in self.events if isinstance(event, LoadProgress)}


@pytest.fixture
def memory() -> Iterator[Memory]:
    memory = Memory(0)
    yield memory
    memory.engine.close()


@pytest.fixture
def pair(tiny_pair: TinyPair) -> LoadOptions:
    return LoadOptions(str(tiny_pair.target), str(tiny_pair.draft), ctx_size=2048, threads=1)


def takes(options: LoadOptions) -> int:
    paths = [options.target, *([options.draft] if options.draft else [])]
    return together(needed([read_header(path) for path in paths], options, PROCESSOR))


def test_a_pair_that_does_not_fit_is_refused_before_anything_is_read_and_its_number_loads(
    memory: Memory, pair: LoadOptions
):
    memory.available = takes(pair) - 1
    failed = memory.load(pair)
    assert isinstance(failed, Failed)
    assert not memory.read
    assert "\n" not in failed.message
    assert re.match(
        r"Not enough memory: target\.gguf with draft\.gguf at 2,048 tokens takes about \S+ \S+ and \S+( MB)? "
        r"are free; with --ctx-size \d+ it takes \d+ MB \(--no-memory-check loads it all the same\)$",
        failed.message,
    ), failed.message
    fitting = int(failed.message.split("--ctx-size ")[1].split()[0])
    assert isinstance(memory.load(replace(pair, ctx_size=fitting)), Loaded)


def test_what_fits_to_the_byte_is_loaded(memory: Memory, pair: LoadOptions):
    memory.available = takes(pair)
    assert isinstance(memory.load(pair), Loaded)


@pytest.mark.parametrize(
    ("size", "share", "advice"),
    [
        (2048, 1.06, "; without the draft it takes "),
        (16384, 0.8, "; without the draft and with --ctx-size "),
        (2048, 0.01, "; a smaller quantization takes less ("),
    ],
)
def test_where_both_never_fit_what_does_is_said(pair: LoadOptions, size: int, share: float, advice: str):
    pair = replace(pair, ctx_size=size)
    headers = [read_header(pair.target), read_header(str(pair.draft))]
    alone = takes(replace(pair, draft=None))
    with pytest.raises(LoadError) as refused:
        must_fit(headers, pair, PROCESSOR, Room(int(share * alone)))
    assert advice in str(refused.value)


def test_the_check_can_be_left_out(memory: Memory, pair: LoadOptions):
    assert isinstance(memory.load(replace(pair, memory_check=False)), Loaded)


def test_a_model_that_stays_loaded_is_not_counted_twice(memory: Memory, pair: LoadOptions, tmp_path: Path):
    memory.available = whole = takes(pair)
    assert isinstance(memory.load(pair), Loaded)
    memory.available = whole - takes(pair)
    worse = write_tiny_model(tmp_path / "worse.gguf", noise=0.6)
    assert isinstance(memory.load(replace(pair, draft=str(worse))), Loaded)
    assert memory.read == {"draft"}
    # Nor does what is loaded count for more than it is: a larger context is refused, and all stays.
    failed = memory.load(replace(pair, draft=str(worse), ctx_size=4096))
    assert isinstance(failed, Failed)
    assert isinstance(memory.load(replace(pair, draft=str(worse))), Loaded)
    assert not memory.read
    # What is freed is room again.
    assert isinstance(memory.load(replace(pair, draft=None)), Loaded)
    memory.available = takes(replace(pair, draft=str(worse))) - takes(replace(pair, draft=None))
    assert isinstance(memory.load(replace(pair, draft=str(worse))), Loaded)


@pytest.mark.parametrize(
    ("layers", "counted"),
    [((-1, -1), ""), ((3, 0), ""), ((0, -1), "target.gguf at"), ((0, 0), "target.gguf with draft.gguf at")],
)
def test_what_goes_to_a_gpu_is_not_counted(
    memory: Memory, pair: LoadOptions, monkeypatch: pytest.MonkeyPatch, layers: tuple[int, int], counted: str
):
    monkeypatch.setattr(loading, "_has_gpu", lambda: True)
    said = memory.load(replace(pair, gpu_layers=layers[0], gpu_layers_draft=layers[1]))
    if counted:
        assert isinstance(said, Failed)
        assert f"Not enough memory: {counted}" in said.message
    else:
        assert isinstance(said, Loaded)


@pytest.mark.usefixtures("in_this_process")
@pytest.mark.parametrize("command", ["run", "compare", "demo"])
def test_commands_say_it_in_one_line_and_end_with_code_two(
    pair: LoadOptions, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], command: str
):
    monkeypatch.setattr(memory_room.psutil, "virtual_memory", lambda: type("", (), {"available": 1_000_000}))
    words = [command, "-m", pair.target, *(["-p", "x"] if command != "compare" else [])]
    assert main(words, lambda *_, **__: 0) == 2
    said = capsys.readouterr()
    assert said.out == ""
    last = said.err.splitlines()[-1]
    assert last.startswith(f"specchat {command}: Not enough memory: target.gguf at 2,048 tokens takes about ")


def test_a_comparison_leaves_out_the_draft_that_does_not_fit(pair: LoadOptions):
    load = LoadOptions("", ctx_size=2048, threads=1, **EXACT)
    alone = takes(replace(pair, draft=None, **EXACT))
    available, told = iter([alone, 1_000_000]), list[object]()
    compare(
        Wanted(
            (pair.target,), (str(pair.draft),), load, AnswerOptions(max_tokens=2), {"code": ("x",)},
            time_limit_s=30.0,
        ),
        told.append,
        machine=Machine(lambda: PROCESSOR, lambda: Room(next(available))),
    )  # fmt: skip
    notes = [one.text for one in told if isinstance(one, Noted)]
    assert len([note for note in notes if "left out: Not enough memory" in note]) == 1, notes
