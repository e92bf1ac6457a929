import os
import re
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from specchat.app import attachments
from specchat.app.attachments import (
    Attachment,
    AttachmentError,
    as_block,
    as_mention,
    attach,
    complete_path,
    expand,
    mentions,
    pasted_path,
)

# Each example writes the same file anew.
SAME_FOLDER = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])


def refusal(path: Path, limit: int = 100) -> str:
    with pytest.raises(AttachmentError) as caught:
        attach(path, limit)
    message = str(caught.value)
    assert message.isprintable()
    return message


def written(path: Path, content: str | bytes = "text") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


# Reading


def test_a_text_file_is_read_whole(tmp_path: Path):
    path = written(tmp_path / "loop.py", "a = 'é'\r\n")
    assert attach(path) == Attachment("loop.py", "a = 'é'\r\n", 10, "python")


@pytest.mark.parametrize(
    ("name", "language"),
    [
        ("a.rs", "rust"),
        ("a.TXT", ""),
        ("Makefile", ""),
        ("a.zig", "zig"),
        ("a.b c", ""),
        (".env", ""),
        ("x.toml", "toml"),
    ],
)
def test_the_suffix_says_the_language(tmp_path: Path, name: str, language: str):
    assert attach(written(tmp_path / name)).language == language


def test_a_file_may_be_as_large_as_the_limit_and_no_larger(tmp_path: Path):
    assert attach(written(tmp_path / "a", "x" * 100), 100).size == 100
    assert "a is 1,234 bytes, and a prompt takes files of up to 100" in refusal(
        written(tmp_path / "a", "x" * 1234)
    )


def test_what_is_no_readable_file_is_refused_in_one_line(tmp_path: Path):
    assert refusal(tmp_path / "gone.txt") == f"there is no file {tmp_path / 'gone.txt'}: check the path"
    assert "is a folder: name a file in it" in refusal(tmp_path)
    assert "cannot be read" in refusal(written(tmp_path / "file") / "below")
    assert "cannot be read" in refusal(tmp_path / ("x" * 5000))
    assert "cannot be read" in refusal(tmp_path / "a\0b")
    assert "\n" not in refusal(tmp_path / "a\nb")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes with names here")
def test_a_pipe_is_not_waited_for(tmp_path: Path):
    os.mkfifo(tmp_path / "pipe")
    assert "is no ordinary file" in refusal(tmp_path / "pipe")


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="nothing is forbidden to root")
def test_a_file_that_may_not_be_read_says_so(tmp_path: Path):
    path = written(tmp_path / "secret")
    path.chmod(0)
    assert "may not be read: check its permissions" in refusal(path)


def test_a_binary_file_is_no_text(tmp_path: Path):
    assert "is no text" in refusal(written(tmp_path / "a.bin", bytes(range(100))))
    assert "is no text" in refusal(written(tmp_path / "b.bin", bytes(range(128, 228))))


def test_a_text_with_a_few_damaged_characters_is_still_a_text(tmp_path: Path):
    latin = "für alle Fälle steht es hier in einer alten Kodierung".encode("latin-1")
    assert attach(written(tmp_path / "a.txt", latin)).text.startswith("f\ufffdr alle F\ufffdlle steht")


def test_byte_order_marks_are_no_part_of_a_text(tmp_path: Path):
    assert attach(written(tmp_path / "a", "é".encode("utf-8-sig"))).text == "é"
    assert attach(written(tmp_path / "a", "é".encode("utf-16"))).text == "é"


# Mentions


@pytest.mark.parametrize(
    ("prompt", "name"),
    [
        ("@notes.md", "notes.md"),
        ("explain @notes.md please", "notes.md"),
        ("what of @src/a.py?", "src/a.py"),
        ("(see @src/a.py).", "src/a.py"),
        ("two words: @two words.txt", None),
        ('two words: @"two words.txt", quoted', "two words.txt"),
        ("two words: @two\\ words.txt", "two words.txt"),
        ("up: @src/../notes.md", "src/../notes.md"),
        ("line\n@notes.md\nline", "notes.md"),
        ("me@notes.md", None),
        ("@dataclass\nclass A: ...", None),
        ("@src", None),
        ("@", None),
        ('@""', None),
        ("@~nobody-of-that-name/notes.md", None),
        ("@notes.md@notes.md", None),
    ],
)
def test_an_at_sign_means_a_file_that_exists(tmp_path: Path, prompt: str, name: str | None):
    for file in ("notes.md", "src/a.py", "two words.txt"):
        written(tmp_path / file)
    found = mentions(prompt, tmp_path)
    assert [mention.name for mention in found] == ([name] if name else [])
    for mention in found:
        assert mention.path == tmp_path / mention.name
        assert prompt[mention.start] == "@"
        assert mention.name.split()[-1] in prompt[mention.start : mention.end]


def test_a_full_stop_belongs_to_the_path_where_there_is_such_a_file(tmp_path: Path):
    written(tmp_path / "etc.")
    assert [mention.name for mention in mentions("@etc.", tmp_path)] == ["etc."]


def test_a_path_may_begin_at_home_or_at_the_root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    path = written(tmp_path / "notes.md")
    assert [mention.path for mention in mentions(f"@~/notes.md @{path}", Path("/"))] == [path, path]


def test_a_path_as_it_is_written_is_found_again(tmp_path: Path):
    for name in ("plain.txt", "two words.txt"):
        written(tmp_path / name)
        assert [mention.name for mention in mentions(f"see {as_mention(name)} there", tmp_path)] == [name]


# What the model reads


def test_a_prompt_has_the_files_that_it_mentions_after_it(tmp_path: Path):
    written(tmp_path / "a.py", "x = 1\n")
    written(tmp_path / "b.txt", "no end of line")
    expanded = expand("compare @a.py and @b.txt, @a.py first", tmp_path)
    assert expanded.text == (
        "compare @a.py and @b.txt, @a.py first\n\n"
        "a.py:\n```python\nx = 1\n```\n\n"
        "b.txt:\n```\nno end of line\n```"
    )
    assert [attachment.name for attachment in expanded.attachments] == ["a.py", "b.txt"]
    assert not expanded.problems


def test_a_prompt_without_files_is_what_was_typed(tmp_path: Path):
    assert expand(" mail me@example.com \n", tmp_path).text == " mail me@example.com \n"


def test_a_file_that_cannot_be_attached_is_told_and_the_rest_is_there(tmp_path: Path):
    written(tmp_path / "big.txt", "x" * 101)
    written(tmp_path / "small.txt")
    expanded = expand("@big.txt @small.txt", tmp_path, limit_bytes=100)
    assert [attachment.name for attachment in expanded.attachments] == ["small.txt"]
    assert len(expanded.problems) == 1
    assert "101 bytes" in expanded.problems[0]


@SAME_FOLDER
@given(content=st.text(alphabet=st.sampled_from("`~\n\r a\té"), max_size=40))
@example("```\n````\ncode\n```")
def test_a_file_cannot_end_the_code_block_that_it_is_in(tmp_path: Path, content: str):
    written(tmp_path / "a.md", content)
    expanded = expand("@a.md", tmp_path)
    opening, fence = re.match(r"@a\.md\n\na\.md:\n((`+)markdown\n)", expanded.text).groups()  # pyright: ignore
    inside = expanded.text.split(opening, 1)[1]
    assert inside.startswith(content)
    assert inside[len(content) :] in (fence, "\n" + fence)
    assert fence not in content


@SAME_FOLDER
@given(st.text() | st.text(alphabet=st.sampled_from('@"~/.\\ a\n(<\0')))
@example("@" + "." * 5000)
@example("@\ud800 @~\0/x @" + "a/" * 3000)
def test_no_text_breaks_the_search_for_files(tmp_path: Path, text: str):
    written(tmp_path / "a")
    expanded = expand(text, tmp_path)
    assert expanded.text.startswith(text)


@given(st.text(max_size=20), st.text(max_size=20))
def test_a_block_is_headed_by_one_line(name: str, text: str):
    path_name = name.replace("/", "").replace("\0", "")
    head, _, rest = as_block(Attachment(path_name.replace("\n", " "), text, 0, "")).partition(":\n```")
    assert text in rest
    assert "\n" not in head


# Pasting


@pytest.mark.parametrize(
    "paste",
    [
        "{path}", "{path}\n", " {path} ", "'{path}'", '"{path}"', "{escaped}", "file://{address}",
        "file://localhost{address}",
    ],
)  # fmt: skip
def test_a_file_that_is_dropped_on_the_terminal_is_recognized(tmp_path: Path, paste: str):
    path = written(tmp_path / "it has (words) é.txt")
    escaped = re.sub(r"([ ()])", r"\\\1", str(path))
    address = str(path).replace(" ", "%20").replace("é", "%C3%A9")
    assert pasted_path(paste.format(path=path, escaped=escaped, address=address)) == path


def test_a_quote_in_a_name_is_no_obstacle(tmp_path: Path):
    path = written(tmp_path / "it's.txt")
    assert pasted_path(str(path)) == path
    assert pasted_path("'" + str(path).replace("'", "'\\''") + "'") == path
    assert pasted_path(f"file://{path}") == path


def test_other_pastes_are_texts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    path = written(tmp_path / "a.txt")
    monkeypatch.chdir(tmp_path)
    others = [
        "",
        "a.txt",
        f"{path} and more",
        f"{path}\n{path}",
        str(tmp_path),
        f"{path}x",
        "it's",
        "file://[",
        "~x/",
    ]
    assert [pasted_path(other) for other in [*others, f"http://x{path}", "/" * 20_000]] == [None] * 11


@given(st.text())
def test_any_paste_can_be_asked_about(text: str):
    pasted_path(text)
    pasted_path("/" + text)
    pasted_path("file://" + text)


# Completing


def test_a_path_is_completed_from_what_is_there(tmp_path: Path):
    for name in ("src/a.py", "src/deep/b.py", "Setup.cfg", "story.md", ".hidden", "other"):
        written(tmp_path / name)
    assert complete_path("", tmp_path) == ["other", "Setup.cfg", "src/", "story.md"]
    assert complete_path("s", tmp_path) == ["Setup.cfg", "src/", "story.md"]
    assert complete_path("s", tmp_path, limit=2) == ["Setup.cfg", "src/"]
    assert complete_path("src/", tmp_path) == ["src/a.py", "src/deep/"]
    assert complete_path("src/d", tmp_path) == ["src/deep/"]
    assert complete_path("src/../sr", tmp_path) == ["src/../src/"]
    assert complete_path(".", tmp_path) == [".hidden"]
    assert complete_path("x", tmp_path) == []


def test_a_path_is_completed_at_home_and_at_the_root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    written(tmp_path / "notes.md")
    assert complete_path("~/no", Path("/")) == ["~/notes.md"]
    assert complete_path(f"{tmp_path}/no", Path("/")) == [f"{tmp_path}/notes.md"]


@pytest.mark.parametrize("prefix", ["gone/", "a/b/c", "~nobody-of-that-name/", "x\0/", "y" * 5000 + "/"])
def test_nothing_completes_what_is_not_there(tmp_path: Path, prefix: str):
    assert complete_path(prefix, tmp_path) == []


def test_a_name_that_would_disturb_the_screen_is_not_offered(tmp_path: Path):
    written(tmp_path / "a\x1b[2Jb")
    assert complete_path("a", tmp_path) == []


def test_of_a_large_folder_only_so_much_is_looked_at(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    for number in range(40):
        (tmp_path / f"{number:05}").touch()
    assert complete_path("0", tmp_path, limit=3) == ["00000", "00001", "00002"]
    monkeypatch.setattr(attachments, "_MOST_ENTRIES", 20)
    found = complete_path("0", tmp_path)
    assert len(found) == 20
    assert found == sorted(found) == complete_path("0", tmp_path)
