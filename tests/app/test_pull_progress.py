"""How a download is shown."""

from __future__ import annotations

import io

import pytest

from specchat.app.pull_progress import shown_on


class Terminal(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self) -> bool:
        return True


def test_without_a_terminal_a_line_comes_at_first_every_ten_seconds_and_at_the_end():
    stream, now = io.StringIO(), 0.0
    with shown_on(stream, lambda: now) as watch:
        tell = watch("q4/tiny.gguf")
        for second in range(26):
            now = float(second)
            tell(second * 10**8, 25 * 10**8)
    assert stream.getvalue().splitlines() == [
        "tiny.gguf: 0 MB of 2.50 GB (0%)",
        "tiny.gguf: 1.00 GB of 2.50 GB (40%)",
        "tiny.gguf: 2.00 GB of 2.50 GB (80%)",
        "tiny.gguf: 2.50 GB of 2.50 GB (100%)",
    ]


def test_an_empty_file_is_no_division_by_zero():
    stream = io.StringIO()
    with shown_on(stream) as watch:
        watch("m.gguf")(0, 0)
    assert stream.getvalue() == "m.gguf: 0 MB of 0 MB\n"


def test_in_a_terminal_a_bar_shows_bytes(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "100")
    stream = Terminal()
    with shown_on(stream) as watch:
        tell = watch("q4/[red]tiny.gguf")
        tell(10**6, 4 * 10**6)
        tell(2 * 10**6, 4 * 10**6)
    assert "[red]tiny.gguf" in stream.getvalue(), "no name is markup"
    assert "2.0/4.0 MB" in stream.getvalue()


def test_in_a_terminal_nothing_is_shown_where_nothing_comes(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("TERM", "xterm")
    stream = Terminal()
    with shown_on(stream):
        pass
    assert stream.getvalue() == ""
