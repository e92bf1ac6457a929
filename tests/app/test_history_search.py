from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from specchat.app import history_database
from specchat.app.history import History
from tests.app.histories import Clock, check_index, go_on, talk


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "data" / "history.db"


@pytest.fixture
def history(path: Path) -> Iterator[History]:
    opened = History(path, Clock())
    yield opened
    opened.close()


def found(history: History, words: str) -> list[str]:
    return [hit.snippet for hit in history.search(words)]


def test_a_search_finds_messages_with_all_words_the_last_perhaps_only_begun(history: History):
    conversation, (_, _, prompt, answer) = talk(
        history, "hello", "hi", "How do I sort a list?", "Call sorted(list), or list.sort()."
    )
    assert found(history, "sort list") == ["Call sorted(\x02list\x03), or \x02list\x03.\x02sort\x03().",
                                           "How do I \x02sort\x03 a \x02list\x03?"]  # fmt: skip
    assert [hit.message for hit in history.search("list sor")] == [answer, prompt]
    assert found(history, "sor list") == []
    assert history.search("sort")[0].conversation == history.get(conversation)
    assert len(history.search("sort", limit=1)) == 1


def test_a_search_ignores_case_and_accents(history: History):
    talk(history, "Ein Café in ZÜRICH")
    assert (
        found(history, "cafe zürich")
        == found(history, "CAFÉ Zurich")
        == ["Ein \x02Café\x03 in \x02ZÜRICH\x03"]
    )


def test_signs_emoji_and_scripts_without_spaces_are_found_in_the_text(history: History):
    talk(history, "f :: a -> b", "今日はいい天気ですね 🙂 100%")
    assert found(history, "->") == ["f :: a \x02->\x03 b"]
    assert found(history, "b ->") == ["f :: a -> \x02b\x03"]
    assert found(history, "天気") == ["今日はいい\x02天気\x03ですね 🙂 100%"]
    assert found(history, "🙂 天気") == ["今日はいい\x02天気\x03ですね \x02🙂\x03 100%"]
    assert found(history, "🙃") == found(history, "_") == []


def test_a_long_text_is_shown_around_what_was_found(history: History):
    talk(history, "x " * 1000 + "here -> there" + " y" * 1000)
    for words in ("there", "->"):
        (shown,) = found(history, words)
        assert len(shown) < 200
        assert f"\x02{words}\x03" in shown
        assert shown[0] == shown[-1] == "…"


def test_what_looks_like_a_query_is_just_text(history: History):
    talk(history, 'say "near" OR not*')
    assert found(history, '"near" OR') == ['say "\x02near\x03" \x02OR\x03 not*']
    for words in (
        'near" AND "x',
        "text:near",
        "NOT near x",
        "near -say x",
        "near^2 x",
        "NEAR(say near)x",
    ):
        assert found(history, words) == []
    assert found(history, " ") == found(history, "") == found(history, "\0") == []


def test_a_title_is_searched_where_no_message_has_the_words(history: History):
    conversation, (_, answer) = talk(history, "hello there", "hi")
    history.rename(conversation, "Summer holidays")
    (hit,) = history.search("HOLI")
    assert (hit.conversation.id, hit.message, hit.snippet) == (
        conversation,
        answer,
        "Summer \x02holi\x03days",
    )
    history.set_head(conversation, None)
    assert history.search("holi")[0].message == answer
    go_on(history, conversation, answer, "holidays it is")
    assert found(history, "holi") == ["\x02holidays\x03 it is"]


SAYINGS = st.text() | st.text(alphabet='ab"*^:()-+ \0\ud800é世🙂%_\\ANDORT', max_size=40)


@pytest.fixture(scope="module", params=[True, False], ids=["indexed", "without FTS5"])
def searched(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[History]:
    with pytest.MonkeyPatch.context() as patch:
        if not request.param:
            patch.setattr(history_database, "has_fts5", lambda _: False)
        history = History(tmp_path_factory.mktemp("searched") / "history.db")
    talk(history, 'a "b" é 世界 🙂 AND * ^ 100% a_b\\', "OR\0T", "\x02\x03")
    yield history
    history.close()


@settings(deadline=None)
@given(words=SAYINGS)
def test_any_text_can_be_searched_for(searched: History, words: str):
    for hit in searched.search(words):
        assert isinstance(hit.snippet, str)


def test_more_words_than_anyone_types_can_be_searched_for(searched: History):
    assert searched.search("b " * 100_000) != []
    assert searched.search("b" * 1_000_000) == []


def test_without_fts5_words_are_found_by_their_letters(path: Path, monkeypatch: pytest.MonkeyPatch):
    with monkeypatch.context() as patch:
        patch.setattr(history_database, "has_fts5", lambda _: False)
        history = History(path, Clock())
        talk(history, "How do I sort a list?", "Call sorted.")
        assert found(history, "LIST sort") == ["How do I \x02sort\x03 a \x02list\x03?"]
        assert len(found(history, "sort")) == 2
        history.close()
    indexed = History(path, Clock())
    assert found(indexed, "lists") == []
    assert found(indexed, "sort a") == ["How do I \x02sort\x03 \x02a\x03 list?"]
    indexed.close()


def test_what_was_said_while_there_was_no_fts5_is_indexed_later(
    path: Path, history: History, monkeypatch: pytest.MonkeyPatch
):
    talk(history, "before")
    history.close()
    with monkeypatch.context() as patch:
        patch.setattr(history_database, "has_fts5", lambda _: False)
        without = History(path)
        _, (message,) = talk(without, "meanwhile")
        gone, _ = talk(without, "gone")
        without.delete(gone)
        without.close()
    again = History(path)
    assert [hit.message for hit in again.search("meanwhile")] == [message]
    assert again.search("gone") == []
    check_index(again)
    again.close()
