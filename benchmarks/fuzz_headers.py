"""Makes hostile GGUF files, thousands of them, and looks what the program and llama.cpp make of each.

python benchmarks/fuzz_headers.py [--cases 200000] [--first 0] [--load] [--quantize] [--split]
    [--keep FOLDER]

Each file is read, judged beside a sound one, measured and told of as `specchat inspect` does; with --load what
is not refused is given to llama.cpp in a process of its own, and with --quantize to its quantizer as well. With
--split the hostile file is the second part of a sound model.
"""

import argparse
import shutil
import sys
import tempfile
import time
import traceback
from collections import Counter
from pathlib import Path

import psutil

sys.path.insert(0, str(Path(__file__).parent.parent))

from specchat.models.gguf_file import read_header
from tests.models.examining import examine
from tests.models.header_bytes import bases_of, header_bytes
from tests.models.hostile_headers import case
from tests.models.loading_process import loading_process
from tests.models.sound_files import split_over, write_sound_files

MOST_SECONDS, MOST_BYTES = 1.0, 200 << 20


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--cases", type=int, default=200_000)
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--load", action="store_true")
    parser.add_argument("--quantize", action="store_true")
    parser.add_argument("--split", action="store_true")
    parser.add_argument("--keep", type=Path, help="a folder for the files that failed")
    options = parser.parse_args()
    counts, faults = Counter[str](), Counter[str]()
    slowest = 0.0
    memory = psutil.Process().memory_info
    with tempfile.TemporaryDirectory(dir="/dev/shm" if Path("/dev/shm").is_dir() else None) as name:
        folder = Path(name)
        paths = write_sound_files(folder)
        bases, sound = bases_of(*paths.values()), read_header(paths["llama"])
        path = named = folder / "hostile.gguf"
        if options.split:
            named, path = (folder / f"hostile-0000{number}-of-00002.gguf" for number in (1, 2))
            first, second = split_over(bases_of(paths["llama-of-experts"])[0], 2)
            named.write_bytes(header_bytes(first))
            bases = (second,)
        started = memory().rss
        with loading_process(folder / "words", quantizes=options.quantize) as process:
            for seed in range(options.first, options.first + options.cases):
                path.write_bytes(case(bases, seed).content)
                before = time.process_time()
                fault = ""
                try:
                    # Inspecting takes longer than all the rest.
                    refusal = examine(named, sound, inspects=not options.load or seed % 20 == 0)
                except Exception:
                    refusal, fault = "", traceback.format_exc().strip().replace("\n", " | ")[-300:]
                seconds = time.process_time() - before
                slowest = max(slowest, seconds)
                if seconds > MOST_SECONDS:
                    fault = f"took {seconds:.1f} s"
                counts["refused by us" if refusal else "read"] += 1
                if options.load and refusal is None:
                    outcome = process.load(named)
                    counts[f"{outcome.kind} by llama.cpp"] += 1
                    if outcome.kind in ("died", "hung") or outcome.grown > MOST_BYTES:
                        fault = f"{outcome.kind} {outcome.grown >> 20} MB {outcome.told}"
                if fault:
                    faults[fault] += 1
                    if faults[fault] <= 3:
                        print(f"seed {seed}: {fault}", flush=True)
                        if options.keep is not None:
                            options.keep.mkdir(parents=True, exist_ok=True)
                            shutil.copy(path, options.keep / f"{seed}.gguf")
        grown = memory().rss - started
    print(dict(counts))
    print(f"slowest {slowest:.3f} s of CPU, memory grew by {grown >> 20} MB, {sum(faults.values())} faults:")
    for fault, count in faults.most_common():
        print(f"{count:6} {fault}")
    sys.exit(bool(faults))


if __name__ == "__main__":
    main()
