"""Record what a draft proposes at every place of the target's plain text, for pacing to be judged on.

    python benchmarks/traces.py TARGET DRAFT --out traces.json [--tokens 160] [--prompts 4]

At temperature 0 a draft that starts anywhere in the target's own text proposes the same tokens whatever was
drafted before. So one recording holds every round that any pacing could have played on that text: passes
can be counted without running a model again (`regret.py`).
"""

import argparse
import json
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
from prompts import PROMPTS

from specchat.app.conversation import build_prompt
from specchat.app.decoding.sampling import likeliest
from specchat.app.engine import Engine
from specchat.app.events import Event, Failed, Load
from specchat.app.requests import LoadOptions, Turn
from specchat.models.llama import Context

ROLLOUT = 16
BEYOND_A_REFUSAL = 2


@dataclass(frozen=True)
class Step:
    """One drafted token, the draft's three likeliest tokens there, and their chances at temperature 1."""

    tokens: tuple[int, int, int]
    chances: tuple[float, float, float]


@dataclass(frozen=True)
class Trace:
    """One prompt's plain text, and the draft's rollout from each of its places."""

    kind: str
    prompt: tuple[int, ...]
    text: tuple[int, ...]
    rollouts: tuple[tuple[Step, ...], ...]
    """Item i continues text[:i]: up to 16 tokens, or two beyond the first that the target refuses."""


def read(path: Path) -> list[Trace]:
    """The traces of a file that this script wrote."""
    return [
        Trace(
            trace["kind"],
            tuple(trace["prompt"]),
            tuple(trace["text"]),
            tuple(tuple(Step(*map(tuple, step)) for step in rollout) for rollout in trace["rollouts"]),
        )
        for trace in json.loads(path.read_text())
    ]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("target")
    parser.add_argument("draft")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--tokens", type=int, default=160)
    parser.add_argument("--prompts", type=int, default=4)
    options = parser.parse_args()
    heard: list[Event] = []
    engine = Engine(heard.append)
    engine.load(Load(LoadOptions(options.target, options.draft, ctx_size=2048)))
    if isinstance(heard[-1], Failed) or engine.pair is None or engine.pair.draft is None:
        sys.exit(str(heard[-1]))
    pair, target, draft = engine.pair, engine.pair.target.context, engine.pair.draft.context
    traces = []
    for kind, prompts in PROMPTS.items():
        for prompt in prompts[: options.prompts]:
            started = time.monotonic()
            tokens = build_prompt((Turn("user", prompt),), pair.template, target.model, target.size).tokens
            text = plain(target, tokens, options.tokens)
            rollouts = tuple(rolled(draft, tokens, text, place) for place in range(len(text)))
            traces.append(Trace(kind, tuple(tokens), tuple(text), rollouts))
            print(f"{kind}: {len(text)} tokens, {time.monotonic() - started:.0f} s", flush=True)
            options.out.write_text(json.dumps([packed(trace) for trace in traces]))


def packed(trace: Trace) -> dict[str, object]:
    steps = [[(step.tokens, step.chances) for step in rollout] for rollout in trace.rollouts]
    return {**asdict(trace), "rollouts": steps}


def prefill(context: Context, tokens: list[int]) -> None:
    context.truncate(0)
    for start in range(0, len(tokens) - 1, context.chunk):
        context.decode(tokens[start : min(start + context.chunk, len(tokens) - 1)], 0)


def plain(target: Context, prompt: list[int], count: int) -> list[int]:
    """The target's greedy text, without the token that ends it."""
    prefill(target, prompt)
    text: list[int] = []
    last = prompt[-1]
    while len(text) < count:
        last = int(np.argmax(target.decode([last], 1)[0]))
        if target.model.ends_generation(last):
            break
        text.append(last)
    return text


def rolled(draft: Context, prompt: list[int], text: list[int], place: int) -> tuple[Step, ...]:
    """The draft's greedy continuation of text[:place]."""
    if place == 0:
        prefill(draft, prompt)
    before = [*prompt, *text[:place]]
    draft.truncate(len(before) - 1)
    pending = before[len(draft.tokens) :]
    steps: list[Step] = []
    refused = 0
    while len(steps) < ROLLOUT and refused <= BEYOND_A_REFUSAL:
        logits = draft.decode(pending, 1)[0]
        top = likeliest(logits, 10)
        chances = np.exp(logits[top].astype(np.float64) - float(logits[top[0]]))
        chances /= chances.sum()
        steps.append(
            Step(
                (int(top[0]), int(top[1]), int(top[2])),
                (round(float(chances[0]), 5), round(float(chances[1]), 5), round(float(chances[2]), 5)),
            )
        )
        at = place + len(steps) - 1
        refused += bool(refused) or at >= len(text) or steps[-1].tokens[0] != text[at]
        if draft.model.ends_generation(int(top[0])):
            break
        pending = [int(top[0])]
    return tuple(steps)


if __name__ == "__main__":
    main()
