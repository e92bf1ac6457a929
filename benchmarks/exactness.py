"""Is drafted text the plain text? Twenty prompts of five kinds at temperature 0, token by token.

    python benchmarks/exactness.py TARGET DRAFT [--draft-max 4] [--tokens 128]

Where they differ, the margin between the two tokens stands beside the kernels' own noise on that text. Ends
with exit code 1 if rounding does not explain a difference.
"""

import argparse
import sys
from dataclasses import dataclass

from prompts import PROMPTS

from specchat.app.decoding.settings import Sampling
from specchat.app.engine import Engine
from specchat.app.events import Event, Failed, Finished, Load
from specchat.app.requests import AnswerOptions, Drafting, LoadOptions, Turn
from specchat.app.verifying import verify_answer


@dataclass
class Heard:
    finished: Finished | None = None

    def take(self, event: Event) -> None:
        if isinstance(event, Failed):
            sys.exit(event.message)
        if isinstance(event, Finished):
            self.finished = event


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("target")
    parser.add_argument("draft")
    parser.add_argument("--draft-max", type=int)
    parser.add_argument("--tokens", type=int, default=160)
    parser.add_argument("--prompts", type=int, default=8, help="of each kind")
    parser.add_argument("--speculate", choices=("auto", "always"), default="always")
    parser.add_argument("--drafter", choices=("model", "lookup", "both"), default="both")
    parser.add_argument("--strict", action="store_true")
    options = parser.parse_args()

    heard = Heard()
    engine = Engine(heard.take)
    drafting = Drafting(options.speculate, options.drafter, options.draft_max, strict=options.strict)
    engine.load(Load(LoadOptions(options.target, options.draft, ctx_size=2048), drafting))
    answer = AnswerOptions(Sampling(temperature=0.0), drafting, options.tokens)
    equal = explained = unexplained = 0
    for kind, prompts in PROMPTS.items():
        for prompt in prompts[: options.prompts]:
            found = verify_answer(engine, (Turn("user", prompt),), answer, heard)
            equal += found.equal
            explained += not found.equal and found.explained
            unexplained += not found.explained
            print(f"{kind:12} {found.told()}", flush=True)
    print(f"{equal} equal, {explained} differ within the kernels' noise, {unexplained} unexplained")
    return 1 if unexplained else 0


if __name__ == "__main__":
    sys.exit(main())
