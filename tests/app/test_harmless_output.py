"""Text from strangers in what is printed: nothing in it steers the terminal, and a pipe gets it as it is."""

from __future__ import annotations

import ast
import contextlib
import io
import logging
from collections.abc import Generator
from pathlib import Path

import pytest
from hypothesis import given
from rich.cells import cell_len

from specchat.app import terminal
from specchat.app.cli import main
from specchat.app.options import Parser
from specchat.app.pull_progress import shown_on
from specchat.models import native_log
from tests.hostile_text import SEQUENCES, hostile_text, is_harmless
from tests.tiny_models import write_tiny_model

STATUS = r"\r\x1b\[K"
ROOT = Path(__file__).parent.parent.parent
HOSTILE = "".join(SEQUENCES)


class Screen(io.StringIO):
    """A terminal."""

    def isatty(self) -> bool:
        return True


@contextlib.contextmanager
def screens() -> Generator[tuple[Screen, Screen]]:
    """Standard output and standard error, both a terminal."""
    with contextlib.redirect_stdout(Screen()) as out, contextlib.redirect_stderr(Screen()) as err:
        yield out, err


@given(hostile_text())
def test_whatever_is_printed_is_harmless_to_a_terminal(text: str):
    with screens() as (out, err):
        terminal.show(text)
        streamed = terminal.Streamed()
        for character in text:
            streamed.show(character)
        assert is_harmless(out.getvalue())
        terminal.tell(text)
        terminal.status(text)
        terminal.tell_failure("specchat", text)
        with pytest.raises(SystemExit):
            Parser(prog="specchat").error(text)
        assert is_harmless(err.getvalue(), STATUS)


@given(hostile_text())
def test_a_line_that_is_to_be_replaced_fits_one_row_and_keeps_its_end(text: str):
    with screens() as (_, err):
        terminal.status(f"loading {text * 9}: 14%")
        line = err.getvalue().removeprefix("\r\x1b[K")
    assert cell_len(line) < 80
    assert line.endswith(": 14%")


@given(hostile_text())
def test_a_pipe_gets_the_answer_as_it_is(text: str):
    with contextlib.redirect_stdout(io.StringIO()) as pipe:
        terminal.show(text, end="")
        terminal.Streamed().show(text)
        assert pipe.getvalue() == text * 2


@given(hostile_text())
def test_a_log_line_is_harmless(text: str):
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    terminal.log_to(handler)
    record = logging.makeLogRecord({"msg": "%s", "args": (text,)})
    handler.emit(record)
    assert is_harmless(stream.getvalue())


def test_llama_cpp_s_own_lines_are_harmless():
    with native_log.last_errors() as errors:
        native_log.hear(4, b"load: error loading model: " + HOSTILE.encode("utf-8", "surrogatepass"))
    assert is_harmless("".join(errors.lines))
    assert is_harmless(errors.reason())
    assert errors.reason().isprintable()


@pytest.mark.parametrize("more", [(), ("--json",)])
def test_inspect_shows_a_hostile_model_harmlessly(more: tuple[str, ...], tmp_path: Path):
    name = HOSTILE.encode("utf-8", "ignore").decode().replace("\0", "")
    folder = tmp_path / "a\x1b[2J\u202e\x9b\nb"
    folder.mkdir()
    good = write_tiny_model(folder / "x\x1b]0;t\x07.gguf", name=name, template="{{ '\x1b' }}\u202e")
    (folder / "bad\x1b[31m\r.gguf").write_bytes(b"GGUF\x1b[2J")

    with screens() as shown:
        main(
            [
                "inspect",
                str(good),
                str(folder / "bad\x1b[31m\r.gguf"),
                str(folder / "none\x9b\n.gguf"),
                *more,
            ],
            None,
        )

    assert shown[0].getvalue()
    assert all(is_harmless(screen.getvalue()) for screen in shown)


@pytest.mark.usefixtures("in_this_process")
@pytest.mark.parametrize(
    "words",
    [
        ("run", "-m", HOSTILE.replace("\0", ""), "-p", "x", "--no-config"),
        ("run", "-m", "x", "-p", "x", "--chat-template", "\x1b[2J\u202e", "--no-config"),
        ("run", "-m", "x", "-p", "x", "--log-file", "/\x1b[2J\u202e/\x9b", "--no-config"),
        ("run", "--\x1b[2J"),
        ("\x1b[2J\n\u202e",),
        ("derive", "\x1b[2J\x9b.gguf"),
        ("pull", "\x1b[2J\x9b"),
        ("compare", "-m", "\x1b[2J\x9b", "--prompts", "\x1b[2J\u202e", "--no-config"),
        ("history", "export", "\x1b[2J"),
        ("config", "--config", "\x1b[2J\u202e", "--temp", "\x9b"),
    ],
)
def test_an_error_line_is_harmless(words: tuple[str, ...]):
    with screens() as shown, contextlib.suppress(SystemExit):
        main(words, None)
    assert shown[1].getvalue()
    assert all(is_harmless(screen.getvalue(), STATUS) for screen in shown)


def test_a_download_s_name_is_harmless_in_its_bar_and_its_lines():
    for stream in (io.StringIO(), Screen()):
        with shown_on(stream) as watch:
            watch("folder/" + HOSTILE.replace("/", ""))(1, 2)
        own = r"\x1b\[[0-9;?]*[A-Za-z]|\r" if isinstance(stream, Screen) else "$^"
        assert is_harmless(stream.getvalue(), own)
        assert "\x1b[2J" not in stream.getvalue()


def test_everything_is_printed_by_one_module():
    """What is printed elsewhere would go past what makes it harmless."""
    elsewhere = [
        path.name
        for folder in ("models", "app", "tui")
        for path in (ROOT / folder).rglob("*.py")
        if path.name != "terminal.py"
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "print"
    ]
    assert elsewhere == []
