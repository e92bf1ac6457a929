"""What a person types into a search, made into a question that no character in it can change."""

from __future__ import annotations

import re
from dataclasses import dataclass

HIT, HIT_END = "\x02", "\x03"
"""Stand before and after what was found in a snippet."""

_MOST_WORDS = 32
_AROUND = 40
"""Characters of text kept on either side of what was found, where SQLite does not cut the snippet."""

# Thai to Burmese, Khmer, and Chinese and Japanese characters: written without spaces, so that the index
# would take a whole sentence for one word.
_UNSPACED = re.compile(
    r"[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u2e80-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]"
)


@dataclass(frozen=True)
class Query:
    """A search in SQLite's words: a text is found that fulfils all of it."""

    match: str
    """An FTS5 expression; "" asks nothing."""
    contained: tuple[str, ...]
    """Texts that must be contained, since the index knows nothing of them."""
    words: tuple[str, ...]
    """All that was asked for."""

    def contained_in(self, column: str) -> str:
        """The condition that a column contains `contained`, which are its values."""
        return _all_in(column, len(self.contained))

    def all_in(self, column: str) -> str:
        """The condition that a column contains all `words`, which are its values."""
        return _all_in(column, len(self.words))


def understand(typed: str, *, indexed: bool) -> Query:
    """The question for what was typed: all its words, of which the last may be only begun."""
    words = tuple(typed.replace("\0", " ").split()[:_MOST_WORDS])
    known = [word for word in words if indexed and _is_in_index(word)]
    quoted = ['"' + word.replace('"', '""') + '"' for word in known]
    if quoted and known[-1] == words[-1]:
        quoted[-1] += "*"
    return Query(" ".join(quoted), tuple(word for word in words if word not in known), words)


def snippet(text: str, words: tuple[str, ...]) -> str:
    """The part of a text around the first of these words, all of them marked."""
    wanted = re.compile("|".join(map(re.escape, words)), re.IGNORECASE)
    found = wanted.search(text)
    start, end = (found.start(), found.end()) if found else (0, 0)
    first, last = max(0, start - _AROUND), end + _AROUND
    marked = wanted.sub(lambda hit: HIT + hit[0] + HIT_END, text[first:last])
    return "…" * (first > 0) + marked + "…" * (last < len(text))


def _all_in(column: str, count: int) -> str:
    # Not LIKE, whose patterns have signs of their own and may not be long.
    return " AND ".join([f"instr(lower({column}), lower(?)) > 0"] * count) or "1"


def _is_in_index(word: str) -> bool:
    return any(character.isalnum() for character in word) and not _UNSPACED.search(word)
