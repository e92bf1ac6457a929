"""Models fetched whole by their names, from a small hub on this machine by the real client."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from huggingface_hub import constants

from specchat.app.downloading import require_room
from specchat.app.hub import DownloadError, Listed
from specchat.app.pulling import Pulled, pull
from specchat.models.errors import SpecchatError
from specchat.models.locate import locate_model
from specchat.models.repository import parse_name
from tests.app.hub_server import COMMIT, CONTENT, Hub
from tests.models.gguf_writing import write_gguf
from tests.models.header_bytes import header_bytes, parse
from tests.models.sound_files import split_over

REPOSITORY = "makers/tiny-GGUF"


def pulled(*names: str, watch: Callable[[str], Callable[[int, int], None]] | None = None) -> list[Pulled]:
    parsed = [parse_name(name) for name in names]
    return pull([name for name in parsed if name], watch or (lambda file: lambda done, total: None))


def refused(*names: str) -> str:
    with pytest.raises(SpecchatError) as caught:
        pulled(*names)
    assert str(caught.value).isprintable()
    return str(caught.value)


@pytest.fixture
def models(hub: Hub, tmp_path: Path) -> Hub:
    """A repository of one model in two quantizations, one of them split, and what lies beside it."""
    hub.file, hub.content = "README.md", b"a model"
    whole = write_gguf(tmp_path / "whole.gguf").read_bytes()
    hub.others = {"mmproj-F16.gguf": b"GGUF", "tiny-Q4_K_M.gguf": whole}
    for number, part in enumerate(split_over(parse(whole), 2), start=1):
        hub.others[f"Q8_0/tiny-Q8_0-0000{number}-of-00002.gguf"] = header_bytes(part)
    return hub


def test_a_repository_s_name_fetches_the_file_that_people_want(models: Hub, cache: Path):
    [model] = pulled(REPOSITORY)
    assert model.paths == (cache / "models--makers--tiny-GGUF" / "snapshots" / COMMIT / "tiny-Q4_K_M.gguf",)
    assert model.paths[0].read_bytes() == models.others["tiny-Q4_K_M.gguf"]
    assert model.problem == ""
    assert model.size_bytes == len(models.others["tiny-Q4_K_M.gguf"])


@pytest.mark.parametrize("name", [f"{REPOSITORY}:q8_0", f"{REPOSITORY}/Q8_0/tiny-Q8_0-00001-of-00002.gguf"])
def test_a_split_model_is_fetched_whole(models: Hub, name: str):
    [model] = pulled(name)
    assert [path.name for path in model.paths] == [f"tiny-Q8_0-0000{n}-of-00002.gguf" for n in (1, 2)]
    assert all(path.read_bytes() == models.others[f"Q8_0/{path.name}"] for path in model.paths)
    assert model.problem == "", "its header is read with all its parts"


def test_what_was_fetched_is_found_by_the_same_name(models: Hub):
    for name in (f"{REPOSITORY}:Q8_0", f"{REPOSITORY}:Q4_K_M", f"{REPOSITORY}/tiny-Q4_K_M.gguf", REPOSITORY):
        assert pulled(name)[0].paths[0] == locate_model(name)


def test_progress_is_told_of_each_file_that_comes_and_of_none_that_is_there(models: Hub):
    told: list[str] = []

    def watch(file: str) -> Callable[[int, int], None]:
        told.append(file)
        return lambda done, total: None

    pulled(f"{REPOSITORY}:Q8_0", f"{REPOSITORY}:Q4_K_M", watch=watch)
    split = [f"Q8_0/tiny-Q8_0-0000{n}-of-00002.gguf" for n in (1, 2)]
    assert told == [*split, "tiny-Q4_K_M.gguf"]
    pulled(f"{REPOSITORY}:Q8_0", REPOSITORY, watch=watch)
    assert told == [*split, "tiny-Q4_K_M.gguf"]


def test_the_same_name_twice_is_fetched_once(models: Hub):
    assert len(pulled(REPOSITORY, REPOSITORY)) == 1


def test_what_is_named_exactly_and_is_there_needs_no_hub(models: Hub):
    pulled(f"{REPOSITORY}:Q4_K_M")
    models.seen.clear()
    pulled(f"{REPOSITORY}:q4_k_m", f"{REPOSITORY}/tiny-Q4_K_M.gguf")
    assert models.seen == []


def test_a_repository_alone_asks_the_hub_though_another_file_is_there(models: Hub):
    pulled(f"{REPOSITORY}:Q8_0")
    assert pulled(REPOSITORY)[0].paths[0].name == "tiny-Q4_K_M.gguf"


def test_offline_everything_in_the_cache_is_found_and_nothing_asked_for(
    models: Hub, monkeypatch: pytest.MonkeyPatch
):
    [first] = pulled(f"{REPOSITORY}:Q8_0")
    models.seen.clear()
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    assert pulled(REPOSITORY, f"{REPOSITORY}:Q8_0")[0].paths == first.paths
    assert refused(f"{REPOSITORY}:Q4_0").startswith(f"{REPOSITORY} is not in the cache, and HF_HUB_OFFLINE")
    assert models.seen == []


def test_a_quantization_that_the_repository_lacks_is_answered_with_those_it_has(models: Hub):
    assert refused(f"{REPOSITORY}:Q2_K") == f"{REPOSITORY} has no Q2_K; it has Q4_K_M, Q8_0"


def test_a_file_that_the_repository_lacks_is_answered_with_those_it_has(models: Hub):
    assert f"{REPOSITORY} has no file x.gguf; it has " in refused(f"{REPOSITORY}/x.gguf")


def test_nothing_is_fetched_where_one_of_the_names_means_nothing(models: Hub):
    assert "has no Q2_K" in refused(f"{REPOSITORY}:Q4_K_M", f"{REPOSITORY}:Q2_K")
    assert models.fetches == []


def test_a_gated_repository_may_list_its_files_and_refuse_them(models: Hub):
    models.refusal, models.refuses = (403, {"X-Error-Code": "GatedRepo"}), "/resolve/"
    assert "is gated: accept its terms on" in refused(REPOSITORY)
    assert models.fetches == []


def test_a_part_that_is_cut_off_is_gone_on_with_by_the_next_pull(models: Hub, cache: Path):
    whole, cut = (len(models.others[f"Q8_0/tiny-Q8_0-0000{number}-of-00002.gguf"]) for number in (1, 2))
    models.cuts = [whole, cut // 2, 0, 0, 0]
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("specchat.app.downloading._WAITS_S", (0.0, 0.0, 0.0))
        assert "cannot be reached" in refused(f"{REPOSITORY}:Q8_0")
    [half] = cache.rglob("*.incomplete")
    assert half.stat().st_size == cut // 2
    models.cuts, before = [], len(models.fetches)
    assert len(pulled(f"{REPOSITORY}:Q8_0")[0].paths) == 2
    [rest] = models.fetches[before:]
    assert (rest.path[-8:], rest.range) == ("002.gguf", f"bytes={cut // 2}-")


def test_a_part_that_arrives_damaged_is_removed(models: Hub, cache: Path):
    models.checksum = "a" * 64
    assert "arrived damaged and was removed; fetch it again" in refused(REPOSITORY)
    assert list(cache.rglob("*.incomplete")) == []
    assert not locate_or_none(f"{REPOSITORY}:Q4_K_M")


def locate_or_none(name: str) -> Path | None:
    try:
        return locate_model(name)
    except SpecchatError:
        return None


def test_a_file_with_control_characters_in_its_name_is_passed_over(models: Hub):
    models.others = {"a\x1b[2Jb-Q4_K_M.gguf": CONTENT, "..\n-Q4_0.gguf": CONTENT, **models.others}
    assert pulled(REPOSITORY)[0].paths[0].name == "tiny-Q4_K_M.gguf"
    assert refused(f"{REPOSITORY}:Q4_0") == f"{REPOSITORY} has no Q4_0; it has Q4_K_M, Q8_0"


@pytest.mark.parametrize("file", ["../../../outside-Q4_0.gguf", "/outside-Q4_0.gguf", "a/../../x-Q4_0.gguf"])
def test_a_file_that_would_lie_outside_the_cache_is_not_fetched(models: Hub, tmp_path: Path, file: str):
    models.others = {file: CONTENT}
    before = sorted(tmp_path.iterdir())
    refused(REPOSITORY)
    assert models.fetches == []
    assert not [path for path in set(tmp_path.iterdir()) - set(before) if path.name != "hub"]


def test_a_size_that_the_list_has_wrong_harms_nothing(models: Hub):
    whole = models.others["tiny-Q4_K_M.gguf"]
    models.listing = [
        {"type": "file", "path": "tiny-Q4_K_M.gguf", "oid": "f" * 40, "size": len(whole) // 3},
    ]
    assert pulled(REPOSITORY)[0].paths[0].read_bytes() == whole


def test_room_for_all_of_it_is_made_sure_of_before_the_first_byte(models: Hub):
    large = {"type": "file", "oid": "f" * 40, "size": 4 * 10**17}
    models.listing = [{**large, "path": f"m-Q4_0-0000{n}-of-00002.gguf"} for n in (1, 2)]
    told = refused(REPOSITORY)
    assert "800,000,000.00 GB are to come; free some, or set HF_HUB_CACHE" in told
    assert not any("/resolve/" in seen.path for seen in models.seen)


def test_what_an_earlier_attempt_left_needs_no_room(cache: Path):
    blobs = cache / "models--makers--tiny-GGUF" / "blobs"
    blobs.mkdir(parents=True)
    with (blobs / f"{'a' * 64}.incomplete").open("wb") as partial:
        partial.truncate(10**13)  # takes no room itself
    files = [(REPOSITORY, Listed("m.gguf", 10**13, "a" * 64))]
    require_room(files)
    with pytest.raises(DownloadError, match="are to come"):
        require_room([*files, (REPOSITORY, Listed("n.gguf", 10**18, "../../x"))])


def test_what_is_no_chat_model_is_fetched_and_said(models: Hub, tmp_path: Path):
    models.others = {
        "bert-Q8_0.gguf": write_gguf(tmp_path / "b.gguf", architecture="bert").read_bytes(),
        "cut-F16.gguf": b"GGUF\x03",
    }
    first, second = pulled(f"{REPOSITORY}:Q8_0", f"{REPOSITORY}:F16")
    assert first.problem.endswith("is an embedding model, which turns text into vectors and writes none; "
                                  "choose a chat model")  # fmt: skip
    assert second.problem.isprintable()
    assert second.problem
