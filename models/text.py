"""Token pieces to text: bytes that may end inside a character, and text written for a person."""

from __future__ import annotations

import codecs
import unicodedata
from collections.abc import Callable, Sequence
from functools import lru_cache


class TextDecoder:
    """Turns pieces of UTF-8 into text as they come; what is no UTF-8 becomes U+FFFD.

    One emoji is often two or three tokens, so a piece may end inside a character: those bytes wait
    for the next piece. Joined, the text is exactly `b"".join(pieces).decode("utf-8", "replace")`.
    """

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")

    def decode(self, piece: bytes) -> str:
        """The text that this piece completes, perhaps empty."""
        return self._decoder.decode(piece)

    def finish(self) -> str:
        """What is left of an unfinished character, as U+FFFD; the decoder can then be used anew."""
        rest = self._decoder.decode(b"", final=True)
        self._decoder.reset()
        return rest


class StopTexts:
    """Finds the texts that end an answer, and holds back what may yet become one."""

    def __init__(self, stops: Sequence[str]) -> None:
        self._stops = tuple(stops)
        self._held = ""
        self.found = False

    def take(self, text: str) -> str:
        """What may be shown now that this text has come; nothing after a stop text ever is."""
        if not self._stops or self.found:
            return "" if self.found else text
        held = self._held + text
        ends = [held.index(stop) for stop in self._stops if stop in held]
        if ends:
            self.found = True
            self._held = ""
            return held[: min(ends)]
        keep = max(
            (size for stop in self._stops for size in range(len(stop)) if held.endswith(stop[:size])),
            default=0,
        )
        self._held = held[len(held) - keep :]
        return held[: len(held) - keep]

    def finish(self) -> str:
        """What was held back and became no stop text."""
        rest, self._held = self._held, ""
        return rest


class PrintableText:
    """Makes text that comes in pieces harmless to a terminal: what a model writes may steer none.

    Control characters, halves of characters and what turns the direction of text become U+FFFD, tabs become
    spaces. Marks and invisible characters stay, as scripts and emoji need them, but no more than
    `MOST_MARKS` of them in a row. Joined, the text is exactly what `printable` makes of the whole.
    """

    def __init__(self) -> None:
        self._marks = 0

    def take(self, text: str) -> str:
        """What may be shown of this piece."""
        text = text.translate(_UNPRINTABLE)
        if text.isascii():
            self._marks = 0 if text else self._marks
            return text
        text, self._marks = with_few_marks(
            text, lambda _, beyond: "\ufffd" if beyond == 1 else "", self._marks
        )
        return text


def printable(text: str) -> str:
    """The text as `PrintableText` shows it, line ends and all."""
    return PrintableText().take(text)


def with_few_marks(text: str, instead: Callable[[str, int], str], before: int = 0) -> tuple[str, int]:
    """The text with no more than `MOST_MARKS` marks in a row, and how many it ends with.

    Args:
        text: Anything.
        instead: What stands in the place of a mark that is the first, second, ... beyond those.
        before: Marks at the end of what this text goes on from.
    """
    kept: list[str] = []
    marks = before
    for character in text:
        marks = marks + 1 if _takes_no_cell(character) else 0
        kept.append(character if marks <= MOST_MARKS else instead(character, marks - MOST_MARKS))
    return "".join(kept), marks


def on_one_line(text: str, longest: int = 200) -> str:
    """The text for a name or a message: printable, with spaces for line ends and what cannot be seen."""
    text = printable(text[:longest]).replace("\ufffd", " ")
    return "".join(character if character.isprintable() else " " for character in text).strip()


def is_plain(text: str) -> bool:
    """Whether the text can be shown as it is, on one line."""
    return text.isprintable() and printable(text) == text


def readable_token(stored: bytes, vocabulary_kind: str) -> str:
    """A token's text as a person would type it, in quotes, for messages; never raises.

    Args:
        stored: The token as the GGUF stores it.
        vocabulary_kind: `tokenizer.ggml.model`; "gpt2" vocabularies store every byte as a printable
            character, the others write a space as U+2581.
    """
    text = stored.decode("utf-8", "replace")
    if vocabulary_kind == "gpt2":
        if all(character in _BYTE_OF for character in text):
            text = bytes(_BYTE_OF[character] for character in text).decode("utf-8", "replace")
    else:
        text = text.replace("\u2581", " ")
    return repr(text)


def _byte_of_character() -> dict[str, int]:
    """GPT-2's alphabet: printable Latin-1 is itself, other bytes are characters from U+0100 on."""
    plain = {*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)}
    others = [byte for byte in range(0x100) if byte not in plain]
    return {chr(byte): byte for byte in plain} | {chr(0x100 + n): byte for n, byte in enumerate(others)}


_BYTE_OF = _byte_of_character()

MOST_MARKS = 8
"""In a row: flags of regions take six, and no script more."""

_CONTROLS = (*range(0x20), *range(0x7F, 0xA0), 0x2028, 0x2029)
_DIRECTIONS = (*range(0x202A, 0x202F), *range(0x2066, 0x2070), *range(0xFFF9, 0xFFFC))
"""Embeddings, overrides and isolates, the old characters that switch shapes, and annotations."""
_HALVES = range(0xD800, 0xE000)
STEERING = (*_CONTROLS, *_DIRECTIONS, *_HALVES)
"""The code points that no terminal is to be sent inside a text."""
_UNPRINTABLE = {code: "\ufffd" for code in STEERING if code != 10} | {9: "    ", 13: None}


@lru_cache(maxsize=4096)
def _takes_no_cell(character: str) -> bool:
    """Whether it is drawn on the character before it, or not at all."""
    code = ord(character)
    if code < 0x300:
        return code == 0xAD
    # The vowels and final consonants of old Hangul join the letter before them.
    joins = 0x1160 <= code <= 0x11FF or 0xD7B0 <= code <= 0xD7FF
    return joins or unicodedata.category(character) in ("Mn", "Me", "Cf")
