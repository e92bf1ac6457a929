"""The chance that a drafted token is accepted, by how the draft's distribution is sharpened.

    python benchmarks/sharpness.py TARGET DRAFT... [--temp 0.8] [--tokens 160] [--prompts 4]

For each kind of text, along the target's own sampled text: the mean over all places of sum min(p, q), for a
draft that is drawn from as it is, for powers of it, for its likeliest token, and for the power that pacing
learns by band of confidence as it goes.
"""

import argparse
import pickle
import statistics
import sys
from collections import defaultdict
from datetime import datetime
from pathlib import Path

import numpy as np
from prompts import PROMPTS
from traces import prefill

from specchat.app.conversation import build_prompt
from specchat.app.decoding.acceptance import acceptance_chance
from specchat.app.decoding.sampling import Outlook, Sampler
from specchat.app.decoding.settings import Sampling
from specchat.app.decoding.sharpness import POWERS, LearnedSharpness
from specchat.app.requests import Turn
from specchat.models.gguf_file import read_header
from specchat.models.llama import Context, Model
from specchat.models.template import ChatTemplate

Places = list[tuple[object, Outlook]]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("target", type=Path)
    parser.add_argument("drafts", type=Path, nargs="+")
    parser.add_argument("--temp", type=float, default=0.8)
    parser.add_argument("--tokens", type=int, default=160)
    parser.add_argument("--prompts", type=int, default=4)
    parser.add_argument("--save", type=Path)
    options = parser.parse_args()
    contexts = [
        Context(Model(path), size=2048, threads=2, chunk=128) for path in (options.target, *options.drafts)
    ]
    target, *drafts = contexts
    sampler = Sampler(Sampling(temperature=options.temp))
    vocabulary = read_header(options.target).vocabulary
    template = ChatTemplate.from_model(
        read_header(options.target).chat_template,
        vocabulary.bos_text,
        vocabulary.eos_text,
        vocabulary,
        datetime.now,
    )
    recorded: dict[tuple[str, str], list[Places]] = defaultdict(list)
    for kind, prompts in PROMPTS.items():
        for number, prompt in enumerate(prompts[: options.prompts]):
            tokens = build_prompt((Turn("user", prompt),), template, target.model, target.size).tokens
            draws = np.random.default_rng(number)
            for context in contexts:
                prefill(context, tokens)
            text = [*tokens]
            places: list[Places] = [[] for _ in drafts]
            for _ in range(options.tokens):
                p = sampler.distribution(target.decode([text[-1]], 1)[0], text)
                for draft, found in zip(drafts, places, strict=True):
                    row = draft.decode([text[-1]], 1)[0][: target.model.vocabulary_size]
                    found.append((p, sampler.outlook(row, text)))
                text.append(p.draw(draws.random()))
                if target.model.ends_generation(text[-1]):
                    break
            for path, found in zip(options.drafts, places, strict=True):
                recorded[path.name, kind].append(found)
        print(kind, file=sys.stderr, flush=True)
        if options.save:
            options.save.write_bytes(pickle.dumps(dict(recorded)))
    for path in options.drafts:
        report(path.name, {kind: recorded[path.name, kind] for kind in PROMPTS})


def report(name: str, by_kind: dict[str, list[Places]]) -> None:
    print(f"\n{name}\n{'kind':12}", *(f"{f'power {power:g}':>10}" for power in POWERS), f"{'learned':>10}")
    learned = LearnedSharpness()
    for kind, texts in by_kind.items():
        chances: dict[float, list[float]] = defaultdict(list)
        chosen: list[float] = []
        for places in texts:
            for p, outlook in places:
                surest, q = float(outlook.chances[0]), outlook.distribution
                for power in POWERS:
                    chances[power].append(acceptance_chance(p, q.sharpened(power)))
                chosen.append(chances[learned(surest)][-1])
                learned.observe(surest, p, q)
        means = [statistics.mean(chances[power]) for power in POWERS]
        print(f"{kind:12}", *(f"{mean:10.3f}" for mean in means), f"{statistics.mean(chosen):10.3f}")


if __name__ == "__main__":
    main()
