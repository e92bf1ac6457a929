"""How far pacing is from the best it could have done, on recorded traces and any costs of passes.

    python benchmarks/regret.py traces.json --costs costs.json | amx | flat [--drafter model|lookup|both]

Counts passes instead of reading a clock, so it says the same on any machine. Beside the adaptive pacing, for
each kind of text: the best fixed length in hindsight, 0 to 12 tokens of the model, of the text so far, or of
the one where the other has nothing; and a clairvoyant pacing that knows what will be accepted.
"""

import argparse
import json
import math
from pathlib import Path

from replay import Draft, PassCosts, accepted, play
from traces import Trace, read

from specchat.app.decoding.adaptive import AdaptivePacing
from specchat.app.decoding.costs import Costs
from specchat.app.decoding.learned import Learned
from specchat.app.decoding.lookup import HitRates, LookupDrafter, TextIndex
from specchat.app.decoding.pacing import Pacing

FIXED = range(1, 13)

AMX = (1, 1.65, 1.68, 1.78, 1.89, 1.92, 1.92, 1.94, 2.0, 2.1, 2.2, 2.26, 2.36, 2.46, 2.56, 2.65)
PRESETS = {
    # Measured on a 2-core CPU with AMX: Qwen2.5-Coder 1.5B Q4_K_M, and a 0.5B Q4_0 draft.
    "amx": PassCosts({**dict(enumerate(AMX, 1)), 33: 4.5}, 0.2),
    "flat": PassCosts({1: 1.0, 33: 1.05}, 0.1),
}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("traces", type=Path)
    parser.add_argument("--costs", default="amx", help="amx, flat, or a file that speed.py wrote")
    parser.add_argument("--draft", help="whose D of that file to take; the first one's if not given")
    parser.add_argument("--drafter", choices=("model", "lookup", "both"), default="both")
    options = parser.parse_args()
    traces = read(options.traces)
    costs = PRESETS.get(options.costs) or read_costs(Path(options.costs), options.draft)
    print(
        f"{'kind':12} {'chain':>6} {'comb':>6} {'best fixed':>20} {'clairvoyant':>12}  times plain decoding"
    )
    rows = table(traces, costs, options.drafter)
    for kind, (chain, comb, fixed, name, best) in rows.items():
        print(f"{kind:12} {chain:6.2f} {comb:6.2f} {fixed:6.2f} {name:>13} {best:12.2f}")
    means = [math.prod(row[column] for row in rows.values()) ** (1 / len(rows)) for column in (0, 1, 2, 4)]
    print(f"{'mean':12} {means[0]:6.2f} {means[1]:6.2f} {means[2]:6.2f} {'':13} {means[3]:12.2f}")


def read_costs(path: Path, draft: str | None = None) -> PassCosts:
    """The costs in a file that speed.py wrote, with one of its drafts."""
    costs = json.loads(path.read_text())
    draft_s = costs["draft_s"]
    if isinstance(draft_s, dict):
        draft_s = draft_s[draft or next(iter(draft_s))]
    return PassCosts({int(size): seconds for size, seconds in costs["target_s"].items()}, draft_s)


def table(
    traces: list[Trace], costs: PassCosts, drafter: str
) -> dict[str, tuple[float, float, float, str, float]]:
    """By kind: adaptive chain, adaptive comb, best fixed and its name, clairvoyant; each times plain."""
    rows: dict[str, tuple[float, float, float, str, float]] = {}
    chain, comb = (adaptive(traces, costs, drafter, branches) for branches in (1, 8))
    for kind in dict.fromkeys(trace.kind for trace in traces):
        chosen = [place for place, trace in enumerate(traces) if trace.kind == kind]
        plain = sum(len(traces[place].text) for place in chosen) * costs.target(1)
        fixed = {"plain": plain}
        for source in ("model", "lookup", "both") if drafter == "both" else (drafter,):
            for length in FIXED:
                fixed[f"{source} {length}"] = sum(
                    fixed_seconds(traces[place], costs, source, length) for place in chosen
                )
        name = min(fixed, key=lambda one: fixed[one])
        rows[kind] = (
            plain / sum(chain[place] for place in chosen),
            plain / sum(comb[place] for place in chosen),
            plain / fixed[name],
            name,
            plain / sum(clairvoyant_seconds(traces[place], costs, drafter) for place in chosen),
        )
    return rows


def adaptive(traces: list[Trace], costs: PassCosts, drafter: str, branches: int) -> list[float]:
    """Seconds of each trace, one after another as in a conversation: what is learned is kept."""
    learned = Learned(Costs({size: costs.target(size) for size in (1, 2, 4, 16)}, costs.draft_s))

    def pace(draft: Draft, prompt: list[int]) -> Pacing:
        lookup = LookupDrafter(TextIndex(), prompt, learned.hits) if drafter != "model" else None
        model = draft if drafter != "lookup" else None
        return AdaptivePacing(learned, model=model, lookup=lookup, branches=branches)

    return [play(trace, costs, pace)[1] for trace in traces]


def looked_up(trace: Trace) -> list[int]:
    """How many tokens of what a lookup proposes are right, in each place; -1 where it proposes nothing."""
    index = TextIndex()
    drafter = LookupDrafter(index, trace.prompt, HitRates())
    counts = []
    for place, token in enumerate(trace.text):
        count = -1
        if index.matched >= 2:
            steps = (step.token for step in drafter.draft())
            count = next(
                (
                    n
                    for n, (step, right) in enumerate(zip(steps, trace.text[place:], strict=False))
                    if step != right
                ),
                len(trace.text) - place,
            )
        counts.append(count)
        drafter.observe([token])
    return counts


def fixed_seconds(trace: Trace, costs: PassCosts, source: str, length: int) -> float:
    """Seconds where every round drafts this many tokens."""
    found = looked_up(trace) if source != "model" else [-1] * len(trace.text)
    place, seconds = 0, 0.0
    while place < len(trace.text):
        room = min(length, len(trace.text) - place - 1)
        if found[place] >= 0:
            right, drafted = found[place], 0.0
        elif source != "lookup":
            right, drafted = accepted(trace.rollouts[place], trace.text[place:]), costs.draft_s
        else:
            right, drafted, room = 0, 0.0, 0
        seconds += room * drafted + costs.target(room + 1)
        place += min(right, room) + 1
    return seconds


def clairvoyant_seconds(trace: Trace, costs: PassCosts, drafter: str) -> float:
    """Seconds where every round drafts what is known to be accepted, if that is best: the shortest path."""
    found = looked_up(trace) if drafter != "model" else [-1] * len(trace.text)
    seconds = [0.0] * (len(trace.text) + 1)
    for place in range(len(trace.text) - 1, -1, -1):
        room = len(trace.text) - place - 1
        options = [costs.target(1) + seconds[place + 1]]
        for length in range(1, min(found[place], room, 32) + 1):
            options.append(costs.target(length + 1) + seconds[place + length + 1])
        if drafter != "lookup":
            right = accepted(trace.rollouts[place], trace.text[place:])
            for length in range(1, min(right, room) + 1):
                options.append(
                    length * costs.draft_s + costs.target(length + 1) + seconds[place + length + 1]
                )
        seconds[place] = min(options)
    return seconds[0]


if __name__ == "__main__":
    main()
