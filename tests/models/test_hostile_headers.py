"""Ten thousand hostile files: each ends in a verdict or in one line, soon and in little memory."""

from __future__ import annotations

import contextlib
import signal
import struct
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

import psutil
import pytest

from specchat.models.gguf_file import GgufHeader, read_header
from tests.models.examining import examine
from tests.models.header_bytes import Header, bases_of, header_bytes, parse
from tests.models.hostile_headers import case
from tests.models.loading_process import loading_process
from tests.models.small_models import write_small_model
from tests.models.sound_files import REFUSED, split_over, weighted_bases, write_sound_files

CASES, AT_ONCE = 10_000, 2_500
LOADED = 250
"""Cases of which those that are read are given to llama.cpp."""
PARTS = 100
"""Cases of a second part, of which those that are read are given to llama.cpp with the first."""
MOST_SECONDS, MOST_BYTES = 1.0, 200 << 20
HUNG_S = 60


@dataclass(frozen=True)
class Sound:
    """The files that hostile ones are made from, and the header of one."""

    bases: tuple[Header, ...]
    header: GgufHeader


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Sound:
    written = write_sound_files(tmp_path_factory.mktemp("sound"), layers=1, tokens=8)
    return Sound(weighted_bases(written), read_header(written["llama"]))


@contextlib.contextmanager
def bounded() -> Iterator[None]:
    """No more memory than a case may take, and an alarm for one that hangs."""

    def on_alarm(_signal: int, _frame: FrameType | None) -> None:
        raise TimeoutError(f"a case took more than {HUNG_S} s")

    former = signal.signal(signal.SIGALRM, on_alarm)
    try:
        with _little_memory():
            yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, former)


@contextlib.contextmanager
def _little_memory() -> Iterator[None]:
    if sys.platform != "linux":  # other systems do not keep to the limit
        yield
        return
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (psutil.Process().memory_info().vms + MOST_BYTES, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))


@pytest.mark.parametrize("first", range(0, CASES, AT_ONCE))
def test_a_hostile_file_ends_in_a_verdict_or_in_one_line(tmp_path: Path, sound: Sound, first: int):
    path = tmp_path / "hostile.gguf"
    read = 0
    examine(path, sound.header)  # what is imported where it is first needed belongs to no case
    with bounded():
        for seed in range(first, first + AT_ONCE):
            path.write_bytes(case(sound.bases, seed).content)
            signal.alarm(HUNG_S)
            started = time.process_time()
            try:
                read += examine(path, sound.header, inspects=seed % 100 == 0) is None
            except Exception as error:
                raise AssertionError(f"the case of seed {seed} ended in {error!r}") from error
            assert time.process_time() - started < MOST_SECONDS, f"seed {seed}"
    assert AT_ONCE * 0.2 < read < AT_ONCE * 0.8  # else the cases do not test what lies behind


def test_a_file_cut_off_at_any_byte_of_its_header_is_refused_in_one_line(tmp_path: Path, sound: Sound):
    whole = write_small_model(tmp_path / "whole.gguf", "mamba", tokens=8, layers=1).read_bytes()
    header = len(whole) - len(parse(whole).data)
    path = tmp_path / "cut.gguf"
    for length in range(header):
        path.write_bytes(whole[:length])
        told = examine(path, sound.header)
        assert told is not None, length
        assert "cut off" in told or "missing" in told or length < 4, length


def test_a_case_is_made_again_from_its_seed(sound: Sound):
    assert [case(sound.bases, seed) for seed in range(50)] == [case(sound.bases, seed) for seed in range(50)]


def test_the_structure_of_a_sound_file_makes_the_same_file(tmp_path: Path):
    for path in write_sound_files(tmp_path).values():
        assert header_bytes(bases_of(path)[0]) == path.read_bytes()


def test_a_hostile_file_that_is_read_does_not_kill_llama_cpp(tmp_path: Path):
    written = write_sound_files(tmp_path, layers=1)
    bases, sound = weighted_bases(written), read_header(written["llama"])
    paths = [path for kind, path in written.items() if kind not in REFUSED]
    path = tmp_path / "hostile.gguf"
    outcomes: list[str] = []
    with loading_process(tmp_path / "words") as process:
        # Whatever the first load takes of memory is llama.cpp's own.
        assert [process.load(path).kind for path in paths] == ["loaded"] * len(paths)
        for seed in range(LOADED):
            path.write_bytes(case(bases, seed).content)
            if examine(path, sound, inspects=False) is None:
                outcome = process.load(path)
                assert outcome.kind in ("loaded", "refused"), f"seed {seed}: {outcome}"
                assert outcome.grown < MOST_BYTES, f"seed {seed}: {outcome}"
                outcomes.append(outcome.kind)
    assert outcomes.count("loaded") > LOADED // 10


def test_a_hostile_part_of_a_split_model_ends_in_a_verdict_or_in_one_line(tmp_path: Path, sound: Sound):
    whole = bases_of(write_small_model(tmp_path / "whole.gguf", "llama", layers=1))[0]
    first, second = split_over(whole, 2)
    paths = [tmp_path / f"m-0000{number}-of-00002.gguf" for number in (1, 2)]
    paths[0].write_bytes(header_bytes(first))
    read = 0
    with loading_process(tmp_path / "words") as process:
        for seed in range(PARTS):
            paths[1].write_bytes(case([second], seed).content)
            if examine(paths[0], sound.header, inspects=False) is None:
                outcome = process.load(paths[0])
                assert outcome.kind in ("loaded", "refused"), f"seed {seed}: {outcome}"
                read += 1
    assert read > PARTS // 20


def test_a_huge_list_is_passed_over_in_little_time_and_memory(tmp_path: Path):
    path = tmp_path / "huge.gguf"
    with path.open("wb") as file:
        file.write(b"GGUF" + struct.pack("<IQQ", 3, 0, 1))
        file.write(struct.pack("<Q", 1) + b"k" + struct.pack("<IIQ", 9, 8, 1_000_000))
        file.truncate(10_000_000)  # a million empty texts, and nothing of it on the disk

    started = time.process_time()
    with bounded():
        signal.alarm(HUNG_S)
        with pytest.raises(Exception, match="names no architecture"):
            read_header(path)
    assert time.process_time() - started < 2 * MOST_SECONDS
