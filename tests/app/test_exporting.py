import json
from datetime import timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from specchat.app.exporting import export_json, export_markdown, figures_line, file_name
from specchat.app.history import Conversation, Message

NOON = 1_796_040_000.0
STATS = {
    "completion_tokens": 182, "tokens_per_second": 21.34, "ttft_s": 0.5, "drafted": 100, "accepted": 64,
    "acceptance_rate": 0.64, "baseline_tokens_per_second": 14.0, "target_passes": 90, "reason": "it pays",
}  # fmt: skip
PROMPT = Message(1, None, "user", "hello\n", created=NOON - 60)
ANSWER = Message(2, 1, "assistant", "hi", (7, 8), "stopped", NOON, {"stats": STATS, "pair": {"target": "q"}})
TALK = Conversation(3, "hello", NOON, 2, "q + d", "Be brief.", 2)


def test_a_page_has_title_date_pair_and_each_turn_under_a_heading():
    page = export_markdown(TALK, [PROMPT, ANSWER], timezone(timedelta(hours=2)))
    assert page == (
        "# hello\n\n2026-11-30 14:00 · q + d · 2 messages\n\n## System\n\nBe brief.\n\n## You\n\nhello\n\n"
        "## Answer\n\nhi\n\n*This answer is not whole: it was stopped.*\n\n"
        "<sub>182 tokens · 21.3 tokens/s · first after 0.50 s · accepted 64 of 100 drafted · 1.52x</sub>\n"
    )


def test_a_whole_answer_without_figures_stands_alone():
    page = export_markdown(Conversation(1, "", NOON, 1, "", "", 1), [Message(1, None, "assistant", "hi")])
    assert page.endswith(" · 1 message\n\n## Answer\n\nhi\n")
    assert page.startswith("# Conversation\n")


@pytest.mark.parametrize(
    ("mark", "reason"), [("length", "it is as long as"), ("context", "the context was full"), ("x", "x")]
)
def test_every_partial_answer_says_so(mark: str, reason: str):
    page = export_markdown(TALK, [Message(1, None, "assistant", "hi", mark=mark)])
    assert f"*This answer is not whole: {reason}" in page


UNCLOSED = ["```python\nprint(1)", "~~~~\na\n~~~\nb", "```\n```\n````c\n```", "   ```\nx", "```"]
CLOSED = ["```\na\n```", "`` a ``", "```a``` b", "    ```\nindented", "~~~\n```\n~~~", "no code"]


@pytest.mark.parametrize("text", UNCLOSED + CLOSED)
def test_a_code_block_that_was_cut_off_does_not_swallow_what_follows(text: str):
    page = export_markdown(TALK, [Message(1, None, "assistant", text), PROMPT, ANSWER])
    headings = [
        following.content
        for token, following in zip(MarkdownIt().parse(page), MarkdownIt().parse(page)[1:], strict=False)
        if token.type == "heading_open"
    ]
    assert headings == ["hello", "System", "Answer", "You", "Answer"]
    assert (f"## Answer\n\n{text}\n\n" in page) == (text in CLOSED)


def test_json_holds_all_that_was_kept():
    told = json.loads(export_json(TALK, [PROMPT, ANSWER]))
    assert told == {
        "format": 1,
        "title": "hello",
        "updated": "2026-11-30T12:00:00+00:00",
        "pair": "q + d",
        "system": "Be brief.",
        "head": 2,
        "messages": [
            {"id": 1, "parent": None, "role": "user", "text": "hello\n", "token_ids": [], "mark": "",
             "created": "2026-11-30T11:59:00+00:00", "record": {}},
            {"id": 2, "parent": 1, "role": "assistant", "text": "hi", "token_ids": [7, 8], "mark": "stopped",
             "created": "2026-11-30T12:00:00+00:00", "record": {"stats": STATS, "pair": {"target": "q"}}},
        ],
    }  # fmt: skip


@pytest.mark.parametrize(
    ("record", "line"),
    [
        ({}, ""),
        ({"stats": None}, ""),
        ({"stats": {"tokens_per_second": None, "drafted": 0, "accepted": 0}}, ""),
        ({"stats": {"completion_tokens": 1, "ttft_s": "soon"}}, "1 tokens"),
        ({"stats": {"tokens_per_second": 20, "baseline_tokens_per_second": 10, "drafted": 0, "accepted": 0}},
         "20.0 tokens/s"),
    ],
)  # fmt: skip
def test_a_figure_that_was_not_measured_is_left_out(record: dict[str, object], line: str):
    assert figures_line(record) == line


@pytest.mark.parametrize(
    ("title", "name"),
    [
        ("How do I sort a list?", "How-do-I-sort-a-list.md"),
        ("../../etc/passwd", "etc-passwd.md"),
        ("-rf ~; $(x) `y` 'z' \"w\" \\", "rf-x-y-z-w.md"),
        ("Café, Zürich: 世界 हिन्दी", "Café-Zürich-世界-हिन्दी.md"),
        ("🙂", "conversation.md"),
        ("..", "conversation.md"),
        ("", "conversation.md"),
        ("世" * 60, "世" * 33 + ".md"),
    ],
)
def test_a_title_becomes_a_name_for_a_file(title: str, name: str):
    assert file_name(title, ".md") == name


@given(st.text(max_size=200))
def test_any_title_becomes_a_name_that_every_system_takes(title: str):
    name = file_name(title, ".json")
    assert len(name.encode()) <= 105
    assert name.isprintable()
    assert not set(name) & set("/\\:*?\"'<>|$`;& \t\n")
    assert name[0] not in "-."
    assert name.endswith(".json")
