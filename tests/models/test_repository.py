"""What names on the hub mean, and which file of a repository is taken."""

from __future__ import annotations

import random
import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from specchat.models.errors import ModelFileError
from specchat.models.repository import (
    HubName,
    NotInRepositoryError,
    RepositoryModel,
    choose,
    parse_address,
    parse_name,
    quantization_of,
)

REPOSITORY = "makers/Tiny-GGUF"


def chosen(name: str, *files: str, sizes: dict[str, int] | None = None) -> RepositoryModel:
    parsed = parse_name(name)
    assert parsed is not None
    return choose(parsed, sizes or dict.fromkeys(files, 100))


def taken(name: str, *files: str) -> str:
    return chosen(name, *files).files[0]


# Names -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("makers/Tiny-GGUF", HubName(REPOSITORY)),
        ("makers/Tiny-GGUF:Q4_K_M", HubName(REPOSITORY, quantization="Q4_K_M")),
        ("makers/Tiny-GGUF:ud-q4_k_xl", HubName(REPOSITORY, quantization="ud-q4_k_xl")),
        ("makers/Tiny-GGUF/tiny.gguf", HubName(REPOSITORY, "tiny.gguf")),
        ("makers/Tiny-GGUF:tiny.gguf", HubName(REPOSITORY, "tiny.gguf")),
        ("makers/Tiny-GGUF/Q4 K/tiny one.gguf", HubName(REPOSITORY, "Q4 K/tiny one.gguf")),
    ],
)
def test_a_name_is_a_repository_with_at_most_a_file_or_a_quantization(text: str, name: HubName):
    assert parse_name(text) == name


@pytest.mark.parametrize(
    "text",
    [
        "", "tiny", "tiny.gguf", "models/tiny.gguf", "./makers/tiny", "/makers/tiny", "makers/tiny:",
        "makers/tiny:a:b", "makers/tiny/other.txt", "makers/tiny/../x.gguf", "makers/tiny//x.gguf",
        "makers/ti ny", "makers/tiny\n", "makers/tiny/a\x1b[2J.gguf", "-m/tiny", "https://hub/makers/tiny",
    ],
)  # fmt: skip
def test_what_is_no_name_on_the_hub_is_none(text: str):
    assert parse_name(text) is None


WORD = st.text(string.ascii_letters + string.digits, min_size=1, max_size=6)


@given(
    st.builds(HubName, st.builds("{}/{}".format, WORD, WORD))
    | st.builds(HubName, st.builds("{}/{}".format, WORD, WORD), quantization=WORD)
    | st.builds(HubName, st.builds("{}/{}".format, WORD, WORD), st.builds("{}/{}.gguf".format, WORD, WORD))
)
def test_a_name_that_is_written_out_is_read_as_it_was(name: HubName):
    assert parse_name(str(name)) == name


@pytest.mark.parametrize(
    ("path", "quantization"),
    [
        ("Qwen3-0.6B-Q4_K_M.gguf", "Q4_K_M"),
        ("qwen2.5-0.5b-instruct-q4_0.gguf", "Q4_0"),
        ("SmolLM2-135M-Instruct.Q4_1.gguf", "Q4_1"),
        ("Qwen3-4B-UD-Q4_K_XL.gguf", "UD-Q4_K_XL"),
        ("m-i1-IQ3_XXS.gguf", "IQ3_XXS"),
        ("m-Q4_0_4_8.gguf", "Q4_0_4_8"),
        ("m-Q4_K_M-v2.gguf", "Q4_K_M"),
        ("gpt-oss-20b-mxfp4.gguf", "MXFP4"),
        ("m-fp16.gguf", "F16"),
        ("m-BF16-00001-of-00002.gguf", "BF16"),
        ("Q8_0/m-00001-of-00002.gguf", "Q8_0"),
        ("UD-Q2_K_XL/Model-UD-Q2_K_XL-00001-of-00003.gguf", "UD-Q2_K_XL"),
        ("Q5_K_M/m-Q6_K.gguf", "Q6_K"),
        ("SmolLM3-3B.gguf", ""),
        ("Qwen2-7B-Instruct.gguf", ""),
    ],
)
def test_a_quantization_is_read_from_the_file_s_name_or_its_folder_s(path: str, quantization: str):
    assert quantization_of(path) == quantization


# Choosing --------------------------------------------------------------------------------------


@pytest.mark.parametrize("asked", ["q4_k_m", "Q4_K_M", "q4_K_m"])
def test_a_quantization_is_asked_for_in_capitals_or_not(asked: str):
    files = ("m-Q8_0.gguf", "m-Q4_K_M.gguf", "m-Q4_K_S.gguf")
    assert taken(f"{REPOSITORY}:{asked}", *files) == "m-Q4_K_M.gguf"
    lower = tuple(file.lower() for file in files)
    assert taken(f"{REPOSITORY}:{asked}", *lower) == "m-q4_k_m.gguf"


def test_unsloth_s_own_quantization_is_meant_where_there_is_no_other():
    assert taken(f"{REPOSITORY}:Q4_K_XL", "m-UD-Q4_K_XL.gguf", "m-Q4_0.gguf") == "m-UD-Q4_K_XL.gguf"
    assert taken(f"{REPOSITORY}:Q2_K", "m-UD-Q2_K.gguf", "m-Q2_K.gguf") == "m-Q2_K.gguf"
    assert taken(f"{REPOSITORY}:UD-Q2_K", "m-UD-Q2_K.gguf", "m-Q2_K.gguf") == "m-UD-Q2_K.gguf"


def test_a_quantization_that_is_not_there_is_answered_with_those_that_are():
    with pytest.raises(NotInRepositoryError) as caught:
        chosen(f"{REPOSITORY}:Q5_K_M", "m-Q8_0.gguf", "m-Q4_0.gguf", "mmproj-F16.gguf", "README.md")
    assert str(caught.value) == "makers/Tiny-GGUF has no Q5_K_M; it has Q4_0, Q8_0"


IN_ORDER = (
    "m-Q4_K_M.gguf", "m-Q4_0.gguf", "m-IQ4_XS.gguf", "m-Q3_K_L.gguf", "m-Q5_K_S.gguf", "m-Q6_K.gguf",
    "m-Q8_0.gguf", "m-BF16.gguf", "m-Q2_K.gguf", "m-TQ1_0.gguf", "m.gguf",
)  # fmt: skip


def test_without_a_quantization_there_is_an_order():
    files = list(IN_ORDER)
    while files:
        mixed = random.Random(len(files)).sample(files, len(files))
        assert taken(REPOSITORY, *mixed) == files.pop(0)


def test_of_the_same_number_of_bits_the_larger_one_is_taken_up_to_four_and_the_smaller_one_above():
    sizes = {"m-Q4_K_S.gguf": 45, "m-IQ4_XS.gguf": 42, "m-Q4_K_L.gguf": 48}
    assert chosen(REPOSITORY, sizes=sizes).files == ("m-Q4_K_L.gguf",)
    sizes = {"m-Q5_K_M.gguf": 57, "m-Q5_K_S.gguf": 55, "m-Q8_0.gguf": 80}
    assert chosen(REPOSITORY, sizes=sizes).files == ("m-Q5_K_S.gguf",)


@pytest.mark.parametrize(
    "other",
    [
        "mmproj-m-Q4_K_M.gguf",
        "m.imatrix-Q4_K_M.gguf",
        "mtp-m-Q4_K_M.gguf",
        "MTP/m-Q4_K_M.gguf",
        "imatrix.gguf",
    ],
)
def test_what_only_lies_beside_models_is_never_chosen(other: str):
    assert taken(REPOSITORY, other, "m-Q8_0.gguf") == "m-Q8_0.gguf"
    with pytest.raises(NotInRepositoryError, match="no GGUF file that is a whole model"):
        chosen(REPOSITORY, other)
    assert taken(f"{REPOSITORY}/{other}", other) == other, "but it may be asked for"


def parts(stem: str, count: int) -> list[str]:
    return [f"{stem}-{number:05}-of-{count:05}.gguf" for number in range(1, count + 1)]


@pytest.mark.parametrize("stem", ["m-Q4_K_M", "Q4_K_M/m-Q4_K_M", "Q4_K_M/m"])
def test_a_split_model_is_chosen_whole(stem: str):
    split = parts(stem, 3)
    found = chosen(f"{REPOSITORY}:Q4_K_M", *reversed(split), "m-Q8_0.gguf")
    assert found.files == tuple(split)
    assert found.size_bytes == 300
    assert chosen(f"{REPOSITORY}/{split[1]}", *split).files == tuple(split)


def test_a_split_model_that_lacks_a_part_is_none():
    split = parts("m-Q4_K_M", 3)
    del split[1]
    assert taken(REPOSITORY, *split, "m-Q8_0.gguf") == "m-Q8_0.gguf"
    with pytest.raises(
        NotInRepositoryError, match=r"does not have all parts of m-Q4_K_M-00001-of-00003\.gguf"
    ):
        chosen(f"{REPOSITORY}/{split[0]}", *split)


def test_parts_with_other_numbers_than_theirs_are_no_model():
    with pytest.raises(NotInRepositoryError):
        chosen(REPOSITORY, "m-00000-of-00002.gguf", "m-00002-of-00002.gguf")
    with pytest.raises(NotInRepositoryError):
        chosen(REPOSITORY, "m-00001-of-00000.gguf")


def test_a_model_that_is_there_in_one_file_and_in_parts_is_taken_in_one():
    assert taken(REPOSITORY, *parts("m-Q4_K_M", 2), "m-Q4_K_M.gguf") == "m-Q4_K_M.gguf"


def test_several_models_in_one_repository_are_listed():
    with pytest.raises(ModelFileError) as caught:
        chosen(f"{REPOSITORY}:Q4_0", "big-Q4_0.gguf", "small-Q4_0.gguf", "small-Q8_0.gguf")
    assert not isinstance(caught.value, NotInRepositoryError)
    assert str(caught.value) == (
        "makers/Tiny-GGUF:Q4_0 may be any of 2 models; name one by its file: "
        "makers/Tiny-GGUF/big-Q4_0.gguf, makers/Tiny-GGUF/small-Q4_0.gguf"
    )


def test_a_file_that_is_not_there_is_answered_with_those_that_are():
    with pytest.raises(NotInRepositoryError, match=r"has no file x\.gguf; it has m-Q4_0\.gguf"):
        chosen(f"{REPOSITORY}/x.gguf", "m-Q4_0.gguf")


def test_a_repository_without_gguf_files_has_no_model():
    with pytest.raises(NotInRepositoryError, match="no GGUF file that is a whole model"):
        chosen(REPOSITORY, "model.safetensors", "README.md")


def test_a_list_of_what_is_there_ends():
    with pytest.raises(ModelFileError, match=r"and 70 more$"):
        chosen(REPOSITORY, *(f"model{n}-Q4_0.gguf" for n in range(100)))


PATHS = st.lists(
    st.builds(
        "{}{}{}{}.gguf".format,
        st.sampled_from(["", "Q4_0/", "a/b/"]),
        st.sampled_from(["m", "mmproj", "a\x1b[2J", "ü", "M-UD"]),
        st.sampled_from(["", "-Q4_0", "-q8_0", "-IQ2_M"]),
        st.sampled_from(["", "-00001-of-00002", "-00002-of-00002", "-00007-of-00002"]),
    ),
    max_size=12,
)


@given(PATHS, st.sampled_from(["a/b", "a/b:q4_0", "a/b:x", "a/b/m.gguf", "a/b/m-Q4_0-00002-of-00002.gguf"]))
def test_whatever_a_repository_holds_a_whole_model_is_chosen_or_one_line_said(paths: list[str], name: str):
    parsed = parse_name(name)
    assert parsed is not None
    try:
        model, problem = choose(parsed, dict.fromkeys(paths, 7)), ""
    except ModelFileError as error:
        model, problem = RepositoryModel((), 0, ""), str(error)
    assert problem.isprintable()
    assert bool(model.files) == (problem == "")
    assert set(model.files) <= set(paths)
    assert model.size_bytes == 7 * len(model.files)
    assert all(file.isprintable() for file in model.files)


@pytest.mark.parametrize(
    "host", ["https://huggingface.co/", "http://hf.co/", "hf.co/", "https://HuggingFace.co/"]
)
@pytest.mark.parametrize(
    ("path", "named"),
    [
        ("makers/tiny-GGUF", HubName("makers/tiny-GGUF")),
        ("makers/tiny-GGUF/", HubName("makers/tiny-GGUF")),
        ("makers/tiny-GGUF/tree/main", HubName("makers/tiny-GGUF")),
        ("makers/tiny-GGUF:Q4_0", HubName("makers/tiny-GGUF", quantization="Q4_0")),
        ("makers/tiny-GGUF/blob/main/tiny.gguf", HubName("makers/tiny-GGUF", "tiny.gguf")),
        ("makers/t/resolve/main/q4/a%20b.gguf?download=true", HubName("makers/t", "q4/a b.gguf")),
        ("makers/tiny-GGUF/blob/v2/tiny.gguf", None),
        ("makers/tiny-GGUF/blob/main/../tiny.gguf", None),
        ("makers/tiny-GGUF/discussions", None),
        ("datasets/makers/tiny", None),
        ("makers", None),
        ("", None),
    ],
)
def test_an_address_names_what_its_page_shows(host: str, path: str, named: HubName | None):
    assert parse_address(host + path, {"huggingface.co", "hf.co"}) == named


@pytest.mark.parametrize(
    "text",
    ["https://example.org/a/b", "ftp://hf.co/a/b", "a/b", "", "http://[/a/b", "https://hf.co@x.org/a/b"],
)
def test_what_leads_elsewhere_is_no_address_of_the_hub(text: str):
    assert parse_address(text, {"huggingface.co", "hf.co"}) is None
