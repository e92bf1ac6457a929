"""The real engine in the hands of a test: what it says is kept, and it is stopped where the test wants."""

from __future__ import annotations

from specchat.app.decoding.settings import Sampling
from specchat.app.engine import Engine
from specchat.app.events import Ask, Event, Finished, Load
from specchat.app.requests import AnswerOptions, Drafting, LoadOptions, Turn

GREEDY = Sampling(temperature=0.0)
HELLO = (Turn("user", "hello"),)


class Driven:
    """An engine whose events are kept, and that can be cancelled after so many of them."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.cancel_after: int | None = None
        self.engine = Engine(self.events.append, self._cancelled)

    def _cancelled(self) -> bool:
        return self.cancel_after is not None and len(self.events) >= self.cancel_after

    def load(self, options: LoadOptions, **drafting) -> list[Event]:
        self.events.clear()
        self.engine.load(Load(options, Drafting(**drafting)))
        return list(self.events)

    def ask(
        self, turns: tuple[Turn, ...], options: AnswerOptions, cancel_after: int | None = None
    ) -> Finished:
        self.events.clear()
        self.cancel_after = cancel_after
        self.engine.ask(Ask(turns, options))
        self.cancel_after = None
        finished = self.events[-1]
        assert isinstance(finished, Finished), finished
        return finished

    def of(self, kind: type) -> list:
        return [event for event in self.events if isinstance(event, kind)]

    def cached(self) -> tuple[list[int], list[int]]:
        pair = self.engine.pair
        assert pair is not None
        return pair.target.context.tokens, pair.draft.context.tokens if pair.draft else []


def options(max_tokens: int | None = 40, sampling: Sampling = GREEDY, **drafting) -> AnswerOptions:
    drafting.setdefault("speculate", "always")
    drafting.setdefault("draft_p_min", 0.0)
    return AnswerOptions(sampling, Drafting(**drafting), max_tokens)
