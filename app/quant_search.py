"""Finds the quantization whose passes are quickest on this machine, among those that guess nearly alike."""

from __future__ import annotations

import contextlib
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from ..models.derived import Recipe
from ..models.gguf_layout import read_layout
from ..models.llama import Context
from .deriving import Source, estimated_bytes, refuse_for_want_of_room, write
from .interrupt import Stopped
from .own_text import Sample, agreement, agreement_by_kind, guesses, opened
from .pass_times import Timed, ratio, take_turns

LEAST_AGREEMENT = 0.85
"""The share of tokens that a candidate has to guess as the file itself does.

What it guesses otherwise is mostly what the file was unsure of and a target would often have refused, so of
the target's acceptance less is lost than this says; below it, what is lost outweighs a tenth of a pass.
"""

CANDIDATES = (
    Recipe("Q4_0", "Q4_0"),
    Recipe("Q4_0"),
    Recipe("Q4_0", "Q5_0"),
    Recipe("Q4_1", "Q4_0"),
    Recipe("Q4_1"),
    Recipe("Q5_0", "Q4_0"),
    Recipe("Q8_0", "Q4_0"),
    Recipe("Q8_0"),
    Recipe("Q4_K_M", "Q4_0"),
    Recipe("Q4_K_M"),
)
"""Types with kernels of their own on processors. The output matrix is varied, too: of a small model with a
large vocabulary it is a third of all that a pass reads. llama.cpp's own mixes make it Q6_K or Q8_0. The
types named IQ are left out, since quantizing to them takes many times as long."""

_ROUNDS, _FINAL_ROUNDS = 6, 12
FINALISTS = 3
"""So many of the quickest are timed again, in the same rounds."""
_NO_GAIN = 0.97
"""A pass that takes this part of the file's own, or more, is within what two measurements differ by."""


@dataclass(frozen=True)
class Measured:
    """One quantization beside the file it was made from."""

    recipe: Recipe
    size_bytes: int
    pass_ratio: float
    """A pass over one token, as a draft runs them, against the file's own in the same rounds."""
    prefill_ratio: float
    """The same for a pass over a part of a prompt."""
    agreement: float
    """The share of the file's own text, token by token, that it guesses as the file does."""
    by_kind: dict[str, float]

    @property
    def speedup(self) -> float:
        """How much faster its passes are than the file's own."""
        return 1.0 / self.pass_ratio


@dataclass(frozen=True)
class QuantSearch:
    """What was measured, the chosen one and then the quickest first, and what is to be used."""

    source_pass_s: float
    measured: tuple[Measured, ...]
    chosen: Recipe | None
    """`None` where nothing that agrees enough is faster than the file as it is."""
    made: Path | None
    """The chosen one's file, in the scratch folder."""
    least_agreement: float
    complete: bool


def find_fastest(
    source: Source,
    context: Context,
    samples: Sequence[Sample],
    folder: Path,
    *,
    threads: int,
    gpu_layers: int = -1,
    candidates: Sequence[Recipe] = CANDIDATES,
    least_agreement: float = LEAST_AGREEMENT,
    on_candidate: Callable[[Recipe, int], None] = lambda _recipe, _number: None,
    check: Callable[[], None] = lambda: None,
) -> QuantSearch:
    """Quantize, measure beside the source and compare guesses, candidate by candidate.

    Of the files that were made the chosen one stays.

    Args:
        source: What is quantized.
        context: The source itself, loaded.
        samples: What the source wrote.
        folder: Where the candidates are written.
        threads: For quantizing and for passes.
        gpu_layers: As for loading.
        candidates: What to try.
        least_agreement: What a candidate has to agree to be chosen.
        on_candidate: Told what is tried next, and its place among the candidates.
        check: Called wherever stopping is possible; where it raises `Stopped`, the search ends with the best
            of what was measured.

    Raises:
        Stopped: Nothing was measured yet.
        DeriveError: There is no room for the candidates.
        LoadError: A candidate could not be loaded.
    """
    largest = max(estimated_bytes(source, recipe) for recipe in candidates)
    refuse_for_want_of_room(folder, (FINALISTS + 1) * largest)
    seen = {_kinds(source.path)} if len(source.layout.tensors) else set[tuple[int, ...]]()
    measured: list[Measured] = []
    made: dict[Recipe, Path] = {}
    own = Timed()
    complete = False
    with contextlib.suppress(Stopped):
        for number, recipe in enumerate(candidates):
            check()
            on_candidate(recipe, number)
            path = write(source, recipe, folder, threads)
            kinds = _kinds(path)
            if kinds in seen:  # rows that do not fit a type get another, and then two are the same
                path.unlink()
                continue
            seen.add(kinds)
            made[recipe] = path
            with opened(path, threads, gpu_layers, context.size) as candidate:
                check()
                one = _measure(recipe, path, candidate, context, own, samples, check)
            measured.append(one)
            best = _best(measured, least_agreement)
            for other in [other for other in made if other not in best]:
                made.pop(other).unlink()
        finalists = _best(measured, least_agreement)
        if len(finalists) > 1:
            measured = _final(measured, finalists, made, context, own, threads, gpu_layers)
        complete = True
    if not measured:
        raise Stopped("stopped")
    measured.sort(key=lambda one: one.pass_ratio)
    chosen = next(
        (
            one.recipe
            for one in measured
            if one.recipe in made and one.agreement >= least_agreement and one.pass_ratio < _NO_GAIN
        ),
        None,
    )
    measured.sort(key=lambda one: one.recipe != chosen)  # stable: the others stay the quickest first
    return QuantSearch(
        source_pass_s=statistics.median(own.single_s),
        measured=tuple(measured),
        chosen=chosen,
        made=made[chosen] if chosen else None,
        least_agreement=least_agreement,
        complete=complete,
    )


def _measure(
    recipe: Recipe,
    path: Path,
    candidate: Context,
    source: Context,
    own: Timed,
    samples: Sequence[Sample],
    check: Callable[[], None],
) -> Measured:
    theirs, ours = Timed(), Timed()
    take_turns((source, candidate), (theirs, ours), _ROUNDS)
    own.single_s += theirs.single_s
    guessed = guesses(candidate, samples, check)
    return Measured(
        recipe=recipe,
        size_bytes=path.stat().st_size,
        pass_ratio=ratio(ours, theirs),
        prefill_ratio=statistics.median(ours.prefill_s) / statistics.median(theirs.prefill_s),
        agreement=agreement(guessed),
        by_kind=agreement_by_kind(samples, guessed),
    )


def _best(measured: Sequence[Measured], least_agreement: float) -> list[Recipe]:
    """The quickest few of those that agree enough."""
    fit = sorted(
        (one for one in measured if one.agreement >= least_agreement), key=lambda one: one.pass_ratio
    )
    return [one.recipe for one in fit[:FINALISTS]]


def _final(
    measured: Sequence[Measured],
    finalists: Sequence[Recipe],
    made: dict[Recipe, Path],
    source: Context,
    own: Timed,
    threads: int,
    gpu_layers: int,
) -> list[Measured]:
    """The same with the finalists timed anew, longer, and in the same rounds."""
    with contextlib.ExitStack() as stack:
        contexts = [
            stack.enter_context(opened(made[recipe], threads, gpu_layers, source.size))
            for recipe in finalists
        ]
        timed = [Timed() for _ in range(len(finalists) + 1)]
        take_turns((source, *contexts), timed, _FINAL_ROUNDS)
    own.single_s += timed[0].single_s
    again = {
        recipe: (
            ratio(times, timed[0]),
            statistics.median(times.prefill_s) / statistics.median(timed[0].prefill_s),
        )
        for recipe, times in zip(finalists, timed[1:], strict=True)
    }
    return [
        replace(
            one,
            pass_ratio=again[one.recipe][0],
            prefill_ratio=again[one.recipe][1],
        )
        if one.recipe in again
        else one
        for one in measured
    ]


def _kinds(path: Path) -> tuple[int, ...]:
    """The types of all tensors, by which two files of one model are the same or not."""
    return tuple(tensor.kind for tensor in sorted(read_layout(path).tensors, key=lambda tensor: tensor.name))
