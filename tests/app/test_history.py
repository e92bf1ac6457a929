import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from rich.cells import cell_len

from specchat.app.history import History, HistoryError, Message, as_title
from tests.app.histories import Clock, check_index, go_on, talk, texts


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "data" / "history.db"


@pytest.fixture
def history(path: Path) -> Iterator[History]:
    opened = History(path, Clock())
    yield opened
    opened.close()


# What is kept


def test_a_message_comes_back_at_the_next_start_as_it_was(path: Path):
    first = History(path, Clock())
    conversation = first.begin("be brief")
    prompt = first.add(conversation, None, "user", "hello\n\tthere \0 \x1b[2J 🙂")
    record = {"stats": {"drafted": 4, "ttft_s": None, "by_position": [1, 2]}, "pair": {"target": "q"}}
    answer = first.add(
        conversation, prompt, "assistant", "hi", token_ids=(0, 151_644, 2**32 - 1), mark="length",
        record=record, pair="q + d",
    )  # fmt: skip
    first.close()
    second = History(path)
    assert second.branch(conversation) == [
        Message(prompt, None, "user", "hello\n\tthere \0 \x1b[2J 🙂", created=1002.0),
        Message(answer, prompt, "assistant", "hi", (0, 151_644, 2**32 - 1), "length", 1003.0, record),
    ]
    kept = second.get(conversation)
    assert (kept.title, kept.updated, kept.turns, kept.pair, kept.system, kept.head) == (
        "hello", 1003.0, 2, "q + d", "be brief", answer,
    )  # fmt: skip
    second.close()


def test_half_a_surrogate_pair_does_not_cost_the_message(history: History):
    conversation, _ = talk(history, "a\ud83d b", "\udcff")
    assert texts(history.branch(conversation)) == ["a? b", "?"]
    history.set_system(conversation, "\ud800")
    history.rename(conversation, "\ud800")
    assert history.search("\ud800") != []


def test_a_figure_that_json_has_no_number_for_is_none(history: History):
    conversation = history.begin()
    history.add(
        conversation, None, "assistant", "", record={"a": float("inf"), "b": [float("nan")], "c": 1.5}
    )
    assert history.branch(conversation)[0].record == {"a": None, "b": [None], "c": 1.5}


def test_a_continued_answer_takes_the_place_of_what_it_was(history: History):
    conversation, (prompt, answer) = talk(history, "hello", "once upon")
    before = history.get(conversation)
    history.extend(answer, "once upon a time", (1, 2, 3), "stopped", {"stats": {}})
    after = history.branch(conversation)[-1]
    assert after == Message(
        answer, prompt, "assistant", "once upon a time", (1, 2, 3), "stopped", after.created, {"stats": {}}
    )
    assert history.get(conversation).turns == before.turns
    assert history.get(conversation).updated > before.updated
    assert [hit.message for hit in history.search("time")] == [answer]
    history.extend(answer, "never", (4,))
    assert history.branch(conversation)[-1].mark == ""
    assert history.search("once") == []


# The list


def test_the_list_is_the_newest_first_and_without_what_has_nothing_in_it(history: History):
    first, _ = talk(history, "first")
    history.begin("nothing is said here")
    second, _ = talk(history, "second")
    assert [conversation.id for conversation in history.conversations()] == [second, first]
    go_on(history, first, None, "again")
    assert [conversation.id for conversation in history.conversations()] == [first, second]
    assert [conversation.id for conversation in history.conversations(limit=1)] == [first]
    assert history.latest() == first


def test_an_empty_history_has_no_latest_conversation(history: History):
    history.begin()
    assert history.latest() is None
    assert history.conversations() == []


def test_the_list_is_read_from_an_index_and_no_message(history: History):
    plan = history._database.rows(
        "EXPLAIN QUERY PLAN SELECT id FROM conversations WHERE turns > 0 ORDER BY updated DESC, id DESC"
    )
    assert ["conversations_by_time" in step[-1] for step in plan] == [True]


def test_the_first_prompt_makes_the_title(history: History):
    conversation = history.begin()
    answer = history.add(conversation, None, "assistant", "how can I help?")
    assert history.get(conversation).title == ""
    history.add(conversation, answer, "user", "\n  sort\tthis\x1b list  \nplease")
    assert history.get(conversation).title == "sort this� list"
    history.add(conversation, None, "user", "something else")
    assert history.get(conversation).title == "sort this� list"


@example("\x1f")
@given(st.text())
def test_a_title_is_one_line_that_fits(text: str):
    title = as_title(text)
    assert cell_len(title) <= 60
    assert title == "" or title.splitlines() == [title]
    if text.strip():
        assert title
    else:
        assert set(title) <= {"\ufffd", " "}  # of characters that are not shown, some count as white space


def test_a_title_is_cut_where_it_is_too_wide():
    assert as_title("word " * 100) == "word " * 11 + "word…"
    assert as_title("世" * 100) == "世" * 29 + "…"
    assert as_title("x" * 60) == "x" * 60


def test_a_conversation_can_be_renamed_but_not_to_nothing(history: History):
    conversation, _ = talk(history, "hello")
    history.rename(conversation, "  Summer\nholidays ")
    assert history.get(conversation).title == "Summer"
    history.rename(conversation, " \n")
    assert history.get(conversation).title == "Summer"
    go_on(history, conversation, None, "more")
    assert history.get(conversation).title == "Summer"


def test_the_pair_is_the_one_that_answered_last(history: History):
    conversation, _ = talk(history, "hello", "hi", pair="a + b")
    go_on(history, conversation, None, "who?")
    assert history.get(conversation).pair == "a + b"
    history.add(conversation, None, "assistant", "me", pair="c")
    assert history.get(conversation).pair == "c"


def test_the_system_prompt_can_be_changed(history: History):
    conversation = history.begin("be brief")
    history.set_system(conversation, "be long")
    assert history.get(conversation).system == "be long"


# The tree


def test_an_edited_prompt_begins_a_branch_and_leaves_the_other_as_it_was(history: History):
    conversation, (first, answer, second, last) = talk(history, "a", "b", "c", "d")
    edited, other = go_on(history, conversation, answer, "c2", "d2")
    assert texts(history.branch(conversation)) == ["a", "b", "c2", "d2"]
    assert texts(history.branch(conversation, last)) == ["a", "b", "c", "d"]
    assert history.siblings(edited) == history.siblings(second) == [second, edited]
    assert history.siblings(first) == [first]
    again = history.add(conversation, edited, "assistant", "d3")
    assert history.siblings(other) == [other, again]
    assert history.versions(conversation) == {
        second: (1, 2), edited: (2, 2), other: (1, 2), again: (2, 2)
    }  # fmt: skip
    assert texts(history.messages(conversation)) == ["a", "b", "c", "d", "c2", "d2", "d3"]


def test_first_prompts_of_one_conversation_are_siblings_and_of_two_are_not(history: History):
    conversation, (first, _) = talk(history, "a", "b")
    talk(history, "x")
    (edited,) = go_on(history, conversation, None, "a2")
    assert history.siblings(first) == [first, edited]


def test_the_branch_in_view_ends_at_the_head(history: History):
    conversation, (_, answer, _, last) = talk(history, "a", "b", "c", "d")
    history.set_head(conversation, answer)
    assert texts(history.branch(conversation)) == ["a", "b"]
    history.set_head(conversation, None)
    assert history.branch(conversation) == []
    assert [listed.id for listed in history.conversations()] == [conversation]
    history.set_head(conversation, last)
    assert len(history.branch(conversation)) == 4


def test_the_leaf_of_a_message_is_the_newest_below_it(history: History):
    conversation, (first, answer, second, last) = talk(history, "a", "b", "c", "d")
    edited, other = go_on(history, conversation, answer, "c2", "d2")
    assert [history.leaf(message) for message in (first, answer, second, edited, last, other)] == [
        other, other, last, other, last, other,
    ]  # fmt: skip


def test_a_message_does_not_follow_one_of_another_conversation(history: History):
    _, (first,) = talk(history, "a")
    other, _ = talk(history, "b")
    for wrong in (
        lambda: history.add(other, first, "user", "c"),
        lambda: history.set_head(other, first),
        lambda: history.branch(other, first),
    ):
        with pytest.raises(
            HistoryError, match=f"message {first} of conversation {other} is not in the history"
        ):
            wrong()
    assert history.get(other).turns == 1


# Forgetting


def test_what_is_deleted_is_gone_and_its_words_too(history: History, path: Path):
    gone, (first, *_) = talk(history, "remarkable", "indeed")
    kept, _ = talk(history, "ordinary", "indeed")
    history.delete(gone)
    assert [listed.id for listed in history.conversations()] == [kept]
    assert history.search("remarkable") == []
    assert [hit.conversation.id for hit in history.search("indeed")] == [kept]
    for missing in (
        lambda: history.get(gone),
        lambda: history.branch(gone),
        lambda: history.messages(gone),
        lambda: history.siblings(first),
        lambda: history.leaf(first),
        lambda: history.extend(first, "x"),
        lambda: history.add(gone, None, "user", "x"),
        lambda: history.add(kept, first, "user", "x"),
        lambda: history.rename(gone, "x"),
        lambda: history.set_system(gone, "x"),
        lambda: history.set_head(gone, None),
        lambda: history.get(10**30),
    ):
        with pytest.raises(HistoryError, match=r"history\.db") as told:
            missing()
        assert "\n" not in str(told.value)
    history.delete(gone)
    check_index(history)


def test_an_id_never_comes_to_mean_something_else(history: History):
    gone, messages = talk(history, "a", "b")
    history.delete(gone)
    again, others = talk(history, "c")
    assert again > gone
    assert others[0] > messages[-1]


# Any sequence of changes, against a plain model

INDEX = st.integers(0, 5)
CHANGES = st.lists(
    st.one_of(
        st.tuples(st.just("begin")),
        st.tuples(st.just("add"), INDEX, st.none() | INDEX, st.text(max_size=5)),
        st.tuples(st.just("extend"), INDEX, st.text(max_size=5)),
        st.tuples(st.just("set_head"), INDEX, st.none() | INDEX),
        st.tuples(st.just("delete"), INDEX),
    ),
    max_size=25,
)  # fmt: skip


class Model:
    """What a history should hold, in dicts."""

    def __init__(self) -> None:
        self.head: dict[int, int | None] = {}
        self.updated: dict[int, float] = {}
        self.messages: dict[int, tuple[int, int | None, str]] = {}

    def of(self, conversation: int) -> list[int]:
        return [message for message, kept in self.messages.items() if kept[0] == conversation]

    def branch(self, message: int | None) -> list[int]:
        above: list[int] = []
        while message is not None:
            above.insert(0, message)
            message = self.messages[message][1]
        return above


@settings(deadline=None, max_examples=60)
@given(changes=CHANGES)
def test_any_changes_leave_what_a_plain_model_holds(changes: list[tuple]):
    with tempfile.TemporaryDirectory() as folder:
        clock = Clock()
        history, model = History(Path(folder) / "history.db", clock), Model()
        for change in changes:
            apply(change, history, model, clock)
        agree(history, model)
        history.close()
        again = History(Path(folder) / "history.db")
        agree(again, model)
        again.close()


def apply(change: tuple, history: History, model: Model, clock: Clock) -> None:
    def one_of(things: list[int], index: int | None) -> int | None:
        return things[index % len(things)] if things and index is not None else None

    match change:
        case ["begin"]:
            conversation = history.begin()
            model.head[conversation] = None
        case ["add", which, parent, text] if model.head:
            conversation = list(model.head)[which % len(model.head)]
            parent = one_of(model.of(conversation), parent)
            message = history.add(conversation, parent, "user", text)
            model.messages[message] = (conversation, parent, text)
            model.head[conversation], model.updated[conversation] = message, clock.now
        case ["extend", which, text] if model.messages:
            message = list(model.messages)[which % len(model.messages)]
            history.extend(message, text)
            conversation = model.messages[message][0]
            model.messages[message] = (conversation, model.messages[message][1], text)
            model.updated[conversation] = clock.now
        case ["set_head", which, head] if model.head:
            conversation = list(model.head)[which % len(model.head)]
            model.head[conversation] = one_of(model.of(conversation), head)
            history.set_head(conversation, model.head[conversation])
        case ["delete", which] if model.head:
            conversation = list(model.head)[which % len(model.head)]
            history.delete(conversation)
            for message in model.of(conversation):
                del model.messages[message]
            del model.head[conversation]
            model.updated.pop(conversation, None)
        case _:
            pass


def agree(history: History, model: Model) -> None:
    newest = sorted(model.updated, key=lambda conversation: model.updated[conversation], reverse=True)
    assert [conversation.id for conversation in history.conversations()] == newest
    assert history.latest() == next(iter(newest), None)
    for conversation, head in model.head.items():
        kept = history.get(conversation)
        assert (kept.head, kept.turns) == (head, len(model.of(conversation)))
        branch = history.branch(conversation)
        assert [message.id for message in branch] == model.branch(head)
        assert texts(branch) == [model.messages[message][2] for message in model.branch(head)]
    for message, (conversation, parent, _) in model.messages.items():
        beside = [other for other in model.of(conversation) if model.messages[other][1] == parent]
        assert history.siblings(message) == beside
        version = (beside.index(message) + 1, len(beside)) if len(beside) > 1 else None
        assert history.versions(conversation).get(message) == version
        assert history.leaf(message) == max(
            other for other in model.of(conversation) if message in model.branch(other)
        )
    check_index(history)
