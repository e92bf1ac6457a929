import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from specchat.app.thinking import Part, ThoughtSplitter, joined, opens_thought, split

TAGS = ["<think>", "</think>", "<thinking>", "</thinking>", "<|channel>thought", "<channel|>"]
# Texts in which tags, parts of tags, line ends and fences meet.
TEXTS = st.lists(
    st.sampled_from(
        [*TAGS, "<thi", "nk>", "</", "<", ">", "\n", "\n\n", " ", "\t", "```", "`", "a", "word ", "é"]
    )
).map("".join)


def thought(text: str) -> Part:
    return Part("thought", text)


def said(text: str) -> Part:
    return Part("said", text)


def streamed(pieces: list[str], in_thought: bool = False) -> tuple[Part, ...]:
    splitter = ThoughtSplitter(in_thought)
    told = [part for piece in pieces for part in splitter.feed(piece)]
    return joined([*told, *splitter.finish()])


# Whole answers


def test_what_qwen3_answers_is_a_thought_and_words():
    text = "<think>\nThe user greets me.\n</think>\n\nHello!\n\nHow are you?"
    assert split(text) == (thought("The user greets me.\n"), said("Hello!\n\nHow are you?"))


def test_an_answer_without_thoughts_is_one_part_and_unchanged():
    text = "\n  indented, `<think>` named,\nand a <think> in a line. </think>\n"
    assert split(text) == (said(text),)
    assert split("") == ()
    assert split(" \n") == (said(" \n"),)


def test_a_thought_that_never_ends_is_all_there_is():
    assert split("<think>\nwell, \n\nhm") == (thought("well, \n\nhm"),)


def test_a_thought_that_the_prompt_opened_needs_no_opening_tag():
    text = "Let me see.\n</think>\n\nFour."
    assert split(text, in_thought=True) == (thought("Let me see.\n"), said("Four."))
    assert split("Let me see", in_thought=True) == (thought("Let me see"),)


def test_a_thought_whose_beginning_nobody_told_is_found_by_its_end():
    text = "\nLet me see.\n\nSo:\n</think>\n\nFour."
    assert split(text) == (thought("Let me see.\n\nSo:\n"), said("Four."))


def test_an_empty_thought_leaves_the_words():
    assert split("<think>\n\n</think>\n\nFour.") == (said("Four."),)
    assert split("</think>Four.", in_thought=True) == (said("Four."),)


def test_there_may_be_several_thoughts():
    text = "<think>one</think>First.\n\n<think>two</think>\nSecond."
    assert split(text) == (thought("one"), said("First.\n\n"), thought("two"), said("Second."))
    assert split("<think>one\n</think>\n\n<think>two</think>") == (thought("one\ntwo"),)


def test_a_thought_ends_with_its_own_tag():
    assert split("<thinking>a </think> b</thinking>c") == (thought("a </think> b"), said("c"))


def test_the_channels_of_gemma_and_gpt_oss_are_told_apart():
    assert split("<|channel>thought\nhm\n<channel|>Four.") == (thought("hm\n"), said("Four."))
    harmony = "<|channel|>analysis<|message|>hm<|end|><|start|>assistant<|channel|>final<|message|>Four."
    assert split(harmony) == (thought("hm"), said("Four."))


@pytest.mark.parametrize("fence", ["```", "~~~~", "````"])
def test_a_tag_in_a_code_block_is_part_of_the_code(fence: str):
    text = f"So it looks:\n\n{fence}text\n<think>\nhm\n</think>\n{fence}\n"
    assert split(text + "Done.") == (said(text + "Done."),)
    assert split(text + "<think>hm") == (said(text), thought("hm"))


def test_a_code_block_in_a_thought_ends_with_it():
    assert split("<think>\n```\ncode</think>\nok\n<think>more") == (
        thought("```\ncode"), said("ok\n"), thought("more"),
    )  # fmt: skip


# As it comes


def test_a_tag_that_is_half_there_is_not_shown():
    splitter = ThoughtSplitter()
    assert splitter.feed("<thi") == []
    assert splitter.feed("nk>\n") == []
    assert splitter.feed("hm</") == [("thought", "hm")]
    assert splitter.feed("think") == []
    assert splitter.feed(">\n\nFo") == [("said", "Fo")]
    assert splitter.feed("ur <thi") == [("said", "ur <thi")]
    assert splitter.finish() == []


def test_what_only_looked_like_a_tag_is_shown_once_that_is_clear():
    splitter = ThoughtSplitter()
    assert splitter.feed("<th") == []
    assert splitter.feed("ree") == [("said", "<three")]
    assert splitter.feed("\n<think") == [("said", "\n")]
    assert splitter.finish() == [("said", "<think")]


def test_words_that_turn_out_to_have_been_a_thought_are_taken_back():
    splitter = ThoughtSplitter()
    assert splitter.feed("Let me see.\n") == [("said", "Let me see.\n")]
    assert splitter.feed("</think>\n\nFour.") == [("was_thought", ""), ("said", "Four.")]


@given(TEXTS, st.booleans(), st.data())
@example("<think>a</think> \n<think>b", False, None)
def test_the_stream_is_the_whole_however_it_is_cut(text: str, in_thought: bool, data: st.DataObject | None):
    cuts = range(len(text) + 1)
    if data is not None:
        cuts = sorted(data.draw(st.lists(st.integers(0, len(text)))))
    pieces = [text[start:end] for start, end in zip([0, *cuts], [*cuts, len(text)], strict=True)]
    assert streamed(pieces, in_thought) == split(text, in_thought)
    assert streamed(list(text), in_thought) == split(text, in_thought)


@given(TEXTS, st.booleans())
def test_no_word_is_lost_and_none_is_told_twice(text: str, in_thought: bool):
    told = "".join(part.text for part in split(text, in_thought))
    assert [told.count(word) for word in ("word", "é", "`")] == [
        text.count(word) for word in ("word", "é", "`")
    ]


@given(st.text().filter(lambda text: not any(tag in text for tag in ("think>", "channel"))))
def test_a_text_without_tags_is_said_as_it_is(text: str):
    assert split(text) == ((said(text),) if text else ())


# Prompts


@pytest.mark.parametrize(
    "end", ["<think>", "<think>\n", "<think>\n\n", "<thinking>\n", "<|channel>thought\n", "<seed:think>"]
)
def test_a_prompt_that_ends_with_an_opening_tag_opens_a_thought(end: str):
    assert opens_thought(f"<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n{end}")


@pytest.mark.parametrize(
    "end", ["", "<think>\n\n</think>\n\n", "<think>\n</think>", "<|channel>thought\n<channel|>"]
)
def test_a_prompt_that_ends_after_a_thought_opens_none(end: str):
    assert not opens_thought(f"<|im_start|>user\nWhat is <think>?<|im_end|>\n<|im_start|>assistant\n{end}")
