"""Which prompt comes next, who answers it first, and whether there is time for it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

FEWEST_TOKENS = 16
"""Answers are not cut shorter than this to save time: too little would be seen of what drafts are worth."""

_CAUTION = 1.1
"""A group of answers is expected to take so many times what the figures say."""


@dataclass(frozen=True)
class Group:
    """One prompt, which every contender answers, one after another."""

    kind: str
    prompt: int
    """Its place among those of its kind."""
    repeat: int
    """How often it has been answered before."""


def rounds(prompts: Mapping[str, Sequence[object]], repeats: int) -> Iterator[tuple[Group, ...]]:
    """A prompt of every kind in each round; another prompt each time, then all of them again."""
    for repeat in range(repeats):
        for index in range(max(map(len, prompts.values()), default=0)):
            yield tuple(Group(kind, index, repeat) for kind, texts in prompts.items() if index < len(texts))


def order(contenders: int, group: int) -> tuple[int, ...]:
    """Who answers when in this group: over as many groups as contenders, each in each place once."""
    return tuple((place + group) % contenders for place in range(contenders))


@dataclass(frozen=True)
class Speed:
    """How fast a contender has been so far."""

    prompt_token_s: float
    """Seconds for each token of a prompt until the first one of the answer."""
    token_s: float
    """Seconds for each further one."""

    def seconds(self, prompt_tokens: int, tokens: int) -> float:
        """What an answer of so many tokens takes."""
        return self.prompt_token_s * prompt_tokens + self.token_s * tokens


class Timetable:
    """Expects what answers will take, from those that there were."""

    def __init__(self, speeds: Sequence[Speed], prompt_tokens: Mapping[tuple[str, int], int]) -> None:
        """Begin with what a first, short answer of each contender showed.

        Args:
            speeds: one for each contender.
            prompt_tokens: how long each prompt is, by kind and place.
        """
        self._speeds = list(speeds)
        self._prompt_tokens = prompt_tokens
        self._taken: dict[tuple[str, int], float] = {}

    def observe(self, contender: int, speed: Speed) -> None:
        """An answer has shown this speed; it counts for half of what is expected from now on."""
        before = self._speeds[contender]
        self._speeds[contender] = Speed(
            (before.prompt_token_s + speed.prompt_token_s) / 2, (before.token_s + speed.token_s) / 2
        )

    def observe_group(self, group: Group, seconds: float) -> None:
        """A whole group took so long, as it is expected to again."""
        self._taken[group.kind, group.prompt] = seconds

    def seconds(self, group: Group, tokens: int) -> float:
        """What the group is expected to take, if no answer ends by itself."""
        key = group.kind, group.prompt
        if key in self._taken:
            return _CAUTION * self._taken[key]
        prompt_tokens = self._prompt_tokens[key]
        return _CAUTION * sum(speed.seconds(prompt_tokens, tokens) for speed in self._speeds)

    def first_token_s(self, group: Group, contender: int) -> float:
        """What reading the prompt of the group is expected to take this contender."""
        return self._speeds[contender].seconds(self._prompt_tokens[group.kind, group.prompt], 0)

    def tokens(self, groups: Sequence[Group], wanted: int, seconds: float) -> int:
        """How long answers may be so that all of these groups fit into the time; not below the fewest."""
        if sum(self.seconds(group, wanted) for group in groups) <= seconds:
            return wanted
        fixed = sum(self.seconds(group, 0) for group in groups)
        each = _CAUTION * len(groups) * sum(speed.token_s for speed in self._speeds)
        fitting = int((seconds - fixed) / each) if each > 0 else wanted
        return max(min(wanted, FEWEST_TOKENS), min(fitting, wanted))
