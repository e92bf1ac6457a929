"""An architecture's keys, by their names without its own."""

from __future__ import annotations

from collections.abc import Iterable

from .gguf_layout import Layout, Value


class ArchitectureKeys:
    """The keys of the architecture that a file names, and all others as they are."""

    def __init__(self, layout: Layout) -> None:
        self.values = layout.values
        self.names = {*layout.values, *layout.array_lengths}
        self.architecture = str(layout.values.get("general.architecture"))

    def __contains__(self, key: str) -> bool:
        """Whether there is such a key, a list or not."""
        return f"{self.architecture}.{key}" in self.names

    def numbers(self, key: str) -> tuple[int, ...]:
        """The whole number that is for all layers, or those of each; none where there is no such key."""
        value = self.values.get(f"{self.architecture}.{key}")
        if isinstance(value, tuple):
            return tuple(number for number in value if isinstance(number, int))
        return (value,) if isinstance(value, int) else ()

    def number(self, key: str, default: int = 0) -> int:
        """The one, or the first."""
        return next(iter(self.numbers(key)), default)

    def of_layer(self, key: str, layer: int) -> int:
        """The one that is for all layers, or this one's; 0 where there is none."""
        numbers = self.numbers(key)
        if len(numbers) == 1:
            return numbers[0]
        return numbers[layer] if layer < len(numbers) else 0

    def items(self) -> Iterable[tuple[str, Value]]:
        """All the architecture's keys that are no long lists."""
        start = f"{self.architecture}."
        return (
            (key.removeprefix(start), value) for key, value in self.values.items() if key.startswith(start)
        )
