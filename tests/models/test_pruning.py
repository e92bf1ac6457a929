from pathlib import Path

import gguf
import numpy as np
import pytest

from specchat.models.errors import ModelFileError
from specchat.models.gguf_layout import read_layout
from specchat.models.pruning import refuse_unprunable
from tests.models.gguf_writing import write_gguf
from tests.tiny_models import write_tiny_model


def refusal(path: Path, *skipped: int) -> str:
    with pytest.raises(ModelFileError) as refused:
        refuse_unprunable(read_layout(path), skipped)
    assert "\n" not in str(refused.value)
    return str(refused.value)


def test_layers_of_a_plain_model_may_go(tmp_path: Path):
    path = write_tiny_model(tmp_path / "tiny.gguf", layers=3)
    for skipped in ((), (0,), (1, 2)):
        refuse_unprunable(read_layout(path), skipped)


def test_layers_that_are_not_there_are_named(tmp_path: Path):
    path = write_tiny_model(tmp_path / "tiny.gguf", layers=3)
    assert "has layers 0-2, and no 3-4" in refusal(path, 2, 3, 4)
    assert "all 3 layers" in refusal(path, 0, 1, 2)


@pytest.mark.parametrize("architecture", ["gemma3", "gpt-oss", "llama4", "smollm3", "lfm2", "baichuan"])
def test_architectures_whose_layers_go_by_their_number_are_refused(tmp_path: Path, architecture: str):
    path = write_gguf(tmp_path / "m.gguf", architecture=architecture)
    told = refusal(path, 1)
    assert "no layers can be left out of" in told
    assert f"in the architecture {architecture} what a layer does may depend on its number" in told


@pytest.mark.parametrize(
    ("architecture", "extra", "why"),
    [
        ("llama", {"llama.attention.head_count_kv": [1, 2]}, "'attention.head_count_kv' lists"),
        ("llama", {"llama.attention.sliding_window_pattern": [True, False]}, "sliding_window_pattern"),
        ("qwen3moe", {"qwen3moe.leading_dense_block_count": 1}, "differ by their number"),
        ("glm4", {"glm4.nextn_predict_layers": 1}, "differ by their number"),
        ("olmo2", {"olmo2.attention.sliding_window": 4096}, "may depend on its number"),
    ],
)
def test_what_a_file_says_of_single_layers_is_respected(
    tmp_path: Path, architecture: str, extra: dict[str, object], why: str
):
    path = write_gguf(tmp_path / "m.gguf", architecture=architecture, extra=extra)
    assert why in refusal(path, 1)


def test_layers_of_several_shapes_are_refused(tmp_path: Path):
    path = tmp_path / "odd.gguf"
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_block_count(2)
    writer.add_tensor("blk.0.ffn_up.weight", np.zeros((4, 8), np.float32))
    writer.add_tensor("blk.1.ffn_up.weight", np.zeros((6, 8), np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    assert "not all of one shape" in refusal(path, 1)


def test_a_file_that_does_not_count_its_layers_is_refused(tmp_path: Path):
    path = tmp_path / "none.gguf"
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_tensor("x", np.zeros(4, np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    assert "does not say how many layers" in refusal(path, 0)
