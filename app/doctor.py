"""`specchat doctor`: what a report of a bug needs, section by section, and what is wrong on this machine."""

from __future__ import annotations

import os
import re
import shutil
import sys
import textwrap
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import psutil

from ..models.errors import ModelFileError, SpecchatError
from ..models.gguf_file import read_header
from ..models.locate import locate_model
from ..models.memory import together
from ..models.text import printable
from .deaths import REBUILD
from .demo import demo_model
from .exit_codes import DONE, FAILED
from .footprint import needed
from .memory_room import memory_room
from .places import folder_figures, users_places
from .processor import Processor, this_processor, thread_count
from .requests import LoadOptions
from .self_test import Built, Decoded, Timed, Trying, try_llama
from .settings import all_settings
from .settings_file import chosen_path, read_settings
from .sharing import versions, without_home
from .terminal import json_text, show, show_json_text
from .trial import TrialFailed, told_by

_SILENCE_S = 120.0
"""How long the self-test may say nothing before it counts as hung: longer than a pass of a large model on a
busy machine."""

_CONTEXT = 512
_LABEL_CELLS, _COLUMNS = 18, 80
_CLIPBOARDS = ("pbcopy", "wl-copy", "xclip", "xsel", "clip.exe")
_CHEAP, _DEAR = 0.25, 0.6
"""Shares of a draft that have to be accepted: below the first most texts do, above the second few."""

Value = str | int | float | bool | None | tuple[str, ...] | tuple[int, ...]


@dataclass(frozen=True)
class Section:
    """What was found out about one thing."""

    name: str
    facts: Mapping[str, Value | Mapping[str, Value]]
    notes: tuple[str, ...] = ()
    """What is worth knowing and not wrong."""
    failures: tuple[str, ...] = ()


@dataclass(frozen=True)
class Surroundings:
    """What the examination depends on, so that a test can have it otherwise."""

    environment: Mapping[str, str] = field(default_factory=lambda: os.environ)
    processor: Callable[[], Processor] = this_processor
    self_test: Callable[..., None] = try_llama
    silence_s: float = _SILENCE_S
    clock: Callable[[], float] = time.perf_counter


def doctor(named: str | None, threads: int, as_json: bool, surroundings: Surroundings) -> int:
    """Print what is found out with the model that is named, or the packaged one; returns the exit code.

    Raises:
        ModelFileError: the file that is named is no usable model.
    """
    target = locate_model(named) if named else None
    if target is not None:
        read_header(target)
    threads = thread_count(threads)
    sections: list[Section] = []
    for section in examined(target, threads, surroundings):
        sections.append(section)
        if not as_json:
            show(without_home("\n".join(_lines(section))))
    failures = [failure for section in sections for failure in section.failures]
    if as_json:
        show_json_text(without_home(json_text(_as_json(sections), indent=2)))
    else:
        show(f"{len(failures)} of these failed: see above" if failures else "all is well")
    return FAILED if failures else DONE


def examined(target: Path | None, threads: int, surroundings: Surroundings) -> Iterator[Section]:
    """One section after another, each as soon as it is known.

    Args:
        target: The model that passes are tried and timed with; the packaged one where there is none.
        threads: For these passes.
        surroundings: What all depends on.
    """
    yield Section("versions", versions())
    processor = surroundings.processor()
    yield _machine(processor)
    yield _bandwidth(surroundings.clock)
    yield from _llama(target, threads, processor, surroundings)
    yield _folders(surroundings.environment)
    yield _terminal(surroundings.environment)


def _machine(processor: Processor) -> Section:
    memory, room = psutil.virtual_memory(), memory_room()
    return Section(
        "machine",
        {
            "processor": processor.name,
            "features": tuple(sorted(processor.features)),
            "physical_cores": psutil.cpu_count(logical=False),
            "logical_cores": psutil.cpu_count(),
            "memory_bytes": memory.total,
            "available_bytes": max(0, room.free),
            "available_within": room.within or None,
            "swap_bytes": psutil.swap_memory().total,
        },
    )


def _bandwidth(clock: Callable[[], float]) -> Section:
    """How fast one thread copies what no cache holds; a pass over one token is bound by such reading."""
    import numpy as np

    source = np.ones(64 << 20, np.uint8)
    copy = np.empty_like(source)
    np.copyto(copy, source)
    seconds: list[float] = []
    for _ in range(5):
        started = clock()
        np.copyto(copy, source)
        seconds.append(clock() - started)
    return Section(
        "memory bandwidth", {"one_thread_bytes_per_s": 2 * source.nbytes / max(min(seconds), 1e-9)}
    )


# llama.cpp -------------------------------------------------------------------------------------


def _llama(
    target: Path | None, threads: int, processor: Processor, surroundings: Surroundings
) -> Iterator[Section]:
    """What a process of its own finds out; it alone loads llama.cpp."""
    model, why_none = _model_that_fits(target, processor)
    doing, timed = "While it was loaded", False
    try:
        for told in told_by(surroundings.self_test, (model, threads), surroundings.silence_s):
            if isinstance(told, Built):
                yield _built(told, processor)
                doing = "While it loaded the model"
            elif isinstance(told, Trying):
                doing = f"In a pass over {told.tokens} token{'' if told.tokens == 1 else 's'}"
            elif isinstance(told, Decoded):
                yield Section(
                    "self-test",
                    {"model": model and model.name, "passes_of": tuple(told.sizes), "passed": True},
                )
                doing = "While passes were timed"
            elif isinstance(told, Timed):
                timed = True
                yield _timed(told, threads)
    except TrialFailed as failed:
        yield Section("self-test", {"passed": False}, failures=(f"{doing}, llama.cpp {failed}",))
        return
    if model is None:
        yield Section("self-test", {"passed": None}, notes=(why_none,))
    elif not timed:
        yield Section("self-test", {"passed": False}, failures=("the self-test ended early",))


def _model_that_fits(target: Path | None, processor: Processor) -> tuple[Path | None, str]:
    """The model to test with, or why there is none."""
    try:
        path = target or demo_model()
        header = read_header(path)
    except ModelFileError as error:
        return None, f"No passes were tried: {error}. Name a model with --target."
    expected = together(needed([header], LoadOptions(str(path), ctx_size=_CONTEXT), processor))
    room = memory_room()
    if expected > room.free:
        return None, (
            f"No passes were tried: {path.name} takes about {expected / 1e6:,.0f} MB of memory, "
            f"and {room.told()}."
        )
    return path, ""


def _built(told: Built, processor: Processor) -> Section:
    used = set(re.findall(r"(\w+) = 1\b", told.build))
    unused = sorted(processor.features - used)
    notes: list[str] = []
    if unused:
        notes.append(
            f"The processor has {', '.join(unused)}, which this llama.cpp was not built to use; "
            f"one that is built here may be faster: {REBUILD}"
        )
    return Section(
        "llama.cpp",
        {
            "build": told.build.strip(" |"),
            "features_not_used": tuple(unused),
            "devices": tuple(told.devices),
        },
        tuple(notes),
    )


def _timed(told: Timed, threads: int) -> Section:
    one = told.seconds[1]
    return Section(
        "passes",
        {
            "threads": threads,
            "weights_read_bytes_per_s": told.weights_bytes / one,
            "seconds": {str(size): seconds for size, seconds in told.seconds.items()},
            "times_one": {str(size): seconds / one for size, seconds in told.seconds.items()},
        },
        (what_it_means(told.seconds),),
    )


def what_it_means(seconds: Mapping[int, float]) -> str:
    """What the seconds of passes by their tokens say about drafting, in one sentence.

    A draft of k tokens is worth its pass where accepted tokens make up for T(k + 1) / T(1) - 1 plain ones.
    """
    shares = {
        size: max(0.0, taken / seconds[1] - 1) / (size - 1) for size, taken in seconds.items() if size > 1
    }
    if not shares:
        return "Passes of several tokens could not be timed."
    size = min(shares, key=lambda size: shares[size])
    ratio, share = seconds[size] / seconds[1], shares[size]
    costs = f"With this model a pass over {size} tokens takes {ratio:.2f} times one over a single token"
    if share >= 1:
        return f"{costs}, and of the others none is cheaper by the token: drafting does not pay."
    if share < _CHEAP:
        judged = "drafting pays for most texts"
    elif share < _DEAR:
        judged = "drafting pays where a text can be foreseen, as code can"
    else:
        judged = "drafting pays only where a text repeats itself"
    drafted = "1 drafted token pays" if size == 2 else f"{size - 1} drafted tokens pay"
    return (
        f"{costs}, so {drafted} where more than {share:.0%} are accepted, the draft's own time not counted: "
        f"{judged}."
    )


# Places ----------------------------------------------------------------------------------------


def _folders(environment: Mapping[str, str]) -> Section:
    failures: list[str] = []
    facts: dict[str, Value | Mapping[str, Value]] = {}
    for name, path in users_places(environment).items():
        figures = folder_figures(path)
        facts[name] = figures
        if not figures["writable"]:
            why = (
                "no room is left on its disk, or it is no place for files"
                if figures["free_bytes"] == 0
                else "check its permissions and its disk"
            )
            failures.append(f"{path} cannot be written: {why}")
    try:
        read_settings(chosen_path(None, False, environment), all_settings())
    except SpecchatError as error:
        failures.append(str(error))
    return Section("folders", facts, failures=tuple(failures))


def _terminal(environment: Mapping[str, str]) -> Section:
    size = shutil.get_terminal_size()
    return Section(
        "terminal",
        {
            "TERM": environment.get("TERM"),
            "COLORTERM": environment.get("COLORTERM"),
            "TERM_PROGRAM": environment.get("TERM_PROGRAM"),
            "is_terminal": sys.stdout.isatty(),
            "over_ssh": "SSH_TTY" in environment,
            "columns": size.columns,
            "lines": size.lines,
            "encoding": sys.stdout.encoding,
            "clipboard_tools": tuple(tool for tool in _CLIPBOARDS if shutil.which(tool)),
        },
    )


# What is printed -------------------------------------------------------------------------------


def _lines(section: Section) -> Iterator[str]:
    yield section.name
    for name, value in section.facts.items():
        label = name.removesuffix("_bytes_per_s").removesuffix("_bytes").replace("_", " ")
        told = _list_in_words(name, value) if isinstance(value, Mapping) else _in_words(name, value)
        yield from _wrapped(f"  {label:{_LABEL_CELLS}}", told)
    for note in section.notes:
        yield from _wrapped("  ", note)
    for failure in section.failures:
        yield from _wrapped("  FAILED: ", failure)
    yield ""


def _wrapped(start: str, text: str) -> list[str]:
    # What is broken inside a path or a command cannot be pasted again.
    return textwrap.wrap(
        printable(text), _COLUMNS, initial_indent=start, subsequent_indent=" " * len(start),
        break_long_words=False, break_on_hyphens=False,
    )  # fmt: skip


def _list_in_words(name: str, values: Mapping[str, Value]) -> str:
    if "path" in values:
        told = [
            "" if values["exists"] else "not there yet",
            "can be written" if values["writable"] else "CANNOT BE WRITTEN",
            _in_words("size_bytes", values["size_bytes"]) if values["exists"] else "",
            f"{_in_words('free_bytes', values['free_bytes'])} free",
        ]
        return f"{values['path']} ({', '.join(filter(None, told))})"
    return ", ".join(f"T({key}) {_in_words(name, value)}" for key, value in values.items())


def _in_words(name: str, value: Value) -> str:
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, str):
        return value
    if isinstance(value, tuple):
        return ", ".join(map(str, value)) or "-"
    if name.endswith("_per_s"):
        return f"{value / 1e9:.1f} GB/s"
    if name.endswith("bytes"):
        return f"{value / 1e9:,.2f} GB" if value >= 1e8 else f"{value / 1e6:,.1f} MB"
    if name == "seconds":
        return f"{value * 1000:.3g} ms"
    return f"{value:.2f}" if isinstance(value, float) else str(value)


def _as_json(sections: Sequence[Section]) -> dict[str, object]:
    named: dict[str, object] = {}
    for section in sections:
        key = section.name.replace(" ", "_").replace(".", "_").replace("-", "_")
        named[key] = {**section.facts, "notes": list(section.notes), "failures": list(section.failures)}
    return {**named, "failures": [failure for section in sections for failure in section.failures]}
