"""What passes cost, and what an answer's passes add up to."""

from collections.abc import Callable, Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from specchat.app.pass_costs import cost, spent, sweep_costs
from specchat.models.llama import Context, Model
from tests.tiny_models import EXACT

COSTS = {1: 1.0, 2: 1.5, 4: 1.7, 8: 4.0}


@pytest.mark.parametrize(("size", "seconds"), [(1, 1.0), (2, 1.5), (3, 1.6), (6, 2.85), (8, 4.0), (16, 8.0)])
def test_sizes_between_those_measured_lie_on_the_line_between_them(size: int, seconds: float):
    assert cost(COSTS, size) == pytest.approx(seconds)


@given(st.dictionaries(st.integers(1, 40), st.integers(0, 9)))
def test_passes_cost_what_each_costs(passes: dict[int, int]):
    assert spent(COSTS, passes) == pytest.approx(sum(cost(COSTS, size) * n for size, n in passes.items()))


class Watched:
    """A clock that moves with the passes of the contexts that it watches."""

    def __init__(self) -> None:
        self.now = 0.0
        self.sizes: list[int] = []

    def __call__(self) -> float:
        return self.now

    def watch(self, context: Context, seconds: Callable[[int], float]) -> Context:
        decode = context.decode

        def timed(tokens, rows):
            self.now += seconds(len(tokens))
            self.sizes.append(len(tokens))
            return decode(tokens, rows)

        context.decode = timed  # type: ignore[method-assign]
        return context


@pytest.fixture
def make(models: tuple[Model, Model]) -> Iterator[Callable[..., Context]]:
    made: list[Context] = []

    def context(size: int = 256, rows: int = 33) -> Context:
        made.append(Context(models[0], size=size, threads=1, chunk=64, rows=rows, **EXACT))
        return made[-1]

    yield context
    for one in made:
        one.close()


def test_target_and_drafts_are_measured_by_size(make):
    clock = Watched()
    target = clock.watch(make(), lambda size: 0.01 * size)
    drafts = [clock.watch(make(rows=1), lambda size, each=each: each) for each in (0.001, 0.002)]
    measured = sweep_costs(target, drafts, clock, budget_s=60.0)
    assert measured.target_s == pytest.approx({n: 0.01 * n for n in (1, 2, 3, 4, 5, 6, 8, 12, 16, 24, 32)})
    assert measured.drafts_s == (pytest.approx(dict.fromkeys((1, 2, 4, 16), 0.001)),
                                 pytest.approx(dict.fromkeys((1, 2, 4, 16), 0.002)))  # fmt: skip


def test_a_slow_moment_does_not_count(make):
    clock, slow = Watched(), iter([1.0] * 15 + [50.0] * 11)
    measured = sweep_costs(clock.watch(make(), lambda size: next(slow, 1.0)), [], clock, budget_s=1e9)
    assert set(measured.target_s.values()) == {1.0}


@pytest.mark.parametrize("budget_s", [11.0, 23.0, 40.0, 1e9])
def test_sweeps_are_made_as_long_as_they_fit(make, budget_s: float):
    clock = Watched()
    target = clock.watch(make(), lambda size: 1.0)
    sweep_costs(target, [], clock, budget_s)
    sweeps = clock.sizes.count(32) - 1  # the prompt's second chunk is of 32 tokens, too
    assert sweeps == min(7, int(budget_s // 11))


@pytest.mark.parametrize(("budget_s", "sizes"), [(0.0, {1, 5}), (3.5, {1, 5, 2, 8})])
def test_where_not_even_one_sweep_fits_the_sizes_that_tell_least_are_left_out(
    make, budget_s: float, sizes: set[int]
):
    clock = Watched()
    assert set(sweep_costs(clock.watch(make(), lambda size: 1.0), [], clock, budget_s).target_s) == sizes


def test_it_can_be_stopped_at_any_pass(make):
    clock = Watched()
    target = clock.watch(make(), lambda size: 1.0)
    assert sweep_costs(target, [], clock, 1e9, lambda: clock.now > 5.0) is None
    assert clock.now <= 7.0
    later = sweep_costs(target, [], clock, 1e9, lambda: clock.now > 25.0)
    assert set(later.target_s) == {1, 2, 3, 4, 5, 6, 8, 12, 16, 24, 32}


def test_a_small_context_is_measured_as_far_as_it_goes(make):
    measured = sweep_costs(make(64), [make(64, rows=1)], Watched(), budget_s=1.0)
    assert max(measured.target_s) == 32
    assert max(sweep_costs(make(16), [], Watched(), budget_s=1.0).target_s) == 8
