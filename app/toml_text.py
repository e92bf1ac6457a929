"""Values and keys as TOML writes them, with nothing in them that moves a terminal's cursor."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from typing import cast

from ..models.text import is_plain

_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")
_ESCAPES = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\t": "\\t", "\r": "\\r"}


def literal(value: object) -> str:
    """A text, a number, a truth or a list of them as TOML; anything else as Python shows it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        marks = not is_plain(value)
        return f'"{"".join(_escaped(character, marks) for character in value)}"'
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(literal, cast('Iterable[object]', value)))}]"
    return printable(str(value))


def key(*names: str) -> str:
    """A dotted key, its parts in quotes where they need some."""
    return ".".join(name if _BARE_KEY.fullmatch(name) else literal(name) for name in names)


def printable(text: object) -> str:
    """A text on one line, for messages and comments."""
    shown = str(text)
    return shown if is_plain(shown) else ascii(shown)


def _escaped(character: str, marks: bool) -> str:
    """The character; where `marks` says so, not those that would be drawn on the one before."""
    if character in _ESCAPES:
        return _ESCAPES[character]
    if character.isprintable() and not (marks and unicodedata.combining(character)):
        return character
    code = ord(character)
    if 0xD800 <= code < 0xE000:  # half a character, from a file's name that is no UTF-8: TOML has none
        return "\ufffd"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
