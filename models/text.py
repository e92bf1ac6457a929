"""Token pieces to text: bytes that may end inside a character, and text written for a person."""

from __future__ import annotations

import codecs
from collections.abc import Sequence


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


def printable(text: str) -> str:
    """The text without control characters, its tabs as spaces: what a model writes may steer no terminal."""
    return text.translate(_UNPRINTABLE)


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

_CONTROLS = [*range(0x20), *range(0x7F, 0xA0), 0x2028, 0x2029]
_UNPRINTABLE = {code: "\ufffd" for code in _CONTROLS if code != 10} | {9: "    ", 13: None}
