"""What is installed is pinned, no stranger's pickle is read, and weights come from GGUF files alone."""

from __future__ import annotations

import ast
import pickle
import re
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from specchat.app.cli import main
from tests.test_architecture import MODULES, ROOT, imported, relative

RUNS_CODE = {"pickle", "_pickle", "cloudpickle", "dill", "joblib", "shelve", "marshal", "torch", "yaml"}
"""Modules whose files can run code when they are read."""

OWN_PROCESSES = {"app/guarded.py", "app/process.py", "app/spawning.py", "app/trial.py"}
"""Modules that talk to a process which they have started themselves, through a pipe that has no name."""


def lock() -> dict[str, str]:
    lines = (ROOT / "requirements-dev.lock").read_text().splitlines()
    pins = [line for line in lines if line and line[0] not in " #"]
    found = [re.fullmatch(r"([\w.-]+)==([\w.!+]+)(?: ;.*)?", pin) for pin in pins]
    assert all(found), pins
    return {canonicalize_name(pin[1]): pin[2] for pin in found if pin}


def wanted() -> list[Requirement]:
    text = (ROOT / "pyproject.toml").read_text()
    lists = re.findall(r"^(?:dependencies|dev) = \[\n(.*?)^\]", text, re.MULTILINE | re.DOTALL)
    assert len(lists) == 2
    return [Requirement(found) for each in lists for found in re.findall(r'^ *"([^"]+)"', each, re.MULTILINE)]


@pytest.mark.parametrize("requirement", wanted(), ids=lambda found: found.name)
def test_what_is_needed_has_a_range_with_an_end_and_a_version_in_the_lock(requirement: Requirement):
    assert any(part.operator in ("<", "==", "~=") for part in requirement.specifier)
    if requirement.marker is None:
        assert requirement.specifier.contains(lock()[canonicalize_name(requirement.name)])


def test_the_lock_names_no_host():
    assert "://" not in (ROOT / "requirements-dev.lock").read_text()


@pytest.mark.parametrize("path", MODULES, ids=relative)
def test_no_module_reads_files_that_can_run_code(path: Path):
    names = {name.split(".")[0] for name in imported(path)}
    assert not names & RUNS_CODE
    assert ("multiprocessing" in names) == (relative(path) in OWN_PROCESSES)
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.keyword):
            assert node.arg != "allow_pickle"
        if isinstance(node, ast.Name):
            assert node.id not in ("eval", "exec")


class Touches:
    """A file appears when its pickle is read."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self):
        return Path.touch, (self.path,)


@pytest.mark.parametrize("name", ["model.gguf", "pytorch_model.bin", "model.pt"])
def test_a_pickle_is_no_model_and_is_not_read_as_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str
):
    touched = tmp_path / "touched"
    (tmp_path / name).write_bytes(pickle.dumps(Touches(touched)))
    code: object
    try:
        code = main(["inspect", str(tmp_path / name)], None)  # type: ignore[arg-type]
    except SystemExit as end:
        code = end.code
    assert code == 2
    assert name in "".join(capsys.readouterr())
    assert not touched.exists()
    pickle.loads((tmp_path / name).read_bytes())
    assert touched.exists(), "the test would notice"
