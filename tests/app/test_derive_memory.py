"""What a draft takes of memory to make, and that it is said before anything is made."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from specchat.app import loading
from specchat.app.derive_command import derive_command
from specchat.app.derive_memory import quantizer_bytes, requantized, search_bytes
from specchat.app.deriving import default_folder, open_source, write
from specchat.app.footprint import Machine
from specchat.app.memory_room import Room
from specchat.app.parsers import derive_parser
from specchat.app.processor import Processor
from specchat.app.quant_search import CANDIDATES, FINALISTS
from specchat.models.derived import Recipe
from specchat.models.gguf_file import GgufHeader, read_header
from tests.tiny_models import write_tiny_model

PROCESSOR = Processor("", frozenset())


@pytest.fixture
def source(tmp_path: Path) -> Path:
    return write_tiny_model(tmp_path / "tiny.gguf", layers=4)


def derive(free: int, *words: object) -> int:
    machine = Machine(lambda: PROCESSOR, lambda: Room(free, "ulimit -v"))
    return derive_command(derive_parser(), [*map(str, words), "-t", "1", "-ngl", "0"], machine)


@pytest.mark.parametrize(
    ("words", "recipe"),
    [
        (["--quant", "auto"], None),
        (["--skip-layers", "auto"], Recipe()),
        (["--quant", "Q8_0", "--skip-layers", "auto"], Recipe("Q8_0")),
        (["--quant", "auto", "--skip-layers", "auto"], None),
    ],
)
def test_a_search_that_does_not_fit_is_refused_before_anything_is_read_with_what_does(
    source: Path, capsys: pytest.CaptureFixture[str], words: list[str], recipe: Recipe | None
):
    takes = search_bytes(read_header(source), recipe or Recipe(), PROCESSOR, 768, finds_quant=recipe is None)
    assert derive(takes - 1, source, *words) == 2
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert re.search(
        r"Not enough memory: measuring drafts of tiny\.gguf takes about \S+ (MB|bytes) and \S+( MB)? are "
        r"free within ulimit -v; --quant TYPE and --skip-layers LIST measure nothing and take \d+ MB \(--no",
        err,
    ), err
    assert not default_folder().exists()


def test_a_search_holds_the_source_beside_each_of_the_drafts_that_are_timed_in_turns(source: Path):
    header = read_header(source)
    large = replace(
        header,
        parameters=header.parameters * 10_000,
        tensors=tuple(
            replace(group, parameters=group.parameters * 10_000, size_bytes=group.size_bytes * 10_000)
            for group in header.tensors
        ),
    )

    def weights(one: GgufHeader) -> int:
        return sum(group.size_bytes for group in one.tensors)

    takes = search_bytes(large, Recipe(), PROCESSOR, 768, finds_quant=True)
    drafts = sorted(weights(requantized(large, candidate)) for candidate in CANDIDATES)
    assert takes > weights(large) + sum(drafts[-FINALISTS:])
    assert takes < weights(large) + (FINALISTS + 1) * drafts[-1]
    one = search_bytes(large, Recipe("Q8_0"), PROCESSOR, 768, finds_quant=False)
    assert one < takes


def test_what_is_on_a_gpu_while_it_is_measured_takes_no_main_memory(
    source: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.setattr(loading, "_has_gpu", lambda: True)
    machine = Machine(lambda: PROCESSOR, lambda: Room(0))
    words = [str(source), "--skip-layers", "auto", "--search-time", "0.001", "-t", "1"]
    assert derive_command(derive_parser(), words, machine) == 2  # what is made at last does not fit
    assert "making a draft of tiny.gguf takes about" in capsys.readouterr().err


def test_a_draft_that_does_not_fit_is_refused_and_made_to_the_byte_or_all_the_same(
    source: Path, capsys: pytest.CaptureFixture[str]
):
    takes = quantizer_bytes(read_header(source))
    assert derive(takes - 1, source, "--quant", "Q8_0") == 2
    said = capsys.readouterr().err
    assert said.startswith("specchat derive: Not enough memory: making a draft of tiny.gguf takes about ")
    assert not default_folder().exists()
    assert derive(takes, source, "--quant", "Q8_0") == 0
    assert derive(0, source, "--quant", "Q4_0", "--no-memory-check") == 0
    # What was made before takes nothing.
    assert derive(0, source, "--quant", "Q8_0") == 0


@pytest.mark.parametrize("recipe", [Recipe("Q8_0"), Recipe("Q4_0", "Q8_0"), Recipe("F16"), Recipe()])
def test_the_weights_of_a_draft_are_foreseen(source: Path, tmp_path: Path, recipe: Recipe):
    opened = open_source(source, lambda _part: None)
    made = read_header(write(opened, recipe, tmp_path, 1)) if recipe.quant else opened.header
    foreseen, real = (
        sum(group.size_bytes for group in header.tensors)
        for header in (requantized(opened.header, recipe), made)
    )
    assert foreseen == pytest.approx(real, rel=0.1)
