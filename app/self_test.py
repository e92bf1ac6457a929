"""What llama.cpp says and does on this machine, step by step; made for a process that may die of it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from .trial import Tell

_CONTEXT, _CHUNK, _ROWS = 512, 128, 33

_TIMING_S = 3.0

_SIZES = (1, 2, 3, 4, 5, 8, 16, 33)
"""Tokens of the passes that are tried: kernels differ between one token and several."""


@dataclass(frozen=True)
class Built:
    """llama.cpp could be loaded."""

    build: str
    """Its version, and the features it was built to use."""
    devices: tuple[str, ...]


@dataclass(frozen=True)
class Loading:
    """So much of the model has been read."""

    fraction: float


@dataclass(frozen=True)
class Trying:
    """A pass over so many tokens comes next."""

    tokens: int


@dataclass(frozen=True)
class Decoded:
    """Passes over one and over several tokens went well."""

    sizes: tuple[int, ...]


@dataclass(frozen=True)
class Timed:
    """Seconds of a pass, by its tokens."""

    seconds: dict[int, float]
    weights_bytes: int


def try_llama(tell: Tell, target: Path | None, threads: int) -> None:
    """Load llama.cpp, then a model if there is one, run passes, and time them; tell each step.

    Raises:
        SpecchatError: llama.cpp would not do one of them.
        ArithmeticError: a pass gave logits that are no numbers.
    """
    from ..models.llama import Context, Model, build, devices

    tell(Built(build(), devices(-1)))
    if target is None:
        return
    import numpy as np

    from .measuring import measure_costs

    told = -1

    def on_progress(fraction: float) -> bool:
        nonlocal told
        if int(fraction * 100) > told:
            told = int(fraction * 100)
            tell(Loading(fraction))
        return True

    with Model(target, on_progress=on_progress) as model:
        context = Context(model, size=_CONTEXT, threads=threads, chunk=_CHUNK, rows=_ROWS)
        for size in _SIZES:
            tell(Trying(size))
            logits = context.decode([max(model.bos, 0)] * size, size)
            if not np.isfinite(logits).all():
                raise ArithmeticError(f"a pass over {size} tokens gave logits that are no numbers")
            context.truncate(0)
        tell(Decoded(_SIZES))
        tell(Timed(measure_costs(context, None, budget_s=_TIMING_S).target_s, model.size_bytes))
        context.close()
