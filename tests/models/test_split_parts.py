"""A model split over several files is read with all of them, and each that is none of it is one line."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from specchat.models.errors import ModelFileError
from specchat.models.gguf_file import read_header
from specchat.models.llama import Model
from tests.models.header_bytes import ARRAY, STRING, Header, Key, bases_of, header_bytes
from tests.models.small_models import write_small_model
from tests.models.sound_files import part_of_split, split_over

_U16, _U32, _I16 = 2, 4, 3
_SOON_S = 1.0


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Header:
    return bases_of(write_small_model(tmp_path_factory.mktemp("whole") / "llama.gguf", "llama"))[0]


@pytest.fixture
def parts(tmp_path: Path, whole: Header) -> list[Path]:
    headers = split_over(whole, 3)
    paths = [tmp_path / f"big-{number:05}-of-00003.gguf" for number in (1, 2, 3)]
    for path, header in zip(paths, headers, strict=True):
        path.write_bytes(header_bytes(header))
    return paths


def refusal(path: Path) -> str:
    with pytest.raises(ModelFileError) as caught:
        read_header(path)
    message = str(caught.value)
    assert message.isprintable()
    return message


def test_a_split_model_counts_all_its_parts_and_is_loaded(parts: list[Path], whole: Header):
    header = read_header(parts[0])

    assert header.parts == 3
    assert header.size_bytes == sum(part.stat().st_size for part in parts)
    assert sum(group.count for group in header.tensors) == len(whole.tensors)
    with Model(parts[0], gpu_layers=0) as model:
        assert model.vocabulary_size == header.vocabulary.size


def test_a_missing_part_is_named(parts: list[Path]):
    parts[1].unlink()

    told = refusal(parts[0])
    assert "is the first of 3 files of one model" in told
    assert "big-00002-of-00003.gguf" in told


def test_a_later_part_points_to_the_first(parts: list[Path]):
    part = replace(split_over(bases_of(parts[0])[0], 3)[1], keys=bases_of(parts[0])[0].keys)
    numbered = tuple(replace(key, value=1) if key.name == b"split.no" else key for key in part.keys)
    parts[1].write_bytes(header_bytes(replace(part, keys=numbered)))

    assert "is part 2 of 3 of a model; name the first, big-00001-of-00003.gguf" in refusal(parts[1])


def test_a_renamed_part_says_what_its_name_was(parts: list[Path], tmp_path: Path):
    renamed = parts[0].rename(tmp_path / "big.gguf")

    assert "was renamed; give it back its name, which ends in -00001-of-00003.gguf" in refusal(renamed)


def _with(**keys: Key | None) -> Callable[[Header], Header]:
    """A part with other keys, or without them."""

    def changed(part: Header) -> Header:
        kept = tuple(key for key in part.keys if key.name.decode().replace(".", "_") not in keys)
        return replace(part, keys=(*kept, *(key for key in keys.values() if key is not None)))

    return changed


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (_with(split_no=None), "does not say that it is part 2 of 3"),
        (_with(split_no=Key(b"split.no", _U32, 1)), "does not say that it is part 2 of 3"),
        (_with(split_no=Key(b"split.no", _I16, 1)), "does not say that it is part 2 of 3"),
        (_with(split_no=Key(b"split.no", ARRAY, (1,), _U16)), "does not say that it is part 2 of 3"),
        (_with(split_no=Key(b"split.no", _U16, 2)), "says that it is part 3 and not 2"),
        (_with(split_no=Key(b"split.no", _U16, 65_535)), "says that it is part 65536 and not 2"),
        (_with(split_count=Key(b"split.count", _U16, 2)), "says that it is one of '2' parts and not of 3"),
        (
            _with(split_count=Key(b"split.count", STRING, b"\x1b[2J")),
            r"says that it is one of '\x1b[2J' parts and not of 3",
        ),
        (
            _with(general_architecture=Key(b"general.architecture", STRING, b"qwen2\n")),
            r"is part of another model, of the architecture 'qwen2\n'",
        ),
        (lambda part: replace(part, key_count=1 << 40), "claims 1,099,511,627,776 keys"),
        (lambda part: replace(part, tensors=()), "files hold"),
    ],
)
def test_a_part_that_says_something_else_is_refused(
    parts: list[Path], whole: Header, change: Callable[[Header], Header], told: str
):
    parts[1].write_bytes(header_bytes(change(split_over(whole, 3)[1])))

    message = refusal(parts[0])
    assert told in message
    assert message.endswith("; download it again")


def test_a_part_that_says_only_which_it_is_belongs_to_the_model(parts: list[Path], whole: Header):
    parts[1].write_bytes(
        header_bytes(_with(split_count=None, split_tensors_count=None)(split_over(whole, 3)[1]))
    )

    assert read_header(parts[0]).parts == 3


@pytest.mark.parametrize("twin", [0, 2])
def test_a_tensor_in_two_parts_is_refused(parts: list[Path], whole: Header, twin: int):
    headers = split_over(whole, 3)
    both = replace(headers[1], tensors=(*headers[1].tensors, headers[twin].tensors[0]))
    parts[1].write_bytes(header_bytes(both))

    name = headers[twin].tensors[0].name.decode()
    assert f"the tensor '{name}' is in two of the model's files" in refusal(parts[0])


def _cut(path: Path, kept: float) -> None:
    content = path.read_bytes()
    path.write_bytes(content[: int(len(content) * kept)])


def _link(path: Path, to: Path) -> None:
    path.unlink()
    path.symlink_to(to)


def _pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)
    # With somebody at its other end nobody who opens it waits for ever.
    os.open(path, os.O_RDWR | os.O_NONBLOCK)


def _folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


@pytest.mark.parametrize(
    ("spoil", "told"),
    [
        (lambda path: _cut(path, 0.99), "are missing; download it again"),
        (lambda path: _cut(path, 0.01), "is cut off or damaged inside its header"),
        (lambda path: _cut(path, 0.0), "is empty"),
        (lambda path: path.write_bytes(b"PK\x03\x04" * 100), "is an archive"),
        (lambda path: _link(path, path), "not there, first big-00002-of-00003.gguf"),
        (lambda path: _link(path, path.with_name("nowhere")), "not there, first big-00002-of-00003.gguf"),
        (lambda path: _link(path, path.with_name("big-00001-of-00003.gguf")), "it is part 1 and not 2"),
        (lambda path: _link(path, path.with_name("big-00003-of-00003.gguf")), "it is part 3 and not 2"),
        (lambda path: _link(path, Path("/dev/zero")), "is not a regular file"),
        (_pipe, "is not a regular file"),
        (_folder, "is a directory"),
    ],
    ids=[
        *(
            "its end is cut off",
            "its header is cut off",
            "empty",
            "no GGUF",
            "a link to itself",
            "a dead link",
        ),
        *("a link to the first", "a link to the third", "a device", "a pipe", "a folder"),
    ],
)
def test_a_part_that_is_no_part_is_refused(parts: list[Path], spoil: Callable[[Path], object], told: str):
    spoil(parts[1])

    started = time.process_time()
    message = refusal(parts[0])
    assert told in message
    assert "big-00002-of-00003.gguf" in message
    assert time.process_time() - started < _SOON_S


def test_a_huge_part_costs_no_time(parts: list[Path]):
    with parts[1].open("ab") as file:
        file.truncate(1 << 40)  # nothing of it is on the disk

    started = time.process_time()
    assert read_header(parts[0]).size_bytes > 1 << 40
    assert time.process_time() - started < _SOON_S


def test_thousands_of_parts_cost_no_time(tmp_path: Path, whole: Header):
    path = tmp_path / "big-00001-of-09999.gguf"
    path.write_bytes(header_bytes(part_of_split(whole, 0, 9_999, each=1)))

    started = time.process_time()
    assert "is the first of 9999 files of one model, and 9998 of them not there" in refusal(path)
    assert time.process_time() - started < _SOON_S
