"""Files that are their owner's alone, written whole."""

from __future__ import annotations

from pathlib import Path

import pytest

from specchat.app.private_files import write_whole


def test_a_file_is_replaced_where_a_link_leads(tmp_path: Path):
    kept, link = tmp_path / "elsewhere" / "kept.json", tmp_path / "link.json"
    link.symlink_to(kept)
    for text in ("one", "“two”"):
        write_whole(link, text)
        assert link.is_symlink()
        assert kept.read_text(encoding="utf-8") == text
    assert kept.stat().st_mode & 0o077 == 0
    assert list(kept.parent.iterdir()) == [kept]


def test_a_link_that_leads_to_itself_is_replaced(tmp_path: Path):
    link = tmp_path / "link.json"
    link.symlink_to(link)
    write_whole(link, "one")
    assert link.read_text() == "one"


def test_what_cannot_be_written_leaves_what_was_there(tmp_path: Path):
    file, folder = tmp_path / "file", tmp_path / "folder"
    file.write_text("one")
    folder.mkdir()
    with pytest.raises(FileExistsError):
        write_whole(file / "below", "two")
    with pytest.raises(IsADirectoryError):
        write_whole(folder, "two")
    assert file.read_text() == "one"
    assert sorted(tmp_path.iterdir()) == [file, folder]
