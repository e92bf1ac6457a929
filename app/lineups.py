"""Which drafts may serve which targets, by their headers, and how each is called."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from ..models.errors import PairError
from ..models.gguf_file import GgufHeader, read_header
from ..models.gguf_layout import shown
from ..models.locate import locate_model
from ..models.pair import judge
from .contenders import Candidate


@dataclass(frozen=True)
class Lineup:
    """A target and the drafts that may serve it."""

    target: GgufHeader
    name: str
    candidates: tuple[Candidate, ...]


def line_up(targets: Sequence[str], drafts: Sequence[str], left_out: Callable[[str], None]) -> list[Lineup]:
    """Targets and the drafts that may serve each; `left_out` is told who may not, and why.

    Raises:
        ModelFileError: a file is no usable model.
        PairError: drafts were given, and none can serve any target.
    """
    target_headers, draft_headers = _headers(targets), _headers(drafts)
    target_names, draft_names = _names(target_headers), _names(draft_headers)
    lineups: list[Lineup] = []
    reasons: list[str] = []
    for target, name in zip(target_headers, target_names, strict=True):
        candidates: list[Candidate] = []
        for draft, draft_name in zip(draft_headers, draft_names, strict=True):
            verdict = judge(target, draft)
            if verdict.usable:
                candidates.append(Candidate(draft, draft_name, verdict))
                continue
            files = shown(Path(draft.path.name)), shown(Path(target.path.name))
            reasons.append(f"{files[0]} cannot draft for {files[1]}: {' '.join(verdict.reasons[:2])}")
        lineups.append(Lineup(target, name, tuple(candidates)))
    if drafts and not any(lineup.candidates for lineup in lineups):
        raise PairError(f"none of the drafts can be used; {reasons[-1]}")
    for reason in reasons:
        left_out(reason)
    return lineups


def _headers(names: Sequence[str]) -> list[GgufHeader]:
    """The headers of these files, each once."""
    paths = dict.fromkeys(locate_model(name) for name in names)
    return [read_header(path) for path in paths]


def _names(headers: Sequence[GgufHeader]) -> list[str]:
    """What each is called: by size and quantization where that tells them apart, else by its file."""
    short = [f"{_parameters(header.parameters)} {header.quantization}" for header in headers]
    stems = [shown(Path(header.path.stem)) for header in headers]
    names = [name if short.count(name) == 1 else stem for name, stem in zip(short, stems, strict=True)]
    return [
        name if names.count(name) == 1 else f"{name} ({names[:index].count(name) + 1})"
        for index, name in enumerate(names)
    ]


def _parameters(count: int) -> str:
    return f"{count / 1e9:.1f}B" if count >= 950_000_000 else f"{max(count / 1e6, 0.1):.3g}M"
