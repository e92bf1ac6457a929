"""`--verify` finds what it is there to find: equal text, rounding, and a fault that is none of the two."""

from dataclasses import replace

import pytest

from specchat.app.decoding.acceptance import Rule, speculative
from specchat.app.decoding.settings import Sampling
from specchat.app.engine import Engine
from specchat.app.events import Event, Finished, Load
from specchat.app.requests import AnswerOptions, Drafting, LoadOptions, Turn
from specchat.app.verifying import Difference, Verification, verify_answer
from tests.tiny_models import TinyPair

OPTIONS = AnswerOptions(Sampling(temperature=0.0), Drafting(speculate="always", draft_p_min=0.0), 60)
HELLO = (Turn("user", "hello"),)


class Heard:
    finished: Finished | None = None

    def take(self, event: Event) -> None:
        if isinstance(event, Finished):
            self.finished = event


def verified(pair: TinyPair, rule: Rule, options: AnswerOptions = OPTIONS) -> Verification:
    heard = Heard()
    engine = Engine(heard.take, accept=rule)
    engine.load(Load(LoadOptions(str(pair.target), str(pair.draft), ctx_size=512, threads=1)))
    found = verify_answer(engine, HELLO, options, heard)
    engine.close()
    return found


def test_an_exact_loop_is_equal_and_the_report_says_how_much_was_tested(tiny_pair: TinyPair):
    found = verified(tiny_pair, speculative)
    assert found.equal
    assert found.explained
    assert found.tokens_compared == 60
    assert found.drafted > found.accepted > 0
    assert "plain and drafted are equal" in found.told()


@pytest.mark.parametrize("penalty", [1.0, 1.3])
def test_a_rule_that_accepts_everything_is_not_excused_by_rounding(tiny_pair: TinyPair, penalty: float):
    options = replace(OPTIONS, sampling=Sampling(temperature=0.0, repeat_penalty=penalty))
    found = verified(tiny_pair, lambda p, q, token, draws: token, options)
    assert not found.equal
    assert not found.explained
    assert found.difference is not None
    assert found.noise is not None
    assert found.difference.margin > found.noise
    assert found.difference.plain_token != found.difference.drafted_token
    assert "does NOT explain" in found.told()


@pytest.mark.parametrize("cancelled_from", [1, 70])
def test_half_an_answer_proves_nothing(tiny_pair: TinyPair, cancelled_from: int):
    """Cancelled before anything was decoded, and in the middle of the second answer."""
    heard = Heard()
    looks = iter(range(10_000))
    engine = Engine(heard.take, lambda: loaded and next(looks) >= cancelled_from)
    loaded = False
    engine.load(Load(LoadOptions(str(tiny_pair.target), str(tiny_pair.draft), ctx_size=512, threads=1)))
    loaded = True
    assert verify_answer(engine, HELLO, OPTIONS, heard) is None
    engine.close()


def test_an_answer_that_nothing_was_drafted_for_proves_nothing_and_says_so():
    assert "nothing was drafted" in Verification(True, 20, 5).told()


def test_a_margin_below_the_noise_is_explained_by_rounding():
    near_tie = Difference(3, 5, 6, "a", "b", margin=0.1)
    found = Verification(False, 3, 5, near_tie, noise=0.4, drafted=9, accepted=8)
    assert found.explained
    assert "token 4" in found.told()
    assert not replace(found, noise=0.05).explained
    assert not replace(found, noise=0.0, difference=replace(near_tie, margin=0.0)).explained
