"""A file that is named by mistake is read to a bound."""

from __future__ import annotations

import os
import threading
import tracemalloc
from pathlib import Path

import pytest

from specchat.app.bounded_files import read_bounded
from specchat.app.compare_prompts import PromptsError, read_prompts
from specchat.app.settings import SettingsError, all_settings
from specchat.app.settings_file import read_settings


@pytest.fixture(params=["a device", "a file as long as a model"])
def endless(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    if request.param == "a device":
        return Path("/dev/zero")
    path = tmp_path / "model.gguf"
    path.touch()
    os.truncate(path, 2_000_000_000)  # a hole, which takes no room on the disk
    return path


def test_what_has_no_end_is_refused_with_little_memory(endless: Path):
    tracemalloc.start()
    try:
        with pytest.raises(OSError, match="more than 16,777,216 characters"):
            read_bounded(endless)
        most = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert most < 150_000_000


def test_settings_and_prompts_say_what_is_too_long(endless: Path):
    with pytest.raises(SettingsError, match="cannot be read: it has more than"):
        read_settings(endless, all_settings())
    with pytest.raises(PromptsError, match="could not be read: it has more than"):
        read_prompts(endless)


def test_a_pipe_and_other_systems_line_ends_are_read(tmp_path: Path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=pipe.write_bytes, args=(b"\xef\xbb\xbfone\r\n---\r\ntwo\r\n",))
    writer.start()
    assert read_bounded(pipe) == "one\n---\ntwo\n"
    writer.join()
