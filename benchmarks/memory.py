"""Peak memory of a chat at a full-sized context, against what models and caches take by their own sizes.

python benchmarks/memory.py TARGET [DRAFT] [--ctx-size 8192] [--depth 2000]
"""

import argparse
import resource
import sys
from pathlib import Path

import psutil

from specchat.app.decoding.settings import Sampling
from specchat.app.engine import Engine
from specchat.app.events import Ask, Event, Failed, Finished, Load
from specchat.app.requests import AnswerOptions, Drafting, LoadOptions, Turn

MB = 1e6


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("target")
    parser.add_argument("draft", nargs="?")
    parser.add_argument("--ctx-size", type=int, default=8192)
    parser.add_argument("--words", type=int, default=1500, help="of the prompt")
    options = parser.parse_args()
    before = psutil.Process().memory_info().rss
    heard: list[Event] = []
    engine = Engine(heard.append)
    engine.load(Load(LoadOptions(options.target, options.draft, ctx_size=options.ctx_size)))
    if isinstance(heard[-1], Failed) or engine.pair is None:
        sys.exit(str(heard[-1]))
    prompt = " ".join(f"item {number}," for number in range(options.words // 2))
    asked = AnswerOptions(Sampling(temperature=0.0), Drafting("always"), 40)
    engine.ask(Ask((Turn("user", prompt),), asked))
    assert isinstance(heard[-1], Finished), heard[-1]
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    expected = 0.0
    for loaded in (engine.pair.target, engine.pair.draft):
        if loaded is not None:
            caches = loaded.context.bytes_per_token() * options.ctx_size
            expected += loaded.model.size_bytes + caches
            print(
                f"{Path(loaded.header.path).name}: weights {loaded.model.size_bytes / MB:.0f} MB, "
                f"cache of {options.ctx_size} tokens {caches / MB:.0f} MB"
            )
    print(
        f"models and caches {expected / MB:.0f} MB, peak {peak / MB:.0f} MB: "
        f"{(peak - expected) / MB:.0f} MB more, of which Python and libraries {before / MB:.0f} MB; "
        f"prompt of {heard[-1].prompt_tokens} tokens"
    )


if __name__ == "__main__":
    main()
