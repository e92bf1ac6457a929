"""`specchat inspect`, beside what the gguf package says of the same files."""

import contextlib
import io
import json
import subprocess
import sys
from argparse import Namespace
from pathlib import Path
from typing import Any

import gguf
import pytest
from gguf.scripts.gguf_dump import dump_metadata_json

from specchat.app.deriving import destination, open_source, put, scratch, write
from specchat.app.exit_codes import DONE, UNUSABLE
from specchat.app.inspecting import inspect
from specchat.app.processor import Processor
from specchat.app.requests import LoadOptions
from specchat.models.derived import Recipe
from specchat.models.gguf_layout import TOKENS_KEY
from specchat.models.locate import packaged_demo_model
from tests.models.gguf_writing import write_gguf
from tests.tiny_models import TinyPair, write_tiny_model

PLAIN = Processor("", frozenset())


def inspected(
    capsys: pytest.CaptureFixture[str], *files: Path, code: int = DONE, **options: object
) -> dict[str, Any]:
    wanted = LoadOptions(str(files[0]), **options)  # type: ignore[arg-type]
    assert inspect(wanted, [str(file) for file in files[1:]], PLAIN, True, "specchat inspect") == code
    return json.loads(capsys.readouterr().out)


def told(capsys: pytest.CaptureFixture[str], *files: Path, code: int = DONE) -> str:
    wanted = LoadOptions(str(files[0]))
    assert inspect(wanted, [str(file) for file in files[1:]], PLAIN, False, "specchat inspect") == code
    return capsys.readouterr().out


def dumped(path: Path) -> dict[str, Any]:
    """What the gguf package's own program says, and how many tokens its reader found."""
    reader = gguf.GGUFReader(path)
    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        dump_metadata_json(reader, Namespace(model=str(path), no_tensors=False, json_array=False))
    return {**json.loads(said.getvalue()), "tokens": len(reader.fields[TOKENS_KEY].data)}


def shared_figures(dump: dict[str, Any]) -> dict[str, Any]:
    """The figures of a dump by the names that `inspect --json` has for them."""
    keys = {key: entry.get("value") for key, entry in dump["metadata"].items()}
    architecture = keys["general.architecture"]
    elements = [1] * len(dump["tensors"])
    for index, tensor in enumerate(dump["tensors"].values()):
        for length in tensor["shape"]:
            elements[index] *= length
    names = {
        "train_context": "context_length", "layers": "block_count", "heads": "attention.head_count",
        "embedding_length": "embedding_length", "feed_forward_length": "feed_forward_length",
        "kv_heads": "attention.head_count_kv", "key_length": "attention.key_length",
        "value_length": "attention.value_length", "sliding_window": "attention.sliding_window",
    }  # fmt: skip
    types = [tensor["type"] for tensor in dump["tensors"].values()]
    return {
        "architecture": architecture,
        "name": keys.get("general.name"),
        "basename": keys.get("general.basename"),
        "organisation": keys.get("general.organization"),
        "author": keys.get("general.author"),
        "licence": keys.get("general.license"),
        "parameters": sum(elements),
        "tensors by type": {kind: types.count(kind) for kind in sorted(set(types))},
        "elements by type": {
            kind: sum(count for count, own in zip(elements, types, strict=True) if own == kind)
            for kind in sorted(set(types))
        },
        **{name: keys.get(f"{architecture}.{key}") for name, key in names.items()},
        "rope.base": keys.get(f"{architecture}.rope.freq_base"),
        "rope.dimensions": keys.get(f"{architecture}.rope.dimension_count"),
        "rope.scaling": keys.get(f"{architecture}.rope.scaling.type"),
        "vocabulary.kind": keys.get("tokenizer.ggml.model"),
        "vocabulary.pre": keys.get("tokenizer.ggml.pre"),
        "vocabulary.size": dump["tokens"],
        "vocabulary.bos": keys.get("tokenizer.ggml.bos_token_id"),
        "vocabulary.add_bos": keys.get("tokenizer.ggml.add_bos_token"),
        "vocabulary.eos": keys.get("tokenizer.ggml.eos_token_id"),
        "vocabulary.add_eos": keys.get("tokenizer.ggml.add_eos_token"),
        "chat_template.characters": len(keys.get("tokenizer.chat_template", "")) or None,
    }


def own_figures(model: dict[str, Any]) -> dict[str, Any]:
    groups = model["tensors"]
    types = sorted({group["type"] for group in groups})
    flat = {
        f"{name}.{key}": value
        for name in ("rope", "vocabulary", "chat_template")
        for key, value in (model[name] or {}).items()
    }
    return {
        **model,
        **flat,
        "tensors by type": {
            kind: sum(group["count"] for group in groups if group["type"] == kind) for kind in types
        },
        "elements by type": {
            kind: sum(group["parameters"] for group in groups if group["type"] == kind) for kind in types
        },
    }


def disagreements(model: dict[str, Any], path: Path) -> dict[str, tuple[Any, Any]]:
    """Figures that both have and that differ; what only a default gives is in one of them."""
    own = own_figures(model)
    return {
        name: (value, own.get(name))
        for name, value in shared_figures(dumped(path)).items()
        if value is not None and own.get(name) != value
    }


def test_figures_of_tiny_models_are_those_of_gguf_dump(
    tmp_path: Path, tiny_pair: TinyPair, capsys: pytest.CaptureFixture[str]
):
    extra = {
        "general.license": "mit", "general.author": "Somebody", "llama.attention.head_count": 4,
        "llama.attention.head_count_kv": 2, "llama.attention.key_length": 6,
        "llama.attention.value_length": 6, "llama.rope.dimension_count": 6,
        "llama.rope.scaling.type": "yarn", "llama.rope.freq_base": 5000.0,
    }  # fmt: skip
    other = write_gguf(tmp_path / "other.gguf", extra=extra, template="{{ messages }}", add_eos=True)
    for path in (tiny_pair.target, other):
        (model,) = inspected(capsys, path)["models"]
        assert disagreements(model, path) == {}


def test_figures_of_the_demo_model_are_those_of_gguf_dump(capsys: pytest.CaptureFixture[str]):
    path = packaged_demo_model()
    (model,) = inspected(capsys, path)["models"]
    assert disagreements(model, path) == {}
    assert model["size_bytes"] == path.stat().st_size
    assert sum(group["size_bytes"] for group in model["tensors"]) == model["memory"]["weights_bytes"]


def test_tensors_are_told_by_what_they_are(tiny_pair: TinyPair, capsys: pytest.CaptureFixture[str]):
    (model,) = inspected(capsys, tiny_pair.target)["models"]
    assert [(group["part"], group["type"], group["count"]) for group in model["tensors"]] == [
        ("embedding", "F32", 1),
        ("attention", "F32", 8),
        ("feed-forward", "F32", 6),
        ("output", "F32", 1),
        ("norms", "F32", 5),
    ]
    assert sum(group["parameters"] for group in model["tensors"]) == model["parameters"]


def test_of_two_files_the_second_is_judged_as_the_firsts_draft(
    tiny_pair: TinyPair, capsys: pytest.CaptureFixture[str]
):
    said = inspected(capsys, tiny_pair.target, tiny_pair.draft)
    target, draft = said["models"]
    (pair,) = said["pairs"]
    assert (pair["target"], pair["draft"]) == (str(tiny_pair.target), str(tiny_pair.draft))
    assert pair["verdict"] == "fits_but"
    assert "100%" in pair["reasons"][0]
    assert pair["memory_bytes"] == target["memory"]["total_bytes"] + draft["memory"]["total_bytes"]
    text = told(capsys, tiny_pair.target, tiny_pair.draft)
    assert "fits, but:" in text
    assert "Together they take about" in text


def test_of_many_files_each_other_is_judged_against_the_first(
    tmp_path: Path, tiny_pair: TinyPair, capsys: pytest.CaptureFixture[str]
):
    other = write_tiny_model(tmp_path / "other.gguf", extra_tokens=200)
    said = inspected(capsys, tiny_pair.target, tiny_pair.draft, other, code=UNUSABLE)
    assert [pair["verdict"] for pair in said["pairs"]] == ["fits_but", "cannot"]
    text = " ".join(told(capsys, tiny_pair.target, tiny_pair.draft, other, code=UNUSABLE).split())
    assert "cannot draft for it" in text
    assert text.count("as a draft, about ") == 2
    # A pair that cannot work takes no memory together.
    assert text.count("Together they take about") == 1


def test_a_target_named_as_its_own_draft_is_judged_as_one(
    tiny_pair: TinyPair, capsys: pytest.CaptureFixture[str]
):
    said = inspected(capsys, tiny_pair.target, tiny_pair.target, tiny_pair.target)
    (pair,) = said["pairs"]
    assert (pair["target"], pair["draft"]) == (str(tiny_pair.target),) * 2
    assert (pair["verdict"], "100%" in pair["reasons"][0]) == ("fits_but", True)


@pytest.mark.parametrize(("context", "told"), [(2048, False), (2049, True)])
def test_a_context_beyond_what_a_model_was_trained_for_is_said(
    tiny_pair: TinyPair, capsys: pytest.CaptureFixture[str], context: int, told: bool
):
    wanted = LoadOptions(str(tiny_pair.target), ctx_size=context)
    assert inspect(wanted, [], PLAIN, False, "specchat inspect") == DONE
    said = " ".join(capsys.readouterr().out.split())
    assert ("more than the 2,048 tokens it was trained for" in said) == told


def test_one_file_makes_no_pair(tiny_pair: TinyPair, capsys: pytest.CaptureFixture[str]):
    assert inspected(capsys, tiny_pair.target)["pairs"] == []


def test_the_context_and_its_cache_are_as_asked_for(tiny_pair: TinyPair, capsys: pytest.CaptureFixture[str]):
    def memory(**options: object) -> dict[str, Any]:
        return inspected(capsys, tiny_pair.target, **options)["models"][0]["memory"]

    assert memory()["context"] == 2048  # what the model was trained for
    large, small = memory(ctx_size=1024), memory(ctx_size=1024, cache_type_k="q8_0", cache_type_v="q8_0")
    assert (large["context"], large["cache_type_k"]) == (1024, "f16")
    assert small["cache_bytes"] == large["cache_bytes"] * 34 // 64
    parts = [value for key, value in large.items() if key.endswith("_bytes") and key != "total_bytes"]
    assert sum(parts) == large["total_bytes"]


def test_a_file_that_is_no_model_is_a_line_and_the_others_are_described(
    tmp_path: Path, tiny_pair: TinyPair, capsys: pytest.CaptureFixture[str]
):
    bad = write_gguf(tmp_path / "bad.gguf", architecture="bert")
    for files in ([tiny_pair.target, bad], [bad, tiny_pair.target]):
        wanted = LoadOptions(str(files[0]))
        assert inspect(wanted, [str(files[1])], PLAIN, False, "specchat inspect") == UNUSABLE
        out, err = capsys.readouterr()
        assert err.startswith(f"specchat inspect: {bad} is an embedding model, which")
        assert err.count("\n") == 1
        assert str(tiny_pair.target) in out
        assert str(bad) not in out
    said = inspected(capsys, bad, tiny_pair.target, code=UNUSABLE)
    assert (said["pairs"], [entry["file"] for entry in said["unusable"]]) == ([], [str(bad)])


@pytest.mark.parametrize(
    ("template", "expected"),
    [
        (None, None),
        ("{% for m in messages %}{{ m.content }}{% endfor %}", (True, False)),
        ("{% for m in messages if m.role == 'user' %}<think>{{ m.content }}{% endfor %}", (False, True)),
        ("{% broken", (None, False)),
    ],
)
def test_a_template_is_told_by_what_it_can(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    template: str | None,
    expected: tuple[bool | None, bool] | None,
):
    path = write_gguf(tmp_path / "m.gguf", template=template)
    (model,) = inspected(capsys, path)["models"]
    said = model["chat_template"]
    assert (said and (said["system"], said["thinking"])) == expected
    assert said is None or said["characters"] == len(template or "")
    told(capsys, path)


def test_what_people_read_fits_eighty_columns_and_steers_no_terminal(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    path = write_gguf(
        tmp_path / "m.gguf",
        name="a\x1b[2J " * 30,
        extra={"general.license": "b\nc " * 40},
        template="{{ 1 }}",
    )
    lines = told(capsys, path, packaged_demo_model(), code=UNUSABLE).splitlines()
    assert all(line.isprintable() for line in lines)
    assert max(len(line) for line in lines if ".gguf" not in line) <= 80


def test_it_says_what_it_says_without_llama_cpp(tiny_pair: TinyPair):
    code = (
        "import sys; sys.argv = ['specchat', 'inspect', sys.argv[1], '--json']\n"
        "from specchat.tui.entry import main\n"
        "assert main() == 0\n"
        "assert not {'llama_cpp', 'textual'} & set(sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, tiny_pair.target], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["models"][0]["architecture"] == "llama"


def test_a_derived_file_says_what_it_was_made_from(
    tiny_pair: TinyPair, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    source, recipe = open_source(tiny_pair.target, lambda _part: None), Recipe("Q8_0")
    with scratch(tmp_path / "derived") as folder:
        made = put(write(source, recipe, folder, 1), recipe, destination(source, recipe, tmp_path)).path
    assert "target.gguf by specchat derive: Q8_0" in told(capsys, made)
    (model,) = inspected(capsys, made)["models"]
    assert (model["made_from"]["source"], model["made_from"]["recipe"]) == ("target.gguf", "Q8_0")
    (plain,) = inspected(capsys, tiny_pair.target)["models"]
    assert plain["made_from"] is None
