from specchat.app.decoding.pacing import Baseline, FixedPacing, GuardedPacing, PlainPacing
from specchat.app.decoding.stats import Emitted, Round


def a_round(*, proposed: int = 0, emitted: int = 1, wall_s: float = 1.0, draft_s: float = 0.0) -> Round:
    return Round(
        emitted=(Emitted(1, "target"),) * emitted,
        proposed=proposed,
        accepted=max(0, emitted - 1),
        tested=proposed,
        target_s=wall_s - draft_s,
        draft_s=draft_s,
        wall_s=wall_s,
        state="drafting",
        reason="",
        finish=None,
    )


def measured_baseline(seconds: float = 1.0) -> Baseline:
    baseline = Baseline()
    baseline.observe(a_round(wall_s=seconds))
    return baseline


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
    plan = PlainPacing("no draft loaded").plan(9)
    assert (plan.length, plan.state, plan.reason) == (0, "plain", "no draft loaded")


def test_a_fixed_length_is_cut_to_the_limit_and_measures_the_baseline_now_and_then():
    pacing = FixedPacing(4, "why")
    lengths = []
    for _ in range(70):
        lengths.append(pacing.plan(3).length)
        pacing.observe(a_round())
    assert [index for index, length in enumerate(lengths) if length == 0] == [0, 32, 64]
    assert set(lengths) == {0, 3}


def drafted(pacing: GuardedPacing, rounds: int, **like) -> list[int]:
    lengths = []
    for _ in range(rounds):
        lengths.append(pacing.plan(32).length)
        pacing.observe(a_round(proposed=lengths[-1], **like) if lengths[-1] else a_round())
    return lengths


def test_drafting_that_pays_goes_on():
    pacing = GuardedPacing(4, measured_baseline())
    lengths = drafted(pacing, 100, emitted=4, wall_s=2.0)
    assert lengths.count(0) == 4  # the baseline, once in 32 rounds
    assert pacing.plan(4).state == "drafting"
    assert "2.00x" in pacing.plan(4).reason


def test_drafting_that_does_not_pay_is_paused_and_says_so():
    pacing = GuardedPacing(4, measured_baseline())
    lengths = drafted(pacing, 37, emitted=2, wall_s=3.0)
    assert lengths == [0, 4, 4, 4, 4] + [0] * 32
    pacing = GuardedPacing(4, measured_baseline())
    drafted(pacing, 5, emitted=2, wall_s=3.0)
    plan = pacing.plan(4)
    assert (plan.length, plan.state) == (0, "plain")
    assert "0.67x" in plan.reason
    assert "in 32 tokens" in plan.reason


def test_each_pause_that_follows_a_failed_trial_is_twice_as_long():
    lengths = drafted(GuardedPacing(4, measured_baseline()), 300, emitted=2, wall_s=3.0)
    trials = [index for index, length in enumerate(lengths) if length]
    assert trials == [1, 2, 3, 4, 37, 38, 39, 40, 105, 106, 107, 108, 237, 238, 239, 240]


def test_a_trial_that_pays_ends_the_doubling():
    pacing = GuardedPacing(4, measured_baseline())
    drafted(pacing, 37, emitted=2, wall_s=3.0)
    drafted(pacing, 4, emitted=4, wall_s=2.0)
    # Two bad rounds outweigh two good ones; the pause that follows is the first one's 32, not 64.
    assert drafted(pacing, 35, emitted=1, wall_s=4.0) == [4, 4] + [0] * 32 + [4]


def test_where_no_draft_could_pay_two_rounds_show_it():
    pacing = GuardedPacing(4, measured_baseline())
    lengths = drafted(pacing, 100, emitted=5, wall_s=5.5)
    assert [index for index, length in enumerate(lengths) if length] == [1, 2]
    assert "5.5 plain passes" in pacing.plan(4).reason
    assert pacing.rests_long
    drafted(pacing, 300)
    assert not pacing.rests_long


def test_where_drafting_has_paid_two_dear_rounds_cost_a_short_pause_only():
    pacing = GuardedPacing(4, measured_baseline())
    drafted(pacing, 10, emitted=4, wall_s=2.0)
    assert drafted(pacing, 35, emitted=4, wall_s=9.0)[:2] == [4, 4]
    assert pacing.plan(4).length == 4


def test_rounds_that_had_nothing_to_draft_are_not_held_against_drafting():
    pacing = GuardedPacing(4, measured_baseline())
    for _ in range(50):
        assert pacing.plan(4).state == "drafting"
        pacing.observe(a_round(proposed=0, wall_s=1.2))


def test_a_pause_is_counted_by_rounds_and_not_by_the_clock():
    pacing = GuardedPacing(4, measured_baseline())
    drafted(pacing, 5, emitted=2, wall_s=3.0)
    for left in range(32, 0, -1):
        assert f"in {left} tokens" in pacing.plan(4).reason
        pacing.observe(a_round(wall_s=1000.0))
    assert pacing.plan(4).length == 4
    assert pacing.plan(4).state == "drafting"
    assert pacing.plan(4).reason == "trying up to 4 tokens a pass again"


def test_a_target_that_is_fast_already_is_said_to_be():
    slow, fast = GuardedPacing(4, measured_baseline(0.1)), GuardedPacing(4, measured_baseline(0.01))
    drafted(slow, 5, emitted=2, wall_s=0.3)
    drafted(fast, 5, emitted=2, wall_s=0.03)
    assert "a target this fast gains little" not in slow.plan(4).reason
    assert "a target this fast gains little" in fast.plan(4).reason


def test_rounds_that_could_not_pay_weigh_as_much_as_those_that_did():
    pacing = GuardedPacing(4, measured_baseline())
    drafted_rounds = 0
    for number in range(100):
        planned = pacing.plan(32).length
        drafted_rounds += planned > 0
        dear = number % 2 == 0
        like = {"emitted": 1, "wall_s": 6.0} if dear else {"emitted": 3, "wall_s": 2.8}
        pacing.observe(a_round(proposed=planned, **like) if planned else a_round())
    assert drafted_rounds <= 8  # four that are weighed, and a second trial after the first pause
