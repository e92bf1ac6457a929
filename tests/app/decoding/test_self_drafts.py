"""A draft of the target's own layers is a draft like any other: the text is the target's."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from specchat.app.decoding.drafters import ModelDrafter, Sharpness, argmax, as_it_is
from specchat.app.decoding.sampling import Sampler
from specchat.app.deriving import open_source, write
from specchat.app.engine import Engine
from specchat.app.events import Ask, Event, Finished, Load, Loaded
from specchat.app.requests import AnswerOptions, Drafting, LoadOptions, Turn
from specchat.models.derived import Recipe
from specchat.models.llama import Context, Model
from tests.app.decoding.scripted import GREEDY, EveryRound, own_leaves, plain, rounds, tokens_of
from tests.app.decoding.test_distribution import Recalled, chain, drawn, exact, p_value
from tests.tiny_models import EXACT, write_tiny_model

RECIPES = [Recipe(skipped=(1,)), Recipe(skipped=(0, 2)), Recipe("Q8_0", skipped=(1, 2)), Recipe("Q8_0")]


TIMES = 3_000


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("self")
    write_tiny_model(folder / "target.gguf", layers=4, sharpness=3.5)
    return folder


@pytest.fixture(scope="module", params=RECIPES, ids=str)
def pair(folder: Path, request: pytest.FixtureRequest) -> tuple[Path, Path]:
    """A target, and what was made of it."""
    source = open_source(folder / "target.gguf", lambda _part: None)
    return source.path, write(source, request.param, folder, 1)


@pytest.fixture(scope="module")
def contexts(pair: tuple[Path, Path]) -> Iterator[tuple[Context, Context]]:
    with Model(pair[0]) as target, Model(pair[1]) as draft:
        made = [
            Context(model, size=256, threads=1, chunk=64, branches=branches, **EXACT)
            for model, branches in ((target, 8), (draft, 1))
        ]
        yield made[0], made[1]
        for context in made:
            context.close()


def test_many_prompts_are_answered_as_without_it_in_chains_and_trees(contexts: tuple[Context, Context]):
    target, draft = contexts
    numbers = np.random.default_rng(19)
    accepted = 0
    for _ in range(4):
        prompt = numbers.integers(0, 256, numbers.integers(1, 40)).tolist()
        expected = plain(target, prompt)
        for length, leaves in ((1, 0), (4, 0), (4, 6)):
            draft.truncate(0)
            drafter = ModelDrafter(draft, prompt, Sampler(GREEDY), np.random.default_rng(0))
            done = list(rounds(target, EveryRound(drafter, length, own_leaves(leaves)), prompt))
            assert tokens_of(done) == expected
            assert target.tokens == [*prompt, *expected][: len(target.tokens)]
            accepted += sum(len(one.emitted) - 1 for one in done)
    assert accepted > 0


def test_answers_of_the_engine_are_the_plain_ones_and_the_pair_is_known(pair: tuple[Path, Path]):
    events: list[Event] = []
    engine = Engine(events.append)
    load = LoadOptions(str(pair[0]), str(pair[1]), ctx_size=512, threads=1)
    engine.load(Load(load, Drafting("always", "model", draft_p_min=0.0)))
    loaded = events[-1]
    assert isinstance(loaded, Loaded)
    assert loaded.warnings[0].startswith("The draft is the target")
    ids: list[tuple[int, ...]] = []
    for speculate in ("off", "always"):
        drafting = Drafting(speculate, "model", draft_p_min=0.0)
        engine.ask(Ask((Turn("user", "hello"),), AnswerOptions(GREEDY, drafting, 80)))
        finished = events[-1]
        assert isinstance(finished, Finished)
        ids.append(finished.token_ids)
        assert bool(finished.stats.drafted) == (speculate == "always")
    assert ids[0] == ids[1]
    engine.close()


@pytest.mark.parametrize("pair", [RECIPES[0]], ids=str, indirect=True)
@pytest.mark.parametrize(
    ("temperature", "sharpness"), [(1.3, as_it_is), (0.7, argmax)], ids=["sampled", "argmax"]
)
def test_sampled_text_is_distributed_as_plain_text(
    contexts: tuple[Context, Context], temperature: float, sharpness: Sharpness
):
    recalled = Recalled(contexts[0]), Recalled(contexts[1])
    sampling = chain(temperature)
    counts, acceptance, _ = drawn(recalled, sampling, sharpness=sharpness, times=TIMES)
    assert acceptance > 0.02
    assert p_value(counts, exact(recalled[0], sampling), TIMES) > 1e-3
