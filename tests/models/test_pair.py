from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from specchat.models.derived import Origin
from specchat.models.gguf_file import GgufHeader, Vocabulary
from specchat.models.pair import judge

TOKENS = tuple(f"t{n}".encode() for n in range(300))
CHATML = (
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)


def header(size_bytes: int = 1_000_000_000, **changes: object) -> GgufHeader:
    vocabulary = Vocabulary("gpt2", "qwen2", TOKENS, bos=7, eos=8, add_bos=False, add_eos=False)
    whole = GgufHeader(
        path=Path("m.gguf"),
        size_bytes=size_bytes,
        architecture="qwen2",
        name="Qwen2.5 Coder 1.5B Instruct GGUF",
        basename="Qwen2.5-Coder",
        organisation="",
        quantization="Q4_K_M",
        parameters=1_500_000_000,
        train_context=32_768,
        block_count=28,
        embedding_length=1536,
        vocabulary=vocabulary,
        chat_template=CHATML,
    )
    of_vocabulary = {k: v for k, v in changes.items() if k in Vocabulary.__dataclass_fields__}
    of_header = {k: v for k, v in changes.items() if k not in of_vocabulary}
    return replace(whole, vocabulary=replace(vocabulary, **of_vocabulary), **of_header)


def changed(tokens: tuple[bytes, ...], changes: dict[int, bytes]) -> tuple[bytes, ...]:
    return tuple(changes.get(n, token) for n, token in enumerate(tokens))


TARGET = header()
DRAFT = header(100_000_000)


def reasons(target: GgufHeader = TARGET, draft: GgufHeader = DRAFT) -> tuple[str, ...]:
    verdict = judge(target, draft)
    assert all(reason.isprintable() and reason.endswith(".") for reason in verdict.reasons)
    assert verdict.usable == (verdict.kind != "cannot")
    return verdict.reasons


def obstacle(target: GgufHeader, draft: GgufHeader) -> str:
    """The only reason why these two cannot work together."""
    assert judge(target, draft).kind == "cannot"
    (reason,) = reasons(target, draft)
    return reason


def warning(target: GgufHeader, draft: GgufHeader) -> str:
    """The only thing that fits less than well about these two."""
    assert judge(target, draft).kind == "fits_but"
    (reason,) = reasons(target, draft)
    return reason


def test_a_pair_of_one_family_fits_and_says_nothing():
    verdict = judge(TARGET, DRAFT)

    assert (verdict.kind, verdict.reasons, verdict.usable) == ("fits", (), True)


# Cannot


def test_two_kinds_of_vocabulary_cannot_and_nothing_more_is_said():
    draft = header(100_000_000, kind="llama", tokens=TOKENS[:100], bos=1)

    assert obstacle(TARGET, draft) == (
        "The target's vocabulary is of the kind byte-pair (gpt2), the draft's SentencePiece (llama)."
    )


def test_the_first_differing_token_is_named_with_both_texts():
    draft = replace(
        DRAFT,
        vocabulary=replace(
            DRAFT.vocabulary, tokens=changed(TOKENS, {41: "Ġdef".encode(), 200: b"x", 2: b"never compared"})
        ),
    )

    assert obstacle(TARGET, draft) == (
        "Token 41 is 't41' in the target and ' def' in the draft (the first of 2 that differ)."
    )


def test_one_differing_token_is_enough_and_the_first_five_are_free():
    free = header(100_000_000, tokens=changed(TOKENS, {0: b"a", 4: b"b"}))
    one = header(100_000_000, tokens=changed(TOKENS, {5: b"c"}))

    assert judge(TARGET, free).kind == "fits"
    assert obstacle(TARGET, one) == "Token 5 is 't5' in the target and 'c' in the draft."


def test_sizes_may_differ_by_128_and_no_more():
    padded = (*TOKENS, *(b"pad" for _ in range(128)))

    assert judge(TARGET, header(100_000_000, tokens=padded)).kind == "fits"
    assert judge(header(tokens=padded), DRAFT).kind == "fits"
    assert obstacle(TARGET, header(100_000_000, tokens=(*padded, b"pad"))) == (
        "The target's vocabulary has 300 tokens and the draft's 429; they may differ by 128 at most."
    )


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"bos": 9}, "The BOS token is 7 't7' in the target and 9 't9' in the draft."),
        ({"eos": None}, "The EOS token is 8 't8' in the target and absent in the draft."),
        ({"add_bos": True}, "The draft adds BOS to every text and the target does not."),
        ({"add_eos": True}, "The draft adds EOS to every text and the target does not."),
    ],
)
def test_other_special_tokens_cannot(changes: dict[str, object], told: str):
    assert obstacle(TARGET, header(100_000_000, **changes)) == told


def test_several_obstacles_are_all_told_the_most_telling_first():
    other = tuple(b"o" + token for token in TOKENS)

    told = reasons(TARGET, header(100_000_000, tokens=other + other, bos=1, eos=2))

    assert [reason.split()[1] for reason in told] == ["target's", "5", "BOS", "EOS"]


# Fits, but


def test_a_draft_above_a_fifth_of_the_target_is_warned_of_with_its_share():
    assert judge(TARGET, header(200_000_000)).kind == "fits"
    assert "The draft has 44% of the target's bytes (440 MB of 1,000 MB); above 20%" in warning(
        TARGET, header(440_000_000)
    )


def test_a_draft_below_a_twentieth_of_the_target_is_warned_of_with_its_share():
    assert judge(TARGET, header(50_000_000)).kind == "fits"
    assert "The draft has 4.9% of the target's bytes (49 MB of 1,000 MB); below 5%" in warning(
        TARGET, header(49_000_000)
    )


def test_a_shorter_training_context_is_warned_of_with_both_lengths():
    told = warning(TARGET, header(100_000_000, train_context=8192))

    assert "8,192 tokens of context and the target on 32,768" in told
    assert judge(TARGET, header(100_000_000, train_context=131_072)).kind == "fits"
    assert judge(TARGET, header(100_000_000, train_context=0)).kind == "fits"


def test_another_pre_tokenizer_is_warned_of():
    assert "pre-tokenizer 'default', the target's is 'qwen2'" in warning(
        TARGET, header(100_000_000, pre="default")
    )


def test_another_chat_template_is_warned_of():
    told = warning(
        TARGET, header(100_000_000, chat_template="{% for m in messages %}{{ m.content }}{% endfor %}")
    )

    assert told.startswith("The draft's chat template is another than the target's")


def test_chat_templates_that_write_the_same_conversation_are_the_same():
    other_tools = "{% if tools %}{{ tools | tojson }}{% endif %}" + CHATML

    assert judge(TARGET, header(100_000_000, chat_template=other_tools)).kind == "fits"


def test_a_chat_template_that_fails_is_another_one():
    assert "another than the target's" in warning(TARGET, header(100_000_000, chat_template="{% if %}"))


def test_a_draft_without_a_chat_template_is_warned_of_and_a_target_without_one_is_not():
    assert "The draft has no chat template" in warning(TARGET, header(100_000_000, chat_template=None))
    assert judge(header(chat_template=None), DRAFT).kind == "fits"


@pytest.mark.parametrize(
    ("target", "draft"),
    [
        ("Qwen2.5 Coder 1.5B Instruct GGUF", "Qwen2.5 Coder 0.5B Instruct AWQ"),
        ("Qwen2.5-Coder-7B-Instruct", "qwen2.5-coder-0.5b-instruct-q4_k_m"),
        ("Qwen2.5-Coder-7B-Instruct", "qwen2.5-coder-0.5b-instruct.Q4_K_M"),
        ("Meta-Llama-3.1-70B-Instruct", "Llama 3.1 8B"),
        ("Qwen3 30B A3B Instruct 2507", "Qwen3-0.6B-Base"),
        ("gemma-3-27b-it-qat-q4_0", "Gemma 3 270m"),
        ("Phi-3-medium-128k-instruct", "Phi 3 Mini 4k Instruct"),
        ("Mistral-7B-Instruct-v0.3", "mistral-7b-v0.1.IQ4_XS"),
    ],
)
def test_sizes_quantizations_and_tunings_make_no_other_family(target: str, draft: str):
    pair = header(name=target, basename=""), header(100_000_000, name=draft, basename="")

    assert judge(*pair).kind == "fits"


@pytest.mark.parametrize(
    ("target", "draft"),
    [
        ("Qwen2.5-Coder-1.5B-Instruct", "Qwen2.5-0.5B-Instruct"),
        ("Qwen2.5 7B", "Qwen2 0.5B"),
        ("DeepSeek-R1-Distill-Qwen-7B", "Qwen2.5-0.5B"),
        ("Llama-3.1-8B", "SmolLM2 135M"),
    ],
)
def test_another_family_is_warned_of_by_both_names(target: str, draft: str):
    told = warning(header(name=target, basename=""), header(100_000_000, name=draft, basename=""))

    assert f"another family: {draft}, the target {target};" in told


def test_the_makers_own_name_of_the_family_comes_before_the_model_s_name():
    draft = header(100_000_000, name="tmp_merge_17", basename="qwen2.5_coder")

    assert judge(TARGET, draft).kind == "fits"


def test_all_warnings_of_one_pair_are_told():
    draft = header(990_000_000, basename="Other", train_context=2048, pre="default", chat_template=None)

    assert len(reasons(TARGET, draft)) == 5


# Made from the target


def made(skipped: tuple[int, ...] = (), sha256: str = "a" * 64, **changes: object) -> GgufHeader:
    """A file made from `TARGET`."""
    origin = Origin("m.gguf", TARGET.size_bytes, sha256, TARGET.block_count, "", skipped)
    return header(**{"size_bytes": 850_000_000, "origin": origin, **changes})


def test_a_draft_of_the_targets_own_layers_is_told_as_that_and_not_by_its_bytes_alone():
    told = reasons(TARGET, made((16, 17, 18, 19), name="Renamed", block_count=24))

    assert told[0] == "The draft is the target's own layers without 16-19."
    assert told[1].startswith("A pass of it reads 85% of the target's bytes, which pays only where")
    assert len(told) == 2
    assert judge(TARGET, made((16,))).kind == "fits_but"


def test_a_small_one_simply_fits_and_says_what_it_is():
    verdict = judge(TARGET, made(tuple(range(2, 26)), size_bytes=190_000_000, quantization="Q4_0"))

    assert verdict.kind == "fits"
    assert verdict.reasons == ("The draft is the target's own layers without 2-25, as Q4_0.",)


def test_the_target_in_another_quantization_is_told_as_that():
    told = reasons(TARGET, made(quantization="Q4_0", size_bytes=800_000_000))

    assert told[0] == "The draft is the target itself as Q4_0."


def test_two_files_made_from_the_same_one_know_each_other():
    target = made(quantization="Q4_0", size_bytes=800_000_000)
    draft = made((3, 4), quantization="Q4_0", size_bytes=700_000_000)

    assert reasons(target, draft)[0] == "The draft is the target's own layers without 3-4."
    assert "file that the target was made from" in reasons(draft, made(quantization="Q8_0"))[0]


def test_a_draft_made_from_another_model_is_judged_as_any():
    other = made(quantization="Q4_0", size_bytes=100_000_000)
    bigger = header(7_000_000_000, block_count=32)

    assert judge(TARGET, made()).reasons != judge(bigger, other).reasons
    assert not any("own layers" in reason or "itself" in reason for reason in reasons(bigger, other))


def test_being_made_from_it_helps_nothing_where_the_vocabulary_is_another():
    assert judge(TARGET, made(tokens=changed(TOKENS, {9: b"x"}))).kind == "cannot"
