import contextlib
import shlex
import signal
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from textual.app import SuspendNotSupported

from specchat.tui.editor import EditorProblem, edit, editor_command


class Screen:
    """What steps aside, and notes that it did."""

    def __init__(self) -> None:
        self.suspended = 0

    @contextlib.contextmanager
    def suspend(self) -> Iterator[None]:
        self.suspended += 1
        yield


@pytest.fixture
def screen() -> Screen:
    return Screen()


@pytest.fixture(autouse=True)
def _own_temporary_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))


def editor(tmp_path: Path, code: str) -> str:
    """An editor that runs this code, with the file as `path`."""
    script = tmp_path / "an editor.py"
    script.write_text(f"import os, sys\nfrom pathlib import Path\npath = Path(sys.argv[-1])\n{code}\n")
    return f"{shlex.quote(sys.executable)} -I -S {shlex.quote(str(script))} --wait"


def message(result: str | EditorProblem) -> str:
    assert isinstance(result, EditorProblem)
    assert result.message.isprintable()
    return result.message


def test_the_text_comes_back_as_it_was_edited(tmp_path: Path, screen: Screen):
    command = editor(tmp_path, "path.write_bytes(path.read_bytes() + ' schön\\n'.encode())")
    assert edit("grüß\ndich", command, screen.suspend) == "grüß\ndich schön"
    assert screen.suspended == 1


def test_the_editor_gets_its_options_and_a_private_markdown_file(tmp_path: Path, screen: Screen):
    report = """
modes = [oct(place.stat().st_mode & 0o777) for place in (path, path.parent)]
path.write_text(repr((sys.argv[1:-1], path.suffix, modes)))
"""
    result = edit("", editor(tmp_path, report), screen.suspend)
    assert result == "(['--wait'], '.md', ['0o600', '0o700'])"


def test_nothing_is_left_behind(tmp_path: Path, screen: Screen):
    leave = """
path.with_suffix('.md~').write_text('backup')
path.with_suffix('.new').write_text('new')
path.with_suffix('.new').replace(path)
"""
    assert edit("old", editor(tmp_path, leave), screen.suspend) == "new"
    assert message(edit("old", editor(tmp_path, "sys.exit(1)"), screen.suspend))
    assert list((tmp_path / "temporary").iterdir()) == []


def test_an_editor_that_fails_leaves_the_text(tmp_path: Path, screen: Screen):
    result = edit("text", editor(tmp_path, "path.write_text('half'); sys.exit(3)"), screen.suspend)
    assert message(result).endswith("ended with code 3: the text is as it was")


def test_a_file_that_is_no_utf_8_leaves_the_text(tmp_path: Path, screen: Screen):
    result = edit("text", editor(tmp_path, "path.write_bytes(b'\\xff')"), screen.suspend)
    assert "wrote no UTF-8: the text is as it was" in message(result)


def test_a_file_that_is_gone_leaves_the_text(tmp_path: Path, screen: Screen):
    assert "the text is as it was" in message(edit("text", editor(tmp_path, "path.unlink()"), screen.suspend))


@pytest.mark.parametrize(
    ("command", "problem"),
    [
        ("no-editor-of-that-name --wait", "There is no editor “no-editor-of-that-name”: set $EDITOR"),
        ("'code --wait", "has a quote that does not end: correct $EDITOR"),
        ("", "There is no editor: set $EDITOR to one"),
        (None, "There is no editor: set $EDITOR to one"),
        ("an\x1b[2Jeditor", "There is no editor 'an\\x1b[2Jeditor'"),
    ],
)
def test_without_an_editor_the_screen_stays(screen: Screen, command: str | None, problem: str):
    assert problem in message(edit("text", command, screen.suspend))
    assert screen.suspended == 0


def test_a_terminal_that_cannot_be_given_away_is_said(tmp_path: Path):
    @contextlib.contextmanager
    def suspend() -> Iterator[None]:
        raise SuspendNotSupported("in a browser")
        yield

    assert "cannot be given to an editor" in message(edit("text", editor(tmp_path, ""), suspend))


def test_an_interrupt_is_the_editor_s(tmp_path: Path, screen: Screen):
    """Ctrl+C reaches both: the editor ends of it, the chat does not."""
    before = signal.getsignal(signal.SIGINT)
    both = """
import signal, time
os.kill(os.getppid(), signal.SIGINT)
os.kill(os.getpid(), signal.SIGINT)
time.sleep(20)
"""
    assert "the text is as it was" in message(edit("text", editor(tmp_path, both), screen.suspend))
    assert signal.getsignal(signal.SIGINT) is before


@settings(max_examples=10, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.text(alphabet=st.characters(exclude_categories=["Cs"])))
def test_a_text_that_is_not_edited_is_what_it_was(tmp_path: Path, text: str):
    assert edit(text, editor(tmp_path, ""), Screen().suspend) == text


def test_the_setting_comes_before_the_environment(tmp_path: Path):
    environ = {"VISUAL": "code --wait", "EDITOR": "nano", "PATH": str(tmp_path)}
    assert editor_command("hx", environ) == "hx"
    assert editor_command(None, environ) == "code --wait"
    assert editor_command(None, environ | {"VISUAL": " "}) == "nano"
    assert editor_command(None, {"EDITOR": "nano"}) == "nano"


def test_one_that_most_systems_have_comes_last(tmp_path: Path):
    assert editor_command(None, {"PATH": str(tmp_path)}) is None
    vi = tmp_path / "vi"
    vi.write_text("#!/bin/sh\n")
    vi.chmod(0o755)
    assert editor_command(None, {"PATH": str(tmp_path)}) == "vi"
