"""Prompts: those built in, and a user's own file."""

from pathlib import Path

import pytest

from specchat.app.compare_prompts import PromptsError, built_in_prompts, chosen, read_prompts


def test_five_kinds_with_several_prompts_each_are_built_in():
    prompts = built_in_prompts()
    assert list(prompts) == ["code", "json", "edit", "explanation", "story"]
    assert all(len(set(texts)) == len(texts) >= 2 for texts in prompts.values())


def written(folder: Path, text: str | bytes) -> Path:
    path = folder / "prompts.txt"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def test_plain_texts_are_separated_by_lines_of_dashes(tmp_path: Path):
    path = written(tmp_path, "One.\nStill one.\n---\n\nTwo, with --- inside.\r\n--- \nThree\n---\n")
    assert read_prompts(path) == {"yours": ["One.\nStill one.", "Two, with --- inside.", "Three"]}


def test_json_lines_name_kinds(tmp_path: Path):
    path = written(
        tmp_path,
        '\ufeff{"kind": "mail", "prompt": "a"}\n\n{"prompt": "b"}\n{"kind": "mail", "prompt": "c\\nd"}\n',
    )
    assert read_prompts(path) == {"mail": ["a", "c\nd"], "yours": ["b"]}


def test_a_kind_is_one_short_printable_line(tmp_path: Path):
    path = written(tmp_path, '{"kind": "a\\n\\u001b[31m' + "x" * 50 + '", "prompt": "p"}')
    (kind,) = read_prompts(path)
    assert kind.isprintable()
    assert len(kind) <= 20


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "holds no prompts"),
        ("---\n---\n", "holds no prompts"),
        (b"\xff\xfe\x00", "no UTF-8"),
        ('{"prompt": "a"}\n{"prompt": 3}', "line 2"),
        ('{"prompt": "a"}\nhello', "line 2"),
        ('{"kind": 1, "prompt": "a"}', "line 1"),
        ("{" * 100_000, "line 1"),
    ],
)
def test_a_file_without_prompts_is_one_line(tmp_path: Path, text: str | bytes, said: str):
    with pytest.raises(PromptsError) as raised:
        read_prompts(written(tmp_path, text))
    assert said in str(raised.value)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize("name", ["missing", "", "~nobody-of-this-name/x", "a\0b"])
def test_a_file_that_cannot_be_read_is_one_line(tmp_path: Path, name: str):
    with pytest.raises(PromptsError) as raised:
        read_prompts(tmp_path / name if name != "~nobody-of-this-name/x" else Path(name))
    assert "\n" not in str(raised.value)


def test_kinds_are_chosen_in_the_order_said():
    prompts = built_in_prompts()
    assert list(chosen(prompts, ["story", "code"])) == ["story", "code"]
    assert chosen(prompts, None) == prompts
    with pytest.raises(PromptsError, match="'poem'; there are code, json"):
        chosen(prompts, ["poem"])
