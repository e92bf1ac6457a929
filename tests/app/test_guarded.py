"""A command outlives a llama.cpp that dies in its other process, and says of what; all else is as in one."""

from __future__ import annotations

import os
import pty
import signal
import struct
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import gguf
import psutil
import pytest

from specchat.app.last_words import LastWords, it_last_said
from tests.pseudo_terminals import all_that_is_shown
from tests.tiny_architectures import write_tiny_architecture

ROOT = Path(__file__).parent.parent.parent
WORK = [sys.executable, "-m", "tests.app.guarded_work"]


def done(*words: str, **settings: Any) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run([*WORK, *words], capture_output=True, timeout=60, check=False, cwd=ROOT, **settings)


def each_done(*works: str) -> Iterator[tuple[int, str, str]]:
    """Exit code, stdout and stderr of each of several, done one after another by one process."""
    ended = done(*works)
    outs, errs = (told.decode().split("\0") for told in (ended.stdout, ended.stderr))
    assert (len(outs), len(errs)) == (2 * len(works) + 1,) * 2, ended.stderr
    return zip(map(int, outs[1::2]), outs[::2], errs[::2], strict=False)


def reports() -> list[Path]:
    return sorted(Path(os.environ["XDG_STATE_HOME"]).rglob("crash-*.txt"))


# What comes of a death ---------------------------------------------------------------------------

DEATHS = {
    "asserting": "killed by SIGABRT; llama.cpp found that something was wrong and gave up; its log has the "
    "reason (it last said: /llama.cpp/ggml/src/ggml.c:12: GGML_ASSERT(x > 0)\ufffd[2J failed)",
    "throwing": "(it last said: what():  too far)",
    "reading_nothing": "killed by SIGSEGV",
    "out_of_memory": "killed by SIGKILL; the system may have been out of memory",
    "leaving": "ended unexpectedly (exit code 0)",
}


def test_a_death_is_one_line_and_a_report_and_exit_code_one():
    ended = list(each_done(*DEATHS))
    assert len(ended) == len(reports()) == len(DEATHS)
    for (code, out, err), (work, told), report in zip(ended, DEATHS.items(), reports(), strict=True):
        assert (code, out) == (1, "half an ans" if work == "asserting" else "")
        assert err.startswith("specchat run: the process that loaded q4.gguf ")
        assert (err.count("\n"), err.strip().isprintable()) == (1, True)
        assert told in err
        assert report.name in err
        text = report.read_text()
        assert "specchat run" in text
        assert ("libggml.so(+0x12)" in text) == (work == "asserting")


def test_a_real_file_that_kills_llama_cpp_ends_run_in_one_line(tmp_path: Path):
    """Of a vocabulary's table of characters only the part that loading needs is there."""

    class Writer(gguf.GGUFWriter):
        def add_tokenizer_model(self, model: str) -> None:
            super().add_tokenizer_model(model)
            self.add_precompiled_charsmap(struct.pack("<I", 64) + bytes(64) + b"x\0")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("tests.tiny_architectures.gguf.GGUFWriter", Writer)
        path = write_tiny_architecture(tmp_path / "hostile.gguf", "llama", vocabulary="t5")
    ended = subprocess.run(
        [sys.executable, "-m", "specchat.tui.entry", "run", "-m", str(path), "-p", "hello", "--json"],
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    (report,) = reports()
    assert (ended.returncode, ended.stdout, ended.stderr.count("\n")) == (1, "", 1)
    assert "hostile.gguf was killed by SIGABRT" in ended.stderr
    assert "Index out of array bounds" in ended.stderr
    assert "hello" not in report.read_text()


def test_at_a_terminal_a_death_is_told_on_a_line_of_its_own_and_the_cursor_is_back():
    seen = at_a_terminal("asserting")
    assert b"half an ans\x1b[?25h\r\nspecchat run: " in seen


# What is as it was -------------------------------------------------------------------------------


def at_a_terminal(*words: str) -> bytes:
    ours, theirs = pty.openpty()
    command = subprocess.Popen(
        [*WORK, *words], stdin=theirs, stdout=theirs, stderr=theirs, cwd=ROOT,
        env={**os.environ, "TERM": "xterm"},
    )  # fmt: skip
    os.close(theirs)
    seen = all_that_is_shown(ours)
    command.wait(20)
    return seen


def test_streams_are_the_callers_to_the_byte_in_pipes_and_at_a_terminal():
    guarded, alone = done("streams"), done("streams", "alone")
    assert (guarded.returncode, alone.returncode) == (7, 7)
    assert guarded.stdout == alone.stdout
    assert guarded.stderr == alone.stderr
    assert at_a_terminal("streams") == at_a_terminal("streams", "alone")


ENDS = {
    "murmuring": (0, "OMP: Warning: \ufffd[31m nothing of importance\n"),
    "ended_by_argparse": (2, "specchat run: bad usage\n"),
    "unread": (1, ""),
    "on_a_full_disk": (1, "specchat: what was to be printed could not be written: File too large\n"),
    "failing": (1, "specchat: LookupError("),
}


def test_how_work_ends_is_how_the_command_ends(tmp_path: Path):
    """That, too, what llama.cpp prints and outlives: it is told, harmlessly."""
    with (tmp_path / "out").open("wb") as file:  # a full disk is one of files
        ended = subprocess.run(
            [*WORK, *ENDS], stdout=file, stderr=subprocess.PIPE, timeout=60, check=False, cwd=ROOT, text=True
        )
    pieces = ended.stderr.split("\0")[:-1]
    assert [int(code) for code in pieces[1::2]] == [code for code, _ in ENDS.values()]
    for err, (_, told) in zip(pieces[::2], ENDS.values(), strict=True):
        assert err == told or (told.endswith("(") and err.startswith(told) and err.count("\n") == 1)
    assert len(reports()) == 1


def test_files_that_a_shell_has_opened_can_be_read():
    ours, theirs = os.pipe()
    os.write(theirs, b"by a shell")
    os.close(theirs)
    ended = done("reading", pass_fds=(ours,), env={**os.environ, "OPENED": str(ours)})
    os.close(ours)
    assert ended.stdout == b"by a shell\n", ended.stderr


def test_no_module_of_the_working_folder_is_imported(tmp_path: Path):
    for name in ("socket.py", "pickle.py", "signal.py"):
        (tmp_path / name).write_text("import os; os.write(1, b'a strangers code\\n')")
    code = (
        "import sys; sys.path = [path for path in sys.path if path]\n"
        "from tests.app.guarded_work import murmuring; from specchat.app.guarded import Called, guarded\n"
        "from specchat.app.process import EngineProcess\n"
        "engine = EngineProcess(); engine.start(); engine.close()\n"
        "sys.exit(guarded(murmuring, (), Called('specchat run')))"
    )
    path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
    ended = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, env={**os.environ, "PYTHONPATH": path},
        capture_output=True, timeout=60, check=False,
    )  # fmt: skip
    assert (ended.returncode, ended.stdout) == (0, b""), ended.stderr


# Signals -----------------------------------------------------------------------------------------


@contextmanager
def running(work: str) -> Iterator[tuple[subprocess.Popen[str], psutil.Process]]:
    """The command, in a process group of its own, and its other process at work."""
    command = subprocess.Popen(
        [*WORK, work],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=ROOT,
        start_new_session=True,
    )
    assert command.stdout is not None
    ready, number = command.stdout.readline().split()
    assert ready == "ready"
    try:
        yield command, psutil.Process(int(number))
    finally:
        command.kill()
        command.communicate()


def is_gone(process: psutil.Process, within_s: float = 1.0) -> bool:
    deadline = time.monotonic() + within_s
    while process.is_running() and process.status() != psutil.STATUS_ZOMBIE:
        if time.monotonic() > deadline:
            return False
        time.sleep(0.01)
    return True


SENDERS = {
    "kill": lambda pid: os.kill(pid, signal.SIGINT),
    "a terminal": lambda pid: os.killpg(pid, signal.SIGINT),
    "timeout": lambda pid: (os.kill(pid, signal.SIGINT), os.killpg(pid, signal.SIGINT)),
}


@pytest.mark.parametrize("sender", SENDERS)
def test_one_ctrl_c_is_one_whoever_sends_it(sender: str):
    with running("stoppable") as (command, work):
        os.killpg(command.pid, signal.SIGSTOP)  # Ctrl+Z, which reaches the group
        while work.status() != psutil.STATUS_STOPPED:
            time.sleep(0.005)
        os.killpg(command.pid, signal.SIGCONT)
        SENDERS[sender](command.pid)
        out, err = command.communicate(timeout=20)
        assert (command.returncode, out, err) == (130, "what there is\n", "")


def test_ctrl_c_while_libraries_are_loaded_is_quiet():
    with running("loading") as (command, work):
        os.killpg(command.pid, signal.SIGINT)
        out, err = command.communicate(timeout=20)
        assert (command.returncode, out, err) == (130, "", "")
        assert is_gone(work)


def test_a_second_ctrl_c_ends_what_never_comes_back_to_python():
    with running("hanging") as (command, work):
        os.killpg(command.pid, signal.SIGINT)
        time.sleep(0.35)
        assert command.poll() is None
        os.killpg(command.pid, signal.SIGINT)
        out, err = command.communicate(timeout=20)
        assert (command.returncode, out, err) == (-signal.SIGINT, "", "")
        assert is_gone(work)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_a_command_that_is_ended_leaves_nothing_at_work(number: signal.Signals):
    with running("hanging") as (command, work):
        command.send_signal(number)
        assert command.wait(20) == -number
        assert is_gone(work)


# Last words --------------------------------------------------------------------------------------


def test_last_words_begin_behind_what_a_log_holds_already(tmp_path: Path):
    log = tmp_path / "log"
    log.write_text("of yesterday\n")
    words = LastWords(log)
    assert (words.lines(), words.unnamed) == ((), False)
    with log.open("a") as file:
        file.write("of today\n")
    assert words.lines() == ("of today",)
    words.close()
    assert log.exists()


def test_a_log_that_is_no_file_is_not_read(tmp_path: Path):
    os.mkfifo(tmp_path / "pipe")
    words = LastWords(tmp_path / "pipe")
    assert (words.path, words.lines()) == (tmp_path / "pipe", ())
    words.close()


def test_the_reason_is_told_where_calls_are_listed_behind_it():
    lines = ("ggml.c:12: GGML_ASSERT(x > 0) failed", "libggml.so(+0x12)", "")
    assert it_last_said(lines) == " (it last said: ggml.c:12: GGML_ASSERT(x > 0) failed)"
    assert it_last_said(("reading", "tensors\x1b")) == " (it last said: tensors\ufffd)"
    assert it_last_said((" ",)) == ""
