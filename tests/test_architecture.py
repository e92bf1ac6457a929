"""models <- app <- tui: no arrow runs back, and one module alone knows llama.cpp."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
MODULES = sorted(path for folder in ("models", "app", "tui") for path in (ROOT / folder).rglob("*.py"))


def imported(path: Path) -> set[str]:
    """Absolute names of all that a module imports, at the top or inside a function."""
    package = ["specchat", *path.relative_to(ROOT).parts[:-1]]
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            module = ".".join([*base, *([node.module] if node.module else [])])
            names |= {module, *(f"{module}.{alias.name}" for alias in node.names)}
    return names


def relative(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def test_there_are_modules_to_look_at():
    assert {"models/llama.py", "app/decoding/loop.py", "tui/app.py"} <= set(map(relative, MODULES))


@pytest.mark.parametrize("path", MODULES, ids=relative)
def test_no_arrow_runs_back(path: Path):
    forbidden = {"models": ("specchat.app", "specchat.tui", "textual"), "app": ("specchat.tui", "textual")}
    found = {
        name for name in imported(path) for bad in forbidden.get(path.relative_to(ROOT).parts[0], ())
        if name == bad or name.startswith(f"{bad}.")
    }  # fmt: skip
    assert not found


@pytest.mark.parametrize("path", MODULES, ids=relative)
def test_only_one_module_knows_llama_cpp(path: Path):
    knows = any(name.split(".")[0] == "llama_cpp" for name in imported(path))
    assert knows == (relative(path) == "models/llama.py")


@pytest.mark.parametrize("path", [path for path in MODULES if "decoding" in path.parts], ids=relative)
def test_decoding_knows_no_model_no_screen_and_no_database(path: Path):
    allowed = (
        "specchat.app.decoding",
        "numpy",
        "specchat.models.errors",
        "collections",
        "contextlib",
        "dataclasses",
        "typing",
        "statistics",
        "bisect",
        "itertools",
        "math",
    )
    assert all(name.startswith((*allowed, "__future__")) for name in imported(path))


@pytest.mark.parametrize(
    ("module", "without"),
    [
        ("specchat.app.engine", ("textual",)),
        ("specchat.app.process", ("textual", "llama_cpp")),
        ("specchat.app.catalog", ("textual", "llama_cpp", "numpy", "huggingface_hub")),
        ("specchat.app.inspecting", ("textual", "llama_cpp", "numpy")),
        ("specchat.app.doctor", ("textual", "llama_cpp", "numpy")),
        ("specchat.app.downloading", ("textual", "llama_cpp", "numpy", "huggingface_hub")),
        ("specchat.tui.app", ("llama_cpp",)),
        ("specchat.tui.entry", ("textual", "llama_cpp", "numpy")),
    ],
)
def test_importing_a_side_does_not_load_the_other(module: str, without: tuple[str, ...]):
    code = f"import sys, {module}; print(*({without!r} and set({without!r}) & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []


def test_every_module_fits_in_a_head():
    assert not [relative(path) for path in MODULES if len(path.read_text().splitlines()) > 400]


def test_every_package_is_installed():
    """An editable install finds what the list has forgotten; a plain one does not."""
    listed = (ROOT / "pyproject.toml").read_text()
    folders = {path.parent.relative_to(ROOT) for path in MODULES}
    missing = [folder for folder in folders if f'"specchat.{".".join(folder.parts)}"' not in listed]
    assert not missing
