from dataclasses import replace

import pytest

from specchat.app.decoding.stats import AnswerStats, Emitted, Round, Tally

PLAIN = Round((Emitted(1, "target"),), 0, 0, 0, 0, False, 0.4, 0.0, 0.5, "plain", "why", None)


def drafted(tested: int, accepted: int, proposed: int = 4) -> Round:
    """A second per round, of which 0.6 in the target and 0.3 in the draft."""
    emitted = (Emitted(1, "accepted"),) * accepted + (Emitted(2, "correction"),)
    return Round(emitted, proposed, accepted, tested, 0, False, 0.6, 0.3, 1.0, "drafting", "", None)


def tallied(*rounds: Round, prefill_s: float = 2.0, baseline: float | None = None) -> AnswerStats:
    tally = Tally(prefill_s)
    for done in rounds:
        tally.add(done)
    return tally.stats(baseline)


def test_nothing_is_made_up_before_anything_was_measured():
    stats = tallied()
    assert (stats.ttft_s, stats.tokens_per_second, stats.tokens_per_pass) == (None, None, None)
    assert (stats.acceptance_rate, stats.baseline_tokens_per_second, stats.speedup) == (None, None, None)


def test_an_answer_without_drafts_has_no_acceptance_rate_rather_than_a_full_one():
    assert tallied(PLAIN, PLAIN).acceptance_rate is None


def test_only_tested_tokens_count_as_drafted():
    stats = tallied(
        drafted(tested=2, accepted=1), drafted(tested=1, accepted=0), drafted(tested=4, accepted=4)
    )
    assert (stats.drafted, stats.accepted) == (7, 5)
    assert stats.acceptance_rate == pytest.approx(5 / 7)
    assert stats.tested_by_position == (3, 2, 1, 1)
    assert stats.accepted_by_position == (2, 1, 1, 1)


def test_leaves_count_in_the_place_of_the_token_they_stand_beside():
    taken = replace(drafted(tested=2, accepted=1), leaves_tested=2, leaf_accepted=True)
    refused = replace(drafted(tested=1, accepted=0), leaves_tested=3)
    stats = tallied(taken, refused)
    assert stats.tested_by_position == (5, 3)
    assert stats.accepted_by_position == (1, 1)
    assert (stats.drafted, stats.accepted) == (8, 2)


def test_plain_decoding_is_one_token_per_pass_to_the_very_end():
    end = replace(PLAIN, emitted=(), finish="stop")
    stats = tallied(PLAIN, PLAIN, end)
    assert stats.tokens_per_pass == 1.0
    assert (stats.completion_tokens, stats.target_passes, stats.plain_passes) == (2, 3, 3)


def test_the_first_token_waits_for_prefill_and_the_first_round():
    assert tallied(PLAIN, PLAIN, prefill_s=2.0).ttft_s == 2.5


def test_tokens_per_second_starts_at_the_first_token():
    assert tallied(PLAIN).tokens_per_second is None
    assert tallied(PLAIN, PLAIN, PLAIN).tokens_per_second == 2.0


def test_tokens_per_pass_counts_what_rounds_emitted():
    assert tallied(PLAIN, drafted(tested=4, accepted=3)).tokens_per_pass == 2.5


def test_the_overhead_is_what_passes_leave_of_the_time():
    stats = tallied(PLAIN, drafted(tested=1, accepted=0))
    assert stats.target_s == pytest.approx(1.0)
    assert stats.draft_s == pytest.approx(0.3)
    assert stats.overhead_s == pytest.approx(0.2)


def test_the_speedup_needs_both_its_sides():
    assert tallied(PLAIN, drafted(4, accepted=3)).speedup is None
    assert tallied(drafted(4, accepted=3), baseline=1.0).speedup is None
    assert tallied(PLAIN, drafted(4, accepted=3), baseline=1.0).speedup == 4.0


def test_where_nothing_was_drafted_there_is_no_speedup_to_speak_of():
    assert tallied(PLAIN, PLAIN, PLAIN, baseline=1.0).speedup is None


def test_each_token_is_weighed_against_the_plain_rate_of_its_time():
    """Passes get slower as the text grows: a text that is always twice as fast is twice as fast."""
    tally = Tally(0.0)
    tally.add(PLAIN, 0.5)
    for plain_s in (0.5, 1.0, 2.0, 4.0):
        tally.add(replace(drafted(4, accepted=3), wall_s=4 * plain_s / 2), plain_s)
    assert tally.stats(1 / 4.0).speedup == pytest.approx(2.0)


def test_an_end_that_took_no_pass_counts_for_nothing_but_its_reason():
    end = Round((), 0, 0, 0, 0, False, 0.0, 0.0, 0.0, "plain", "the end", "length")
    stats = tallied(PLAIN, end)
    assert (stats.target_passes, stats.completion_tokens, stats.reason) == (1, 1, "the end")


def test_the_live_rate_is_that_of_the_last_two_seconds():
    tally = Tally(0.0)
    assert tally.live_tokens_per_second is None
    for _ in range(10):
        tally.add(PLAIN)
    assert tally.live_tokens_per_second == pytest.approx(2.0)
    for _ in range(3):
        tally.add(drafted(tested=4, accepted=3))
    assert tally.live_tokens_per_second == pytest.approx(4.0)
