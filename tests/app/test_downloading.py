"""The real huggingface_hub client, against a small hub on this machine."""

from __future__ import annotations

import os
import re
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from huggingface_hub import constants
from huggingface_hub.utils import WeakFileLock

from specchat.app.downloading import DownloadCancelled, DownloadError, download, require_room
from specchat.app.hub import Listed
from specchat.app.known_models import known_models
from specchat.models.locate import locate_model
from specchat.models.repository import HubName, parse_name, quantization_of
from tests.app.hub_server import COMMIT, CONTENT, Hub, point_to

NAME = ("makers/tiny-GGUF", "q4/tiny.gguf")


def fetch(
    repository: str = NAME[0],
    file: str = NAME[1],
    *,
    on_progress: Callable[[int, int], None] = lambda done, total: None,
    cancelled: Callable[[], bool] = lambda: False,
    token: str | None = None,
) -> Path:
    return download(
        repository, file, on_progress=on_progress, cancelled=cancelled, token=token, pause=lambda _: None
    )


def refused(repository: str = NAME[0], file: str = NAME[1]) -> str:
    with pytest.raises(DownloadError) as caught:
        fetch(repository, file)
    assert str(caught.value).isprintable()
    return str(caught.value)


def partials(cache: Path) -> list[int]:
    return [path.stat().st_size for path in cache.rglob("*.incomplete")]


def test_what_is_fetched_lies_in_the_shared_cache_under_its_name(hub: Hub, cache: Path):
    path = fetch()
    assert path.read_bytes() == CONTENT
    assert path == cache / "models--makers--tiny-GGUF" / "snapshots" / COMMIT / "q4/tiny.gguf"
    assert locate_model("makers/tiny-GGUF:q4/tiny.gguf") == path
    assert partials(cache) == []


def test_what_is_there_is_not_asked_for_again(hub: Hub):
    path = fetch()
    hub.seen.clear()
    assert fetch() == path
    assert hub.seen == []


def test_progress_grows_from_nothing_to_all_of_it(hub: Hub):
    told: list[tuple[int, int]] = []
    fetch(on_progress=lambda done, total: told.append((done, total)))
    assert told[0] == (0, len(CONTENT))
    assert told[-1] == (len(CONTENT), len(CONTENT))
    assert told == sorted(told)
    assert len(told) > 5


def test_nothing_is_asked_for_but_the_file_at_one_commit(hub: Hub):
    fetch()
    assert [(seen.method, seen.path) for seen in hub.seen] == [
        ("HEAD", "/makers/tiny-GGUF/resolve/main/q4/tiny.gguf"),
        ("GET", f"/makers/tiny-GGUF/resolve/{COMMIT}/q4/tiny.gguf"),
        ("GET", "/store"),
        ("HEAD", "/makers/tiny-GGUF/resolve/main/q4/tiny.gguf"),
    ]
    assert hub.seen[2].encoding == "identity"


def test_the_library_s_own_settings_are_as_before(hub: Hub, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(constants, "HF_HUB_DISABLE_TELEMETRY", False)
    monkeypatch.setattr(constants, "HF_HUB_DISABLE_XET", False)
    fetch()
    assert (constants.HF_HUB_DISABLE_TELEMETRY, constants.HF_HUB_DISABLE_XET) == (False, False)


def test_the_token_goes_to_the_hub_and_not_to_the_store(hub: Hub):
    fetch(token="hf_secret")
    told = {(seen.path == "/store", seen.authorization) for seen in hub.seen}
    assert told == {(False, "Bearer hf_secret"), (True, None)}


# Cut connections -------------------------------------------------------------------------------


def test_a_cut_connection_is_gone_on_with(hub: Hub):
    hub.cuts = [300_000, 0, 100_000]
    assert fetch().read_bytes() == CONTENT
    assert [seen.range for seen in hub.fetches] == [
        None,
        "bytes=300000-",
        "bytes=300000-",
        "bytes=400000-",
    ]


def test_a_connection_that_brings_nothing_more_is_given_up_and_the_next_attempt_goes_on(
    hub: Hub, cache: Path
):
    hub.cuts = [300_000, 0, 0, 0]
    assert refused() == f"{hub.url} cannot be reached; check the network, then fetch q4/tiny.gguf again"
    assert partials(cache) == [300_000]

    told: list[int] = []
    assert fetch(on_progress=lambda done, _: told.append(done)).read_bytes() == CONTENT
    assert told[0] == 300_000
    assert hub.fetches[-1].range == "bytes=300000-"


def test_a_server_that_knows_no_ranges_sends_all_of_it_again(hub: Hub):
    hub.ranges = False
    hub.cuts = [300_000]
    assert fetch().read_bytes() == CONTENT


def test_a_server_that_always_stops_at_the_same_byte_is_given_up(hub: Hub):
    hub.ranges = False
    hub.cuts = [300_000] * 10
    assert "cannot be reached" in refused()
    assert len(hub.fetches) == 4


def test_what_was_cancelled_is_kept_and_gone_on_with(hub: Hub, cache: Path):
    told: list[int] = []
    with pytest.raises(
        DownloadCancelled, match=r"tiny\.gguf was stopped at \d MB of 1 MB; fetching it again"
    ):
        fetch(on_progress=lambda done, _: told.append(done), cancelled=lambda: len(told) > 3)
    kept = partials(cache)
    assert 0 < kept[0] < len(CONTENT)

    assert fetch().read_bytes() == CONTENT
    assert hub.fetches[-1].range == f"bytes={kept[0]}-"


def test_cancelling_ends_the_wait_for_a_new_connection(hub: Hub):
    hub.cuts = [0] * 10
    waited: list[float] = []
    with pytest.raises(DownloadCancelled):
        download(*NAME, on_progress=lambda *_: None, cancelled=lambda: len(waited) == 3, pause=waited.append)
    assert len(waited) == 3


def test_what_was_changed_on_the_hub_meanwhile_is_fetched_anew(hub: Hub):
    hub.cuts = [300_000, 0, 0, 0]
    refused()
    hub.content = CONTENT[::-1]
    assert fetch().read_bytes() == CONTENT[::-1]


def test_what_arrives_damaged_is_removed(hub: Hub, cache: Path):
    hub.checksum = "a" * 64
    assert refused() == "q4/tiny.gguf arrived damaged and was removed; fetch it again"
    assert not list(cache.rglob("a" * 64))
    assert partials(cache) == []


def test_more_bytes_than_there_are_to_be_are_refused(hub: Hub, cache: Path):
    hub.size = 500_000
    assert "more bytes than it has" in refused()
    assert partials(cache) == []


# What a person can do something about ----------------------------------------------------------


def test_a_repository_that_does_not_exist(hub: Hub):
    assert refused("makers/other") == (
        f"{hub.url} has no repository makers/other, or it is private; check its name, or set HF_TOKEN"
    )


def test_a_file_that_does_not_exist(hub: Hub):
    assert refused(file="other.gguf") == (
        f"makers/tiny-GGUF has no file other.gguf; see {hub.url}/makers/tiny-GGUF/tree/main"
    )


@pytest.mark.parametrize("status", [401, 403])
def test_a_gated_repository_says_how_to_be_let_in(hub: Hub, status: int):
    hub.refusal = (status, {"X-Error-Code": "GatedRepo", "X-Error-Message": "Access is restricted"})
    told = refused()
    assert told.startswith("makers/tiny-GGUF is gated: accept its terms on ")
    assert told.endswith("and set HF_TOKEN to it")


@pytest.mark.parametrize(
    ("status", "headers", "words"),
    [
        (401, {"X-Error-Message": "Invalid credentials in Authorization header"}, "does not know the token"),
        (403, {}, "refuses makers/tiny-GGUF to this token"),
        (429, {}, "too many requests"),
        (500, {}, "answered with error 500; try again later"),
    ],
)
def test_a_hub_that_refuses(hub: Hub, status: int, headers: dict[str, str], words: str):
    hub.refusal = (status, headers)
    assert words in refused()


def test_a_server_that_is_no_hub(hub: Hub):
    hub.commit = None
    assert refused() == f"{hub.url} does not answer as a Hugging Face hub does; check HF_ENDPOINT"


@pytest.mark.parametrize("checksum", ["../../../outside", "x", "a" * 63])
def test_a_checksum_that_is_none_names_no_file(hub: Hub, checksum: str):
    hub.checksum = checksum
    assert "does not answer as a Hugging Face hub does" in refused()


def test_no_network(cache: Path, monkeypatch: pytest.MonkeyPatch):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{taken.getsockname()[1]}"
        point_to(url, monkeypatch)
        assert refused() == f"{url} cannot be reached; check the network, then fetch q4/tiny.gguf again"


def test_offline_mode(hub: Hub, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    assert "HF_HUB_OFFLINE forbids fetching it" in refused()
    assert hub.seen == []


def test_what_is_there_is_found_in_offline_mode(hub: Hub, monkeypatch: pytest.MonkeyPatch):
    path = fetch()
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    assert fetch() == path


def test_a_file_that_the_disk_has_no_room_for_is_not_begun(hub: Hub):
    hub.size = 10**18
    told = refused()
    assert "are to come; free some, or set HF_HUB_CACHE" in told
    assert hub.fetches == []


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no disk that is always full")
def test_a_disk_that_fills_up(hub: Hub, cache: Path):
    hub.cuts = [0, 0, 0, 0]
    refused()
    [partial] = cache.rglob("*.incomplete")
    partial.unlink()
    partial.symlink_to("/dev/full")
    assert (
        refused() == "the disk is full, and q4/tiny.gguf is not all there; free some of it and fetch it again"
    )


def test_a_cache_that_cannot_be_written(hub: Hub, cache: Path):
    cache.write_text("no folder")
    assert refused().endswith("; check HF_HUB_CACHE and its disk")


@pytest.mark.parametrize("place", ["file", "file/below", "/dev/full"])
def test_a_cache_that_is_no_folder_is_said_before_and_while_fetching(
    hub: Hub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str
):
    (tmp_path / "file").write_text("mine")
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / place))
    listed = Listed(NAME[1], len(CONTENT), "a" * 64)
    with pytest.raises(DownloadError, match="check HF_HUB_CACHE and its disk"):
        require_room([(NAME[0], listed)])
    assert "check HF_HUB_CACHE and its disk" in refused()


def test_a_file_that_another_program_is_fetching(hub: Hub, cache: Path):
    hub.cuts = [0, 0, 0, 0]
    refused()
    [lock] = cache.rglob("*.lock")
    with WeakFileLock(lock):
        assert refused() == "q4/tiny.gguf is being fetched by another program; wait until it is there"


@pytest.mark.parametrize("file", ["", "../m.gguf", "/m.gguf", "a/../../m.gguf", "C:\\m.gguf", "a\nb.gguf"])
def test_a_path_that_leads_out_of_the_repository_is_refused(hub: Hub, file: str):
    assert "is no path inside a repository" in refused(file=file)
    assert hub.seen == []


@pytest.mark.parametrize("repository", ["", "a/b/c", "a b/c", "../x", "a/b\n"])
def test_what_is_no_repository_s_name_is_refused(hub: Hub, repository: str):
    assert "is no repository's name" in refused(repository)
    assert hub.seen == []


# The environment -------------------------------------------------------------------------------


def in_a_new_process(**environment: str) -> str:
    code = (
        "from specchat.app.downloading import download, DownloadError\n"
        "try: print(download('makers/tiny-GGUF', 'q4/tiny.gguf', on_progress=lambda *_: None, "
        "cancelled=lambda: False).stat().st_size)\n"
        "except DownloadError as error: print(error)"
    )
    kept = {name: value for name, value in os.environ.items() if not name.startswith("HF_")}
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**kept, **environment},
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert done.stderr == ""
    return done.stdout.strip()


def test_endpoint_cache_token_and_offline_mode_come_from_the_environment(hub: Hub, cache: Path):
    here = {"HF_ENDPOINT": hub.url, "HF_HUB_CACHE": str(cache), "HF_TOKEN": "hf_secret"}
    assert "HF_HUB_OFFLINE" in in_a_new_process(**here, HF_HUB_OFFLINE="1")
    assert in_a_new_process(**here) == str(len(CONTENT))
    assert hub.seen[0].authorization == "Bearer hf_secret"
    assert {seen.path.replace(COMMIT, "main") for seen in hub.seen} == {
        "/makers/tiny-GGUF/resolve/main/q4/tiny.gguf",
        "/store",
    }


# What to fetch ---------------------------------------------------------------------------------


def test_known_pairs_are_named_once_from_small_to_large_with_a_draft_worth_having():
    known = known_models()
    assert len({pair.key for pair in known}) == len(known)
    assert all(re.fullmatch(r"[a-z0-9.-]+", pair.key) for pair in known)
    assert [pair.target.size_bytes for pair in known] == sorted(pair.target.size_bytes for pair in known)
    assert all(0.05 < pair.share < 0.45 for pair in known if pair.draft is not None)


def test_known_files_are_named_as_the_hub_names_them():
    for one in (file for pair in known_models() for file in pair.files):
        assert parse_name(f"{one.repository}/{one.file}") == HubName(one.repository, one.file)
        assert one.repository.endswith("-GGUF")
        assert quantization_of(one.file) in ("Q4_K_M", "Q4_0", "Q8_0")
        assert one.licence


def test_a_known_file_has_one_size_wherever_it_stands():
    sizes: dict[tuple[str, str], set[int]] = {}
    for one in (file for pair in known_models() for file in pair.files):
        sizes.setdefault((one.repository, one.file), set()).add(one.size_bytes)
    assert all(len(told) == 1 for told in sizes.values())


def test_a_pair_s_licence_names_the_draft_s_where_it_is_another():
    by_key = {pair.key: pair.licence for pair in known_models()}
    assert by_key["qwen3-8b"] == "Apache-2.0"
    assert by_key["qwen2.5-3b"] == "Qwen Research License, no commercial use (draft: Apache-2.0)"
