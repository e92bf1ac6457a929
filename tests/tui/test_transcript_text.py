"""From text to lines: blocks, wrapping, Markdown, and what a token costs while it is written."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.cells import cell_len
from textual.content import Content

from specchat.tui.transcript.blocks import Block, BlockSplitter
from specchat.tui.transcript.ink import Ink, Row, breaks, printable
from specchat.tui.transcript.live import Flow, LiveMarkdown
from specchat.tui.transcript.markdown import markdown_rows

BAR = Content("▎ ")
THEME = {"foreground": "#ffffff", "background": "#000000", "code-background": "#111111"}


def ink(width: int = 60) -> Ink:
    return Ink(width, THEME)


PARTS = ["word ", "two words", "\n", "\n\n", "- item", "1. first", "  indented", "```", "```python\n"]
PARTS += ["# Title\n", "> quote", "| a | b |\n", "|---|---|\n", "**bold**", "`code`", "~~~", "\t", "é漢"]
PARTS += ["    code\n", "* * *\n"]
markdown_texts = st.lists(
    st.sampled_from(PARTS),
    max_size=60,
).map("".join)


@given(markdown_texts, st.integers(1, 9))
def test_blocks_and_the_open_rest_join_to_the_text(text, step):
    splitter = BlockSplitter()
    blocks: list[Block] = []
    for at in range(0, len(text), step):
        blocks += splitter.feed(text[at : at + step])
    assert "".join(block.text for block in blocks) + splitter.open.text == text


@given(markdown_texts, st.integers(1, 9))
def test_blocks_do_not_depend_on_how_the_text_came(text, step):
    at_once = BlockSplitter()
    blocks = at_once.feed(text + "\n\nThe end of it all.\n\nx")
    bit_by_bit = BlockSplitter()
    whole = text + "\n\nThe end of it all.\n\nx"
    assert [b for at in range(0, len(whole), step) for b in bit_by_bit.feed(whole[at : at + step])] == blocks


def blocks_of(text: str) -> list[str]:
    splitter = BlockSplitter()
    return [block.text for block in splitter.feed(text)] + [splitter.open.text]


def test_a_block_ends_at_a_blank_line_and_after_a_heading():
    assert blocks_of("# Title\nOne.\n\nTwo.\n\nThree") == ["# Title\n", "One.\n\n", "Two.\n\n", "Three"]


def test_a_fence_is_one_block_with_its_blank_lines():
    assert blocks_of("Look:\n```py\na\n\nb\n```\nAfter") == ["Look:\n", "```py\na\n\nb\n```\n", "After"]


def test_a_shorter_fence_inside_a_longer_one_does_not_end_it():
    assert blocks_of("````\n```\n````\nx") == ["````\n```\n````\n", "x"]


def test_each_item_of_a_list_is_a_block_with_what_is_nested_in_it():
    text = "1. one\n   - inner\n2. two\n\n   more\n\nDone"
    splitter = BlockSplitter()
    blocks = splitter.feed(text)
    assert blocks == [Block("1. one\n   - inner\n"), Block("2. two\n\n   more\n\n", tight=True)]


@given(st.text(alphabet="ab é漢 \u3000x", max_size=200), st.integers(4, 30), st.booleans())
def test_wrapped_parts_fit_and_join_to_the_line(text, width, anywhere):
    cuts = breaks(text, width, anywhere)
    parts = [text[a:b] for a, b in zip([0, *cuts], [*cuts, len(text)], strict=True)]
    assert "".join(parts) == text
    assert all(parts) or not text
    assert all(cell_len(part if anywhere else part.rstrip()) <= width for part in parts)


def test_words_stay_whole_where_they_can():
    assert breaks("one two three", 8) == [8]
    assert breaks("abcdefghij", 4) == [4, 8]


def test_control_characters_cannot_reach_the_terminal():
    assert printable("a\x1b[2Jb\x07\r\n\tc\x9b") == "a�[2Jb�\n    c�"


def rendered(source: str, width: int = 60) -> list[str]:
    pen = ink(width)
    made = [line for row in markdown_rows(source, pen.text_width - 2) for line in pen.lines(row, BAR)]
    return [line.strip.text.rstrip() for line in made]


@pytest.mark.parametrize(
    ("source", "lines"),
    [
        ("# Title\n\ntext", ["▎ Title", "▎", "▎ text"]),
        ("a **b** *c* `d` ~~e~~", ["▎ a b c d e"]),
        ("one\ntwo", ["▎ one", "▎ two"]),
        ("- a\n- b\n  - c", ["▎ • a", "▎ • b", "▎   ◦ c"]),
        ("- a\n\n- b", ["▎ • a", "▎", "▎ • b"]),
        ("3. a\n4. b", ["▎ 3. a", "▎ 4. b"]),
        ("- \n- b", ["▎ •", "▎ • b"]),
        ("> said", ["▎ ▏ said"]),
        ("> a\n>\n> b", ["▎ ▏ a", "▎ ▏", "▎ ▏ b"]),
        ("```\nx = 1\n\ny\n```", ["▎ x = 1", "▎", "▎ y"]),
        ("[here](http://x.y)", ["▎ here (http://x.y)"]),
        ("<http://x.y>", ["▎ http://x.y"]),
        ("![a cat](cat.png)", ["▎ [a cat] (cat.png)"]),
        ("a <b>c</b>", ["▎ a <b>c</b>"]),
        ("", []),
    ],
)
def test_markdown_becomes_lines(source, lines):
    assert rendered(source) == lines


def test_a_table_keeps_its_columns_in_line_and_wraps_what_is_wide():
    table = "| name | what it is |\n|---|---:|\n| a | 1 |\n| long | several words that need a second line |"
    lines = rendered(table, 40)
    assert lines[0].startswith("▎ name")
    assert lines[1].startswith("▎ ────")
    assert lines[2].endswith(" 1")
    assert len(lines) == 5
    assert max(cell_len(line) for line in lines) <= 40


def test_every_line_fills_the_width_whatever_is_in_it():
    for source in ("word " * 40, "漢字" * 50, "x" * 200, "```\n" + "y" * 200 + "\n```", "- " + "z " * 90):
        for row in markdown_rows(source, 38):
            assert {line.strip.cell_length for line in ink(40).lines(row, BAR)} == {40}


def grow(live, text: str, step: int = 7, width: int = 60) -> tuple[list[str], list[int]]:
    """Write a text piece by piece; return the lines it ends with and what each drawing laid out."""
    lines: list = []
    costs: list[int] = []
    pen = ink(width)
    for at in range(0, len(text), step):
        live.feed(text[at : at + step])
        before = pen.drawn
        kept, fresh = live.draw(pen, BAR)
        assert kept <= len(lines)
        lines[kept:] = fresh
        costs.append(pen.drawn - before)
    return [line.strip.text.rstrip() for line in lines], costs


DOCUMENT = (
    "# A title\n\nA paragraph that is *long* enough to be wrapped once or twice at this width, I hope so.\n\n"
    "1. first\n2. second, with `code`\n   - nested\n3. third\n\n"
    "```python\ndef f(x):\n    return x\n\n\nprint(f(1))\n```\n\n"
    "| a | b |\n|---|---|\n| 1 | 2 |\n\nThe end."
)


@pytest.mark.parametrize("step", [1, 2, 3, 7, 40, 1000])
def test_what_was_written_piece_by_piece_looks_like_the_whole(step):
    assert grow(LiveMarkdown(), DOCUMENT, step)[0] == rendered(DOCUMENT)


@settings(max_examples=60)
@given(st.text(alphabet="ab \n漢", max_size=400), st.integers(1, 11))
def test_a_flow_of_pieces_looks_like_the_whole(text, step):
    if not text:
        return
    whole = [line.strip.text.rstrip() for line in ink().lines(Row(Content(text)), BAR)]
    assert grow(Flow(), text, step)[0] == whole


def test_the_cost_of_a_token_does_not_grow_with_a_code_block():
    code = "```python\n" + "".join(f"value_{n} = compute(value_{n - 1}, {n})\n" for n in range(400))
    lines, costs = grow(LiveMarkdown(), code)
    assert len(lines) == 400
    assert max(costs) < 400
    assert sum(costs[-100:]) <= 1.2 * sum(costs[100:200])


def test_closing_a_long_fence_does_not_draw_it_again():
    code = "```python\n" + "".join(f"value_{n} = compute({n})\n" for n in range(400)) + "```\n\nAfter it."
    _, costs = grow(LiveMarkdown(), code)
    assert max(costs) < 400


def test_the_cost_of_a_token_does_not_grow_with_a_paragraph():
    _, costs = grow(LiveMarkdown(), "word " * 4000)
    assert max(costs[-500:]) < 100


def test_the_cost_of_a_token_does_not_grow_with_the_answer():
    _, costs = grow(LiveMarkdown(), DOCUMENT * 40)
    assert max(costs) < 400
    assert sum(costs[-200:]) < 1.5 * sum(costs[:200])


def test_selected_text_of_a_wrapped_line_joins_without_a_break():
    lines = ink(30).lines(Row(Content("one two three four five six seven eight")), BAR)
    assert len(lines) > 1
    assert "".join(line.text for line in lines) == "one two three four five six seven eight"
    assert [line.continues for line in lines] == [False] + [True] * (len(lines) - 1)


def test_a_line_of_code_wider_than_the_screen_goes_on_after_a_sign():
    assert rendered("```\n" + "abcdefghij" * 3 + "\n```", 24) == ["▎ abcdefghijabcdefghi", "▎ ↪ jabcdefghij"]
