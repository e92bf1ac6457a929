"""What may go wrong at any step of a round, met at each step in turn, by each way of drafting.

The steps are llama.cpp's own calls and readings of the clock, on a real tiny pair. Whatever happens, the text
is the plain one as far as it goes, the caches hold it and nothing else, the next row is that of a fresh
context, and what is gone on with is what would have come.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import count

import numpy as np
import pytest

from specchat.app.decoding.drafters import ModelDrafter
from specchat.app.decoding.failsafe import Failsafe
from specchat.app.decoding.lookup import HitRates, LookupDrafter, TextIndex
from specchat.app.decoding.loop import generate
from specchat.app.decoding.pacing import FixedPacing, Pacing
from specchat.app.decoding.sampling import Sampler
from specchat.app.decoding.stats import Round
from specchat.models.errors import PassError
from specchat.models.llama import Context, Model
from tests.app.decoding.scripted import GREEDY, Ending, EveryRound, own_leaves, plain, tokens_of
from tests.faulty import Faulty
from tests.tiny_models import EXACT

PROMPT = [104, 101, 108, 108, 111, 32, 104, 101, 108, 108, 111]
WAYS = ("chain", "tree", "lookup", "both")
LENGTH = 11


@dataclass
class Table:
    """A pair whose contexts and loop read one counting clock."""

    target: Context
    draft: Context
    ticks: Iterator[int]
    faulty: Faulty
    plain: list[int] = field(default_factory=list)
    """What the target says to the prompt by itself."""
    rows: dict[int, np.ndarray] = field(default_factory=dict)
    """The row behind so many tokens of prompt and plain answer, of a context that has seen nothing else."""

    def pacing(self, way: str, prompt: Sequence[int]) -> Failsafe:
        model = ModelDrafter(self.draft, prompt, Sampler(GREEDY), np.random.default_rng(0))
        lookup = LookupDrafter(TextIndex(), prompt, HitRates())
        paced: dict[str, Pacing] = {
            "chain": EveryRound(model, 4),
            "tree": EveryRound(model, 4, own_leaves(3)),
            "lookup": EveryRound(lookup, 4),
            "both": FixedPacing([lookup, model], 4, 0.0, "always"),
        }
        return Failsafe(paced[way])

    def go_on(self, way: str, prompt: Sequence[int], **more) -> Iterator[Round]:
        """Answer with what the caches hold, reading what they lack."""
        target = more.pop("target", self.target)
        held = next(
            (n for n, (a, b) in enumerate(zip(self.target.tokens, prompt, strict=False)) if a != b),
            min(len(self.target.tokens), len(prompt) - 1),
        )
        self.target.truncate(held)
        lacking = list(prompt[len(self.target.tokens) : -1])
        if lacking:
            self.target.decode(lacking, 0)
        more.setdefault("max_tokens", LENGTH)
        return generate(
            target, self.pacing(way, prompt), list(prompt), sampler=Sampler(GREEDY),
            draws=np.random.default_rng(0), clock=lambda: float(next(self.ticks)), **more,
        )  # fmt: skip

    def later(self, ticks: int) -> Callable[[], bool]:
        """Whether the clock has been read so often since now; to ask is to read it."""
        end = next(self.ticks) + ticks
        return lambda: next(self.ticks) > end

    def begin(self) -> None:
        self.faulty.disarm()
        self.target.truncate(0)
        self.draft.truncate(0)

    def must_be_true(self, way: str, said: Sequence[int], whole_text_held: bool = False) -> None:
        """The caches hold what was said, and all goes on as it would have, in a fresh context as well."""
        self.faulty.disarm()
        text = [*PROMPT, *said]
        assert self.target.tokens in (text[:-1], []) or (whole_text_held and self.target.tokens == text)
        assert self.draft.tokens == text[: len(self.draft.tokens)]
        expected = self.plain
        assert expected[: len(said)] == list(said)
        rest = tokens_of(self.go_on(way, text, max_tokens=3))
        assert expected[len(said) : len(said) + 3] == rest
        found = self.target.decode([rest[-1]], 1)[0]
        np.testing.assert_allclose(found, self.rows[len(text) + 3], atol=2e-5)


def fresh_rows(context: Context, tokens: list[int]) -> dict[int, np.ndarray]:
    fresh = context.fresh(128, branches=1)
    parts = [
        fresh.decode(tokens[at : at + 32], len(tokens[at : at + 32])).copy()
        for at in range(0, len(tokens), 32)
    ]
    fresh.close()
    return {index + 1: row for index, row in enumerate(np.concatenate(parts))}


@pytest.fixture
def table(models: tuple[Model, Model], monkeypatch: pytest.MonkeyPatch) -> Iterator[Table]:
    ticks = count()
    target, draft = (
        Context(
            model, size=256, threads=1, chunk=64, branches=branches, clock=lambda: float(next(ticks)), **EXACT
        )
        for model, branches in zip(models, (8, 1), strict=True)
    )
    said = plain(target, PROMPT, max_tokens=5 * LENGTH)
    rows = fresh_rows(target, [*PROMPT, *said])
    yield Table(target, draft, ticks, Faulty(monkeypatch), said, rows)
    target.close()
    draft.close()


@pytest.mark.parametrize("way", WAYS)
def test_a_cancel_at_any_step_of_a_round_ends_the_answer_at_its_end(table: Table, way: str):
    """A step is a reading of the clock: before and after each pass of either model, and between rounds."""
    last, ended_at = -1, set[int]()
    for step in count():
        table.begin()
        done = list(table.go_on(way, PROMPT, cancelled=table.later(4 * step)))
        ended_at.add(len(tokens_of(done)))
        assert len(tokens_of(done)) >= last
        last = len(tokens_of(done))
        if done[-1].finish == "length":
            break
        assert done[-1].finish == "cancelled"
        assert (done[-1].proposed, done[-1].emitted) == (0, ())
        table.must_be_true(way, tokens_of(done))
    assert len(ended_at) >= 4


@pytest.mark.parametrize("kind", ["refused", "half done"])
@pytest.mark.parametrize("way", ["chain", "tree", "both"])
def test_a_draft_that_fails_at_any_of_its_passes_leaves_the_answer_as_it_is(
    table: Table, way: str, kind: str
):
    for after in count():
        table.begin()
        table.faulty.arm(table.draft, kind, after)
        done = list(table.go_on(way, PROMPT))
        assert table.plain[:LENGTH] == tokens_of(done)
        if not table.faulty.happened:
            break
        failed = next(index for index, one in enumerate(done) if "the draft failed" in one.reason)
        assert {"plain"} == {one.state for one in done[failed:]}
        assert {0} == {one.proposed for one in done[failed:]}
        assert "could not run a pass" in done[-1].reason
        assert all(one.draft_s >= 0.0 for one in done)
        table.must_be_true(way, tokens_of(done))
        # The next answer drafts again.
        assert table.draft.tokens
    assert after > 5


@pytest.mark.parametrize("way", ["chain", "tree", "both"])
def test_a_draft_whose_cache_cannot_be_cut_back_reads_anew_and_drafts_on(table: Table, way: str):
    for after in count():
        table.begin()
        table.faulty.arm(table.draft, "truncation", after)
        done = list(table.go_on(way, PROMPT, max_tokens=2 * LENGTH))
        assert table.plain[: 2 * LENGTH] == tokens_of(done)
        if not table.faulty.happened:
            break
        assert not any("failed" in one.reason for one in done)
        table.must_be_true(way, tokens_of(done))
    assert after > 0


@pytest.mark.parametrize("kind", ["refused", "half done", "truncation"])
@pytest.mark.parametrize("way", WAYS)
def test_a_target_that_fails_at_any_step_leaves_what_was_said_and_goes_on_after(
    table: Table, way: str, kind: str
):
    for after in count():
        table.begin()
        table.target.decode(PROMPT[:-1], 0)
        table.faulty.arm(table.target, kind, after)
        done: list[Round] = []
        try:
            done.extend(table.go_on(way, PROMPT))
        except PassError:
            assert done == [] or done[-1].finish is None
        else:
            assert table.plain[:LENGTH] == tokens_of(done)
        if not table.faulty.happened:
            break
        table.must_be_true(way, tokens_of(done))
    assert after > 3


@pytest.mark.parametrize("way", WAYS)
def test_a_budget_that_ends_at_any_place_of_a_draft_is_met_exactly(table: Table, way: str):
    for budget in range(1, 8):
        table.begin()
        done = list(table.go_on(way, PROMPT, max_tokens=budget))
        assert (len(tokens_of(done)), done[-1].finish) == (budget, "length")
        assert max(one.proposed for one in done) < budget
        table.must_be_true(way, tokens_of(done))


@pytest.mark.parametrize("way", WAYS)
def test_an_end_of_generation_at_any_place_of_a_draft_ends_text_and_caches(table: Table, way: str):
    answer = table.plain
    for place in (0, 1, 2, 3, 5):
        table.begin()
        stop = answer.index(answer[place])
        done = list(table.go_on(way, PROMPT, target=Ending(table.target, answer[place])))
        assert (answer[:stop], "stop") == (tokens_of(done), done[-1].finish)
        assert [*PROMPT, *answer[:stop]] == table.target.tokens
        table.must_be_true(way, tokens_of(done), whole_text_held=True)


@pytest.mark.parametrize("way", WAYS)
def test_a_context_that_ends_at_any_place_of_a_draft_is_filled_to_its_end(
    models: tuple[Model, Model], monkeypatch: pytest.MonkeyPatch, table: Table, way: str
):
    answer = table.plain
    for room in (0, 1, 2, 3, 5):
        target, draft = (
            Context(model, size=len(PROMPT) + room, threads=1, chunk=64, branches=branches, **EXACT)
            for model, branches in zip(models, (8, 1), strict=True)
        )
        small = Table(target, draft, table.ticks, table.faulty)
        done = list(small.go_on(way, PROMPT, max_tokens=None))
        said = tokens_of(done)
        assert done[-1].finish == "context"
        assert answer[: room + 1] == said
        assert [*PROMPT, *said][:-1] == target.tokens
        assert [*PROMPT, *said][: len(draft.tokens)] == draft.tokens
        target.close()
        draft.close()
