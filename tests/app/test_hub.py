"""What a repository holds, asked of a small hub on this machine by the real client."""

from __future__ import annotations

import hashlib
import socket
import time
from pathlib import Path
from typing import Any

import pytest
from huggingface_hub import constants

from specchat.app.hub import DownloadError, Listed, list_files
from tests.app.hub_server import CONTENT, Hub, point_to

REPOSITORY = "makers/tiny-GGUF"


def refused(repository: str = REPOSITORY) -> str:
    with pytest.raises(DownloadError) as caught:
        list_files(repository)
    assert str(caught.value).isprintable()
    return str(caught.value)


def test_files_are_listed_with_their_sizes_and_checksums_and_folders_are_not(hub: Hub):
    hub.others = {"README.md": b"hello"}
    assert list_files(REPOSITORY) == [
        Listed("q4/tiny.gguf", len(CONTENT), hashlib.sha256(CONTENT).hexdigest()),
        Listed("README.md", 5, hashlib.sha256(b"hello").hexdigest()),
    ]


def test_a_list_of_several_pages_is_read_to_its_end(hub: Hub):
    hub.page = 3
    hub.others = {f"m-{number}.gguf": b"" for number in range(10)}
    assert [file.path for file in list_files(REPOSITORY)] == list(hub.files)
    assert len([seen for seen in hub.seen if "/tree/" in seen.path]) == 4


def test_the_token_goes_to_the_hub(hub: Hub, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("HF_TOKEN", "hf_secret")
    list_files(REPOSITORY)
    assert {seen.authorization for seen in hub.seen} == {"Bearer hf_secret"}


def test_a_repository_that_does_not_exist(hub: Hub):
    assert refused("makers/other") == (
        f"{hub.url} has no repository makers/other, or it is private; check its name, or set HF_TOKEN"
    )


@pytest.mark.parametrize(
    ("status", "headers", "words"),
    [
        (403, {"X-Error-Code": "GatedRepo"}, "makers/tiny-GGUF is gated: accept its terms on "),
        (401, {"X-Error-Message": "Invalid credentials in Authorization header"}, "does not know the token"),
        (403, {}, "refuses makers/tiny-GGUF to this token"),
        (429, {}, "too many requests"),
        (503, {}, "answered with error 503; try again later"),
    ],
)
def test_a_hub_that_refuses_is_asked_once(hub: Hub, status: int, headers: dict[str, str], words: str):
    hub.refusal = (status, headers)
    assert words in refused()
    assert len(hub.seen) == 1


@pytest.mark.parametrize(
    "listing", [{"error": "x"}, [1, 2], [{"type": "file"}], "text", [{"path": "m.gguf"}]]
)
def test_a_server_that_is_no_hub(hub: Hub, listing: Any):
    hub.listing = listing
    assert refused() == f"{hub.url} does not answer as a Hugging Face hub does; check HF_ENDPOINT"


def test_no_network_is_said_at_once(cache: Path, monkeypatch: pytest.MonkeyPatch):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{taken.getsockname()[1]}"
        point_to(url, monkeypatch)
        monkeypatch.setattr(time, "sleep", lambda seconds: pytest.fail("it waits to try again"))
        assert refused() == f"{url} cannot be reached; check the network, then fetch {REPOSITORY} again"


def test_offline_mode(hub: Hub, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    assert "HF_HUB_OFFLINE forbids fetching it" in refused()
    assert hub.seen == []
