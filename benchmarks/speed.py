"""Plain against drafted decoding on one pair, interleaved in one process, and what this machine allows.

    python benchmarks/speed.py TARGET DRAFT [--kinds json code] [--draft-max 4] [--repeats 3]

Prints, for each kind of prompt, the median ratio of tokens per second with its spread, the acceptance rate
and the share of time outside llama.cpp's passes; before that the cost of a pass over n tokens and of a draft
pass, and the most that any draft could gain at that cost: k tokens drafted and every one of them accepted.
"""

import argparse
import statistics
import sys
import time

from prompts import PROMPTS

from specchat.app.decoding.settings import Sampling
from specchat.app.engine import Engine
from specchat.app.events import Ask, Event, Failed, Finished, Load
from specchat.app.requests import AnswerOptions, Drafting, LoadOptions, Turn
from specchat.models.llama import Context


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("target")
    parser.add_argument("draft")
    parser.add_argument("--kinds", nargs="+", choices=PROMPTS, default=list(PROMPTS))
    parser.add_argument("--draft-max", type=int, default=4)
    parser.add_argument("--speculate", choices=("auto", "always"), default="always")
    parser.add_argument("--drafter", choices=("model", "lookup", "both"), default="model")
    parser.add_argument("--temp", type=float, default=0.0)
    parser.add_argument("--tokens", type=int, default=128)
    parser.add_argument("--prompts", type=int, default=4)
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args()

    heard: list[Event] = []
    engine = Engine(heard.append)
    engine.load(Load(LoadOptions(options.target, options.draft, ctx_size=2048)))
    if isinstance(heard[-1], Failed):
        sys.exit(heard[-1].message)

    def answer(prompt: str, speculate: str) -> Finished:
        drafting = Drafting(speculate, options.drafter, options.draft_max)  # type: ignore[arg-type]
        asked = AnswerOptions(Sampling(temperature=options.temp), drafting, options.tokens)
        engine.ask(Ask((Turn("user", prompt),), asked))
        finished = heard[-1]
        assert isinstance(finished, Finished), finished
        heard.clear()
        return finished

    pair = engine.pair
    assert pair is not None
    assert pair.draft is not None
    print_costs(pair.target.context, pair.draft.context)
    print(
        f"{'kind':12} {'plain':>6} {'drafted':>8} {'ratio':>6} {'from':>6} {'to':>6} {'accepted':>9} {'outside':>8}"
    )
    for kind in options.kinds:
        plain_rates, drafted_rates, ratios, accepted, outside = [], [], [], [], []
        for prompt in PROMPTS[kind][: options.prompts]:
            for _ in range(options.repeats):
                plain, drafted = answer(prompt, "off").stats, answer(prompt, options.speculate).stats
                assert plain.tokens_per_second
                assert drafted.tokens_per_second
                plain_rates.append(plain.tokens_per_second)
                drafted_rates.append(drafted.tokens_per_second)
                ratios.append(drafted.tokens_per_second / plain.tokens_per_second)
                accepted.append(drafted.acceptance_rate or 0.0)
                whole = drafted.target_s + drafted.draft_s + drafted.overhead_s
                outside.append(drafted.overhead_s / whole)
        print(
            f"{kind:12} {statistics.median(plain_rates):6.1f} {statistics.median(drafted_rates):8.1f} "
            f"{statistics.median(ratios):6.2f} {min(ratios):6.2f} {max(ratios):6.2f} "
            f"{statistics.median(accepted):9.0%} {statistics.median(outside):8.1%}",
            flush=True,
        )


SIZES = (1, 2, 3, 4, 5, 6, 7, 8, 12, 16)
SWEEPS = 25


def print_costs(target: Context, draft: Context) -> None:
    """T(n), D, and what the two allow: every size once a sweep, so that a slow moment touches them all."""
    text = list(range(1000, 1200))
    for context in (target, draft):
        context.truncate(0)
        context.decode(text[:100], 0)

    def seconds(context: Context, tokens: int) -> float:
        started = time.perf_counter()
        context.decode(text[100 : 100 + tokens], tokens)
        taken = time.perf_counter() - started
        context.truncate(100)
        return taken

    sweeps = [
        ({size: seconds(target, size) for size in SIZES}, seconds(draft, 1), seconds(draft, 1))
        for _ in range(SWEEPS)
    ]
    ones = [costs[1] for costs, _, _ in sweeps]
    drafts = [(first + second) / 2 for _, first, second in sweeps]
    print(
        f"T(1) = {spread([one * 1e3 for one in ones])} ms, D / T(1) = "
        f"{spread([d / one for d, one in zip(drafts, ones, strict=True)])}; median (quartiles) of {SWEEPS} sweeps"
    )
    for n in SIZES[1:]:
        ratios = [costs[n] / costs[1] for costs, _, _ in sweeps]
        drafted = [
            n * one / (costs[n] + (n - 1) * d)
            for (costs, _, _), one, d in zip(sweeps, ones, drafts, strict=True)
        ]
        looked_up = [n / ratio for ratio in ratios]
        print(
            f"T({n}) / T(1) = {spread(ratios)}: all of {n - 1} drafted tokens accepted gains "
            f"{spread(drafted)}x with this draft, {spread(looked_up)}x with a free one"
        )
    target.truncate(0)
    draft.truncate(0)


def spread(values: list[float]) -> str:
    low, middle, high = statistics.quantiles(values, n=4)
    return f"{middle:.2f} ({low:.2f} to {high:.2f})"


if __name__ == "__main__":
    main()
