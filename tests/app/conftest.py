"""The engine on the tiny pair, a hub on this machine, and an empty cache for what is fetched from it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import huggingface_hub
import pytest
from huggingface_hub import constants

from specchat.app import guarded
from specchat.app.requests import LoadOptions
from tests.app.driven import Driven
from tests.app.hub_server import CONTENT, Hub, point_to, serve
from tests.tiny_models import TinyPair


@pytest.fixture
def driven(tiny_pair: TinyPair) -> Iterator[Driven]:
    """An engine that has loaded the tiny pair."""
    driven = Driven()
    driven.load(LoadOptions(str(tiny_pair.target), str(tiny_pair.draft), ctx_size=512, threads=1))
    yield driven
    driven.engine.close()


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
