"""What `specchat derive` measured, as tables, sentences and JSON."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..models.derived import layers_in_words, ranges
from .deriving import Derived, Source
from .quant_search import Measured, QuantSearch
from .self_drafts import LayerSearch, Rated


def quant_table(found: QuantSearch, source: Source) -> list[str]:
    """A line for the file as it is and one for each quantization, the chosen one first."""
    return [
        f"{'quantization':<22} {'size':>9} {'a pass':>10} {'speed':>7} {'prefill':>8} {'agreement':>10}",
        f"{'as it is':<22} {_megabytes(source.header.size_bytes):>9} "
        f"{found.source_pass_s * 1000:>7.1f} ms {'1.00x':>7} {'1.00x':>8} {'':>10}",
        *(_quant_row(one, found.source_pass_s) for one in found.measured),
    ]


def quant_sentence(found: QuantSearch, source: Source) -> str:
    """Which one is to be used, and what that costs."""
    stopped = "" if found.complete else " (stopped before all were measured)"
    if found.chosen is None:
        return (
            f"Nothing that guesses {found.least_agreement:.0%} of its tokens or more has quicker passes here "
            f"than {source.header.quantization}: the file is used as it is{stopped}."
        )
    chosen = next(one for one in found.measured if one.recipe == found.chosen)
    return (
        f"{chosen.recipe} is quickest here: {chosen.speedup:.2f}x as fast per pass as the file as it is, and "
        f"it guesses {chosen.agreement:.0%} of that one's tokens ({_kinds(chosen.by_kind)}){stopped}."
    )


def larger_sentence(source: Source) -> str:
    """That a draft got larger than what it was made from."""
    return (
        f"It is larger than what it was made from, {_megabytes(source.header.size_bytes)}: a pass over it "
        "reads more, and what the source has lost does not come back."
    )


def trial_row(rated: Rated) -> str:
    """A line for a set of layers that was tried."""
    return (
        f"  {ranges(rated.skipped):<24} guesses {rated.agreement:>4.0%} ({_kinds(rated.by_kind)}), "
        f"a pass costs {rated.pass_cost:.2f}, expected {rated.expected.speedup:.2f}x "
        f"with drafts of {rated.expected.length}"
    )


def layers_sentence(found: LayerSearch) -> str:
    """What the best of them gives, also where it does not pay."""
    chosen, best = found.chosen, found.chosen.expected
    target = found.target_s
    said = (
        f"Best of {len(found.rated)} tried: without {layers_in_words(chosen.skipped)} it guesses "
        f"{chosen.agreement:.0%} of the model's own tokens; at its best length, {best.length}, that is "
        f"{best.tokens_per_pass:.2f} tokens per pass, {best.acceptance:.0%} accepted, and an expected "
        f"{best.speedup:.2f}x of plain decoding"
    )
    if best.speedup > 1.0:
        return f"{said}."
    return (
        f"{said}: drafting with it does not pay on this machine, where a pass over {best.length + 1} tokens "
        f"costs {target[best.length + 1] / target[1]:.2f} passes over one and a draft pass "
        f"{chosen.pass_cost:.2f}."
    )


def as_json(
    source: Source, derived: Derived | None, quants: QuantSearch | None, layers: LayerSearch | None
) -> dict[str, Any]:
    """All of it; what was not made or measured is null."""
    return {
        "path": str(derived.path) if derived else None,
        "recipe": str(derived.recipe) if derived else None,
        "reused": derived.reused if derived else None,
        "size_bytes": derived.size_bytes if derived else None,
        "source": {
            "path": str(source.path),
            "size_bytes": source.header.size_bytes,
            "sha256": source.sha256,
            "layers": source.header.block_count,
        },
        "quantizations": _quants(quants) if quants else None,
        "layers": _layers(layers) if layers else None,
    }


def _quants(found: QuantSearch) -> dict[str, Any]:
    return {
        "chosen": str(found.chosen) if found.chosen else None,
        "least_agreement": found.least_agreement,
        "complete": found.complete,
        "pass_s": found.source_pass_s,
        "measured": [
            {
                "recipe": str(one.recipe),
                "size_bytes": one.size_bytes,
                "pass_s": one.pass_ratio * found.source_pass_s,
                "speedup": one.speedup,
                "prefill_speedup": 1.0 / one.prefill_ratio,
                "agreement": one.agreement,
                "agreement_by_kind": one.by_kind,
            }
            for one in found.measured
        ],
    }


def _layers(found: LayerSearch) -> dict[str, Any]:
    return {
        "target_s": list(found.target_s),
        "tried": [
            {
                "skipped": list(one.skipped),
                "agreement": one.agreement,
                "agreement_by_kind": one.by_kind,
                "pass_cost": one.pass_cost,
                "expected_speedup": one.expected.speedup,
                "draft_length": one.expected.length,
                "acceptance_rate": one.expected.acceptance,
                "tokens_per_pass": one.expected.tokens_per_pass,
            }
            for one in found.rated
        ],
    }


def _quant_row(one: Measured, source_pass_s: float) -> str:
    pass_ms = one.pass_ratio * source_pass_s * 1000
    return (
        f"{one.recipe!s:<22} {_megabytes(one.size_bytes):>9} {pass_ms:>7.1f} ms "
        f"{one.speedup:>6.2f}x {1 / one.prefill_ratio:>7.2f}x {one.agreement:>10.0%}"
    )


def _kinds(by_kind: Mapping[str, float]) -> str:
    return ", ".join(f"{kind} {share:.0%}" for kind, share in by_kind.items())


def _megabytes(size: int) -> str:
    return f"{size / 1e6:,.0f} MB"
