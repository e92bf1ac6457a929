"""What a file was made from and how, by the notes in its own metadata: a recipe, and its source."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from .text import on_one_line

KEY = "specchat.derived."
"""What the keys of all notes begin with."""

_LONGEST = 127
"""Bytes that a note can hold; a longer text goes on in further ones."""

_LONGEST_IN_A_NAME = 80

_RANGE = re.compile(r"(?P<first>[0-9]{1,5})(-(?P<last>[0-9]{1,5}))?")


@dataclass(frozen=True)
class Recipe:
    """How a draft is made from a model."""

    quant: str = ""
    """The quantization, "Q4_0"; empty where the tensors stay as they are."""
    output: str = ""
    """The type of the output matrix; empty where it is the quantization's own."""
    skipped: tuple[int, ...] = ()
    """Layers that are left out, counted from 0."""

    def __str__(self) -> str:
        """The recipe as it is noted: "Q4_0.output-Q8_0.skip-4,9-12"."""
        return ".".join(self._parts(f"skip-{ranges(self.skipped)}"))

    @property
    def in_a_name(self) -> str:
        """The same, fit for a file's name: long lists of layers are summed."""
        listed = ranges(self.skipped)
        if len(listed) > _LONGEST_IN_A_NAME:
            listed = f"{len(self.skipped)}-layers-{hashlib.sha256(listed.encode()).hexdigest()[:8]}"
        return ".".join(self._parts(f"skip-{listed}"))

    @property
    def words(self) -> str:
        """The same for a person."""
        quant = f"as {self.quant}" if self.quant else ""
        output = f"with its output matrix as {self.output}" if self.output else ""
        layers = f"without {layers_in_words(self.skipped)}" if self.skipped else ""
        return " ".join(part for part in (quant, output, layers) if part)

    def _parts(self, skip: str) -> list[str]:
        output = f"output-{self.output}" if self.output else ""
        return [part for part in (self.quant, output, skip if self.skipped else "") if part]


@dataclass(frozen=True)
class Origin:
    """What a derived file was made from."""

    source: str
    """The file's name, without its folder."""
    source_bytes: int
    source_sha256: str
    source_layers: int
    recipe: str
    skipped: tuple[int, ...]

    def notes(self) -> dict[str, str]:
        """Itself as metadata, each text short enough for llama.cpp."""
        texts = {
            "source": self.source,
            "source_bytes": str(self.source_bytes),
            "source_sha256": self.source_sha256,
            "source_layers": str(self.source_layers),
            "recipe": self.recipe,
            "skipped_layers": ranges(self.skipped),
        }
        return dict(note for name, text in texts.items() for note in _in_pieces(f"{KEY}{name}", text))

    @classmethod
    def read(cls, values: Mapping[str, object]) -> Origin | None:
        """The origin that these metadata tell, if they tell one."""
        texts = {
            name: _joined(values, f"{KEY}{name}")
            for name in (
                "source", "source_bytes", "source_sha256", "source_layers", "recipe", "skipped_layers",
            )
        }  # fmt: skip
        try:
            return cls(
                source=on_one_line(texts["source"]),
                source_bytes=int(texts["source_bytes"]),
                source_sha256=texts["source_sha256"],
                source_layers=int(texts["source_layers"]),
                recipe=texts["recipe"],
                skipped=parse_ranges(texts["skipped_layers"]) if texts["skipped_layers"] else (),
            )
        except ValueError:
            return None


def parse_ranges(text: str) -> tuple[int, ...]:
    """The numbers that "4,9-12" names, in order, each once.

    Raises:
        ValueError: It names none.
    """
    numbers: set[int] = set()
    for part in text.replace(" ", "").split(","):
        found = _RANGE.fullmatch(part)
        if found is None:
            raise ValueError(f"{part!a} is neither a number nor a range")
        first = int(found["first"])
        last = int(found["last"] or first)
        if last < first:
            raise ValueError(f"the range {part} runs backwards")
        numbers.update(range(first, last + 1))
    return tuple(sorted(numbers))


def ranges(numbers: Iterable[int]) -> str:
    """What `parse_ranges` reads as these numbers: "4,9-12"."""
    runs: list[list[int]] = []
    for number in sorted(set(numbers)):
        if runs and number == runs[-1][-1] + 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    return ",".join(str(run[0]) if len(run) == 1 else f"{run[0]}-{run[-1]}" for run in runs)


def layers_in_words(layers: Sequence[int]) -> str:
    """Layers as a sentence names them: "layers 4, 9-12"."""
    return f"layer{'s' if len(layers) > 1 else ''} {ranges(layers).replace(',', ', ')}"


def _in_pieces(key: str, text: str) -> Iterable[tuple[str, str]]:
    """The text under its key, and what does not fit under the key with .1, .2, ..."""
    at, piece, number = 0, "", 0
    while at < len(text):
        size = len(text[at].encode())
        if len(piece.encode()) + size > _LONGEST:
            yield (f"{key}.{number}" if number else key), piece
            piece, number = "", number + 1
        piece += text[at]
        at += 1
    yield (f"{key}.{number}" if number else key), piece


def _joined(values: Mapping[str, object], key: str) -> str:
    pieces: list[str] = []
    while isinstance(piece := values.get(f"{key}.{len(pieces)}" if pieces else key), str):
        pieces.append(piece)
    return "".join(pieces)
