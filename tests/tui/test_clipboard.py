import time
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from specchat.tui.clipboard import copy

X11 = {"DISPLAY": ":0"}
WAYLAND = {"WAYLAND_DISPLAY": "wayland-0"}
SSH = {"SSH_TTY": "/dev/pts/1"}
TERMINAL = "sent to the terminal's clipboard (OSC 52); some terminals ignore it"


class Machine:
    """A machine with the tools that are put on it, and a terminal that notes what it is to copy."""

    def __init__(self, folder: Path) -> None:
        self.tools, self.received = folder / "tools", folder / "received"
        self.tools.mkdir()
        self.received.mkdir()
        self.terminal: list[str] = []

    def install(self, name: str, script: str = "") -> None:
        """A tool that notes what it reads and how it was called; or one that runs this script."""
        target = self.received / name
        path = self.tools / name
        path.write_text(f"#!/bin/sh\n{script or f'/bin/cat > {target}; echo $* > {target}.options'}\n")
        path.chmod(0o755)

    def copy(self, text: str, platform: str = "linux", seconds: float = 5, **environ: str) -> str:
        environ = {"PATH": str(self.tools), **environ}
        copied = copy(text, self.terminal.append, environ, platform, seconds)
        assert copied.certain == (copied.how == "the clipboard")
        return copied.how

    def got(self, name: str) -> bytes | None:
        path = self.received / name
        return path.read_bytes() if path.exists() else None


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


@pytest.mark.parametrize(
    ("tool", "platform", "environ", "options"),
    [
        ("pbcopy", "darwin", {}, ""),
        ("wl-copy", "linux", WAYLAND | X11, "--type text/plain"),
        ("xclip", "linux", X11, "-selection clipboard"),
        ("xsel", "linux", X11, "--clipboard --input"),
        ("xclip", "linux", X11 | SSH, "-selection clipboard"),
    ],
)
def test_the_system_s_own_clipboard_comes_first(machine: Machine, tool, platform, environ, options):
    machine.install(tool)
    assert machine.copy("é\n", platform, **environ) == "the clipboard"
    assert machine.got(tool) == "é\n".encode()
    assert (machine.got(f"{tool}.options") or b"").decode().strip() == options
    assert machine.terminal == []


def test_windows_reads_what_linux_copies(machine: Machine):
    machine.install("clip.exe")
    machine.install("wl-copy")
    assert machine.copy("é", WSL_DISTRO_NAME="Ubuntu", **WAYLAND) == "the clipboard"
    assert machine.got("clip.exe") == "é".encode("utf-16-le")
    assert machine.got("wl-copy") is None


@pytest.mark.parametrize(("environ", "platform"), [({}, "linux"), (X11, "linux"), ({}, "darwin")])
def test_without_a_tool_the_terminal_is_asked(machine: Machine, environ, platform):
    assert machine.copy("text", platform, **environ) == TERMINAL
    assert machine.terminal == ["text"]


@pytest.mark.parametrize("platform", ["linux", "darwin"])
def test_over_ssh_no_tool_of_the_far_side_is_asked(machine: Machine, platform: str):
    for tool in ("pbcopy", "wl-copy", "xclip", "xsel", "clip.exe"):
        machine.install(tool)
    assert machine.copy("text", platform, **SSH) == TERMINAL
    assert list(machine.received.iterdir()) == []


def test_without_a_display_its_tools_are_not_asked(machine: Machine):
    machine.install("xclip")
    assert machine.copy("text") == TERMINAL


def test_a_tool_that_fails_is_followed_by_the_next(machine: Machine):
    machine.install("xclip", "exit 1")
    machine.install("xsel")
    assert machine.copy("text", **X11) == "the clipboard"
    assert machine.got("xsel") == b"text"


def test_a_file_that_is_no_program_is_no_obstacle(machine: Machine):
    machine.install("xclip")
    (machine.tools / "xclip").write_bytes(b"\x7fELF but no more")
    assert machine.copy("text", **X11) == TERMINAL


def test_a_tool_that_hangs_is_not_waited_for(machine: Machine):
    machine.install("xclip", "exec /bin/sleep 30")
    began = time.monotonic()
    assert machine.copy("x" * 1_000_000, seconds=0.2, **X11) == TERMINAL
    assert time.monotonic() - began < 5


def test_a_tool_that_stays_to_hold_the_text_is_let_go(machine: Machine):
    machine.install("xclip", "/bin/cat > /dev/null; /bin/sleep 20 & exit 0")
    began = time.monotonic()
    assert machine.copy("text", seconds=15, **X11) == "the clipboard"
    assert time.monotonic() - began < 10


def test_a_terminal_that_fails_is_said_and_not_raised():
    def broken(text: str) -> None:
        raise OSError("gone")

    copied = copy("text", broken, {}, "linux")
    assert copied.how == "nowhere: there is no clipboard to be found"
    assert not copied.certain


@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.text())
@example("half of a character: \ud800")
def test_any_text_can_be_copied(machine: Machine, text: str):
    machine.install("xclip")
    assert machine.copy(text, **X11) == "the clipboard"
    assert machine.got("xclip") == text.encode("utf-8", "replace")
