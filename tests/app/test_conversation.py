from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from specchat.app.conversation import ANSWER_ROOM, build_prompt, prompt_tokens
from specchat.app.decoding.drafters import common_prefix
from specchat.app.requests import Turn
from specchat.models.errors import ContextFullError
from specchat.models.template import ChatTemplate, Message
from tests.app.thinking_templates import KEEPING, QWEN3, QWQ, R1, REFUSING
from tests.tiny_models import CHATML

TEMPLATE = ChatTemplate.from_model(CHATML, "", "", ())
TRIMMING = ChatTemplate.from_model(
    CHATML.replace("message['content']", "message['content'] | trim"), "", "", ()
)


class Bytes:
    """One token a byte, after a BOS (-1) where one is asked for."""

    def tokenize(self, text: str, *, add_special: bool) -> list[int]:
        return [-1] * add_special + list(text.encode())


def read(tokens: list[int]) -> str:
    return bytes(token for token in tokens if 0 <= token < 256).decode()


def talk(*texts: str) -> list[Turn]:
    return [Turn("assistant" if index % 2 else "user", text) for index, text in enumerate(texts)]


def test_a_first_prompt_is_the_rendered_template():
    tokens = prompt_tokens(talk("hello"), TEMPLATE, Bytes())
    assert read(tokens) == "<|im_start|>user\nhello<|im_end|>\n<|im_start|>assistant\n"
    assert tokens.count(-1) == 1


def test_an_answer_keeps_the_ids_it_was_decoded_as():
    turns = [Turn("user", "hello"), Turn("assistant", "hi", (1000, 1001)), Turn("user", "more")]
    tokens = prompt_tokens(turns, TEMPLATE, Bytes())
    first = prompt_tokens(turns[:1], TEMPLATE, Bytes())
    assert tokens[: len(first) + 2] == [*first, 1000, 1001]
    assert read(tokens[len(first) + 2 :]).startswith("<|im_end|>\n<|im_start|>user\nmore")
    assert tokens.count(-1) == 1


def test_a_prompt_that_ends_with_an_answer_ends_where_the_answer_does():
    first = build_prompt(talk("hello"), TEMPLATE, Bytes(), 1000).tokens
    with_ids = [Turn("user", "hello"), Turn("assistant", "hi", (1000, 1001))]
    assert build_prompt(with_ids, TEMPLATE, Bytes(), 1000).tokens == [*first, 1000, 1001]
    without = build_prompt(talk("hello", "hi"), TEMPLATE, Bytes(), 1000).tokens
    assert without == [*first, *b"hi"]


def test_an_answer_that_the_template_changes_is_read_from_its_text():
    turns = [Turn("user", "hello"), Turn("assistant", " hi ", (1000,)), Turn("user", "more")]
    tokens = prompt_tokens(turns, TRIMMING, Bytes())
    assert 1000 not in tokens
    assert read(tokens) == TRIMMING.render([(turn.role, turn.text) for turn in turns])


# What was thought is not read again: no text here opens a thought.
unthinking = st.text(st.characters(codec="utf-8", exclude_characters="<"), max_size=8)


@given(texts=st.lists(unthinking, min_size=1, max_size=9).filter(lambda texts: len(texts) % 2 == 1))
def test_each_prompt_begins_with_the_one_before_and_its_answer(texts: list[str]):
    turns = [
        Turn(turn.role, turn.text, tuple(turn.text.encode()) if turn.role == "assistant" else ())
        for turn in talk(*texts)
    ]
    whole = prompt_tokens(turns, TEMPLATE, Bytes())
    for end in range(1, len(turns), 2):
        before = [*prompt_tokens(turns[:end], TEMPLATE, Bytes()), *turns[end].token_ids]
        assert before == whole[: len(before)]


def test_the_oldest_exchanges_are_left_out_where_room_is_short():
    turns = [Turn("system", "be brief"), *talk(*["x" * 50] * 7)]
    whole = build_prompt(turns, TEMPLATE, Bytes(), 10_000)
    assert whole.dropped_turns == 0
    short = build_prompt(turns, TEMPLATE, Bytes(), len(whole.tokens) - 100 + ANSWER_ROOM)
    assert short.dropped_turns == 2
    assert "be brief" in read(short.tokens)
    assert read(short.tokens).count("x" * 50) == 5


@given(
    lengths=st.lists(st.integers(0, 60), min_size=1, max_size=15).filter(lambda all_: len(all_) % 2 == 1),
    system=st.booleans(),
    room=st.integers(100, 900),
)
def test_no_more_is_left_out_than_has_to_be(lengths: list[int], system: bool, room: int):
    head = [Turn("system", "be brief")] * system
    turns = talk(*("x" * length for length in lengths))

    def fits(start: int) -> bool:
        length = len(prompt_tokens([*head, *turns[start:]], TEMPLATE, Bytes()))
        return length + ANSWER_ROOM <= room or (start == len(turns) - 1 and length < room)

    fitting = [start for start in range(0, len(turns), 2) if fits(start)]
    if fitting:
        assert build_prompt([*head, *turns], TEMPLATE, Bytes(), room).dropped_turns == fitting[0]
    else:
        with pytest.raises(ContextFullError):
            build_prompt([*head, *turns], TEMPLATE, Bytes(), room)


@pytest.mark.parametrize("room", [1_000, 10_000, 1_000_000])
def test_a_long_conversation_is_rendered_a_few_times_only(room: int):
    rendered: list[int] = []

    class Counting:
        def render(self, messages: Sequence[Message]) -> str:
            rendered.append(len(messages))
            return TEMPLATE.render(messages)

    turns = [
        Turn(turn.role, turn.text, (1000,) if turn.role == "assistant" else ())
        for turn in talk(*("words " * 9 for _ in range(801)))
    ]
    prompt = build_prompt(turns, Counting(), Bytes(), room)
    assert (prompt.dropped_turns > 0) == (room < 50_000)
    assert len(rendered) <= 2 * 11 + 1


def test_an_answer_that_is_said_elsewhere_as_well_keeps_its_place():
    turns = [Turn("user", "yes or no? yes"), Turn("assistant", "yes", (1000,)), Turn("user", "yesterday?")]
    for answer in ("yes", " yes", "\nyes "):
        turns[1] = Turn("assistant", answer, (1000,))
        tokens = prompt_tokens(turns, TEMPLATE, Bytes())
        before = prompt_tokens(turns[:1], TEMPLATE, Bytes())
        assert tokens[: len(before) + 1] == [*before, 1000]
        assert tokens.count(1000) == 1


@pytest.mark.parametrize("nothing", ["", " \n", "<think>\nhm"])
def test_beside_an_answer_that_says_nothing_the_others_keep_their_ids(nothing: str):
    turns = [
        *(Turn("user", "hello"), Turn("assistant", nothing, (1000,))),
        *(Turn("user", "hello?"), Turn("assistant", "hi", (2000,)), Turn("user", "more")),
    ]
    assert 2000 in prompt_tokens(turns, TEMPLATE, Bytes())


def test_what_stands_like_a_mark_in_a_conversation_is_no_mark():
    turns = [
        Turn("user", "Mark0x Mark1x"),
        Turn("assistant", "Mark2xMark4x", (1000,)),
        Turn("user", "Mark3x"),
    ]
    tokens = prompt_tokens(turns, TEMPLATE, Bytes())
    assert tokens.count(1000) == 1
    assert read(tokens).count("Mark") == 3


@pytest.mark.parametrize(
    "content",
    [
        "message['content'][:3]",
        "message['content'] | upper",
        "message['content'] | tojson",
        "message['content'] if message['content'] | length < 14 else 'long'",
        "message['content'] ~ message['content']",
        "message['content'] | replace('x', '')",
        "message['content'] if 'x' not in message['content'] else raise_exception('no x')",
    ],
)
def test_of_a_template_that_marks_disturb_the_prompt_is_what_it_renders(content: str):
    template = ChatTemplate.from_model(
        CHATML.replace(
            "message['content']", f"({content} if message['role'] == 'assistant' else message['content'])"
        ),
        *("", "", ()),
    )
    turns = [Turn("user", "hello"), Turn("assistant", "anything", tuple(b"anything")), Turn("user", "more")]
    tokens = prompt_tokens(turns, template, Bytes())
    assert read(tokens) == template.render([(turn.role, turn.text) for turn in turns])


def test_a_prompt_that_alone_is_too_long_is_refused_with_both_numbers():
    with pytest.raises(ContextFullError, match=r"the prompt is 1051 tokens and the context holds 512"):
        build_prompt(talk("x" * 1000), TEMPLATE, Bytes(), 512)


def test_a_last_prompt_may_use_the_room_that_is_kept_for_answers():
    tokens = build_prompt(talk("x" * 100), TEMPLATE, Bytes(), 10_000).tokens
    assert build_prompt(talk("x" * 100), TEMPLATE, Bytes(), len(tokens) + 1).tokens == tokens


@given(st.lists(st.integers(0, 2)), st.lists(st.integers(0, 2)))
def test_a_common_prefix_is_common_and_cannot_be_longer(left: list[int], right: list[int]):
    length = common_prefix(left, right)
    assert left[:length] == right[:length]
    assert left[: length + 1] != right[: length + 1] or length in (len(left), len(right))


# What the model thought

SOURCES = {
    "qwen3": QWEN3, "r1": R1, "qwq": QWQ, "chatml": CHATML, "refusing": REFUSING, "keeping": KEEPING,
}  # fmt: skip
WORDS = "It is four."
QWEN_ANSWER = f"<think>\nTwo and two.\n</think>\n\n{WORDS}"
R1_ANSWER = f"Two and two.\n</think>\n\n{WORDS}"


def thinking_talk(*answers: Turn) -> list[Turn]:
    turns = [Turn("user", "2 + 2?")]
    for answer in answers:
        turns += [answer, Turn("user", "Sure?")]
    return turns


def answered(text: str, in_thought: bool = False) -> Turn:
    """An answer whose token ids no text is tokenized to."""
    return Turn("assistant", text, tuple(1000 + byte for byte in text.encode()), in_thought)


def test_qwen3_does_not_read_again_what_it_thought():
    template = ChatTemplate.from_model(QWEN3, "", "", ())
    tokens = prompt_tokens(thinking_talk(answered(QWEN_ANSWER)), template, Bytes())
    assert read(tokens) == (
        "<|im_start|>user\n2 + 2?<|im_end|>\n<|im_start|>assistant\nIt is four.<|im_end|>\n"
        "<|im_start|>user\nSure?<|im_end|>\n<|im_start|>assistant\n"
    )
    # which is what the template makes of the answer's own text
    assert read(tokens) == template.render(
        [("user", "2 + 2?"), ("assistant", QWEN_ANSWER), ("user", "Sure?")]
    )


def test_deepseek_r1_does_not_read_again_what_it_thought():
    template = ChatTemplate.from_model(R1, "<s>", "</s>", ())
    tokens = prompt_tokens(thinking_talk(answered(R1_ANSWER, in_thought=True)), template, Bytes())
    assert read(tokens) == (
        "<s><｜User｜>2 + 2?<｜Assistant｜>It is four.</s><｜User｜>Sure?<｜Assistant｜><think>\n"
    )


@pytest.mark.parametrize("name", SOURCES)
@pytest.mark.parametrize("in_thought", [False, True])
def test_a_thought_that_was_cut_off_is_no_words(name: str, in_thought: bool):
    template = ChatTemplate.from_model(SOURCES[name], "", "", ())
    text = "Two and" if in_thought else "<think>\nTwo and"
    answer = Turn("assistant", text, in_thought=in_thought)
    text = read(prompt_tokens(thinking_talk(answer), template, Bytes()))
    assert ("Two and" in text) == (name == "keeping")


@pytest.mark.parametrize("name", ["chatml", "refusing"])
def test_a_template_that_knows_no_thinking_gets_the_words(name: str):
    template = ChatTemplate.from_model(SOURCES[name], "", "", ())
    text = read(prompt_tokens(thinking_talk(answered(QWEN_ANSWER)), template, Bytes()))
    assert f"<|im_start|>assistant\n{WORDS}<|im_end|>" in text
    assert "think" not in text


def test_where_a_template_puts_a_thought_it_is_read_again_as_it_was_decoded():
    template = ChatTemplate.from_model(KEEPING, "", "", ())
    turns = thinking_talk(answered(R1_ANSWER, in_thought=True))
    tokens = prompt_tokens(turns, template, Bytes())
    first = prompt_tokens(turns[:1], template, Bytes())
    assert read(first).endswith("<think>\n")
    assert tokens[: len(first) + len(turns[1].token_ids)] == [*first, *turns[1].token_ids]


@pytest.mark.parametrize("name", ["qwen3", "chatml", "qwq"])
def test_an_answer_without_a_thought_keeps_its_ids_after_one_with_a_thought(name: str):
    template = ChatTemplate.from_model(SOURCES[name].replace("<think>\\n", ""), "", "", ())
    turns = thinking_talk(answered(QWEN_ANSWER), answered("Yes."), answered("Quite."))
    tokens = prompt_tokens(turns, template, Bytes())
    for end in (3, 5):
        first = prompt_tokens(turns[:end], template, Bytes())
        assert tokens[: len(first) + len(turns[end].token_ids)] == [*first, *turns[end].token_ids]
    assert 1000 + ord("<") not in tokens


@pytest.mark.parametrize(("name", "inside"), [("qwen3", False), ("r1", True), ("chatml", False)])
def test_a_prompt_says_whether_its_answer_begins_in_a_thought(name: str, inside: bool):
    template = ChatTemplate.from_model(SOURCES[name], "", "", ())
    assert build_prompt(talk("2 + 2?"), template, Bytes(), 10_000).in_thought == inside
