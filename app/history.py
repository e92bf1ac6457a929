"""Conversations that last: trees of messages in an SQLite file that several windows may share."""

from __future__ import annotations

import json
import struct
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import platformdirs
from rich.cells import cell_len, set_cell_size

from ..models.gguf_layout import shown
from ..models.text import printable
from .history_database import IN_MEMORY as IN_MEMORY
from .history_database import Database, HistoryError, Row
from .history_search import HIT, HIT_END, Query, snippet, understand

Role = Literal["user", "assistant"]

TITLE_CELLS = 60
"""The widest title, in cells of a terminal."""
_LONGEST_LINE = 1000

_CONVERSATION = "c.id, c.title, c.updated, c.turns, c.pair, c.system, c.head"
_CONVERSATIONS = f"SELECT {_CONVERSATION} FROM conversations AS c"
_MESSAGE = "m.id, m.parent, m.role, m.text, m.token_ids, m.mark, m.created, m.record"


@dataclass(frozen=True)
class Message:
    """One message of a conversation, and which one it follows."""

    id: int
    parent: int | None
    role: Role
    text: str
    token_ids: tuple[int, ...] = ()
    """The ids an answer was decoded as."""
    mark: str = ""
    """Why an answer is not whole: "stopped", "length", "context", "cut off" or "failed"; "" is whole."""
    created: float = 0.0
    """Seconds since the epoch."""
    record: Mapping[str, object] = field(default_factory=dict[str, object])
    """Figures, pair and settings of an answer, as JSON has them; a number that JSON lacks is None."""


@dataclass(frozen=True)
class Conversation:
    """A row of the list, told without reading any message."""

    id: int
    title: str
    updated: float
    """When something was said last, in seconds since the epoch."""
    turns: int
    """How many messages there are, on all branches."""
    pair: str
    """The models that answered last."""
    system: str
    head: int | None
    """The last message of the branch in view."""


@dataclass(frozen=True)
class Hit:
    """A message with the words that were searched for."""

    conversation: Conversation
    message: int
    snippet: str
    r"""A part of the text, what was found in it between \x02 and \x03."""


def default_path() -> Path:
    """The file in the platform's folder for a user's data."""
    return platformdirs.user_data_path("specchat") / "history.db"


class History:
    """All conversations, in one file; each change is kept once its call has returned.

    It belongs to the thread that made it. Every call raises `HistoryError` where the file cannot be read
    or written, or where a conversation or message is not in it, perhaps since another window deleted it.
    """

    def __init__(self, path: Path, clock: Callable[[], float] = time.time) -> None:
        """Open the file, or begin a new one; `clock` tells seconds since the epoch."""
        self._database = Database(path)
        self._clock = clock

    def begin(self, system: str = "") -> int:
        """A new conversation, which is not listed before something is said in it; returns its id."""
        with self._database.writing():
            return self._database.change(
                "INSERT INTO conversations (updated, system) VALUES (?, ?)", (self._clock(), _valid(system))
            )

    def add(
        self,
        conversation: int,
        parent: int | None,
        role: Role,
        text: str,
        *,
        token_ids: Sequence[int] = (),
        mark: str = "",
        record: Mapping[str, object] | None = None,
        pair: str = "",
    ) -> int:
        """Keep a message that follows `parent` (`None` begins a branch of its own); returns its id.

        The message becomes the head, and the first prompt of a conversation its title.
        """
        now = self._clock()
        with self._database.writing():
            self.get(conversation)
            if parent is not None:
                self._must_hold(conversation, parent)
            message = self._database.change(
                "INSERT INTO messages (conversation, parent, role, text, token_ids, mark, created, record) "
                "VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
                (conversation, parent, role, _valid(text), _packed(token_ids), mark, now, _json(record)),
            )
            self._database.change(
                "UPDATE conversations SET head = ?, updated = ?, turns = turns + 1, "
                "title = coalesce(nullif(title, ''), ?), pair = coalesce(nullif(?, ''), pair) WHERE id = ?",
                (message, now, as_title(text) if role == "user" else "", _valid(pair), conversation),
            )
        return message

    def extend(
        self,
        message: int,
        text: str,
        token_ids: Sequence[int] = (),
        mark: str = "",
        record: Mapping[str, object] | None = None,
    ) -> None:
        """Replace an answer by the longer one that it was continued to."""
        with self._database.writing():
            conversation = self._conversation_of(message)
            self._database.change(
                "UPDATE messages SET text = ?, token_ids = ?, mark = ?, record = ? WHERE id = ?",
                (_valid(text), _packed(token_ids), mark, _json(record), message),
            )
            self._database.change(
                "UPDATE conversations SET updated = ? WHERE id = ?", (self._clock(), conversation)
            )

    def drop(self, message: int) -> None:
        """Forget a message that nothing follows; the one before it becomes the head."""
        with self._database.writing():
            conversation = self._conversation_of(message)
            ((parent, followed),) = self._database.rows(
                "SELECT parent, EXISTS (SELECT 1 FROM messages AS m WHERE m.parent = messages.id) "
                "FROM messages WHERE id = ?",
                (message,),
            )
            if followed:
                return
            self._database.change("DELETE FROM messages WHERE id = ?", (message,))
            self._database.change(
                "UPDATE conversations SET head = ?, turns = turns - 1 WHERE id = ?", (parent, conversation)
            )

    def conversations(self, *, limit: int = 200) -> list[Conversation]:
        """Those in which something was said, the newest first."""
        rows = self._database.rows(
            f"{_CONVERSATIONS} WHERE turns > 0 ORDER BY updated DESC, id DESC LIMIT ?", (limit,)
        )
        return [Conversation(*row) for row in rows]

    def latest(self) -> int | None:
        """The conversation in which something was said last."""
        return next((conversation.id for conversation in self.conversations(limit=1)), None)

    def get(self, conversation: int) -> Conversation:
        """One conversation, listed or not."""
        rows = self._database.rows(f"{_CONVERSATIONS} WHERE id = ?", (conversation,))
        if not rows:
            raise self._missing(f"conversation {conversation}")
        return Conversation(*rows[0])

    def search(self, words: str, *, limit: int = 50) -> list[Hit]:
        """Messages that hold all these words, the newest first, then conversations by their titles alone.

        The last word may be only begun. Case is ignored, and so are accents; where SQLite's index knows
        nothing of a word (signs, emoji, scripts without spaces), it is looked for in the text as it is.
        """
        query = understand(_valid(words), indexed=self._database.indexed)
        if not query.words:
            return []
        hits = self._in_texts(query, limit)
        shown_already = {hit.conversation.id for hit in hits}
        in_titles = self._in_titles(query, limit)
        return [*hits, *(hit for hit in in_titles if hit.conversation.id not in shown_already)][:limit]

    def branch(self, conversation: int, head: int | None = None) -> list[Message]:
        """The messages from the first to `head`, or to the head of the branch in view."""
        if head is None:
            head = self.get(conversation).head
        else:
            self._must_hold(conversation, head)
        return self._messages(
            "WITH RECURSIVE above (id, parent) AS (SELECT id, parent FROM messages WHERE id = ? "
            "UNION SELECT n.id, n.parent FROM messages AS n JOIN above ON n.id = above.parent) "
            f"SELECT {_MESSAGE} FROM above JOIN messages AS m ON m.id = above.id ORDER BY m.id",
            (head,),
        )

    def messages(self, conversation: int) -> list[Message]:
        """The messages of all branches, the oldest first."""
        self.get(conversation)
        return self._messages(
            f"SELECT {_MESSAGE} FROM messages AS m WHERE conversation = ? ORDER BY id", (conversation,)
        )

    def siblings(self, message: int) -> list[int]:
        """The messages that follow the same one, the oldest first, itself among them."""
        rows = self._database.rows(
            "SELECT n.id FROM messages AS m JOIN messages AS n "
            "ON n.conversation = m.conversation AND n.parent IS m.parent WHERE m.id = ? ORDER BY n.id",
            (message,),
        )
        if not rows:
            raise self._missing(f"message {message}")
        return [row[0] for row in rows]

    def versions(self, conversation: int) -> dict[int, tuple[int, int]]:
        """Which version each message is, from 1, and of how many; those without others are left out."""
        rows = self._database.rows(
            "SELECT id, place, of FROM (SELECT id, "
            "row_number() OVER (PARTITION BY parent ORDER BY id) AS place, "
            "count(*) OVER (PARTITION BY parent) AS of FROM messages WHERE conversation = ?) WHERE of > 1",
            (conversation,),
        )
        return {row[0]: (row[1], row[2]) for row in rows}

    def leaf(self, message: int) -> int:
        """The newest of what follows a message, however far below; itself where nothing does."""
        rows = self._database.rows(
            "WITH RECURSIVE below (id) AS (SELECT ? "
            "UNION SELECT m.id FROM below JOIN messages AS m ON m.conversation = ? AND m.parent = below.id) "
            "SELECT max(id) FROM below",
            (message, self._conversation_of(message)),
        )
        return rows[0][0]

    def set_head(self, conversation: int, message: int | None) -> None:
        """Bring the branch that ends in this message into view; `None` is the place before all messages."""
        with self._database.writing():
            self.get(conversation)
            if message is not None:
                self._must_hold(conversation, message)
            self._set(conversation, "head", message)

    def set_system(self, conversation: int, system: str) -> None:
        """Change what the system prompt says."""
        with self._database.writing():
            self.get(conversation)
            self._set(conversation, "system", _valid(system))

    def rename(self, conversation: int, title: str) -> None:
        """Give a conversation another title; one without any text leaves it the one it has."""
        with self._database.writing():
            former = self.get(conversation).title
            self._set(conversation, "title", as_title(title) or former)

    def delete(self, conversation: int) -> None:
        """Forget a conversation and all that was said in it; one that is gone already stays gone."""
        with self._database.writing():
            self._database.change("DELETE FROM messages WHERE conversation = ?", (conversation,))
            self._database.change("DELETE FROM conversations WHERE id = ?", (conversation,))

    def close(self) -> None:
        """Let go of the file."""
        self._database.close()

    def _in_texts(self, query: Query, limit: int) -> list[Hit]:
        wanted = query.contained_in("m.text")
        if not query.match:
            rows = self._database.rows(
                f"SELECT {_CONVERSATION}, m.id, m.text FROM messages AS m "
                f"JOIN conversations AS c ON c.id = m.conversation WHERE {wanted} ORDER BY m.id DESC LIMIT ?",
                (*query.contained, limit),
            )
            return [Hit(Conversation(*row[:7]), row[7], snippet(row[8], query.words)) for row in rows]
        rows = self._database.rows(
            f"SELECT {_CONVERSATION}, m.id, snippet(words, 0, '{HIT}', '{HIT_END}', '…', 16) FROM words "
            "JOIN messages AS m ON m.id = words.rowid JOIN conversations AS c ON c.id = m.conversation "
            f"WHERE words MATCH ? AND {wanted} ORDER BY words.rowid DESC LIMIT ?",
            (query.match, *query.contained, limit),
        )
        return [Hit(Conversation(*row[:7]), row[7], row[8]) for row in rows]

    def _in_titles(self, query: Query, limit: int) -> list[Hit]:
        rows = self._database.rows(
            f"SELECT {_CONVERSATION}, (SELECT max(id) FROM messages WHERE conversation = c.id) "
            f"FROM conversations AS c WHERE turns > 0 AND {query.all_in('c.title')} "
            "ORDER BY updated DESC, id DESC LIMIT ?",
            (*query.words, limit),
        )
        return [Hit(Conversation(*row[:7]), row[6] or row[7], snippet(row[1], query.words)) for row in rows]

    def _set(self, conversation: int, column: str, value: str | int | None) -> None:
        self._database.change(f"UPDATE conversations SET {column} = ? WHERE id = ?", (value, conversation))

    def _messages(self, statement: str, values: Sequence[object]) -> list[Message]:
        return [_message(row) for row in self._database.rows(statement, values)]

    def _conversation_of(self, message: int) -> int:
        rows = self._database.rows("SELECT conversation FROM messages WHERE id = ?", (message,))
        if not rows:
            raise self._missing(f"message {message}")
        return rows[0][0]

    def _must_hold(self, conversation: int, message: int) -> None:
        if self._conversation_of(message) != conversation:
            raise self._missing(f"message {message} of conversation {conversation}")

    def _missing(self, what: str) -> HistoryError:
        return HistoryError(f"{what} is not in the history {shown(self._database.path)}: was it deleted?")


def as_title(text: str) -> str:
    """The first line that says something, without control characters, cut where it is too wide."""
    lines = (" ".join(printable(line[:_LONGEST_LINE]).split()) for line in text.splitlines())
    title = _valid(next(filter(None, lines), ""))
    if cell_len(title) <= TITLE_CELLS:
        return title
    return set_cell_size(title, TITLE_CELLS - 1).rstrip() + "…"


def _valid(text: str) -> str:
    """The text without halves of surrogate pairs, which no file can hold."""
    return text.encode("utf-8", "replace").decode("utf-8")


def _packed(token_ids: Sequence[int]) -> bytes:
    return struct.pack(f"<{len(token_ids)}I", *token_ids)


def _json(record: Mapping[str, object] | None) -> str:
    return json.dumps(dict(record or {}))


def _message(row: Row) -> Message:
    number, parent, role, text, packed, mark, created, record = row
    return Message(
        number,
        parent,
        role,
        text,
        struct.unpack(f"<{len(packed) // 4}I", packed),
        mark,
        created,
        # Python writes an infinity as JSON has none.
        json.loads(record, parse_constant=lambda _: None),
    )
