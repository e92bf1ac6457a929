"""A hub on this machine, and an empty cache for what is fetched from it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import huggingface_hub
import pytest
from huggingface_hub import constants

from specchat.app import guarded
from tests.app.hub_server import CONTENT, Hub, point_to, serve


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty Hugging Face cache in place of the user's own, and nobody's token."""
    folder = tmp_path / "hub"
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(folder))
    monkeypatch.setattr(constants, "HF_TOKEN_PATH", str(tmp_path / "token"))
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    for variable in ("HF_TOKEN", "HUGGING_FACE_HUB_TOKEN"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("NO_PROXY", "*")
    huggingface_hub.close_session()
    return folder


@pytest.fixture
def hub(cache: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Hub]:
    """The hub that this process asks."""
    with serve(Hub(CONTENT)) as hub:
        point_to(hub.url, monkeypatch)
        yield hub


@pytest.fixture
def in_this_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """Commands do their work where the test can change what the machine is like."""
    monkeypatch.setattr(guarded, "guarded", lambda work, arguments, _: work(*arguments))
