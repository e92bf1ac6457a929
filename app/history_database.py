"""The history's file: made for one person's eyes, brought to this format, its errors told in one line."""

from __future__ import annotations

import contextlib
import errno
import os
import sqlite3
from collections.abc import Generator, Sequence
from pathlib import Path
from typing import Any

from ..models.errors import SpecchatError
from ..models.gguf_layout import shown
from .private_files import make_folder, open_new

Row = tuple[Any, ...]

IN_MEMORY = Path(":memory:")
"""In place of a file: what is kept lasts until the end of the program."""

_APPLICATION = 0x53504543
"""Stands in the file's header, so that no other program's database is taken for a history."""

# Each step is one version's statements, carried out in one transaction with those of the other steps.
# Ids are never used twice: an id that one window holds cannot come to mean what another window made later.
_STEPS: tuple[tuple[str, ...], ...] = (
    (
        f"PRAGMA application_id = {_APPLICATION}",
        """
        CREATE TABLE conversations (
            id INTEGER PRIMARY KEY AUTOINCREMENT,
            title TEXT NOT NULL DEFAULT '',
            updated REAL NOT NULL,
            turns INTEGER NOT NULL DEFAULT 0,
            pair TEXT NOT NULL DEFAULT '',
            system TEXT NOT NULL,
            head INTEGER
        )
        """,
        "CREATE INDEX conversations_by_time ON conversations (updated, id) WHERE turns > 0",
        """
        CREATE TABLE messages (
            id INTEGER PRIMARY KEY AUTOINCREMENT,
            conversation INTEGER NOT NULL REFERENCES conversations (id),
            parent INTEGER,
            role TEXT NOT NULL CHECK (role IN ('user', 'assistant')),
            text TEXT NOT NULL,
            token_ids BLOB NOT NULL,
            mark TEXT NOT NULL,
            created REAL NOT NULL,
            record TEXT NOT NULL
        )
        """,
        "CREATE INDEX messages_by_parent ON messages (conversation, parent)",
    ),
)

# The index of words is no part of the format: an SQLite without FTS5 drops the triggers, since it could
# not write a message with them, and the next one that has FTS5 indexes anew. Triggers mean it is whole.
_INDEXED = "SELECT 1 FROM sqlite_master WHERE name = 'words_added'"
_INDEX = (
    """
    CREATE VIRTUAL TABLE IF NOT EXISTS words USING fts5 (
        text, content = 'messages', content_rowid = 'id', tokenize = 'unicode61 remove_diacritics 2'
    )
    """,
    """
    CREATE TRIGGER words_added AFTER INSERT ON messages BEGIN
        INSERT INTO words (rowid, text) VALUES (new.id, new.text);
    END
    """,
    """
    CREATE TRIGGER words_changed AFTER UPDATE OF text ON messages BEGIN
        INSERT INTO words (words, rowid, text) VALUES ('delete', old.id, old.text);
        INSERT INTO words (rowid, text) VALUES (new.id, new.text);
    END
    """,
    """
    CREATE TRIGGER words_removed AFTER DELETE ON messages BEGIN
        INSERT INTO words (words, rowid, text) VALUES ('delete', old.id, old.text);
    END
    """,
    "INSERT INTO words (words) VALUES ('rebuild')",
)
_NO_INDEX = ("DROP TRIGGER words_added", "DROP TRIGGER words_changed", "DROP TRIGGER words_removed")

_ADVICE = {
    "disk is full": "free some space on its disk",
    "is locked": "another program is writing to it; close that one, or try again",
    "not a database": "move it away, and a new history is begun",
    "malformed": "move it away, and a new history is begun",
    "readonly": "check the permissions of the file and of its folder",
    "unable to open": "check that it is a file, and the permissions of its folder",
    "I/O error": "check its disk",
}


class HistoryError(SpecchatError):
    """The history cannot be read or written, or what is asked for is not in it."""


class Database:
    """One connection to the file, for one thread; others, of this process or not, may have their own."""

    def __init__(self, path: Path, patience_s: float = 5.0) -> None:
        """Open the file, or begin a new one.

        Args:
            path: Its folder is made if need be.
            patience_s: How long to wait for another connection that is writing.

        Raises:
            HistoryError: it cannot be opened, is no history, or was written by a newer specchat.
        """
        self.path = path
        _create(path)
        with self._told():
            # Transactions are begun and ended here alone, not by the module's own guesses.
            self._connection = sqlite3.connect(path, timeout=patience_s, isolation_level=None)
        try:
            with self.writing():
                self._migrate()
                self.indexed = self._index()
            self._set_up()
        except BaseException:
            self._connection.close()
            raise

    def rows(self, statement: str, values: Sequence[object] = ()) -> list[Row]:
        """What the statement finds.

        Raises:
            HistoryError: the file cannot be read.
        """
        with self._told():
            return self._connection.execute(statement, values).fetchall()

    def change(self, statement: str, values: Sequence[object] = ()) -> int:
        """Carry out a statement inside of `writing`; returns the id of the row it added, if it added one."""
        return self._connection.execute(statement, values).lastrowid or 0

    @contextlib.contextmanager
    def writing(self) -> Generator[None, None, None]:
        """One transaction: all that is changed in it is kept when it ends, and nothing if it fails.

        Raises:
            HistoryError: the file cannot be written.
        """
        with self._told():
            try:
                self._connection.execute("BEGIN IMMEDIATE")
                yield
                self._connection.execute("COMMIT")
            except BaseException:
                if self._connection.in_transaction:
                    self._connection.execute("ROLLBACK")
                raise

    def close(self) -> None:
        """Let go of the file."""
        with self._told():
            self._connection.close()

    def _migrate(self) -> None:
        ((version,),) = self.rows("PRAGMA user_version")
        ((application,),) = self.rows("PRAGMA application_id")
        if application != _APPLICATION and self.rows("SELECT 1 FROM sqlite_master LIMIT 1"):
            raise HistoryError(
                f"{shown(self.path)} is another program's database: name another file for the history"
            )
        if version > len(_STEPS):
            raise HistoryError(
                f"the history {shown(self.path)} was written by a newer specchat (format {version}, this one "
                f"knows {len(_STEPS)}): update specchat, or move the file away"
            )
        for statement in (statement for step in _STEPS[version:] for statement in step):
            self.change(statement)
        if version < len(_STEPS):
            self.change(f"PRAGMA user_version = {len(_STEPS)}")

    def _index(self) -> bool:
        """Make the index of words true, or do without; says which."""
        possible = has_fts5(self._connection)
        if possible != bool(self.rows(_INDEXED)):
            for statement in _INDEX if possible else _NO_INDEX:
                self.change(statement)
        return possible

    def _set_up(self) -> None:
        # In this mode a commit is in the system's hands, where a killed process cannot take it back, and
        # readers never wait. The file keeps the mode, so it does not matter who of two beginners sets it.
        with contextlib.suppress(HistoryError):
            self.rows("PRAGMA journal_mode = WAL")
        self.rows("PRAGMA synchronous = NORMAL")
        self.rows("PRAGMA foreign_keys = ON")

    @contextlib.contextmanager
    def _told(self) -> Generator[None, None, None]:
        try:
            yield
        except (sqlite3.Error, OverflowError) as error:
            reason = str(error)
            advice = "".join(f"; {advice}" for known, advice in _ADVICE.items() if known in reason)
            raise HistoryError(f"the history {shown(self.path)} cannot be used: {reason}{advice}") from error


def has_fts5(connection: sqlite3.Connection) -> bool:
    """Whether this SQLite can index words."""
    try:
        connection.execute("SELECT fts5_source_id()")
    except sqlite3.OperationalError:
        return False
    return True


def _create(path: Path) -> None:
    """Make the file if there is none, for the user alone; SQLite gives its journals the same mode."""
    if path == IN_MEMORY:
        return
    try:
        make_folder(path.parent)
        # One that exists is not opened here: to close it would let go of SQLite's own locks on it.
        with contextlib.suppress(FileExistsError):
            os.close(open_new(path))
        if not os.access(path, os.R_OK | os.W_OK):  # SQLite would open it, and refuse the first message
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise HistoryError(
            f"the history {shown(path)} cannot be used: {reason}; check it and its folder, or name another"
        ) from error
