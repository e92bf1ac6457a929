"""The text so far as a draft: the index against a scan of the whole text, and what its matches are worth."""

from itertools import islice

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from specchat.app.decoding.drafters import Step
from specchat.app.decoding.lookup import HitRates, LookupDrafter, TextIndex


def indexed(text: list[int]) -> TextIndex:
    index = TextIndex()
    for token in text:
        index.append(token)
    return index


def scanned(text: list[int]) -> tuple[int, list[int]]:
    """The length of the longest ending that also ends earlier, and where the text went on after each."""
    for length in range(len(text) - 1, 0, -1):
        ending = text[-length:]
        places = [end for end in range(length, len(text)) if text[end - length : end] == ending]
        if places:
            return length, places
    return 0, []


@settings(max_examples=300)
@given(text=st.integers(1, 4).flatmap(lambda kinds: st.lists(st.integers(0, kinds), max_size=40)))
@example([0] * 30)
@example([0, 1] * 16)
@example([0, 0, 1, 0, 0, 1, 1, 0, 0, 1, 0, 0, 1, 1])
def test_after_every_token_the_match_is_the_longest_and_latest_that_a_scan_finds(text: list[int]):
    index = TextIndex()
    for count, token in enumerate(text, 1):
        index.append(token)
        length, places = scanned(text[:count])
        assert index.matched == length
        # Of up to 40 tokens no ending has more than 32 shorter kinds, but for one token over and over.
        if places and len(set(text[:count])) > 1:
            assert index.place == places[-1]
        assert index.tokens == text[:count]


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 1000), kinds=st.integers(1, 3))
def test_in_a_long_text_the_match_is_the_longest_and_truly_there(seed: int, kinds: int):
    numbers = np.random.default_rng(seed)
    text: list[int] = []
    index = TextIndex()
    while len(text) < 400:
        if text and numbers.random() < 0.3:
            start = int(numbers.integers(len(text)))
            text += text[start : start + 60]
        else:
            text += numbers.integers(0, kinds, 5).tolist()
    for token in text:
        index.append(token)
    length, places = scanned(text)
    assert index.matched == length
    assert not length or index.place in places


def test_a_token_over_and_over_matches_all_of_the_text_but_one():
    index = indexed([7] * 500)
    assert (index.matched, index.place) == (499, 499)


def test_nothing_matches_in_a_text_of_different_tokens():
    index = indexed(list(range(100)))
    assert (index.matched, len(index._length)) == (0, 101)


@pytest.mark.parametrize("kinds", [1, 2, 3, 20, 1000])
def test_the_index_grows_linearly(kinds: int):
    text = np.random.default_rng(kinds).integers(0, kinds, 3000).tolist()
    index = indexed(text)
    assert len(index._length) <= 2 * len(text)
    assert sum(map(len, index._next)) <= 3 * len(text)


def test_the_worst_text_for_the_index_still_grows_linearly():
    index = indexed([0, *[1] * 1500])
    assert len(index._length) <= 2 * 1501


@given(text=st.lists(st.integers(0, 3), max_size=60), cut=st.integers(0, 60), limit=st.integers(1, 9))
def test_a_lookup_proposes_what_followed_the_longest_match(text: list[int], cut: int, limit: int):
    drafter = LookupDrafter(TextIndex(), text[:cut], HitRates())
    for token in text[cut:]:
        drafter.observe([token])
    index = indexed(text)
    going_on = list(text)
    for place in range(index.place, index.place + limit):
        going_on.append(going_on[place] if index.matched else -1)
    expected = going_on[len(text) :] if index.matched else []
    assert expected == [step.token for step in islice(drafter.draft(), limit)]


@given(
    text=st.lists(st.integers(0, 3), min_size=1, max_size=40),
    after=st.lists(st.integers(0, 4), min_size=1, max_size=8),
)
def test_a_match_of_text_and_draft_is_their_longest_ending_that_stands_in_the_text(
    text: list[int], after: list[int]
):
    whole = [*text, *after]

    def stands(length: int) -> bool:
        return any(text[end - length : end] == whole[-length:] for end in range(length, len(text) + 1))

    matched, place = indexed(text).match_after(after)
    assert matched == max((length for length in range(1, len(whole) + 1) if stands(length)), default=0)
    assert not matched or text[place - matched : place] == whole[-matched:]


def test_a_draft_leads_back_to_what_was_given():
    """Behind the edit the given text goes on: three tokens of the draft are enough to know where."""
    drafter = LookupDrafter(TextIndex(), [1, 2, 3, 4, 5, 6, 7, 8, 9, 50, 1, 2], HitRates())
    assert [step.token for step in islice(drafter.draft((40, 4, 5, 6)), 3)] == [7, 8, 9]
    assert not list(drafter.draft((40, 5, 6)))
    assert not list(drafter.draft((40,)))


def run_of(drafter: LookupDrafter, count: int) -> list[Step]:
    return list(islice(drafter.draft(), count))


def test_a_lookup_goes_on_over_the_end_of_the_text():
    drafter = LookupDrafter(TextIndex(), [1, 2, 3, 1, 2, 3, 1, 2, 3], HitRates())
    assert [step.token for step in run_of(drafter, 7)] == [1, 2, 3, 1, 2, 3, 1]
    drafter = LookupDrafter(TextIndex(), [9, 4, 4], HitRates())
    assert [step.token for step in run_of(drafter, 5)] == [4] * 5


def test_a_lookup_is_certain_of_what_it_proposes():
    (step,) = run_of(LookupDrafter(TextIndex(), [1, 2, 3, 1, 2], HitRates()), 1)
    assert step.distribution.tokens.tolist() == [3]
    assert step.distribution.probabilities.tolist() == [1.0]


def test_a_lookup_spends_no_passes_and_is_never_behind():
    drafter = LookupDrafter(TextIndex(), [1, 2], HitRates())
    assert run_of(drafter, 4) == []
    assert (drafter.pass_s, drafter.behind, drafter.source) == (0, 0, "lookup")


def test_what_the_index_holds_of_a_text_is_not_read_again():
    index = indexed([1, 2, 3])
    drafter = LookupDrafter(index, [1, 2, 3, 1, 2], HitRates())
    assert index.tokens == [1, 2, 3, 1, 2]
    assert [step.token for step in run_of(drafter, 2)] == [3, 1]


def test_forgetting_changes_nothing():
    drafter = LookupDrafter(TextIndex(), [1, 2, 3, 1, 2], HitRates())
    before = [(step.token, step.confidence) for step in run_of(drafter, 5)]
    drafter.observe(())
    assert before == [(step.token, step.confidence) for step in run_of(drafter, 5)]


LONG = 40  # longer than the last kind of match


@pytest.mark.parametrize("matched", [1, 2, 5, 7, LONG])
@pytest.mark.parametrize("given", [False, True])
@pytest.mark.parametrize("begins", [False, True])
def test_hit_rates_learn_each_kind_of_match_for_itself(matched: int, given: bool, begins: bool):
    rates = HitRates()
    kinds = [(length, where, when) for length in (1, 2, 5, 7, LONG) for where in (0, 1) for when in (0, 1)]
    before = {kind: rates.rate(*kind) for kind in kinds}
    for _ in range(300):
        rates.observe(matched, given, begins, False)
    learned = (matched, int(given), int(begins))
    assert rates.rate(*learned) < 0.05
    assert all(rates.rate(*kind) == before[kind] for kind in kinds if kind != learned)
    for _ in range(600):
        rates.observe(matched, given, begins, True)
    assert rates.rate(*learned) > 0.9


def test_a_rate_is_a_chance_whatever_was_seen():
    rates = HitRates()
    for hit in (True, False):
        for count in range(200):
            for matched in (1, 2, 3, 4, 5, 6, 8, 12, 16, 32):
                for known in (False, True):
                    assert 0.0 <= rates.rate(matched, known, True) < 1.0
                    rates.observe(matched, known, True, hit if count else not hit)


def test_a_rate_follows_the_share_of_hits_with_caution():
    rates = HitRates()
    numbers = np.random.default_rng(0)
    for _ in range(400):
        rates.observe(3, True, False, bool(numbers.random() < 0.6))
    assert 0.4 < rates.rate(3, True, False) < 0.62


def test_a_lookup_learns_from_every_token_that_comes_drafted_or_not():
    rates = HitRates()
    words = [1, 2, 3, 4, 5, 6, 7, 8]
    drafter = LookupDrafter(TextIndex(), words, rates)
    before = rates.rate(4, True, 4)
    for _ in range(10):
        drafter.observe(words)
    # In runs of eight, the first four of which begin a round.
    assert rates.rate(4, True, 4) > before
    own = LookupDrafter(TextIndex(), [], (fresh := HitRates()))
    before = fresh.rate(40, False, 4)
    for _ in range(30):
        own.observe(words)
    assert fresh.rate(40, False, 4) > before
    assert fresh.rate(40, True, 4) == HitRates().rate(40, True, 4)


def test_a_lookup_that_misses_becomes_less_sure():
    rates = HitRates()
    drafter = LookupDrafter(TextIndex(), [1, 2, 3], rates)
    sure = rates.rate(1, False, 0)
    for fresh in range(10, 60):
        drafter.observe([1])
        drafter.observe([fresh])
    assert rates.rate(1, False, 0) < sure


def test_the_confidence_of_a_run_is_that_of_its_growing_match():
    rates = HitRates()
    text = [1, 2, 3, 4, 5, 6, 1, 2]
    steps = run_of(LookupDrafter(TextIndex(), text, rates), 6)
    # From the seventh token on the match lies in what is drafted.
    expected = [rates.rate(2 + count, True, count) for count in range(6)]
    assert [step.confidence for step in steps] == expected


def test_what_is_given_is_told_apart_from_the_answer_itself():
    rates = HitRates()
    drafter = LookupDrafter(TextIndex(), [1, 2, 3], rates)
    drafter.observe([5, 6, 7, 5])
    (step,) = run_of(drafter, 1)
    assert (step.token, step.confidence) == (6, rates.rate(1, False, True))
    drafter.observe([1])
    (step,) = run_of(drafter, 1)
    assert (step.token, step.confidence) == (2, rates.rate(1, True, True))
