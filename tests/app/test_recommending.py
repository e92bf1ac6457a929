"""What is recommended follows from the figures, and nothing else."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from specchat.app.comparison import Comparison, PassCosts, Recommendation, Row, Spread
from specchat.app.recommending import GAIN, keep_recommendations, recommend, recommended_draft
from specchat.app.remembered import Remembered
from tests.app.made_rows import LOOKUP, PLAIN, TARGET, contender, model, row, rows

SMALL, TINY = contender("small", memory=3 * 10**9), contender("tiny", memory=2 * 10**9)
CONTENDERS = (PLAIN, LOOKUP, SMALL, TINY)
GOOD, EVEN, BAD = (1.5, 1.8), (0.9, 1.2), (0.7, 0.9)


def only(rows: list[Row], costs: tuple[PassCosts, ...] = ()) -> Recommendation:
    (one,) = recommend(CONTENDERS, rows, costs)
    return one


def test_the_fastest_is_recommended_with_the_kinds_on_which_it_pays():
    one = only([*rows(1, 1.05, code=EVEN, story=EVEN), *rows(2, 1.4, code=GOOD, json=EVEN, story=BAD)])
    assert one.best == 2
    assert one.sentence == (
        "Use small (small.gguf) with big: 1.65x on code, no gain to speak of on json, "
        "slower on story (0.80x)."
    )
    assert one.others == ("lookup, 1.05x on the whole: no gain to speak of on code and story.",)


def test_what_is_slower_is_called_slower():
    one = only([*rows(2, 1.6, code=GOOD), *rows(3, 0.8, code=BAD)])
    assert one.others == (
        "tiny (tiny.gguf) is slower than plain here, 0.80x on the whole: slower on code (0.80x).",
    )


def test_lookup_alone_is_recommended_without_a_draft():
    one = only([*rows(1, 1.3, edit=GOOD, story=EVEN), *rows(2, 0.9, edit=EVEN, story=BAD)])
    assert one.best == 1
    assert one.sentence.startswith("Use lookup alone with big: 1.65x on edit")


def test_of_two_as_fast_the_smaller_one_is_recommended():
    one = only([*rows(2, 1.51, code=GOOD), *rows(3, 1.5, code=GOOD)])
    assert one.best == 3
    assert "hardly faster than tiny (tiny.gguf), and takes 1,000 MB more" in one.others[0]


def test_where_nothing_pays_plain_decoding_is_best_and_the_costs_say_why():
    costs = (PassCosts(TARGET, {1: 0.1, 4: 0.3, 5: 0.41}, {"small": 0.04, "tiny": 0.02}),)
    one = only([*rows(2, 0.8, code=BAD), *rows(3, 1.0, code=EVEN)], costs)
    assert one.best is None
    assert one.sentence == (
        "Plain decoding is best with big here: nothing gains on the whole. Checking 4 drafted tokens at "
        "once takes as long as 4.1 plain tokens, and drafting each 0.20: even if all of them are right that "
        "gives 1.02x."
    )


def test_without_drafts_the_costs_speak_of_looked_up_tokens():
    costs = (PassCosts(TARGET, {1: 0.1, 5: 0.25}, {}),)
    assert "even if all of them are right that gives 2.00x" in only(rows(1, 1.0, code=EVEN), costs).sentence


@pytest.mark.parametrize("low", [0.99, 1.0, 1.02, 1.03])
def test_no_gain_is_claimed_where_the_spread_includes_one_within_three_per_cent(low: float):
    one = only(rows(2, 1.4, code=(low, 1.9)))
    assert one.best is None
    assert "no gain to speak of on code" in one.others[0]


def test_a_gain_that_the_counted_passes_gainsay_is_not_claimed():
    gain = Spread(1.2, 1.2, 1.2, 1)
    refused = only([row(2, "code", gain, counted=0.95), row(2, None, gain)])
    assert refused.best is None
    assert "on code faster by the clock, but not by its passes" in refused.others[0]
    assert only([row(2, "code", gain, counted=1.1), row(2, None, gain)]).best == 2


def test_a_single_slow_answer_is_no_loss_where_the_counted_passes_gainsay_it():
    once, twice = Spread(0.6, 0.6, 0.6, 1), Spread(0.6, 0.5, 0.7, 2)
    for loss, counted, slower in ((once, 1.0, False), (once, 0.8, True), (twice, 1.0, True)):
        (other,) = only([row(2, "code", loss, counted), row(2, None, loss)]).others
        assert ("slower than plain here" in other) is slower
        assert ("no gain to speak of on code" in other) is not slower


def test_costs_that_cannot_be_explain_nothing():
    costs = (PassCosts(TARGET, {1: 5.0, 5: 1.0}, {}),)
    assert only(rows(1, 1.0, code=EVEN), costs).sentence.endswith("nothing gains on the whole.")


def test_kinds_and_contenders_that_drafted_nothing_are_named():
    undrafted = replace(row(2, "story", None), tokens_per_second=Spread(9.0, 9.0, 9.0, 1))
    assert only([*rows(2, 1.4, code=GOOD), undrafted]).sentence.endswith("nothing drafted on story.")
    (other,) = only([undrafted, replace(undrafted, kind=None)]).others
    assert other == "small (small.gguf) drafted nothing here: it did not promise to pay."


def test_each_target_gets_its_own_recommendation():
    other = model("huge")
    contenders = (PLAIN, SMALL, contender("p", "none", other), contender("s", target=other))
    both = recommend(contenders, [*rows(1, 1.6, code=GOOD), *rows(3, 0.8, code=BAD)], ())
    assert [(one.target, one.best) for one in both] == [(TARGET, 1), (other, None)]


def test_nothing_is_said_of_what_was_not_measured():
    assert recommend(CONTENDERS, [row(0, "code", None), row(2, "code", None), row(2, None, None)], ()) == ()


speedups = st.builds(lambda values: Spread.of(values), st.lists(st.floats(0.2, 4.0), min_size=1, max_size=4))
any_rows = st.dictionaries(
    st.integers(1, 3),
    st.dictionaries(st.sampled_from(["code", "json", "story"]), speedups, min_size=1),
    min_size=1,
)


@given(any_rows, st.dictionaries(st.integers(1, 3), st.floats(0.2, 4.0)))
def test_a_recommendation_follows_from_the_figures(
    kinds: dict[int, dict[str, Spread]], overall: dict[int, float]
):
    medians = {at: overall.get(at, 1.0) for at in kinds}
    told = [row(at, kind, spread) for at, each in kinds.items() for kind, spread in each.items()]
    told += [row(at, None, Spread(value, value, value, 3)) for at, value in medians.items()]
    one = only(told)
    gains = {at: [kind for kind, spread in each.items() if spread.low > GAIN] for at, each in kinds.items()}
    paying = [at for at in kinds if gains[at] and medians[at] >= 1.0]
    assert len(one.others) == len(kinds) - (one.best is not None)
    if one.best is None:
        assert not paying
        return
    assert one.best in paying
    assert medians[one.best] * GAIN >= max(medians[at] for at in paying)
    for kind, spread in kinds[one.best].items():
        assert (f"x on {kind}" in one.sentence) == (spread.low > GAIN)
        assert (f"{kind} (" in one.sentence) == (spread.high < 1 / GAIN)


def compared(one: Recommendation, told: list[Row]) -> Comparison:
    return Comparison("", (), "", {}, CONTENDERS, tuple(told), (), (), (one,), True, 1.0)


def test_what_was_recommended_is_offered_the_next_time(tmp_path: Path):
    told = [*rows(2, 1.4, code=GOOD), *rows(3, 0.8, code=BAD)]
    keep_recommendations(compared(only(told), told), Remembered(tmp_path / "measured.json"))
    advice = recommended_draft(TARGET, Remembered(tmp_path / "measured.json"))
    assert advice is not None
    assert advice.draft == "/models/small.gguf"
    assert advice.sentence == only(told).sentence
    assert advice.measured == {
        "/models/small.gguf": "1.65x on code", "/models/tiny.gguf": "slower on code (0.80x)",
    }  # fmt: skip


def test_where_no_draft_is_best_none_is_offered(tmp_path: Path):
    told = rows(1, 1.4, code=GOOD)
    keep_recommendations(compared(only(told), told), Remembered(tmp_path / "measured.json"))
    advice = recommended_draft(TARGET, Remembered(tmp_path / "measured.json"))
    assert advice is not None
    assert advice.draft is None


@pytest.mark.parametrize("otherwise", [{"complete": False}, {"unrest": "The machine was not at rest."}])
def test_nothing_is_kept_of_figures_that_are_not_to_be_trusted(tmp_path: Path, otherwise: dict[str, Any]):
    told = rows(2, 1.4, code=GOOD)
    remembered = Remembered(tmp_path / "measured.json")
    keep_recommendations(replace(compared(only(told), told), **otherwise), remembered)
    assert recommended_draft(TARGET, remembered) is None


def test_another_target_has_no_advice(tmp_path: Path):
    told = rows(2, 1.4, code=GOOD)
    remembered = Remembered(tmp_path / "measured.json")
    keep_recommendations(compared(only(told), told), remembered)
    assert recommended_draft(model("huge"), remembered) is None


@pytest.mark.parametrize(
    "kept",
    [{}, {"sentence": 1}, {"sentence": "x", "draft": 3, "measured": {}}, {"sentence": "x", "draft": None}],
)
def test_advice_of_another_shape_is_as_good_as_none(tmp_path: Path, kept: dict[str, object]):
    class Recalling(Remembered):
        def recall(self, what: str, depends_on: object) -> dict[str, object]:
            return kept

    assert recommended_draft(TARGET, Recalling(tmp_path / "x")) is None
