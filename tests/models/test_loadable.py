"""What llama.cpp would die of is refused by what the header says, in a line that says what is wrong."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from specchat.models.errors import ModelFileError
from specchat.models.gguf_file import read_header
from tests.models.header_bytes import ARRAY, STRING, Header, Key, Scalar, bases_of, header_bytes
from tests.models.small_models import write_small_model
from tests.models.sound_files import REFUSED, write_sound_files

_U32, _SIGNED, _F32, _BOOL = 4, 5, 6, 7
_F16, _Q4_0, _Q8_1, _I32, _BF16 = 1, 2, 9, 26, 30


def with_key(header: Header, name: str, value: Scalar, kind: int = _U32) -> Header:
    others = tuple(key for key in header.keys if key.name != name.encode())
    return replace(header, keys=(*others, Key(name.encode(), kind, value)))


def with_type(header: Header, name: str, kind: int) -> Header:
    assert any(tensor.name == name.encode() for tensor in header.tensors)
    tensors = (
        replace(tensor, kind=kind) if tensor.name == name.encode() else tensor for tensor in header.tensors
    )
    return replace(header, tensors=tuple(tensors))


def with_tokens(header: Header, change: dict[int, bytes]) -> Header:
    place = header.index("tokenizer.ggml.tokens")
    assert place is not None
    tokens = header.keys[place].value
    assert isinstance(tokens, tuple)
    changed = tuple(change.get(index, token) for index, token in enumerate(tokens))
    keys = (*header.keys[:place], replace(header.keys[place], value=changed), *header.keys[place + 1 :])
    return replace(header, keys=keys)


def refusal(folder: Path, header: Header) -> str:
    path = folder / "m.gguf"
    path.write_bytes(header_bytes(header))
    with pytest.raises(ModelFileError) as caught:
        read_header(path)
    message = str(caught.value)
    assert message.isprintable()
    assert message.endswith("; download it again")
    return message


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Header]:
    folder = tmp_path_factory.mktemp("sound")
    written = write_sound_files(folder)
    return {kind: bases_of(path)[0] for kind, path in written.items() if kind not in REFUSED}


def test_sound_models_are_not_refused(tmp_path: Path, sound: dict[str, Header]):
    for header in sound.values():
        path = tmp_path / "m.gguf"
        path.write_bytes(header_bytes(header))
        read_header(path)


@pytest.mark.parametrize(
    ("kind", "key", "value", "told"),
    [
        ("llama", "llama.block_count", 0, "claims 0 layers"),
        ("llama", "llama.block_count", 513, "claims 513 layers"),
        ("llama", "llama.nextn_predict_layers", 2, "2 of its 2 layers look further ahead"),
        ("llama", "llama.expert_used_count", 2, "use 2 of 0 experts"),
        ("llama", "llama.expert_group_count", 1, "1 groups of 0 experts"),
        ("llama-of-experts", "llama.expert_count", 1025, "use 2 of 1,025 experts"),
        ("llama-of-experts", "llama.expert_used_count", 0, "use 0 of 4 experts"),
        ("llama-of-experts", "llama.expert_used_count", 5, "use 5 of 4 experts"),
        ("llama-of-experts", "llama.expert_group_count", 4, "4 groups of 4 experts"),
        ("llama-of-experts", "llama.expert_group_count", 3, "3 groups of 4 experts"),
        ("llama-of-experts", "llama.expert_group_count", 2, "2 groups of 4 experts"),
        ("qwen3", "qwen3.rope.dimension_count", 8, "rotates 8 of the 16 values of a head"),
        ("phi3", "phi3.rope.dimension_count", 32, "rotates 32 of the 16 values of a head"),
        ("phi3", "phi3.rope.dimension_count", 7, "rotates 7 of the 16 values of a head"),
        ("phi3", "phi3.rope.dimension_count", 0, "rotates 0 of the 16 values of a head"),
        ("gemma3", "gemma3.rope.dimension_count_swa", 32, "rotates 32 of the 16 values of a head"),
        ("llama", "llama.attention.value_length", 32, "keys of 16 and values of 32"),
        ("gemma3", "gemma3.attention.sliding_window", 1 << 31, "a sliding window of 2,147,483,648 tokens"),
        ("llama", "\0", 1, "one of its keys has no name"),
        ("qwen2", "qwen2.attention.head_count", 3, "3 heads of 10 values are not as wide as its layers' 32"),
        ("lfm2", "lfm2.attention.value_length", 32, "keys of 16 and values of 32"),
        ("lfm2", "lfm2.shortconv.l_cache", 1, "its convolutions span 1 tokens"),
        ("lfm2moe", "lfm2moe.expert_gating_func", 0, "chooses experts by the function 0"),
        ("lfm2moe", "lfm2moe.expert_gating_func", 5, "chooses experts by the function 5"),
        ("jamba", "jamba.ssm.inner_size", 64, "64 wide and not twice its layers' 64"),
        ("jamba", "jamba.embedding_length", 128, "128 wide and not twice its layers' 128"),
        ("nemotron_h", "nemotron_h.ssm.group_count", 0, "claims 4 heads in 0 groups for its states"),
        ("nemotron_h", "nemotron_h.ssm.group_count", 3, "128 wide, for 4 heads in 3 groups"),
        ("nemotron_h", "nemotron_h.ssm.time_step_rank", 3, "128 wide, for 3 heads in 2 groups"),
        ("qwen35", "qwen35.ssm.inner_size", 128, "128 wide, for 4 heads of 16 values in 2 groups"),
        ("qwen35", "qwen35.ssm.group_count", 0, "claims 4 heads in 0 groups for its states"),
        ("qwen35", "qwen35.ssm.time_step_rank", 0, "claims 0 heads in 2 groups for its states"),
        ("qwen35moe", "qwen35moe.ssm.group_count", 3, "64 wide, for 4 heads of 16 values in 3 groups"),
        ("qwen35", "qwen35.full_attention_interval", 0, "each 0th of its layers attends"),
    ],
)
def test_a_number_that_llama_cpp_would_die_of_is_refused(
    tmp_path: Path, sound: dict[str, Header], kind: str, key: str, value: int, told: str
):
    assert told in refusal(tmp_path, with_key(sound[kind], key, value))


@pytest.mark.parametrize("value", [-1.0, float("nan"), float("inf")])
def test_an_epsilon_that_is_none_is_refused(tmp_path: Path, sound: dict[str, Header], value: float):
    changed = with_key(sound["llama"], "llama.attention.layer_norm_rms_epsilon", value, _F32)

    assert "its 'attention.layer_norm_rms_epsilon' is" in refusal(tmp_path, changed)


def test_a_list_without_a_name_is_refused_as_well(tmp_path: Path, sound: dict[str, Header]):
    listed = Key(b"\0scores", ARRAY, (0.0, 0.0), element=_F32)

    told = refusal(tmp_path, replace(sound["llama"], keys=(*sound["llama"].keys, listed)))
    assert "one of its keys has no name" in told


@pytest.mark.parametrize("pattern", [(0, 0), (0,) * 256])
def test_a_window_that_no_layer_has_is_refused(
    tmp_path: Path, sound: dict[str, Header], pattern: tuple[int, ...]
):
    listed = Key(b"gemma3.attention.sliding_window_pattern", ARRAY, pattern)

    told = refusal(tmp_path, replace(sound["gemma3"], keys=(*sound["gemma3"].keys, listed)))
    assert "a sliding window and no layer that has it" in told


def test_an_unknown_way_to_scale_positions_is_refused(tmp_path: Path, sound: dict[str, Header]):
    changed = with_key(sound["mamba"], "mamba.rope.scaling.type", b"\x1b[2Jx", STRING)

    assert r"scales positions by '\x1b[2Jx'" in refusal(tmp_path, changed)


def test_rotating_part_of_a_head_is_well_where_the_architecture_may(tmp_path: Path, sound: dict[str, Header]):
    (tmp_path / "m.gguf").write_bytes(header_bytes(with_key(sound["phi3"], "phi3.rope.dimension_count", 8)))

    assert read_header(tmp_path / "m.gguf").shape.rope_dimensions == 8


@pytest.mark.parametrize(
    ("kind", "tensor", "type_", "told"),
    [
        ("llama", "output_norm.weight", _F16, "'output_norm.weight' cannot be F16"),
        ("llama", "blk.0.attn_norm.weight", _BF16, "'blk.0.attn_norm.weight' cannot be BF16"),
        ("qwen2", "blk.1.attn_q.bias", _Q4_0, "'blk.1.attn_q.bias' cannot be Q4_0"),
        ("qwen2", "blk.1.attn_q.weight", _I32, "'blk.1.attn_q.weight' cannot be I32"),
        ("qwen2", "blk.1.attn_q.weight", _Q8_1, "'blk.1.attn_q.weight' cannot be Q8_1"),
        ("llama", "token_embd.weight", _I32, "'token_embd.weight' cannot be I32"),
        ("mamba", "blk.0.ssm_conv1d.weight", _F16, "'blk.0.ssm_conv1d.weight' cannot be F16"),
    ],
)
def test_a_tensor_that_nothing_can_be_computed_with_is_refused(
    tmp_path: Path, sound: dict[str, Header], kind: str, tensor: str, type_: int, told: str
):
    assert told in refusal(tmp_path, with_type(sound[kind], tensor, type_))


@pytest.mark.parametrize("sections", [(0, 0, 0, 0), (0, 0, 0, 8), (-4, 2, 2, 0), (8, 8, 8, 8)])
def test_sections_that_are_none_of_a_head_are_refused(
    tmp_path: Path, sound: dict[str, Header], sections: tuple[int, ...]
):
    listed = Key(b"qwen35.rope.dimension_sections", ARRAY, sections, _SIGNED)
    others = tuple(key for key in sound["qwen35"].keys if key.name != listed.name)

    told = refusal(tmp_path, replace(sound["qwen35"], keys=(*others, listed)))
    assert f"rotates sections of {', '.join(map(str, sections))} values of a head" in told


def test_an_interval_is_as_none_where_the_layers_are_listed(tmp_path: Path, sound: dict[str, Header]):
    listed = Key(b"qwen35.attention.recurrent_layers", ARRAY, (1, 0), _BOOL)
    header = with_key(sound["qwen35"], "qwen35.full_attention_interval", 0)
    (tmp_path / "m.gguf").write_bytes(header_bytes(replace(header, keys=(*header.keys, listed))))

    assert read_header(tmp_path / "m.gguf").block_count == 2


def test_layers_of_experts_without_any_are_refused(tmp_path: Path, sound: dict[str, Header]):
    none = with_key(sound["lfm2moe"], "lfm2moe.expert_count", 0)
    none = with_key(none, "lfm2moe.expert_used_count", 0)

    assert "claims to use 0 of 0 experts" in refusal(tmp_path, none)


def test_an_expert_that_is_the_share_of_none_is_refused(tmp_path: Path, sound: dict[str, Header]):
    used = Key(b"qwen35moe.expert_used_count", ARRAY, (0, 2))
    dropped = (used.name, b"qwen35moe.expert_feed_forward_length")
    keys = tuple(key for key in sound["qwen35moe"].keys if key.name not in dropped)

    told = refusal(tmp_path, replace(sound["qwen35moe"], keys=(*keys, used)))
    assert "claims to use none of 4 experts in the layer 0" in told


@pytest.mark.parametrize(
    ("kind", "tensor"),
    [
        ("nemotron_h", "ssm_conv1d.bias"),
        ("qwen35", "attn_qkv.weight"),
        ("qwen35moe", "attn_gate.weight"),
    ],
)
def test_a_recurrent_layer_that_lacks_a_tensor_is_refused(
    tmp_path: Path, sound: dict[str, Header], kind: str, tensor: str
):
    name = f"blk.0.{tensor}".encode()
    without = tuple(other for other in sound[kind].tensors if other.name != name)
    assert len(without) < len(sound[kind].tensors)

    told = refusal(tmp_path, replace(sound[kind], tensors=without))
    assert f"the layer 0 has no tensor '{tensor}'" in told


def test_a_tensor_without_values_is_refused(tmp_path: Path, sound: dict[str, Header]):
    first, *others = sound["qwen2"].tensors
    empty = replace(sound["qwen2"], tensors=(*others, replace(first, shape=(0, 32))))

    assert "'token_embd.weight' holds no values" in refusal(tmp_path, empty)


def test_a_layer_without_matrices_for_its_attention_is_refused(tmp_path: Path, sound: dict[str, Header]):
    without = tuple(tensor for tensor in sound["phi3"].tensors if tensor.name != b"blk.1.attn_qkv.weight")

    told = refusal(tmp_path, replace(sound["phi3"], tensors=without))
    assert "the layer 1 has no matrices for its attention" in told


def test_heads_of_a_layer_that_its_matrix_has_no_rows_for_are_refused(
    tmp_path: Path, sound: dict[str, Header]
):
    of_layers = Key(b"llama.attention.head_count_kv", ARRAY, (2, 4))
    keys = tuple(key for key in sound["llama-of-experts"].keys if key.name != of_layers.name)
    changed = replace(sound["llama-of-experts"], keys=(*keys, of_layers))

    assert "the layer 1 has 32 rows for 4 heads of 16 values" in refusal(tmp_path, changed)


@pytest.mark.parametrize("key", ["context_length", "feed_forward_length", "attention.head_count_kv"])
def test_a_count_below_zero_is_refused(tmp_path: Path, sound: dict[str, Header], key: str):
    assert "is below zero" in refusal(tmp_path, with_key(sound["llama"], f"llama.{key}", -1, _SIGNED))


def test_a_token_that_comes_twice_is_refused(tmp_path: Path, sound: dict[str, Header]):
    twice = with_tokens(sound["qwen2"], {7: b"\x1bA", 9: b"\x1bA"})
    empty = with_tokens(sound["qwen2"], {7: b"", 9: b"[EMPTY_7]"})

    ended = with_tokens(sound["qwen2"], {7: b"one\0two", 9: b"one\0three"})

    assert "the token 'one' comes twice" in refusal(tmp_path, ended)
    assert r"the token '\x1bA' comes twice" in refusal(tmp_path, twice)
    assert "the token '[EMPTY_7]' comes twice" in refusal(tmp_path, empty)


def test_several_tokens_without_a_text_are_no_damage(tmp_path: Path, sound: dict[str, Header]):
    (tmp_path / "m.gguf").write_bytes(header_bytes(with_tokens(sound["qwen2"], {7: b"", 9: b""})))

    assert read_header(tmp_path / "m.gguf").vocabulary.tokens[9] == b""


def test_a_vocabulary_that_cannot_write_some_byte_is_refused(tmp_path: Path, sound: dict[str, Header]):
    assert "no token for 1 of the 256 bytes" in refusal(tmp_path, with_tokens(sound["gemma3"], {65: b"A"}))
    as_sentencepiece = with_key(sound["llama"], "tokenizer.ggml.model", b"llama", STRING)
    assert "no token for 256 of the 256 bytes" in refusal(tmp_path, as_sentencepiece)


def test_a_vocabulary_that_splits_texts_as_another_kind_does_is_refused(
    tmp_path: Path, sound: dict[str, Header]
):
    changed = with_key(sound["qwen2"], "tokenizer.ggml.pre", b"whitespace", STRING)

    assert "splits texts in a way that its vocabulary does not have" in refusal(tmp_path, changed)


def test_a_token_around_every_text_that_is_not_there_is_refused(tmp_path: Path):
    path = write_small_model(tmp_path / "few.gguf", "llama", tokens=2)
    few = with_key(bases_of(path)[0], "tokenizer.ggml.bos_token_id", 1 << 20)

    assert "adds BOS to every text and has no such token" in refusal(
        tmp_path, with_key(few, "tokenizer.ggml.add_bos_token", 1, _BOOL)
    )
