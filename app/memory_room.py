"""The memory that this process may still take: what the machine has free, within all limits that are set."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath

import psutil

from ..models.gguf_layout import shown
from .byte_counts import bytes_text
from .processor import thread_count

PROC = Path("/proc/self")
"""Where Linux tells what is so of this process; elsewhere it is not there, and no limit is known."""

_RESERVED, _STACK, _HEAP = 128 << 20, 8 << 20, 64 << 20
"""Address space that is set aside beyond what is used: by libraries, and for each thread's stack and heap.
Where none is left for it, some libraries end the process."""

_OF_A_PROCESS = (
    ("ulimit -v", "Max address space", "VmSize", _STACK + _HEAP),
    ("ulimit -d", "Max data size", "VmData", _STACK),
)
"""The shell's command for a limit, the kernel's name for it and for what is taken of it, and what of it each
thread sets aside."""

_NO_MORE = 1 << 62
"""What the first version of control groups says where there is no limit is about twice this."""


@dataclass(frozen=True)
class Room:
    """Bytes of memory that can be had without swapping."""

    free: int
    """Below 0 where more is taken than a limit leaves."""
    within: str = ""
    """The limit that leaves no more, a file or a command of the shell; empty where the machine has none."""

    def with_freed(self, count: int) -> Room:
        """The same once so many bytes have been given back."""
        return replace(self, free=self.free + count)

    def told(self, *, to_the_byte: bool = False) -> str:
        """As a part of a sentence: how much is free, and within which limit."""
        free = max(0, self.free)
        within = f" within {self.within}" if self.within else ""
        return f"{f'{free:,}' if to_the_byte else bytes_text(free)} are free{within}"


def memory_room(proc: Path = PROC) -> Room:
    """The least of what the machine has available and what each limit leaves; what only caches files is free.

    Args:
        proc: The folder in which the kernel tells about this process.
    """
    machine = Room(int(psutil.virtual_memory().available))
    return min((machine, *_of_the_process(proc), *_of_control_groups(proc)), key=lambda room: room.free)


def _of_the_process(proc: Path) -> Iterator[Room]:
    """What is left of the limits on the process itself."""
    limits, status = _text(proc / "limits"), _text(proc / "status")
    threads = thread_count()
    for command, limit_name, taken_name, by_thread in _OF_A_PROCESS:
        limit = re.search(rf"^{limit_name}\s+(\d+)\s", limits, re.MULTILINE)
        taken = re.search(rf"^{taken_name}:\s+(\d+) kB$", status, re.MULTILINE)
        if limit and taken:
            taken_bytes = int(taken[1]) * 1024 + _RESERVED + threads * by_thread
            yield Room(int(limit[1]) - taken_bytes, command)


def _of_control_groups(proc: Path) -> Iterator[Room]:
    """What is left of the limits of the process's control groups (cgroups(7)) and of those around them."""
    paths = dict[str, str]()
    for line in _text(proc / "cgroup").splitlines():
        _, _, named = line.partition(":")
        controllers, _, path = named.partition(":")
        paths |= dict.fromkeys(controllers.split(","), path)
    for line in _text(proc / "mountinfo").splitlines():
        mounted, _, kind = line.partition(" - ")
        fields, described = mounted.split(" "), kind.split(" ")
        if len(fields) < 5 or len(described) < 3:
            continue
        root, top = _unescaped(fields[3]), Path(_unescaped(fields[4]))
        if described[0] == "cgroup2" and "" in paths:
            for folder in _upwards(top, root, paths[""]):
                yield from _second_version(folder)
        elif described[0] == "cgroup" and "memory" in described[2].split(",") and "memory" in paths:
            for folder in _upwards(top, root, paths["memory"]):
                yield from _first_version(folder)


def _upwards(top: Path, root: str, path: str) -> Iterator[Path]:
    """The folders of a control group and of all around it, as far as they can be seen from here."""
    group = PurePosixPath(path)
    # A container may be told its group as it is called outside of it, and sees it as the top.
    seen = group.is_relative_to(root) and ".." not in group.parts
    folder = top / group.relative_to(root) if seen else top
    yield folder
    while folder != top:
        folder = folder.parent
        yield folder


def _second_version(folder: Path) -> Iterator[Room]:
    # Beyond memory.high a process is slowed down until it is of no use.
    for name in ("memory.max", "memory.high"):
        yield from _left(folder / name, folder / "memory.current", folder / "memory.stat", "")


def _first_version(folder: Path) -> Iterator[Room]:
    limit, usage = folder / "memory.limit_in_bytes", folder / "memory.usage_in_bytes"
    yield from _left(limit, usage, folder / "memory.stat", "total_")


def _left(limit: Path, usage: Path, figures: Path, prefix: str) -> Iterator[Room]:
    """What is left of a group's limit, if it has one."""
    most = _number(_text(limit))
    if most is None or most >= _NO_MORE:
        return
    cached = re.findall(rf"^{prefix}(?:in)?active_file (\d+)$", _text(figures), re.MULTILINE)
    taken = max(0, (_number(_text(usage)) or 0) - sum(map(int, cached)))
    yield Room(most - taken, shown(limit))


def _number(text: str) -> int | None:
    word = text.strip()
    return int(word) if re.fullmatch(r"[0-9]{1,20}", word) else None


def _text(path: Path) -> str:
    """What a file says; nothing where there is none or it cannot be read."""
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except (OSError, ValueError):
        return ""


def _unescaped(field: str) -> str:
    """A path as mountinfo spells it: what separates fields stands there as its octal number."""
    return re.sub(r"\\([0-7]{3})", lambda found: chr(int(found[1], 8)), field)
