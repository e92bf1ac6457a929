"""What models are estimated to take of memory against what they then take, loaded in processes of their own.

python benchmarks/memory_estimate.py MODEL... [--pair TARGET DRAFT] [--contexts 512 4096 8192] [-ctk f16]
"""

from __future__ import annotations

import argparse
import multiprocessing
from collections.abc import Sequence
from pathlib import Path

import psutil

from specchat.app.footprint import BRANCHES, CPU_CHUNK, needed, rows_of
from specchat.app.processor import this_processor
from specchat.app.requests import LoadOptions
from specchat.models.gguf_file import read_header
from specchat.models.memory import together

MB = 1e6


def measured(paths: Sequence[Path], options: LoadOptions) -> int:
    """Bytes by which a fresh process grows as it loads the first as target and the others as drafts."""
    spawn = multiprocessing.get_context("spawn")
    with spawn.Pool(1) as pool:
        return pool.apply(_grown_by, (tuple(paths), options))


def _grown_by(paths: tuple[Path, ...], options: LoadOptions) -> int:
    from specchat.models.llama import Context, Model

    process = psutil.Process()
    before = process.memory_info().rss
    kept = []
    for index, path in enumerate(paths):
        role = "target" if index == 0 else "draft"
        model = Model(path)
        context = Context(
            model,
            size=options.ctx_size,
            threads=1,
            chunk=CPU_CHUNK,
            rows=rows_of(role),
            branches=BRANCHES if role == "target" and model.drops_suffixes else 1,
            rollback=read_header(path).shape.rollback if role == "target" else 0,
            cache_type_k=options.cache_type_k,
            cache_type_v=options.cache_type_v,
            flash_attn=options.flash_attn,
        )
        context.decode([max(model.bos, 0)] * min(CPU_CHUNK, context.size), context.rows)
        kept.append(context)
    return process.memory_info().rss - before


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("models", nargs="*", type=Path)
    parser.add_argument("--pair", nargs=2, type=Path, action="append", default=[])
    parser.add_argument("--contexts", nargs="+", type=int, default=[512, 4096, 8192])
    parser.add_argument("-ctk", "--cache-type-k", default="f16")
    parser.add_argument("-ctv", "--cache-type-v", default="f16")
    parser.add_argument("-fa", "--flash-attn", default="auto")
    options = parser.parse_args()
    processor = this_processor()
    print(f"{'model':42} {'context':>7} {'estimated':>10} {'measured':>10}  ratio")
    for paths in [[model] for model in options.models] + options.pair:
        headers = [read_header(path) for path in paths]
        for size in options.contexts:
            wanted = LoadOptions(
                str(paths[0]),
                ctx_size=size,
                cache_type_k=options.cache_type_k,
                cache_type_v=options.cache_type_v,
                flash_attn=options.flash_attn,
            )
            expected, grown = together(needed(headers, wanted, processor)), measured(paths, wanted)
            name = " + ".join(path.stem[: 42 // len(paths) - 2] for path in paths)
            print(f"{name:42} {size:7} {expected / MB:7.0f} MB {grown / MB:7.0f} MB  {expected / grown:.3f}")


if __name__ == "__main__":
    main()
