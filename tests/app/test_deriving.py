"""Drafts made from a model's file, real ones: where they go, and that nothing is overwritten or left half."""

import errno
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from specchat.app import deriving
from specchat.app.deriving import (
    DeriveError,
    Source,
    default_folder,
    destination,
    estimated_bytes,
    made_before,
    open_source,
    put,
    refuse_for_want_of_room,
    scratch,
    write,
)
from specchat.models.derived import Recipe
from specchat.models.errors import ModelFileError
from specchat.models.gguf_file import read_header
from specchat.models.llama import Model
from specchat.models.pair import judge
from tests.tiny_models import write_tiny_model

SKIP = Recipe(skipped=(1, 2))
QUANT = Recipe("Q8_0")


@pytest.fixture
def source(tmp_path: Path) -> Source:
    return opened_source(write_tiny_model(tmp_path / "tiny.gguf", layers=4))


def opened_source(path: Path) -> Source:
    return open_source(path, lambda _part: None)


def made(source: Source, recipe: Recipe, output: Path | None = None) -> Path:
    path = destination(source, recipe, output)
    assert made_before(source, recipe, path) is None
    with scratch(path.parent) as folder:
        derived = put(write(source, recipe, folder, 1), recipe, path)
    assert (derived.path, derived.reused) == (path, False)
    assert derived.size_bytes == path.stat().st_size
    return path


@pytest.mark.parametrize("recipe", [SKIP, QUANT, Recipe("Q4_0", "Q8_0", (3,))])
def test_a_draft_loads_and_says_what_it_was_made_from(source: Source, recipe: Recipe):
    path = made(source, recipe)
    assert path == default_folder() / f"tiny.{recipe}.gguf"
    origin = read_header(path).origin
    assert origin is not None
    assert (origin.source, origin.source_bytes) == ("tiny.gguf", source.path.stat().st_size)
    assert (origin.source_sha256, origin.recipe) == (source.sha256, str(recipe))
    assert (origin.source_layers, origin.skipped) == (4, recipe.skipped)
    assert str(source.path.parent) not in str(origin)
    with Model(path) as model:
        assert model.parameters <= source.header.parameters
    assert "target" in judge(source.header, read_header(path)).reasons[0]
    assert list(path.parent.iterdir()) == [path]


def test_a_draft_goes_where_it_is_told_to(source: Source, tmp_path: Path):
    assert made(source, SKIP, tmp_path / "there") == tmp_path / "there/tiny.skip-1-2.gguf"
    assert made(source, SKIP, tmp_path / "mine.gguf") == tmp_path / "mine.gguf"


def test_what_was_made_before_from_the_same_file_is_taken(source: Source, tmp_path: Path):
    path = made(source, SKIP)
    before = (path.stat().st_ino, path.stat().st_mtime_ns)
    moved = shutil.copy(source.path, tmp_path / "elsewhere.gguf")
    again = made_before(opened_source(Path(moved)), SKIP, path)
    assert again is not None
    assert (again.reused, again.path) == (True, path)
    assert (path.stat().st_ino, path.stat().st_mtime_ns) == before


@pytest.mark.parametrize("what", ["another source", "another recipe", "a model", "no model", "cut off"])
def test_what_else_has_the_name_is_never_overwritten(source: Source, tmp_path: Path, what: str):
    path = tmp_path / "taken.gguf"
    if what == "another source":
        other = write_tiny_model(tmp_path / "other.gguf", layers=4, seed=2)
        made(opened_source(other), SKIP, path)
    elif what == "another recipe":
        made(source, QUANT, path)
    elif what == "a model":
        write_tiny_model(path)
    elif what == "no model":
        path.write_bytes(b"mine")
    else:
        path.write_bytes(made(source, SKIP).read_bytes()[:-100])
    before = path.read_bytes()
    with pytest.raises(DeriveError, match=r"taken\.gguf is there and .* name another with -o") as refused:
        made_before(source, SKIP, path)
    assert "\n" not in str(refused.value)
    with scratch(tmp_path) as folder, pytest.raises(DeriveError, match=r"taken\.gguf is there already"):
        put(write(source, SKIP, folder, 1), SKIP, path)
    assert path.read_bytes() == before


def test_the_source_itself_is_no_place_for_a_draft(source: Source):
    with pytest.raises(DeriveError, match="is what the draft is made from"):
        destination(source, SKIP, source.path)


def test_layers_that_cannot_go_are_refused_before_anything_is_written(source: Source, tmp_path: Path):
    with scratch(tmp_path / "out") as folder:
        with pytest.raises(ModelFileError, match="has layers 0-3, and no 4"):
            write(source, Recipe(skipped=(4,)), folder, 1)
        assert list(folder.iterdir()) == []


def test_whatever_ends_the_work_the_scratch_folder_goes(tmp_path: Path):
    def fail(error: type[BaseException]) -> None:
        with scratch(tmp_path) as folder:
            (folder / "half.gguf").write_bytes(b"half")
            raise error

    for error in (KeyboardInterrupt, ValueError):
        with pytest.raises(error):
            fail(error)
    assert list(tmp_path.iterdir()) == []


def test_what_a_killed_process_left_goes_and_what_a_living_one_makes_stays(tmp_path: Path):
    process = subprocess.Popen([sys.executable, "-c", ""])
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)  # it has ended, and nobody has asked yet
    (tmp_path / f".specchat-{process.pid}-x").mkdir()
    (tmp_path / f".specchat-{process.pid}-x/half.gguf").write_bytes(b"half")
    living = tmp_path / f".specchat-{os.getpid()}-y"
    living.mkdir()
    with scratch(tmp_path) as folder:
        assert set(tmp_path.iterdir()) == {living, folder}
    process.wait()


def test_a_folder_that_cannot_be_is_told(source: Source, tmp_path: Path):
    (tmp_path / "file").write_text("")
    with pytest.raises(DeriveError, match=r"is no folder; .* with -o"), scratch(tmp_path / "file/below"):
        pass


def test_a_disk_without_second_names_is_given_the_file_by_moving(
    source: Source, monkeypatch: pytest.MonkeyPatch
):
    def refuse(*_: object) -> None:
        raise OSError(errno.EPERM, "not permitted")

    monkeypatch.setattr(os, "link", refuse)
    assert read_header(made(source, SKIP)).block_count == 2


def test_the_size_is_estimated_from_above(source: Source):
    for recipe in (SKIP, QUANT, Recipe("Q4_0"), Recipe("Q4_K_M"), Recipe("F16", skipped=(0, 1))):
        size = made(source, recipe).stat().st_size
        # The header of so small a model is a large part of it.
        assert size * 0.9 < estimated_bytes(source, recipe) + 20_000 < size * 2


def test_too_little_room_is_told_before_writing(tmp_path: Path):
    with pytest.raises(DeriveError, match=r"has room for .* MB and about .* MB are to be written"):
        refuse_for_want_of_room(tmp_path, 1 << 60)


def test_a_split_models_parts_are_summed_together(tmp_path: Path):
    path = write_tiny_model(tmp_path / "tiny-00001-of-00001.gguf")
    whole = opened_source(path)
    assert whole.stem == "tiny"
    assert whole.sha256 == opened_source(shutil.copy(path, tmp_path / "same.gguf")).sha256


def test_a_full_disk_is_told_and_leaves_nothing(source: Source, monkeypatch: pytest.MonkeyPatch):
    """The quantizer writes to a device that is always full."""
    if not Path("/dev/full").exists():
        pytest.skip("there is no /dev/full here")
    quantize = deriving.quantize

    def on_a_full_disk(source: Path, destination: Path, *words: object, **named: object) -> None:
        destination.symlink_to("/dev/full")
        quantize(source, destination, *words, **named)  # type: ignore[arg-type]

    monkeypatch.setattr(deriving, "quantize", on_a_full_disk)
    with scratch(default_folder()) as folder, pytest.raises(DeriveError):
        write(source, SKIP, folder, 1)
    assert list(default_folder().iterdir()) == []
