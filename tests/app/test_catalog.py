from __future__ import annotations

import itertools
import json
import os
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from specchat.app import catalog
from specchat.app.catalog import (
    FoundModel,
    HeaderCache,
    PairRow,
    Place,
    as_draft,
    best_first,
    default_places,
    describe,
    find_models,
)
from specchat.app.deriving import default_folder
from specchat.models.gguf_file import read_header
from tests.models.gguf_writing import write_gguf
from tests.tiny_models import TinyPair


def put(path: Path, size: int = 10) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"x" * size)
    return path


def names(*places: Place) -> list[str]:
    return [model.name for model in find_models(places)]


@pytest.fixture
def place(tmp_path: Path) -> Place:
    folder = tmp_path / "models"
    folder.mkdir()
    return Place("here", folder)


# What is found ---------------------------------------------------------------------------------


def test_a_file_is_found_with_its_size_and_time(place: Place):
    path = put(place.path / "makers/Tiny-GGUF/tiny.Q4_0.gguf", 123)
    os.utime(path, (5, 1000.5))
    assert find_models([place]) == [FoundModel(path, "tiny.Q4_0", "here", 123, 1000.5)]


def test_a_split_model_is_its_first_part_and_as_large_as_all(place: Place):
    for number, size in ((3, 7), (1, 10), (2, 100)):
        put(place.path / f"big-0000{number}-of-00003.gguf", size)
    put(place.path / "big-00001-of-00002.gguf", 1000)
    found = find_models([place])
    assert [(model.path.name, model.name, model.size_bytes) for model in found] == [
        ("big-00001-of-00002.gguf", "big", 1000),
        ("big-00001-of-00003.gguf", "big", 117),
    ]
    named = Place("named", place.path / "big-00001-of-00003.gguf")
    assert [(model.name, model.size_bytes) for model in find_models([named])] == [("big", 117)]


def test_parts_without_their_first_are_no_model(place: Place):
    put(place.path / "big-00002-of-00003.gguf")
    assert names(place) == []


@pytest.mark.parametrize(
    "name",
    [
        "mmproj-model-f16.gguf", "Tiny.mmproj-Q8_0.gguf", "tiny.gguf.part", "tiny.gguf.incomplete",
        "tiny.gguf.downloadInProgress", "tiny.safetensors", "gguf", "._tiny.gguf",
    ],
)  # fmt: skip
def test_what_is_no_model_by_its_name_is_passed_over(place: Place, name: str):
    put(place.path / name)
    assert names(place) == []


def test_empty_files_broken_links_pipes_and_folders_are_passed_over(place: Place):
    put(place.path / "empty.gguf", 0)
    (place.path / "gone.gguf").symlink_to("nowhere")
    (place.path / "circle.gguf").symlink_to("circle.gguf")
    (place.path / "folder.gguf").mkdir()
    os.mkfifo(place.path / "pipe.gguf")
    assert names(place) == []


def test_one_file_by_two_ways_is_listed_once(place: Place, tmp_path: Path):
    path = put(place.path / "a.gguf")
    (place.path / "b.gguf").symlink_to(path)
    os.link(path, place.path / "c.gguf")
    other = Place("there", tmp_path / "link")
    other.path.symlink_to(place.path)
    assert [(model.name, model.place) for model in find_models([place, other])] == [("a", "here")]


def test_of_copies_in_two_places_the_first_is_listed(place: Place, tmp_path: Path):
    other = Place("there", tmp_path / "other")
    put(place.path / "a.gguf", 100)
    put(other.path / "a.gguf", 100)
    put(other.path / "longer/a.gguf", 101)
    put(place.path / "one/model.gguf", 7)
    put(other.path / "two/model.gguf", 7)
    listed = [(model.name, model.place, model.size_bytes) for model in find_models([place, other])]
    assert listed == [("a", "here", 100), ("one", "here", 7), ("a", "there", 101), ("two", "there", 7)]


def test_a_link_to_a_folder_on_another_disk_is_followed(place: Place, tmp_path: Path):
    put(tmp_path / "disk/tiny.gguf")
    (place.path / "more").symlink_to(tmp_path / "disk")
    assert names(place) == ["tiny"]


def test_folders_that_lead_in_a_circle_are_entered_once(place: Place):
    put(place.path / "a/tiny.gguf")
    (place.path / "a/up").symlink_to(place.path)
    (place.path / "self").symlink_to("self")
    readings = itertools.count()
    found = find_models([place], clock=lambda: next(readings), seconds=1000)
    assert [model.name for model in found] == ["tiny"]
    # One to begin with, and one before each folder: two of them, and the one that leads back.
    assert next(readings) == 4


def test_hidden_folders_are_not_entered_but_a_hidden_place_is(tmp_path: Path):
    put(tmp_path / ".models/.trash/old.gguf")
    put(tmp_path / ".models/new.gguf")
    assert names(Place("here", tmp_path / ".models")) == ["new"]


def test_a_file_called_model_is_named_by_its_folder(place: Place):
    put(place.path / "Tiny-1B/model.gguf")
    assert names(place) == ["Tiny-1B"]


def test_a_name_that_would_move_the_cursor_is_shown_harmlessly(place: Place):
    put(place.path / "\x1b[2Jtiny\n.gguf")
    put(place.path / os.fsdecode(b"\xff.gguf"))
    assert names(place) == ["\ufffd", "\ufffd[2Jtiny\ufffd"]


def test_a_place_may_be_one_file(place: Place):
    put(place.path / "other.gguf")
    assert names(Place("demo", put(place.path / "tiny.gguf"))) == ["tiny"]


@pytest.mark.parametrize("path", ["nowhere", "a\0b", "x" * 5000, "/proc/self/mem"])
def test_a_place_that_cannot_be_is_no_trouble(path: str):
    assert find_models([Place("here", Path(path)), Place("here", Path(path), "ollama")]) == []


@pytest.mark.skipif(os.geteuid() == 0, reason="everything can be read by root")
def test_a_folder_that_cannot_be_read_is_passed_over(place: Place):
    put(place.path / "a.gguf")
    locked = put(place.path / "locked/b.gguf").parent
    locked.chmod(0)
    try:
        assert names(place) == ["a"]
    finally:
        locked.chmod(stat.S_IRWXU)


def test_models_come_by_place_and_name(tmp_path: Path):
    for name in ("two/b.gguf", "two/A.gguf", "one/c.gguf"):
        put(tmp_path / name)
    assert names(Place("2", tmp_path / "two"), Place("1", tmp_path / "one")) == ["A", "b", "c"]


# Bounds ----------------------------------------------------------------------------------------


def test_folders_deeper_than_the_place_allows_are_not_entered(place: Place):
    put(place.path / "1/2/deep.gguf")
    put(place.path / "1/flat.gguf")
    assert names(Place("here", place.path, depth=1)) == ["flat"]
    assert names(Place("here", place.path, depth=2)) == ["deep", "flat"]


def test_a_place_with_too_many_files_is_left_early_and_the_next_is_searched(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(catalog, "_MOST_ENTRIES", 20)
    for number in range(100):
        put(tmp_path / f"many/{number:03}/m{number:03}.gguf")
    put(tmp_path / "few/last.gguf")
    found = names(Place("many", tmp_path / "many"), Place("few", tmp_path / "few"))
    assert found == ["last"]


def test_when_time_is_up_what_was_found_is_listed(tmp_path: Path):
    for folder in "abcd":
        put(tmp_path / f"{folder}/{folder}.gguf")
    readings = iter(range(100))
    found = find_models(
        [Place(folder, tmp_path / folder) for folder in "abcd"], clock=lambda: next(readings), seconds=2.5
    )
    assert [model.name for model in found] == ["a", "b"]


# Ollama ----------------------------------------------------------------------------------------


def ollama(root: Path, manifest: str, *layers: tuple[str, str]) -> None:
    path = root / "manifests" / manifest
    path.parent.mkdir(parents=True, exist_ok=True)
    listed = [{"mediaType": f"application/vnd.ollama.image.{kind}", "digest": d} for kind, d in layers]
    path.write_text(json.dumps({"schemaVersion": 2, "layers": listed}))


def blob(root: Path, letter: str, size: int = 10) -> str:
    put(root / "blobs" / f"sha256-{letter * 64}", size)
    return f"sha256:{letter * 64}"


def test_ollama_s_models_are_found_by_their_manifests(tmp_path: Path):
    ollama(
        tmp_path,
        "registry.ollama.ai/library/qwen2.5-coder/1.5b",
        ("template", blob(tmp_path, "b")),
        ("model", blob(tmp_path, "a", 500)),
    )
    ollama(tmp_path, "registry.ollama.ai/me/tiny/latest", ("model", blob(tmp_path, "c")))
    ollama(tmp_path, "hf.co/bartowski/Tiny-GGUF/Q4_K_M", ("model", blob(tmp_path, "d")))
    ollama(tmp_path, "registry.ollama.ai/library/same/latest", ("model", f"sha256:{'a' * 64}"))
    found = find_models([Place("Ollama", tmp_path, "ollama")])
    assert [(model.name, model.size_bytes) for model in found] == [
        ("hf.co/bartowski/Tiny-GGUF:Q4_K_M", 10),
        ("me/tiny:latest", 10),
        ("qwen2.5-coder:1.5b", 500),
    ]
    assert found[2].path == tmp_path / "blobs" / f"sha256-{'a' * 64}"


def manifest_of(**layer: str) -> bytes:
    return json.dumps({"layers": [{"mediaType": "application/vnd.ollama.image.model", **layer}]}).encode()


@pytest.mark.parametrize(
    "manifest",
    [
        b"",
        b"{",
        b"[1]",
        b"null",
        b"\xff\xfe",
        b"[" * 100_000,
        b'{"layers": 3}',
        b'{"layers": [3, null, {"digest": 4}]}',
        manifest_of(),
        manifest_of(digest="sha256:../../../tiny.gguf"),
        manifest_of(digest=f"sha256:{'a' * 64}", mediaType="application/vnd.ollama.image.projector"),
    ],
    ids=range(11),
)
def test_a_manifest_that_is_none_is_passed_over(tmp_path: Path, manifest: bytes):
    path = tmp_path / "manifests/registry.ollama.ai/library/tiny/latest"
    path.parent.mkdir(parents=True)
    path.write_bytes(manifest)
    blob(tmp_path, "a")
    put(tmp_path / "tiny.gguf")
    assert names(Place("Ollama", tmp_path, "ollama")) == []


def test_a_manifest_whose_blob_is_gone_is_passed_over(tmp_path: Path):
    ollama(tmp_path, "registry.ollama.ai/library/tiny/latest", ("model", f"sha256:{'e' * 64}"))
    assert names(Place("Ollama", tmp_path, "ollama")) == []


# Where models usually lie ----------------------------------------------------------------------


def places_of(environment: dict[str, str], *extra: Path) -> dict[str, list[Path]]:
    found: dict[str, list[Path]] = {}
    for place in default_places(environment, Path("/home/me"), extra):
        found.setdefault(place.name, []).append(place.path)
    return found


def test_the_folders_of_applications_are_known():
    places = places_of({})
    assert places["Hugging Face"] == [Path("/home/me/.cache/huggingface/hub")]
    assert places["LM Studio"] == [
        Path("/home/me/.lmstudio/models"),
        Path("/home/me/.cache/lm-studio/models"),
    ]
    assert places["Ollama"][0] == Path("/home/me/.ollama/models")
    assert places["llama.cpp"] == [
        Path("/home/me/.cache/llama.cpp"),
        Path("/home/me/Library/Caches/llama.cpp"),
    ]
    assert places["derived by specchat"] == [
        Path("/home/me/.cache/specchat/derived"),
        Path("/home/me/Library/Caches/specchat/derived"),
    ]
    assert places["this folder"] == [Path.cwd()]
    assert {"Jan", "GPT4All"} <= set(places)


@pytest.mark.parametrize(
    ("environment", "name", "path"),
    [
        ({"HF_HUB_CACHE": "/hub", "HF_HOME": "/hf"}, "Hugging Face", "/hub"),
        ({"HUGGINGFACE_HUB_CACHE": "/hub"}, "Hugging Face", "/hub"),
        ({"HF_HOME": "/hf", "XDG_CACHE_HOME": "/cache"}, "Hugging Face", "/hf/hub"),
        ({"HF_HOME": "~/hf"}, "Hugging Face", "/home/me/hf/hub"),
        ({"HF_HOME": ""}, "Hugging Face", "/home/me/.cache/huggingface/hub"),
        ({"XDG_CACHE_HOME": "/cache"}, "Hugging Face", "/cache/huggingface/hub"),
        ({"OLLAMA_MODELS": "/ollama"}, "Ollama", "/ollama"),
        ({"LLAMA_CACHE": "/llama"}, "llama.cpp", "/llama"),
        ({"XDG_CACHE_HOME": "/cache"}, "llama.cpp", "/cache/llama.cpp"),
    ],
)
def test_variables_move_the_folders(environment: dict[str, str], name: str, path: str):
    assert places_of(environment)[name][0] == Path(path)


def test_drafts_are_found_where_they_are_made():
    path = put(default_folder() / "tiny.Q4_0.gguf")
    put(default_folder() / ".specchat-1-x" / "half.gguf")
    places = default_places(os.environ, Path.home(), [])
    found = find_models([place for place in places if place.name == "derived by specchat"])
    assert [one.path for one in found] == [path]


def test_folders_from_the_settings_are_searched():
    assert places_of({}, Path("/big/models"))["/big/models"] == [Path("/big/models")]


def test_the_hugging_face_cache_is_searched_as_it_is_laid_out(tmp_path: Path):
    repository = tmp_path / "models--makers--tiny-GGUF"
    stored = put(repository / "blobs" / ("a" * 64), 77)
    put(repository / "blobs" / ("b" * 64 + ".incomplete"))
    for commit in "cd":
        pointer = repository / "snapshots" / (commit * 40) / "q4/tiny.gguf"
        pointer.parent.mkdir(parents=True)
        pointer.symlink_to(os.path.relpath(stored, pointer.parent))
    put(tmp_path / ".locks/models--makers--tiny-GGUF/x.gguf")
    (places,) = [
        p for p in default_places({"HF_HUB_CACHE": str(tmp_path)}, tmp_path, []) if p.name == "Hugging Face"
    ]
    (found,) = find_models([places])
    assert (found.name, found.size_bytes) == ("tiny", 77)
    assert found.path == repository / "snapshots" / ("c" * 40) / "q4/tiny.gguf"


# Rows ------------------------------------------------------------------------------------------


def found(path: Path) -> FoundModel:
    (model,) = find_models([Place("here", path)])
    return model


def test_a_row_says_what_the_header_says(tiny_pair: TinyPair):
    row = describe(found(tiny_pair.target), {})
    assert row.usable
    assert (row.name, row.architecture, row.quantization, row.train_context) == ("Tiny", "llama", "F32", 2048)
    assert row.parameters == read_header(tiny_pair.target).parameters


def test_a_model_without_a_name_is_called_as_it_was_found(tmp_path: Path):
    write_gguf(put(tmp_path / "blobs" / f"sha256-{'a' * 64}"), name=None)
    ollama(tmp_path, "registry.ollama.ai/library/tiny/1b", ("model", f"sha256:{'a' * 64}"))
    (model,) = find_models([Place("Ollama", tmp_path, "ollama")])
    assert describe(model, {}).name == "tiny:1b"


@pytest.mark.parametrize(
    ("settings", "why"),
    [
        ({"architecture": "bert"}, "is an embedding model, which turns text into vectors and writes none"),
        ({"extra": {"llama.pooling_type": 1}}, "is an embedding model"),
        ({"rows": None}, "holds a vocabulary and no weights"),
    ],
)
def test_a_file_that_holds_no_conversation_says_so_in_a_line(tmp_path: Path, settings: dict, why: str):
    row = describe(found(write_gguf(tmp_path / "m.gguf", **settings)), {})
    assert not row.usable
    assert row.why_not.startswith(why)
    assert row.why_not.isprintable()
    assert row.name == "m"


def test_a_row_that_is_kept_is_not_read_again_until_the_file_changes(tmp_path: Path):
    path = write_gguf(tmp_path / "m.gguf", name="First")
    cache: HeaderCache = {}
    model = found(path)
    assert describe(model, cache).name == "First"
    path.write_bytes(b"no longer a model")
    assert describe(model, cache).name == "First"
    assert describe(found(path), cache).why_not


def test_a_file_that_vanished_says_so(tmp_path: Path):
    path = write_gguf(tmp_path / "m.gguf")
    model = found(path)
    path.unlink()
    assert describe(model, {}).why_not == "does not exist; check the path"


# Pairs -----------------------------------------------------------------------------------------


def test_a_pair_has_a_verdict_a_reason_and_a_share(tmp_path: Path):
    target = read_header(write_gguf(tmp_path / "t.gguf", rows=4096))
    draft = read_header(write_gguf(tmp_path / "d.gguf", rows=512))
    large = read_header(write_gguf(tmp_path / "l.gguf", rows=2048))
    other = read_header(write_gguf(tmp_path / "o.gguf", kind="llama", rows=16))
    row = as_draft(target, draft)
    assert (row.text, row.draft, row.usable) == ("fits", tmp_path / "d.gguf", True)
    assert row.share == draft.size_bytes / target.size_bytes
    assert as_draft(target, large).text.startswith("fits, but: The draft has 5")
    cannot = as_draft(target, other)
    assert cannot.text.startswith("cannot draft: The target's vocabulary is of the kind byte-pair")
    assert not cannot.usable


def test_usable_drafts_come_first_and_the_smaller_before_the_larger():
    rows = [
        PairRow(Path("a"), "cannot draft", "No.", 0.01),
        PairRow(Path("b"), "fits", "", 0.4),
        PairRow(Path("c"), "fits, but", "Well.", 0.1),
    ]
    assert [row.draft.name for row in best_first(rows)] == ["c", "b", "a"]


# Any tree --------------------------------------------------------------------------------------

FILES = st.sampled_from(
    [
        "a.gguf", "B.GGUF", "model.gguf", "mmproj-a.gguf", "a.gguf.part", ".a.gguf", "notes.txt", "\x1b.gguf",
        "m-00001-of-00003.gguf", "m-00002-of-00003.gguf", "m-00003-of-00003.gguf", "m-00001-of-00001.gguf",
    ]
)  # fmt: skip
FOLDERS = st.sampled_from(["x", "y.gguf", ".hidden", "\udcff"])
LINKS = st.sampled_from(["to nothing", "to itself", "to the top", "to a file", "the same file"])
TREES = st.recursive(
    st.dictionaries(FILES, st.integers(0, 3), max_size=4),
    lambda inner: st.dictionaries(FOLDERS, inner, max_size=3).flatmap(
        lambda folders: st.dictionaries(FILES, st.integers(0, 3) | LINKS, max_size=4).map(
            lambda files: folders | files
        )
    ),
    max_leaves=8,
)


def build(tree: dict, folder: Path, top: Path) -> None:
    folder.mkdir()
    for name, what in tree.items():
        path = folder / name
        if isinstance(what, dict):
            build(what, path, top)
        elif isinstance(what, int):
            path.write_bytes(b"x" * what)
        elif what == "to nothing":
            path.symlink_to("nowhere")
        elif what == "to itself":
            path.symlink_to(name)
        elif what == "to the top":
            path.symlink_to(top)
        elif what == "to a file":
            path.symlink_to(top.parent / "elsewhere.gguf")
        else:
            os.link(top.parent / "elsewhere.gguf", path)


def firsts(top: Path) -> Iterator[tuple[int, int]]:
    """Each file that is a model or its first part, and how large the model is."""
    for folder, folders, files in os.walk(top):
        folders[:] = [name for name in folders if not name.startswith(".")]
        there = {name: Path(folder, name) for name in files if Path(folder, name).is_file()}
        sizes = {name: path.stat().st_size for name, path in there.items()}
        for name, path in there.items():
            if name in ("a.gguf", "B.GGUF", "model.gguf", "\x1b.gguf", "m-00001-of-00001.gguf"):
                size = sizes[name]
            elif name == "m-00001-of-00003.gguf":
                size = sum(sizes.get(f"m-0000{number}-of-00003.gguf", 0) for number in (1, 2, 3))
            else:
                continue
            if sizes[name]:
                yield path.stat().st_ino, size


@settings(max_examples=150, deadline=None)
@given(TREES)
def test_in_any_tree_each_model_is_listed_once_and_nothing_is_raised(tree: dict):
    with tempfile.TemporaryDirectory() as temporary:
        put(Path(temporary, "elsewhere.gguf"), 4)
        top = Path(temporary, "top")
        build(tree, top, top)
        expected: dict[int, set[int]] = {}
        for number, size in firsts(top):
            expected.setdefault(number, set()).add(size)
        listed = find_models([Place("here", top, depth=20), Place("again", top, depth=20)])
        assert len(listed) == len(expected)
        for model in listed:
            assert model.size_bytes in expected[model.path.stat().st_ino]
            assert model.name.isprintable()
            assert model.place == "here"
