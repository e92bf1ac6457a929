"""Kills a chat in the middle of writing, again and again, and counts what it had said was kept and is not.

python benchmarks/crashes.py [--times 100]
"""

import argparse
import random
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

from tests.app.crashing_chat import crash

KILLS_OF_A_FILE = 10


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--times", type=int, default=100)
    options = parser.parse_args()
    told = failed = 0
    with tempfile.TemporaryDirectory() as folder:
        for number in range(options.times):
            # A file goes through several crashes, as a user's would.
            path = Path(folder) / f"{number // KILLS_OF_A_FILE}.db"
            try:
                begun = path.exists()
                told += crash(path, random.uniform(0.0, 0.5), begun=begun)
            except AssertionError as error:
                failed += 1
                print(f"kill {number + 1}: {error!r}")
    print(f"{options.times} kills, {told} changes told of as kept, {failed} kills that lost or damaged any")
    sys.exit(failed > 0)


if __name__ == "__main__":
    main()
