from collections.abc import Callable, Iterator

import pytest

from specchat.app.measuring import measure_costs
from specchat.models.llama import Context, Model
from tests.tiny_models import EXACT


class Clock:
    """A clock that stands still but for what passes cost, by their size."""

    def __init__(self, seconds: Callable[[int], float]) -> None:
        self.now, self.seconds = 0.0, seconds
        self.sizes: list[int] = []

    def __call__(self) -> float:
        return self.now

    def watch(self, context: Context) -> Context:
        decode = context.decode

        def timed(tokens, rows):
            self.sizes.append(len(tokens))
            self.now += self.seconds(len(tokens))
            return decode(tokens, rows)

        context.decode = timed  # type: ignore[method-assign]
        return context


@pytest.fixture
def make(models: tuple[Model, Model]) -> Iterator[Callable[..., Context]]:
    made: list[Context] = []

    def context(size: int = 128, held: int = 0, rows: int = 33) -> Context:
        made.append(Context(models[0], size=size, threads=1, chunk=64, rows=rows, **EXACT))
        if held:
            for start in range(0, held, 64):
                made[-1].decode([7] * min(64, held - start), 0)
        return made[-1]

    yield context
    for one in made:
        one.close()


def test_passes_of_each_size_are_measured_where_the_time_allows(make):
    clock = Clock(lambda size: 0.001 * size)
    measured = measure_costs(clock.watch(make()), clock.watch(make()), clock)
    assert measured.target_s == pytest.approx({n: 0.001 * n for n in (1, 2, 3, 4, 5, 6, 8, 12, 16, 32)})
    assert measured.draft_s == pytest.approx(0.001)


def test_without_a_draft_there_is_nothing_to_say_of_it(make):
    clock = Clock(lambda size: 0.001)
    assert measure_costs(clock.watch(make()), None, clock).draft_s is None


@pytest.mark.parametrize("pass_s", [0.01, 0.1, 0.4, 30.0])
def test_the_time_is_kept_but_for_passes_of_one_and_two(make, pass_s: float):
    clock = Clock(lambda size: pass_s * (1 + size / 10))
    target = clock.watch(make())
    measured = measure_costs(target, None, clock, budget_s=1.0)
    assert {1, 2} <= set(measured.target_s)
    needed = sum(clock.seconds(size) for size in (1, 2))
    assert clock.now <= max(1.0, needed) + 1e-9


def test_the_least_of_several_passes_counts(make):
    slow = iter([5.0, 1.0, 2.0] + [1.0] * 50)
    clock = Clock(lambda size: next(slow))
    assert measure_costs(clock.watch(make()), clock.watch(make()), clock, budget_s=99.0).draft_s == 1.0


def test_the_caches_are_left_as_they_were(make):
    target, draft = make(held=10), make(held=20)
    spent = target.pass_s, draft.pass_s
    row = target.decode([3], 1)[0].copy()
    target.truncate(10)
    target.pass_s = spent[0]
    measure_costs(target, draft)
    assert (target.tokens, draft.tokens) == ([7] * 10, [7] * 20)
    assert (target.pass_s, draft.pass_s) == spent
    assert (target.decode([3], 1)[0] == row).all()


@pytest.mark.parametrize(("size", "held", "rows"), [(128, 120, 33), (128, 0, 5), (6, 3, 33)])
def test_no_pass_is_larger_than_rows_or_room_allow(make, size: int, held: int, rows: int):
    clock = Clock(lambda size: 0.001)
    target = clock.watch(make(size, held, rows))
    clock.sizes.clear()
    measure_costs(target, None, clock)
    assert max(clock.sizes) <= min(rows, size - held)
    assert len(target.tokens) == held


def test_full_caches_lose_what_two_tokens_need(make):
    """As after an answer that has filled the context: what is left of the caches is still true."""
    target, draft = make(size=16, held=16), make(size=16, held=16)
    measured = measure_costs(target, draft)
    assert {1, 2} <= set(measured.target_s)
    assert (target.tokens, draft.tokens) == ([7] * 14, [7] * 14)
