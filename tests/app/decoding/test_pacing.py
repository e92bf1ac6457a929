from collections.abc import Iterator, Sequence

import pytest

from specchat.app.decoding.drafters import Step
from specchat.app.decoding.pacing import Baseline, FixedPacing, PlainPacing
from specchat.app.decoding.sampling import Distribution
from specchat.app.decoding.stats import Emitted, Round


def a_round(*, proposed: int = 0, emitted: int = 1, wall_s: float = 1.0, draft_s: float = 0.0) -> Round:
    return Round(
        emitted=(Emitted(1, "target"),) * emitted,
        proposed=proposed,
        accepted=max(0, emitted - 1),
        tested=proposed,
        leaves_tested=0,
        leaf_accepted=False,
        target_s=wall_s - draft_s,
        draft_s=draft_s,
        wall_s=wall_s,
        state="drafting",
        reason="",
        finish=None,
    )


class Counting:
    """A drafter that counts up, and knows how sure it is of each token."""

    source = "model"
    behind = 0

    def __init__(self, first: int, confidences: Sequence[float], pass_s: float = 0.0) -> None:
        self.first, self.confidences, self.pass_s = first, confidences, pass_s
        self.observed: list[list[int]] = []
        self.drafted = 0

    def observe(self, tokens: Sequence[int]) -> None:
        self.observed.append(list(tokens))

    def draft(self) -> Iterator[Step]:
        for count, confidence in enumerate(self.confidences):
            self.drafted += 1
            yield Step(self.first + count, Distribution.certain(self.first + count), confidence)


def drafting(pacing: FixedPacing, limit: int = 9) -> list[int]:
    """What a second round has tested: the first is plain."""
    pacing.propose(limit)
    pacing.observe(a_round(), [])
    return [step.token for step in pacing.propose(limit).steps]


def test_there_is_no_baseline_before_a_plain_round():
    baseline = Baseline()
    assert baseline.tokens_per_second is None
    baseline.observe(a_round(proposed=3, emitted=4))
    assert baseline.tokens_per_second is None
    baseline.observe(a_round(wall_s=0.25))
    assert baseline.tokens_per_second == 4.0


def test_one_slow_plain_round_does_not_move_the_baseline():
    baseline = Baseline()
    for seconds in (0.5, 0.5, 30.0, 0.5, 0.5):
        baseline.observe(a_round(wall_s=seconds))
    assert baseline.tokens_per_second == 2.0


def test_seconds_spent_on_a_draft_that_came_to_nothing_are_not_the_baselines():
    baseline = Baseline()
    baseline.observe(a_round(wall_s=1.5, draft_s=0.5))
    assert baseline.seconds_per_token == 1.0


def test_plain_pacing_says_its_reason_and_drafts_nothing():
    pacing = PlainPacing("no draft loaded")
    proposal = pacing.propose(9)
    assert (proposal.steps, proposal.leaves) == ((), ())
    assert (proposal.state, proposal.reason) == ("plain", "no draft loaded")
    assert not pacing.reads_prompt
    assert pacing.draft_s == 0.0


@pytest.mark.parametrize(("limit", "length"), [(9, 4), (3, 3), (0, 0)])
def test_a_fixed_length_is_cut_to_the_limit(limit: int, length: int):
    assert len(drafting(FixedPacing([Counting(1, [1.0] * 9)], 4, 0.0, "why"), limit)) == length


def test_a_fixed_length_measures_the_baseline_now_and_then():
    pacing = FixedPacing([Counting(1, [1.0] * 9)], 4, 0.0, "why")
    lengths = []
    for _ in range(70):
        lengths.append(len(pacing.propose(3).steps))
        pacing.observe(a_round(), [])
    assert [index for index, length in enumerate(lengths) if length == 0] == [0, 32, 64]
    assert set(lengths) == {0, 3}


def test_a_fixed_length_ends_before_a_token_that_the_draft_doubts():
    assert drafting(FixedPacing([Counting(1, [0.9, 0.5, 0.4, 0.9])], 4, 0.5, "")) == [1, 2]
    assert drafting(FixedPacing([Counting(1, [0.9, 0.5, 0.4, 0.9])], 4, 1.0, "")) == []


def test_no_token_more_is_drafted_than_the_length_asks_for():
    drafter = Counting(1, [1.0] * 9)
    drafting(FixedPacing([drafter], 4, 0.0, ""))
    assert drafter.drafted == 4


def test_the_first_drafter_with_a_proposal_is_taken():
    nothing, doubtful, sure = Counting(1, []), Counting(10, [0.1]), Counting(20, [0.9, 0.9])
    assert drafting(FixedPacing([nothing, doubtful, sure], 4, 0.5, "")) == [20, 21]
    assert drafting(FixedPacing([sure, doubtful], 4, 0.0, "")) == [20, 21]


def test_every_drafter_hears_what_stands_whoever_has_drafted():
    drafters = [Counting(1, []), Counting(2, [1.0])]
    pacing = FixedPacing(drafters, 4, 0.0, "")
    pacing.observe(a_round(emitted=2), [])
    pacing.forget()
    assert [drafter.observed for drafter in drafters] == [[[1, 1], []]] * 2


def test_the_seconds_of_all_drafters_count():
    assert FixedPacing([Counting(1, [], pass_s=1.0), Counting(1, [], pass_s=2.0)], 4, 0.0, "").draft_s == 3.0
