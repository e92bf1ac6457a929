from pathlib import Path
from typing import Any

import gguf
import numpy as np
import pytest

from specchat.models import quantizing
from specchat.models.errors import LoadError
from specchat.models.gguf_file import read_header
from specchat.models.gguf_layout import read_layout
from specchat.models.llama import Context, Model, api
from specchat.models.quantizing import FILE_TYPES, TENSOR_TYPES, quantize
from tests.tiny_models import EXACT, write_tiny_model


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_tiny_model(tmp_path_factory.mktemp("source") / "f32.gguf", layers=4)


def kinds(path: Path) -> dict[str, str]:
    return {tensor.name: gguf.GGMLQuantizationType(tensor.kind).name for tensor in read_layout(path).tensors}


@pytest.mark.parametrize("name", FILE_TYPES)
def test_every_file_type_is_written_and_loads(source: Path, tmp_path: Path, name: str):
    path = tmp_path / "out.gguf"
    quantize(source, path, name)
    assert read_header(path).quantization == name
    with Model(path) as model:
        assert model.size_bytes < source.stat().st_size


@pytest.mark.parametrize("name", [name for name in TENSOR_TYPES if name != "Q6_K"])
def test_the_output_matrix_is_given_its_own_type(source: Path, tmp_path: Path, name: str):
    quantize(source, tmp_path / "out.gguf", "Q8_0", output=name)
    found = kinds(tmp_path / "out.gguf")
    assert (found["output.weight"], found["blk.0.ffn_up.weight"]) == (name, "Q8_0")


def test_layers_are_left_out_and_the_others_move_up(source: Path, tmp_path: Path):
    path = tmp_path / "out.gguf"
    quantize(source, path, None, without=(2, 0))
    found = {t.name: t.data.copy() for t in gguf.GGUFReader(path).tensors}
    given = {t.name: t.data.copy() for t in gguf.GGUFReader(source).tensors}
    assert read_header(path).block_count == 2
    for now, before in ((0, 1), (1, 3)):
        for part in ("attn_q", "ffn_down"):
            np.testing.assert_array_equal(
                found[f"blk.{now}.{part}.weight"], given[f"blk.{before}.{part}.weight"]
            )
    assert not any(name.startswith("blk.2.") for name in found)
    np.testing.assert_array_equal(found["output.weight"], given["output.weight"])


def test_without_a_layer_that_does_nothing_a_model_says_the_same(tmp_path: Path):
    whole = write_tiny_model(tmp_path / "whole.gguf", layers=4, idle_layers=(1,))
    quantize(whole, tmp_path / "less.gguf", None, without=(1,))
    rows: list[np.ndarray] = []
    for path in (whole, tmp_path / "less.gguf"):
        with Model(path) as model:
            context = Context(model, size=32, threads=1, chunk=16, **EXACT)
            rows.append(context.decode([1, 2, 3, 4], 4).copy())
            context.close()
    np.testing.assert_allclose(rows[0], rows[1], atol=1e-5)


def test_notes_are_written_beside_what_the_file_said(source: Path, tmp_path: Path):
    quantize(source, tmp_path / "out.gguf", "Q8_0", notes={"some.key": "x" * 127, "other.key": "ä"})
    values = read_layout(tmp_path / "out.gguf").values
    assert (values["some.key"], values["other.key"]) == ("x" * 127, "ä")
    assert values["general.name"] == "Tiny"
    assert values["tokenizer.ggml.tokens"] == read_layout(source).values["tokenizer.ggml.tokens"]


def test_a_draft_is_the_same_however_little_the_quantizer_works_in(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    written: list[bytes] = []
    sizes: list[int] = []
    quantizer = api.llama_model_quantize

    def watched(source: bytes, destination: bytes, parameters: Any) -> int:
        sizes.append(parameters.contents.max_buf_size)
        return quantizer(source, destination, parameters)

    monkeypatch.setattr(api, "llama_model_quantize", watched)
    for size in (quantizing.BUFFERS, 5_000):
        monkeypatch.setattr(quantizing, "BUFFERS", size)
        quantize(source, tmp_path / "out.gguf", "Q4_0", without=(1,))
        written.append((tmp_path / "out.gguf").read_bytes())
    assert written[0] == written[1]
    assert sizes == [128 << 20, 5_000]


def test_a_file_that_cannot_be_requantized_says_why(tmp_path: Path):
    with pytest.raises(LoadError, match=r"missing\.gguf could not be requantized"):
        quantize(tmp_path / "missing.gguf", tmp_path / "out.gguf", "Q4_0")
