"""A long chat in one process: does it grow, do its caches stay true, is everything it said in the file?

    python benchmarks/soak.py [--minutes 30] [--seed 1] [--compare-every 1]

It runs on tiny models that it writes itself, and looks at everything after each turn; it ends with exit
code 1 at the first thing that is not as it should be.
"""

import argparse
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

from tests.soak_report import GROWTH, SETTLED
from tests.soaking import Soak


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--minutes", type=float, default=30.0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--compare-every", type=int, default=1, help="turns between looks at the caches")
    options = parser.parse_args()
    started = told = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        soak = Soak(Path(folder), options.seed, compare_every=options.compare_every)
        soak.begin()
        while time.monotonic() < started + 60 * options.minutes or soak.report.turns <= SETTLED:
            soak.turn()
            if time.monotonic() > told + 60:
                told = time.monotonic()
                print(f"-- {(told - started) / 60:.0f} minutes\n{soak.report.told()}", flush=True)
        report = soak.end()
    print(f"-- the end\n{report.told()}")
    flat = report.settled is not None and report.most is not None
    flat = flat and (report.settled.files, report.settled.threads) == (report.most.files, report.most.threads)
    return 0 if flat and report.growth < GROWTH else 1


if __name__ == "__main__":
    sys.exit(main())
