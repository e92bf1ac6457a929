import json
from pathlib import Path

import pytest

from specchat.app.remembered import Remembered, default_path

COSTS = {"target_s": {"1": 0.1}, "draft_s": None}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "cache" / "measured.json"


def test_what_was_kept_is_recalled_at_the_next_start(path: Path):
    Remembered(path).keep("costs", {"threads": 2, "models": ["a", None]}, COSTS)
    assert Remembered(path).recall("costs", {"models": ["a", None], "threads": 2}) == COSTS


def test_nothing_is_recalled_before_anything_was_kept(path: Path):
    assert Remembered(path).recall("costs", {}) is None


def test_what_depends_on_something_else_is_not_found(path: Path):
    remembered = Remembered(path)
    remembered.keep("costs", {"threads": 2}, COSTS)
    assert remembered.recall("costs", {"threads": 3}) is None
    assert remembered.recall("costs", {"threads": 2, "build": ""}) is None
    assert remembered.recall("equal sizes", {"threads": 2}) is None


def test_what_is_kept_anew_replaces_what_was_kept(path: Path):
    remembered = Remembered(path)
    remembered.keep("costs", 1, {"a": 1})
    remembered.keep("costs", 2, {"b": 1})
    remembered.keep("costs", 1, {"a": 2})
    assert (remembered.recall("costs", 1), remembered.recall("costs", 2)) == ({"a": 2}, {"b": 1})


UNREADABLE = [b"", b"{", b'{"costs-', b"[1, 2]", b"3", b"null", b"\xff\xfe\x00", b"\x00" * 100]


@pytest.mark.parametrize("content", UNREADABLE)
def test_a_file_that_is_no_such_file_is_as_good_as_none(path: Path, content: bytes):
    path.parent.mkdir()
    path.write_bytes(content)
    remembered = Remembered(path)
    assert remembered.recall("costs", 1) is None
    remembered.keep("costs", 1, COSTS)
    assert remembered.recall("costs", 1) == COSTS


def test_a_half_written_file_is_as_good_as_none(path: Path):
    Remembered(path).keep("costs", 1, COSTS)
    path.write_bytes(path.read_bytes()[:-5])
    assert Remembered(path).recall("costs", 1) is None


def test_an_entry_that_is_none_is_not_recalled(path: Path):
    Remembered(path).keep("costs", 1, COSTS)
    path.write_text(json.dumps(dict.fromkeys(json.loads(path.read_text()), 7)))
    assert Remembered(path).recall("costs", 1) is None


def test_where_nothing_can_be_written_nothing_is_kept_and_nothing_fails(tmp_path: Path):
    (tmp_path / "file").write_text("")
    for path in (tmp_path / "file" / "measured.json", Path("/proc/nowhere/measured.json"), tmp_path):
        remembered = Remembered(path)
        remembered.keep("costs", 1, COSTS)
        assert remembered.recall("costs", 1) is None


def test_no_other_file_is_left_beside_it(path: Path):
    remembered = Remembered(path)
    for number in range(5):
        remembered.keep("costs", number, COSTS)
    assert [one.name for one in path.parent.iterdir()] == ["measured.json"]


def test_the_oldest_entries_make_room_for_new_ones(path: Path):
    remembered = Remembered(path)
    path.parent.mkdir()
    path.write_text(json.dumps({f"old-{number}": {} for number in range(500)}))
    remembered.keep("costs", 1, COSTS)
    entries = json.loads(path.read_text())
    assert len(entries) == 200
    assert "old-499" in entries
    assert "old-0" not in entries
    assert remembered.recall("costs", 1) == COSTS


def test_it_lies_in_the_users_cache_folder(tmp_path: Path):
    assert default_path().name == "measured.json"
    assert tmp_path in default_path().parents
