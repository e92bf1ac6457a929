from itertools import pairwise
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from specchat.models.gguf_layout import shown
from specchat.models.text import (
    PrintableText,
    StopTexts,
    TextDecoder,
    is_plain,
    on_one_line,
    printable,
    readable_token,
)
from tests.hostile_text import hostile_text, is_harmless


def decoded(pieces: list[bytes]) -> str:
    decoder = TextDecoder()
    return "".join([*map(decoder.decode, pieces), decoder.finish()])


def cut(data: bytes, places: list[int]) -> list[bytes]:
    edges = [0, *sorted(place % (len(data) + 1) for place in places), len(data)]
    return [data[start:end] for start, end in pairwise(edges)]


@given(st.text(), st.lists(st.integers(min_value=0)))
def test_any_text_survives_being_cut_into_any_pieces(text: str, places: list[int]):
    assert decoded(cut(text.encode(), places)) == text


@given(st.lists(st.binary()))
def test_any_bytes_read_as_they_would_in_one_go(pieces: list[bytes]):
    assert decoded(pieces) == b"".join(pieces).decode("utf-8", "replace")


def test_a_character_appears_with_the_piece_that_completes_it():
    decoder = TextDecoder()

    assert [decoder.decode(piece) for piece in (b"a\xf0\x9f", b"\x8e", b"\x89b")] == ["a", "", "🎉b"]
    assert decoder.finish() == ""


def test_an_unfinished_character_is_shown_at_the_end_and_forgotten():
    decoder = TextDecoder()
    decoder.decode("é".encode()[:1])

    assert decoder.finish() == "\ufffd"
    assert decoder.decode(b"x") == "x"


def test_tokens_are_written_as_a_person_types_them():
    assert readable_token("Ġthe".encode(), "gpt2") == "' the'"
    assert readable_token("Ċ".encode(), "gpt2") == r"'\n'"
    assert readable_token("Ã©".encode(), "gpt2") == "'é'"
    assert readable_token(b"<|im_end|>", "gpt2") == "'<|im_end|>'"
    assert readable_token("▁the".encode(), "llama") == "' the'"


@given(st.binary(), st.sampled_from(["gpt2", "llama", "bert"]))
def test_writing_a_token_never_raises_and_stays_on_one_line(stored: bytes, kind: str):
    assert readable_token(stored, kind).isprintable()


@given(
    text=st.text("ab\nUser:", max_size=60),
    cuts=st.lists(st.integers(0, 60), max_size=12),
    stops=st.lists(st.sampled_from(["\nUser:", "ab", "User"]), max_size=2),
)
def test_nothing_from_a_stop_text_on_is_ever_shown(text: str, cuts: list[int], stops: list[str]):
    finder = StopTexts(stops)
    bounds = [0, *sorted(min(cut, len(text)) for cut in cuts), len(text)]
    shown = "".join(finder.take(text[start:end]) for start, end in pairwise(bounds)) + finder.finish()
    ends = [text.index(stop) for stop in stops if stop in text]
    assert finder.found == bool(ends)
    if ends:
        assert text.startswith(shown)
        assert not any(stop in shown for stop in stops)
    else:
        assert shown == text


def test_what_cannot_become_a_stop_text_is_shown_at_once():
    finder = StopTexts(["\nUser:"])
    assert finder.take("Hello\n") == "Hello"
    assert finder.take("Us") == ""
    assert finder.take("ual") == "\nUsual"
    assert not finder.found


# What a terminal is shown


@given(hostile_text())
def test_what_is_printable_steers_no_terminal(text: str):
    assert is_harmless(printable(text))
    assert printable(printable(text)) == printable(text)


@given(hostile_text(), st.lists(st.integers(0, 400), max_size=12))
def test_text_that_comes_in_pieces_is_shown_as_the_whole(text: str, cuts: list[int]):
    bounds = [0, *sorted(min(cut, len(text)) for cut in cuts), len(text)]
    pieces = PrintableText()
    assert "".join(pieces.take(text[start:end]) for start, end in pairwise(bounds)) == printable(text)


@given(hostile_text())
def test_a_name_is_on_one_line_and_steers_no_terminal(text: str):
    assert on_one_line(text).isprintable()
    assert is_harmless(on_one_line(text))
    assert is_harmless(shown(Path(text.replace("\0", "") or "x")))
    assert not is_plain(text) or (text.isprintable() and is_harmless(text))


def test_what_scripts_and_emoji_need_is_left():
    for text in (
        "e\u0301",
        "👨\u200d👩\u200d👧",
        "می\u200cخواهم",
        "שלום\u200f!",
        "🏴\U000e0067\U000e0062\U000e007f",
    ):
        assert printable(text) == text


def test_of_marks_in_a_row_eight_are_shown_and_one_sign_for_all_others():
    mark = "\u0301"
    for count in (7, 8, 9, 30):
        shown = mark * min(count, 8) + "\ufffd" * (count > 8)
        assert printable(f"e{mark * count}b{mark * 8}") == f"e{shown}b{mark * 8}"
    pieces = PrintableText()
    for piece, shown in (
        ("e" + mark * 6, "e" + mark * 6),
        ("", ""),
        (mark * 3, mark * 2 + "\ufffd"),
        ("b", "b"),
    ):
        assert pieces.take(piece) == shown
    assert pieces.take(mark * 8) == mark * 8
