import pytest
from hypothesis import given
from hypothesis import strategies as st

from specchat.app.conversation import ANSWER_ROOM, build_prompt, prompt_tokens
from specchat.app.decoding.drafters import common_prefix
from specchat.app.requests import Turn
from specchat.models.errors import ContextFullError
from specchat.models.template import ChatTemplate
from tests.tiny_models import CHATML

TEMPLATE = ChatTemplate.from_model(CHATML, "", "", ())
TRIMMING = ChatTemplate.from_model(
    CHATML.replace("message['content']", "message['content'] | trim"), "", "", ()
)


class Bytes:
    """One token a byte, after a BOS (-1) where one is asked for."""

    def tokenize(self, text: str, *, add_special: bool, parse_special: bool = True) -> list[int]:
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


def test_an_answer_that_the_template_changes_is_read_from_its_text():
    turns = [Turn("user", "hello"), Turn("assistant", " hi ", (1000,)), Turn("user", "more")]
    tokens = prompt_tokens(turns, TRIMMING, Bytes())
    assert 1000 not in tokens
    assert read(tokens) == TRIMMING.render([(turn.role, turn.text) for turn in turns])


@given(texts=st.lists(st.text(max_size=8), min_size=1, max_size=9).filter(lambda texts: len(texts) % 2 == 1))
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
