"""A file that is named by mistake is read to a bound."""

from __future__ import annotations

import argparse
import os
import threading
import tracemalloc
from pathlib import Path

import pytest

from specchat.app.bounded_files import read_bounded
from specchat.app.compare_prompts import PromptsError, read_prompts
from specchat.app.option_values import load_options
from specchat.app.options import Parser
from specchat.app.settings import SettingsError, all_settings
from specchat.app.settings_file import read_settings


@pytest.fixture
def model(tmp_path: Path) -> Path:
    """A file that is much too long; a device goes on for ever, and so would a test that reads one whole."""
    path = tmp_path / "model.gguf"
    path.touch()
    os.truncate(path, 400_000_000)  # a hole, which takes no room on the disk
    return path


def template_of(path: Path) -> None:
    parser = Parser(prog="specchat")
    load_options(parser, argparse.Namespace(chat_template=str(path)))


def test_what_is_named_by_mistake_is_refused_with_little_memory(model: Path):
    tracemalloc.start()
    try:
        with pytest.raises(OSError, match="more than 16,777,216 characters"):
            read_bounded(model)
        most = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert most < 150_000_000


def test_settings_prompts_and_templates_say_what_is_too_long(model: Path, capsys: pytest.CaptureFixture[str]):
    with pytest.raises(SettingsError, match="cannot be read: it has more than"):
        read_settings(model, all_settings())
    with pytest.raises(PromptsError, match="could not be read: it has more than"):
        read_prompts(model)
    with pytest.raises(SystemExit):
        template_of(model)
    assert "could not be read: " in capsys.readouterr().err


def test_a_pipe_and_other_systems_line_ends_are_read(tmp_path: Path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=pipe.write_bytes, args=(b"\xef\xbb\xbfone\r\n---\r\ntwo\r\n",))
    writer.start()
    assert read_bounded(pipe) == "one\n---\ntwo\n"
    writer.join()
