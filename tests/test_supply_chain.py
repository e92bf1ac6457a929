"""What is installed is pinned, no stranger's pickle is read, and weights come from GGUF files alone."""

from __future__ import annotations

import ast
import pickle
import re
import runpy
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


def audit_says(report: object) -> tuple[str, int]:
    return runpy.run_path(str(ROOT / ".ci" / "audit.py"))["told"](report)


SOUND = {"name": "rich", "version": "15.0.0", "vulns": []}
FLAWED = {"name": "jinja2", "version": "3.1.5", "vulns": [{"id": "PYSEC-1", "fix_versions": ["3.1.6"]}]}
UNKNOWN = {"name": "gguf", "skip_reason": "not found"}


@pytest.mark.parametrize(
    ("packages", "words", "code"),
    [
        ([SOUND, UNKNOWN], "audit: 1 of 2 packages looked up, 0 vulnerabilities known", 0),
        ([UNKNOWN], "audit skipped: of 1 packages none is known", 0),
        ([SOUND, FLAWED], "jinja2 3.1.5: PYSEC-1, mended in 3.1.6\naudit: 2 of 2", 1),
    ],
)
def test_an_audit_says_what_it_found_and_of_how_many(packages: list[object], words: str, code: int):
    line, found = audit_says({"dependencies": packages, "fixes": []})
    assert line.startswith(words)
    assert found == code


@pytest.mark.parametrize("report", [[], {}, {"dependencies": None}, "no"])
def test_what_is_no_audit_is_not_taken_for_one(report: object):
    with pytest.raises(ValueError, match="no list"):
        audit_says(report)


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
