"""What a process may take of memory: what is free, within control groups and the limits of a shell."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import dataclass, replace
from pathlib import Path

import psutil
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from specchat.app.footprint import Machine, must_fit
from specchat.app.memory_room import Room, memory_room
from specchat.app.processor import Processor
from specchat.app.requests import LoadOptions
from specchat.models.errors import LoadError
from specchat.models.gguf_file import read_header
from tests.tiny_models import TinyPair

MB = 1_000_000
UNLIMITED = (1 << 63) - 4096
"""What the first version of control groups says where there is no limit."""


@dataclass(frozen=True)
class Kernel:
    """What Linux tells in files, laid out in a folder as it does."""

    folder: Path

    @property
    def proc(self) -> Path:
        return self.folder / "proc"

    def write(self, path: str, text: str | bytes) -> Path:
        file = self.folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(text.encode() if isinstance(text, str) else text)
        return file

    def second(self, group: str, mounted: str = "/", at: str = "cgroup") -> None:
        """The process is in this group of a hierarchy of which so much is mounted."""
        self.write("proc/cgroup", f"0::{group}\n")
        top = str(self.folder / at).replace(" ", "\\040")
        self.write("proc/mountinfo", f"24 1 0:2 / /proc rw - proc proc rw\n31 23 0:28 {mounted} {top} "
                   "rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n")  # fmt: skip

    def limit(self, group: str, at: str = "cgroup", **figures: object) -> str:
        """Give a group limits and figures; returns the file of the limit."""
        for name, figure in figures.items():
            text = figure if isinstance(figure, str) else f"{figure}\n"
            self.write(f"{at}{group}/memory.{name}", text)
        return str(self.folder / at) + group + "/memory.max"


def stat(active: int, inactive: int, prefix: str = "") -> str:
    return (
        f"cache 5\nrss 6\n{prefix}anon 7\n{prefix}inactive_file {inactive}\n{prefix}active_file {active}\n"
        f"{prefix}unevictable 3\n"
    )


@pytest.fixture
def kernel(tmp_path: Path) -> Kernel:
    return Kernel(tmp_path)


def test_where_no_limit_is_known_it_is_what_the_machine_has(kernel: Kernel):
    room = memory_room(kernel.proc)
    assert room.within == ""
    assert room.free == pytest.approx(psutil.virtual_memory().available, rel=0.2)


def test_of_a_groups_limit_what_is_taken_counts_and_what_only_caches_files_does_not(kernel: Kernel):
    kernel.second("/user.slice/chat")
    limit = kernel.limit(
        "/user.slice/chat", max=1000 * MB, current=700 * MB, stat=stat(100 * MB, 200 * MB), high="max\n"
    )
    assert memory_room(kernel.proc) == Room(600 * MB, limit)
    kernel.limit("/user.slice/chat", current=1500 * MB)
    assert memory_room(kernel.proc) == Room(-200 * MB, limit)
    assert memory_room(kernel.proc).told() == f"0 MB are free within {limit}"
    # What is freed has to make up for it first.
    assert memory_room(kernel.proc).with_freed(300 * MB).free == 100 * MB


def test_the_least_of_all_groups_around_it_counts(kernel: Kernel):
    kernel.second("/a/b/c")
    kernel.limit("/a/b/c", max=900 * MB, current=0)
    kernel.limit("/a/b", max="max\n", current=5 * MB)
    above = kernel.limit("/a", max=800 * MB, current=300 * MB)
    kernel.limit("/other", max=1, current=0)
    assert memory_room(kernel.proc) == Room(500 * MB, above)
    top = kernel.limit("", max=400 * MB, current=0)
    assert memory_room(kernel.proc) == Room(400 * MB, top)


def test_where_a_group_is_slowed_down_it_is_as_good_as_full(kernel: Kernel):
    kernel.second("/chat")
    kernel.limit("/chat", max=900 * MB, high=700 * MB, current=100 * MB)
    assert memory_room(kernel.proc).free == 600 * MB
    assert memory_room(kernel.proc).within.endswith("/chat/memory.high")


def test_of_the_first_version_of_groups_the_figures_with_those_below_count(kernel: Kernel):
    """A machine that has both, as systemd lays them out: only the first knows memory."""
    kernel.write("proc/cgroup", "9:name=systemd:/x\n4:cpu,memory:/docker/ab:cd\n1:cpuset:/y\n0::/\n")
    at = kernel.folder / "my groups"
    kernel.write(
        "proc/mountinfo",
        f"35 31 0:32 / {at} rw,relatime - cgroup cgroup rw,cpu,memory\n".replace("my groups", "my\\040groups")
        + f"41 31 0:38 / {kernel.folder}/unified rw - cgroup2 cgroup2 rw\n",
    )
    for group in ("", "/docker"):
        kernel.limit(group, "my groups", limit_in_bytes=UNLIMITED, usage_in_bytes=50 * MB)
    kernel.limit(
        "/docker/ab:cd", "my groups", limit_in_bytes=500 * MB, usage_in_bytes=450 * MB,
        stat=stat(1, 2) + stat(30 * MB, 20 * MB, "total_"),
    )  # fmt: skip
    assert memory_room(kernel.proc) == Room(100 * MB, f"{at}/docker/ab:cd/memory.limit_in_bytes")
    kernel.limit("/docker", "my groups", limit_in_bytes=60 * MB)
    assert memory_room(kernel.proc) == Room(10 * MB, f"{at}/docker/memory.limit_in_bytes")


@pytest.mark.parametrize(
    ("group", "mounted"),
    [("/", "/"), ("/docker/abc", "/docker/abc"), ("/docker/abc", "/elsewhere"), ("/../../abc", "/")],
)
def test_a_container_sees_its_own_group_at_the_top(kernel: Kernel, group: str, mounted: str):
    kernel.second(group, mounted)
    limit = kernel.limit("", max=300 * MB, current=100 * MB)
    assert memory_room(kernel.proc) == Room(200 * MB, limit)


def test_what_lies_beside_the_groups_that_are_seen_is_no_group(kernel: Kernel):
    kernel.second("/../stranger")
    limit = kernel.limit("", max=300 * MB, current=100 * MB)
    kernel.limit("/stranger", at=".", max=1, current=0)
    assert memory_room(kernel.proc) == Room(200 * MB, limit)


@pytest.mark.parametrize("said", ["max\n", "", "-5\n", "many", f"{1 << 70}\n", "١٢\n", b"\xff\xfe\x00"])
def test_what_is_no_number_is_no_limit(kernel: Kernel, said: str | bytes):
    kernel.second("/chat")
    kernel.write("cgroup/chat/memory.max", said)
    assert memory_room(kernel.proc).within == ""


def test_the_limits_of_a_shell_count(kernel: Kernel, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(psutil, "cpu_count", lambda logical: 2)
    columns = "Limit                     Soft Limit           Hard Limit           Units     \n"
    row = "Max {:21} {:<20} unlimited            bytes     \n"
    kernel.write(
        "proc/status", "Name:\tchat\nVmPeak:\t9000000 kB\nVmSize:\t  200000 kB\nVmData:\t100000 kB\n"
    )

    def with_limits(space: object, data: object) -> Room:
        kernel.write(
            "proc/limits", columns + row.format("data size", data) + row.format("address space", space)
        )
        return memory_room(kernel.proc)

    assert with_limits("unlimited", "unlimited").within == ""
    one, more = (with_limits(limit, "unlimited") for limit in (800 * MB, 900 * MB))
    assert more.within == one.within == "ulimit -v"
    assert more.free - one.free == 100 * MB
    # Threads and libraries set some aside of it.
    assert 200 * MB < one.free < 800 * MB - 200_000 * 1024
    data = with_limits("unlimited", 800 * MB)
    assert data.within == "ulimit -d"
    assert one.free < data.free < 800 * MB - 100_000 * 1024
    assert with_limits(100 * MB, 800 * MB) == replace(one, free=one.free - 700 * MB)


FILES = (
    "proc/cgroup", "proc/mountinfo", "proc/limits", "proc/status", "cgroup/memory.max", "cgroup/memory.stat",
)  # fmt: skip


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.sampled_from(FILES), st.binary(max_size=60), st.integers(0, 200))
def test_whatever_the_files_say_there_is_an_answer(kernel: Kernel, name: str, noise: bytes, place: int):
    kernel.second("/")
    kernel.limit("", max=300 * MB, current=1, stat=stat(1, 1))
    kernel.write("proc/limits", "Max address space         900000000   unlimited   bytes\n")
    kernel.write("proc/status", "VmSize:\t200000 kB\n")
    text = (kernel.folder / name).read_bytes()
    kernel.write(name, text[:place] + noise + text[place:])
    assert memory_room(kernel.proc).free <= psutil.virtual_memory().total


def test_a_refusal_names_the_limit(tiny_pair: TinyPair, kernel: Kernel):
    kernel.second("/")
    limit = kernel.limit("", max=10 * MB, current=4 * MB)
    machine = Machine(lambda: Processor("", frozenset()), lambda: memory_room(kernel.proc))
    with pytest.raises(LoadError) as refused:
        must_fit(
            [read_header(tiny_pair.target)], LoadOptions(str(tiny_pair.target)), machine.processor(),
            machine.room(),
        )  # fmt: skip
    assert f" and 6 MB are free within {limit}; " in str(refused.value)


LOADS = """
import json, resource, sys
from specchat.app.engine import Engine
from specchat.app.events import Ask, Load
from specchat.app.requests import AnswerOptions, LoadOptions, Turn

def taken(name):
    return next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith(name)) * 1024

for limit, name in ((resource.RLIMIT_AS, "VmSize:"), (resource.RLIMIT_DATA, "VmData:")):
    for more in map(int, sys.argv[3:]):
        before, events = resource.getrlimit(limit), []
        engine = Engine(events.append)
        resource.setrlimit(limit, (taken(name) + more * 1_000_000, before[1]))
        engine.load(Load(LoadOptions(*sys.argv[1:3], ctx_size=65536, threads=2)))
        if engine.pair:
            engine.ask(Ask((Turn("user", "hello " * 30),), AnswerOptions(max_tokens=4)))
        last = events[-1]
        print(json.dumps([name, more, type(last).__name__, getattr(last, "message", "")]), flush=True)
        engine.close()
        resource.setrlimit(limit, before)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="the limit is enforced, and told, by Linux")
def test_within_the_limit_of_a_shell_a_pair_is_loaded_or_refused_in_words_and_nothing_dies(
    tiny_pair: TinyPair,
):
    """The pair takes about 110 MB with so long a context."""
    done = subprocess.run(
        [sys.executable, "-c", LOADS, tiny_pair.target, tiny_pair.draft, "90", "350", "430", "9000"],
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    told = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(told) == 8
    for name, more, kind, message in told:
        assert kind in ("Failed", "Finished")
        if kind == "Failed":
            assert message.startswith("Not enough memory: "), message
            assert f"are free within ulimit {'-v' if name == 'VmSize:' else '-d'}; " in message
        assert (kind == "Finished") == (more == 9000) or 90 < more < 9000, (name, more, kind)
