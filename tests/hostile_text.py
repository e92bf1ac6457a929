"""Text that tries to steer a terminal, and what tells whether it did."""

from __future__ import annotations

import re
import unicodedata

from hypothesis import strategies as st

SEQUENCES = (
    "\x1b[2J", "\x1b[5;31m", "\x1b]0;title\x07", "\x1b]8;;http://x\x1b\\", "\x1b]52;c;aGk=\x07", "\x1bc",
    "\x1b[6n", "\x9b2J", "\x9d52;c;aGk=\x9c", "\x90q\x9c", "\x07", "\x08\x08", "\r", "\r\n", "\n", "\t",
    "\x0b", "\x0c", "\x0e", "\x7f", "\x00", "\x85", "\u2028", "\u2029", "\u202e", "\u202d", "\u2066",
    "\u2069", "\u206a", "\ufff9", "\ud800", "\udc1b", "\u200b" * 40, "\u200d" * 9, "a" + "\u0301" * 40,
    "\u20dd" * 12, "\ufe0f" * 20, "\U000e0041" * 30, "\u1160" * 30, "\u00ad" * 20, "[bold]", "[/]",
    "[@click=app.bell]x[/]", "[link=http://x]y", "&#27;[2J", "&#x9b;2J", "&#x202e;", "`\x1b[2J`",
    "```\n\x1b[2J", "| a |\n|--|\n| &#27;c |", "<b>\x1b</b>", "![&#27;](\x1b)", "[x](http://\u202e)",
    "中文", "👨\u200d👩\u200d👧", "e\u0301",
)  # fmt: skip


def hostile_text() -> st.SearchStrategy[str]:
    """Words, and all that a stranger might hide between them."""
    parts = st.sampled_from(SEQUENCES) | st.text(st.characters(), max_size=4) | st.sampled_from(["word", " "])
    return st.lists(parts, max_size=12).map("".join)


def is_harmless(written: str, own: str = "$^") -> bool:
    """Whether a terminal sees in it nothing but text and line ends, and sequences that are our `own`."""
    rest = re.sub(own, "", written)
    marks = "".join("m" if unicodedata.category(c) in ("Mn", "Me", "Cf") else "-" for c in rest)
    return not any(map(_steers, rest)) and "m" * 20 not in marks


def _steers(character: str) -> bool:
    turns = unicodedata.bidirectional(character)
    return (unicodedata.category(character) in ("Cc", "Cs", "Zl", "Zp") and character != "\n") or (
        turns in ("LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI")
    )
