"""Plain decoding against every way of drafting, interleaved in one process, and what this machine allows.

    python benchmarks/speed.py TARGET DRAFT... --out results.json [--temps 0 0.8] [--tokens 160] [--prompts 4]

For each prompt: half of the settings, plain, the others. Prints for each temperature, setting and kind of prompt the
median ratio of tokens per second to plain with its range, and beside it the ratio counted: passes by size at
the costs measured at the start, which a slow moment of the machine does not touch. The settings are `auto`
with each draft and with a random one that is good for nothing, lookup alone, and a fixed length.
"""

import argparse
import json
import platform
import statistics
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import date
from pathlib import Path

from prompts import PROMPTS
from useless_draft import write_useless_draft

from specchat.app.decoding.settings import Sampling
from specchat.app.engine import Engine
from specchat.app.events import Ask, Event, Failed, Finished, Load
from specchat.app.requests import AnswerOptions, Drafting, LoadOptions, Turn
from specchat.models.llama import Context, build, devices

SIZES = (1, 2, 3, 4, 5, 6, 7, 8, 12, 16, 24, 32)
SWEEPS = 11


@dataclass(frozen=True)
class Measured:
    """One answer."""

    temperature: float
    kind: str
    prompt: int
    setting: str
    tokens: int
    tokens_per_second: float
    ttft_s: float
    drafted: int
    accepted: int
    outside: float
    """Share of the time outside llama.cpp's passes."""
    sizes: dict[int, int]
    """Target passes by size."""
    draft_passes: int
    reason: str


class Loaded:
    """An engine with one draft, that counts its passes."""

    def __init__(self, target: str, draft: str) -> None:
        self._heard: list[Event] = []
        self.engine = Engine(self._heard.append)
        self.engine.load(Load(LoadOptions(target, draft, ctx_size=2048)))
        if isinstance(self._heard[-1], Failed) or self.engine.pair is None:
            sys.exit(str(self._heard[-1]))
        assert self.engine.pair.draft is not None
        self.target, self.draft = self.engine.pair.target.context, self.engine.pair.draft.context
        self.sizes: Counter[int] = Counter()
        self.draft_passes = 0
        tree, draft_pass = self.target.decode_tree, self.draft.decode

        def counted_tree(tokens: Sequence[int], parents: Sequence[int]) -> object:
            self.sizes[len(tokens)] += 1
            return tree(tokens, parents)

        def counted_draft(tokens: Sequence[int], rows: int) -> object:
            self.draft_passes += rows
            return draft_pass(tokens, rows)

        self.target.decode_tree = counted_tree  # type: ignore[method-assign,assignment]
        self.draft.decode = counted_draft  # type: ignore[method-assign,assignment]

    def answer(self, prompt: str, temperature: float, drafting: Drafting, tokens: int) -> Finished:
        self.sizes.clear()
        self.draft_passes = 0
        self.target.truncate(0)
        self.draft.truncate(0)
        asked = AnswerOptions(Sampling(temperature=temperature), drafting, tokens)
        self.engine.ask(Ask((Turn("user", prompt),), asked))
        finished = self._heard[-1]
        assert isinstance(finished, Finished), finished
        self._heard.clear()
        return finished


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("target")
    parser.add_argument("drafts", nargs="+")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--temps", type=float, nargs="+", default=[0.0, 0.8])
    parser.add_argument("--kinds", nargs="+", choices=PROMPTS, default=list(PROMPTS))
    parser.add_argument("--tokens", type=int, default=160)
    parser.add_argument("--prompts", type=int, default=4)
    parser.add_argument(
        "--fixed", type=int, nargs="*", default=[], help="lengths of drafts that are always made"
    )
    options = parser.parse_args()

    with tempfile.TemporaryDirectory() as folder:
        useless = write_useless_draft(Path(options.target), Path(folder) / "useless.gguf")
        pairs = {Path(draft).stem: Loaded(options.target, draft) for draft in [*options.drafts, useless]}
    first = next(iter(pairs.values()))
    settings = [(f"auto, {name}", pair, Drafting()) for name, pair in pairs.items()]
    settings.append(("lookup alone", first, Drafting(drafter="lookup")))
    settings += [
        (f"always {length}", first, Drafting("always", "model", length, 0.0)) for length in options.fixed
    ]
    target_s, draft_s = measured_costs(first.target, {name: pair.draft for name, pair in pairs.items()})
    results: list[Measured] = []
    about = {
        "date": date.today().isoformat(),
        "machine": [*devices(0), platform.machine()],
        "build": build(),
        "target": Path(options.target).name,
        "target_s": target_s,
        "draft_s": draft_s,
    }

    def run(
        temperature: float, kind: str, number: int, setting: str, pair: Loaded, drafting: Drafting
    ) -> None:
        finished = pair.answer(PROMPTS[kind][number], temperature, drafting, options.tokens)
        stats = finished.stats
        whole = stats.target_s + stats.draft_s + stats.overhead_s
        results.append(
            Measured(
                temperature,
                kind,
                number,
                setting,
                stats.completion_tokens,
                stats.tokens_per_second or 0.0,
                stats.ttft_s or 0.0,
                stats.drafted,
                stats.accepted,
                stats.overhead_s / whole,
                dict(pair.sizes),
                pair.draft_passes,
                stats.reason,
            )
        )

    for temperature in options.temps:
        for kind in options.kinds:
            for number in range(options.prompts):
                for place, (setting, pair, drafting) in enumerate(settings):
                    if place == len(settings) // 2:
                        run(temperature, kind, number, "plain", first, Drafting("off"))
                    run(temperature, kind, number, setting, pair, drafting)
                options.out.write_text(
                    json.dumps({**about, "answers": [asdict(one) for one in results]}, indent=1)
                )
            print(f"{time.strftime('%H:%M:%S')} temperature {temperature}: {kind} done", file=sys.stderr)
        for setting, pair, _ in settings:
            name = next(name for name, one in pairs.items() if one is pair)
            print_table(results, temperature, setting, target_s, draft_s[name])


def print_table(
    results: list[Measured], temperature: float, setting: str, target_s: dict[int, float], draft_s: float
) -> None:
    """One setting's ratios to plain, by kind."""
    print(f"\ntemperature {temperature}, {setting}")
    print(f"{'kind':12} {'ratio':>6} {'from':>6} {'to':>6} {'counted':>8} {'accepted':>9} {'outside':>8}")
    medians: list[float] = []
    all_counted: list[float] = []
    for kind in dict.fromkeys(one.kind for one in results if one.temperature == temperature):
        chosen = [one for one in results if (one.temperature, one.kind) == (temperature, kind)]
        mine = [one for one in chosen if one.setting == setting]
        ratios, counted = [], []
        for one in mine:
            plain = [
                other.tokens_per_second
                for other in chosen
                if (other.setting, other.prompt) == ("plain", one.prompt)
            ]
            ratios.append(one.tokens_per_second / statistics.mean(plain))
            passes = sum(count * cost(target_s, size) for size, count in one.sizes.items())
            counted.append(one.tokens * target_s[1] / (passes + one.draft_passes * draft_s))
        drafted, accepted = sum(one.drafted for one in mine), sum(one.accepted for one in mine)
        medians.append(statistics.median(ratios))
        all_counted.append(statistics.median(counted))
        print(
            f"{kind:12} {medians[-1]:6.2f} {min(ratios):6.2f} {max(ratios):6.2f} {all_counted[-1]:8.2f} "
            f"{f'{accepted / drafted:.0%} of {drafted}' if drafted else '-':>9} "
            f"{statistics.median(one.outside for one in mine):8.1%}"
        )
    print(
        f"{'mean':12} {statistics.geometric_mean(medians):6.2f} {'':13} "
        f"{statistics.geometric_mean(all_counted):8.2f}",
        flush=True,
    )


def cost(target_s: dict[int, float], size: int) -> float:
    """Seconds of a pass of this size, on the line between the sizes that were measured."""
    below = max((one for one in target_s if one <= size), default=1)
    above = min((one for one in target_s if one >= size), default=below)
    if above == below:
        return target_s[below] * size / below
    share = (size - below) / (above - below)
    return target_s[below] + share * (target_s[above] - target_s[below])


def measured_costs(target: Context, drafts: dict[str, Context]) -> tuple[dict[int, float], dict[str, float]]:
    """T(n) and each D: every size once a sweep, so that a slow moment touches them all; printed with quartiles."""
    text = list(range(1000, 1200))
    for context in (target, *drafts.values()):
        context.truncate(0)
        context.decode(text[:100], 0)

    def seconds(context: Context, tokens: int) -> float:
        started = time.perf_counter()
        context.decode(text[100 : 100 + tokens], tokens)
        taken = time.perf_counter() - started
        context.truncate(100)
        return taken

    sweeps = [
        (
            {size: seconds(target, size) for size in SIZES},
            {name: seconds(draft, 1) for name, draft in drafts.items()},
        )
        for _ in range(SWEEPS)
    ]
    ones = [costs[1] for costs, _ in sweeps]
    print(f"T(1) = {spread([1e3 * one for one in ones])} ms; median (quartiles) of {SWEEPS} sweeps")
    for size in SIZES[1:]:
        ratios = [costs[size] / costs[1] for costs, _ in sweeps]
        print(f"T({size}) / T(1) = {spread(ratios)}: at most {size / statistics.median(ratios):.2f}x")
    for name in drafts:
        ratios = [ds[name] / one for (_, ds), one in zip(sweeps, ones, strict=True)]
        print(f"D / T(1) = {spread(ratios)} with {name}")
    for context in (target, *drafts.values()):
        context.truncate(0)
    return (
        {size: statistics.median(costs[size] for costs, _ in sweeps) for size in SIZES},
        {name: statistics.median(ds[name] for _, ds in sweeps) for name in drafts},
    )


def spread(values: list[float]) -> str:
    low, middle, high = statistics.quantiles(values, n=4)
    return f"{middle:.2f} ({low:.2f} to {high:.2f})"


if __name__ == "__main__":
    main()
