"""Real tiny models for the tests: written when they start, run by the real llama.cpp."""

from __future__ import annotations

import gc
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from specchat.models.llama import Context, Model
from tests.tiny_models import EXACT, TinyPair, write_tiny_pair

# On a busy machine any case may take long, which says nothing about the program. Each run tries the same
# cases, so that what it says is about what was changed; the profile "search" tries others each time.
settings.register_profile("search", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("specchat", settings.get_profile("search"), derandomize=True)
settings.load_profile("specchat")

# Shells ignore Ctrl+C in what they start in the background, and all that it starts would inherit that.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_xdist_auto_num_workers() -> int:
    """One more than there are cores, since tests of the screen and of other processes mostly wait."""
    return (os.cpu_count() or 1) + 1


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The longest test comes first: begun last, it would keep one core and leave the others idle."""
    items.sort(key=lambda item: "test_soak.py" not in item.nodeid)


def pytest_collection_finish() -> None:
    """What is there now stays to the end: the garbage collector need not look at it again and again."""
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True)
def _own_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No test reads or writes the real user's folders or settings, nor asks the network."""
    for variable in ("XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME", "HF_HOME"):
        monkeypatch.setenv(variable, str(tmp_path / variable.lower()))
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    for variable in [name for name in os.environ if name.startswith("SPECCHAT_")]:
        monkeypatch.delenv(variable)


@pytest.fixture(scope="session")
def tiny_pair(tmp_path_factory: pytest.TempPathFactory) -> TinyPair:
    """A target and a draft whose proposals are accepted about a third of the time."""
    return write_tiny_pair(tmp_path_factory.mktemp("tiny"))


@pytest.fixture(scope="session")
def ending_pair(tmp_path_factory: pytest.TempPathFactory) -> TinyPair:
    """A pair whose answers end by themselves after some tens of tokens."""
    return write_tiny_pair(tmp_path_factory.mktemp("ending"), noise=0.05, ends=True)


@pytest.fixture(scope="session")
def models(tiny_pair: TinyPair) -> Iterator[tuple[Model, Model]]:
    """The tiny pair, loaded once."""
    with Model(tiny_pair.target) as target, Model(tiny_pair.draft) as draft:
        yield target, draft


@pytest.fixture
def contexts(models: tuple[Model, Model]) -> Iterator[tuple[Context, Context]]:
    """Empty contexts of the tiny pair, target and draft, exact to single precision."""
    target, draft = (Context(model, size=512, threads=1, chunk=64, **EXACT) for model in models)
    yield target, draft
    target.close()
    draft.close()
