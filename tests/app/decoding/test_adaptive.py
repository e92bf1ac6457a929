"""What adaptive pacing comes to, in a world whose costs and chances are known."""

from dataclasses import replace

import numpy as np
import pytest

from specchat.app.decoding.adaptive import AdaptivePacing
from specchat.app.decoding.drafters import Step
from specchat.app.decoding.learned import Learned
from specchat.app.decoding.sampling import Distribution
from tests.app.decoding.simulated import (
    AMX,
    FLAT,
    STEEP,
    Place,
    Played,
    World,
    random_text,
    sure,
    useless,
)

COUNT = 600
TEXT = random_text(COUNT)


def test_the_first_round_is_plain_and_one_in_64_after_it():
    played = World(TEXT, sure(COUNT), FLAT, 0.01).play()
    plain = [index for index, length in enumerate(played.drafted) if not length]
    assert plain[0] == 0
    assert set(plain) - {len(played.drafted) - 1} <= {0, 64, 128, 192}


@pytest.mark.parametrize(
    ("costs", "draft_s", "gain", "share"),
    [(AMX, 0.2, 1.4, 0.7), (FLAT, 0.1, 2.5, 0.65), (FLAT, 0.02, 5.0, 0.8)],
)
def test_where_drafts_pay_it_drafts(costs: dict[int, float], draft_s: float, gain: float, share: float):
    """The dearer a draft, the sooner an unlucky one leads to a rest."""
    played = World(TEXT, sure(COUNT), costs, draft_s).play()
    assert played.speed > gain
    assert np.mean(np.array(played.drafted) > 0) > share
    assert played.rounds[-2].state == "drafting"
    assert "the draft model drafts" in played.rounds[-2].reason


def test_the_dearer_a_draft_pass_the_shorter_the_drafts():
    lengths = [
        np.mean(World(TEXT, sure(COUNT), FLAT, draft_s).play().drafted) for draft_s in (0.02, 0.2, 0.5)
    ]
    assert lengths[0] > 1.5 * lengths[1] > 2 * lengths[2]


def test_a_draft_stops_where_its_confidence_falls():
    """Right at nine places, then a doubtful one, over and over: no draft goes on behind the doubtful one."""
    places = [Place(index % 10 != 9, 0.3 if index % 10 == 9 else 0.995) for index in range(COUNT)]
    played = World(TEXT, places, FLAT, 0.15).play()
    later = [done for done in played.rounds[20:-1] if done.proposed]
    assert max(done.proposed for done in later) <= 10
    assert np.mean([done.accepted for done in later]) > 7
    assert played.speed > 2.5


@pytest.mark.parametrize(("costs", "draft_s"), [(AMX, 0.2), (AMX, 0.45), (FLAT, 0.1), (STEEP, 0.1)])
@pytest.mark.parametrize("confidence", [0.1, 0.3, 0.7])
def test_a_useless_draft_costs_little_in_the_long_run(
    costs: dict[int, float], draft_s: float, confidence: float
):
    world = World(random_text(1000), useless(1000, confidence), costs, draft_s)
    learned = world.learned()
    world.play(learned)
    assert world.play(learned).speed > 0.97


@pytest.mark.parametrize(("costs", "draft_s"), [(AMX, 0.2), (FLAT, 0.1)])
def test_a_useless_draft_is_found_out_soon(costs: dict[int, float], draft_s: float):
    """Also where it is sure of itself; what that takes is a few tokens' time."""
    played = World(TEXT, useless(COUNT, 0.97), costs, draft_s).play()
    assert played.speed > 0.9
    assert np.mean(np.array(played.drafted[-300:]) > 0) < 0.1
    reason = played.rounds[-2].reason
    assert played.rounds[-2].state == "plain"
    assert "drafting is expected to give" in reason or "drafting cost more than it gave" in reason


@pytest.mark.parametrize(("costs", "draft_s"), [(AMX, 1.0), (FLAT, 1.2)])
def test_where_no_draft_could_pay_none_is_tried(costs: dict[int, float], draft_s: float):
    world = World(TEXT, [Place(True, 0.99)] * COUNT, costs, draft_s)
    played = world.play()
    assert played.speed == pytest.approx(1.0)
    assert played.draft_passes == 0
    assert "no draft model could pay" in played.rounds[-1].reason
    assert not AdaptivePacing(world.learned(), model=Model()).reads_prompt


def test_where_only_sizes_never_measured_could_pay_a_few_drafts_find_out():
    """They are thought cheaper than they are until one was tried."""
    world = World(TEXT, [Place(True, 0.99)] * COUNT, STEEP, 0.01)
    played = world.play()
    assert played.speed == pytest.approx(1.0, abs=0.005)
    assert 0 < played.draft_passes <= 8
    assert played.rounds[-1].state == "plain"
    assert not AdaptivePacing(world.learned(), model=Model()).reads_prompt


class Model:
    source = "model"
    pass_s = 0.0
    behind = 0

    def observe(self, tokens) -> None:
        pass

    def draft(self):
        return iter(())


def test_where_a_draft_may_pay_it_should_have_read_the_prompt():
    learned = World(TEXT, sure(COUNT), FLAT, 0.1).learned()
    assert AdaptivePacing(learned, model=Model()).reads_prompt
    assert not AdaptivePacing(learned).reads_prompt


@pytest.mark.parametrize(("costs", "draft_s"), [(FLAT, 0.03)])
def test_it_comes_back_when_the_text_changes(costs: dict[int, float], draft_s: float):
    """Of hard tokens it drafts some, at next to no cost; some tens of easy ones later it drafts them all."""
    half = COUNT // 2
    world = World(TEXT, [*useless(half, 0.2), *[Place(True, 0.995)] * half], costs, draft_s)
    played = world.play()
    assert np.mean(np.array(played.drafted_at(100, half)) > 0) < 0.6
    assert np.mean(np.array(played.drafted_at(half + 80, COUNT - 20)) > 0) > 0.8


def test_a_new_answer_gives_the_draft_another_chance():
    """However hard the text of the answer before was, and whatever the draft would have to read."""
    hard = World(TEXT, useless(COUNT, 0.2), AMX, 0.2, prompt=[0] * 100)
    easy = World(TEXT, [Place(True, 0.995)] * COUNT, AMX, 0.2, prompt=[0] * 100)
    learned = hard.learned()
    hard.play(learned)
    hard.play(learned)
    assert easy.play(learned).speed > 1.6


def test_it_stops_when_the_text_changes():
    half = COUNT // 2
    world = World(TEXT, [*[Place(True, 0.995)] * half, *useless(half, 0.2)], AMX, 0.25)
    played = world.play()
    assert np.mean(np.array(played.drafted_at(40, half)) > 0) > 0.9
    assert np.mean(np.array(played.drafted_at(half + 40, COUNT)) > 0) < 0.15


def repeated(times: int = 6) -> list[int]:
    return random_text(100) * times


def test_where_the_text_repeats_a_lookup_is_taken_and_costs_no_draft_passes():
    world = World(repeated(), sure(600), AMX, 0.2)
    played = world.play(lookup=True)
    later = [proposal.source for proposal in played.proposals[-12:] if proposal.steps]
    assert later.count("lookup") > 0.8 * len(later)
    assert played.draft_passes < 0.6 * world.play().draft_passes
    assert played.speed > world.play().speed * 1.5
    assert any("the text repeats itself" in done.reason for done in played.rounds[-20:])


def test_behind_an_edit_a_few_drafted_tokens_lead_back_to_the_given_text():
    """A text is said again with every twelfth token changed: only the model can know the change."""
    given = random_text(240)
    edited = [token % 300 + 1 if place % 12 == 0 else token for place, token in enumerate(given)]
    world = World(edited, [Place(True, 0.95)] * 240, FLAT, 0.2, prompt=given)
    learned = world.learned()
    world.play(learned, lookup=True)
    played = world.play(learned, lookup=True)
    assert played.draft_passes < 0.5 * len(edited)
    assert played.speed > world.play(lookup=False).speed


def test_without_a_draft_model_the_text_so_far_is_drafted_alone():
    played = World(repeated(), sure(600), AMX, 0.2).play(model=False, lookup=True)
    assert played.draft_passes == 0
    assert played.speed > 2
    assert set(played.drafted_at(0, 100)) == {0}


def test_a_lookup_whose_matches_mean_nothing_costs_little():
    """Few different tokens in no order: something always matches, and never goes on alike."""
    text = np.random.default_rng(5).integers(1, 20, 1500).tolist()
    world = World(text, useless(1500), AMX, 0.2)
    learned = world.learned()
    world.play(learned, model=False, lookup=True)
    assert world.play(learned, model=False, lookup=True).speed > 0.97


def second_right(count: int) -> list[Place]:
    """A draft that is right half of the time, and next to that the second of its choices is."""
    numbers = np.random.default_rng(3)
    return [Place(bool(right), 0.5, second_right=True) for right in numbers.random(count) < 0.5]


def leaves_of(played: Played) -> int:
    return sum(len(proposal.leaves) for proposal in played.proposals)


def test_leaves_are_used_where_a_larger_pass_costs_nothing():
    world = World(TEXT, second_right(COUNT), FLAT, 0.1)
    chain, tree = world.play(branches=1), world.play(branches=8)
    assert leaves_of(chain) == 0 < leaves_of(tree)
    assert sum(done.leaf_accepted for done in tree.rounds) > 30
    assert tree.speed > 1.1 * chain.speed


def test_leaves_are_not_used_where_each_token_of_a_pass_costs():
    world = World(TEXT, second_right(COUNT), {1: 1.0, 33: 17.0}, 0.02)
    played = world.play(branches=8)
    assert leaves_of(played) < 0.05 * sum(played.drafted)


def test_leaves_that_are_never_right_are_given_up():
    places = [replace(place, second_right=False) for place in second_right(COUNT)]
    played = World(TEXT, places, AMX, 0.2).play(branches=8)
    assert sum(len(proposal.leaves) for proposal in played.proposals[-150:]) < 30


@pytest.mark.parametrize("branches", [1, 2, 8])
@pytest.mark.parametrize("longest", [1, 3, 6])
def test_no_draft_is_longer_than_the_longest_leaves_included(branches: int, longest: int):
    played = World(TEXT, second_right(COUNT), FLAT, 0.05).play(branches=branches, longest=longest)
    assert max(played.drafted) == longest
    assert max(len(proposal.leaves) for proposal in played.proposals) <= branches - 1


@pytest.mark.parametrize("branches", [1, 8])
@pytest.mark.parametrize("sizes", [{2}, {1, 4}, {3, 8}, {4, 5, 6, 7, 8}])
def test_only_passes_of_allowed_sizes_are_asked_for(sizes: set[int], branches: int):
    for places in (sure(COUNT), second_right(COUNT)):
        played = World(TEXT, places, FLAT, 0.05).play(
            branches=branches, allowed=lambda size: size in sizes, lookup=True
        )
        assert {1 + length for length in played.drafted} <= sizes | {1}


def test_drafts_pay_where_few_sizes_are_allowed():
    played = World(TEXT, sure(COUNT), FLAT, 0.05).play(allowed=lambda size: size in (1, 2, 4))
    assert played.speed > 2


@pytest.mark.parametrize("size", [4, 8, 16])
@pytest.mark.parametrize(("costs", "draft_s"), [(FLAT, 0.05), (AMX, 0.2)])
def test_where_only_one_size_is_allowed_no_draft_is_begun_that_would_not_reach_it(
    size: int, costs: dict[int, float], draft_s: float
):
    for places in (sure(COUNT), useless(COUNT, 0.3)):
        assert World(TEXT, places, costs, draft_s).play(allowed=lambda n: n in (1, size)).speed > 0.97


def test_where_no_size_is_allowed_it_says_so():
    played = World(TEXT, sure(COUNT), FLAT, 0.05).play(allowed=lambda size: size == 1)
    assert set(played.drafted) == {0}
    assert played.draft_passes == 0
    assert {done.state for done in played.rounds} == {"plain"}
    assert "no pass of several tokens" in played.rounds[0].reason


def test_a_limit_is_kept():
    """The loop's last rounds have room for few tokens; the text is as long as was asked for."""
    for count in range(1, 12):
        World(TEXT[:count], sure(count), FLAT, 0.01).play(branches=8, lookup=True)


def test_what_was_proposed_is_forgotten_when_it_has_not_come_about():
    heard: list[list[int]] = []

    class Hearing(Model):
        def observe(self, tokens) -> None:
            heard.append(list(tokens))

    pacing = AdaptivePacing(World(TEXT, [], FLAT, 0.1).learned(), model=Hearing(), lookup=Hearing())
    pacing.propose(4)
    pacing.forget()
    assert heard == [[], []]


def test_a_draft_that_has_nothing_to_say_is_a_plain_pass():
    learned = World(TEXT, [], FLAT, 0.01).learned()
    pacing = AdaptivePacing(learned, model=Model(), branches=8)
    assert all(pacing.propose(8).steps == () for _ in range(5))


def test_a_drafter_without_other_choices_gives_chains():
    class Certain(Model):
        def draft(self):
            for token in range(9):
                yield Step(token, Distribution.certain(token), 0.99)

    pacing = AdaptivePacing(World(TEXT, [], FLAT, 0.01).learned(), model=Certain(), branches=8)
    pacing.propose(20)
    proposal = pacing.propose(20)
    assert (len(proposal.steps), proposal.leaves) == (9, ())


def drafts(played: Played) -> list:
    return [([step.token for step in proposal.steps], proposal.leaves) for proposal in played.proposals]


def test_the_same_costs_and_the_same_text_give_the_same_drafts():
    world = World(TEXT, second_right(COUNT), AMX, 0.1)
    assert drafts(world.play(branches=8, lookup=True)) == drafts(world.play(branches=8, lookup=True))


def test_with_frozen_costs_no_clock_decides():
    world = World(TEXT, second_right(COUNT), AMX, 0.1)
    slower = replace(world, target_s={size: 3.7 * seconds for size, seconds in STEEP.items()}, draft_s=0.7)

    def frozen() -> Learned:
        return world.learned(frozen=True)

    assert drafts(world.play(frozen(), branches=8)) == drafts(slower.play(frozen(), branches=8))
    assert drafts(world.play(world.learned())) != drafts(slower.play(world.learned()))


def test_what_was_learned_is_known_to_the_next_answer():
    world = World(TEXT, useless(COUNT, 0.97), AMX, 0.2)
    learned = world.learned()
    first, second = world.play(learned), world.play(learned)
    assert sum(second.drafted[:60]) < 0.3 * sum(first.drafted[:60])
