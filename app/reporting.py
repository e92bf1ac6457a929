"""An answer's figures in words and as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from .events import Finished
from .loading import LoadedModel, Pair
from .requests import AnswerOptions


def answer_json(
    finished: Finished, pair: Pair, options: AnswerOptions, warnings: Sequence[str]
) -> dict[str, Any]:
    """The object that `run --json` prints; a figure that was not measured is None."""
    stats = finished.stats
    return {
        "text": finished.text,
        "token_ids": list(finished.token_ids),
        "finish_reason": finished.reason,
        "prompt_tokens": finished.prompt_tokens,
        "completion_tokens": stats.completion_tokens,
        "stats": {
            "ttft_s": stats.ttft_s,
            "tokens_per_second": stats.tokens_per_second,
            "target_passes": stats.target_passes,
            "plain_passes": stats.plain_passes,
            "drafted": stats.drafted,
            "accepted": stats.accepted,
            "acceptance_rate": stats.acceptance_rate,
            "accepted_by_position": list(stats.accepted_by_position),
            "tested_by_position": list(stats.tested_by_position),
            "tokens_per_pass": stats.tokens_per_pass,
            "target_s": stats.target_s,
            "draft_s": stats.draft_s,
            "overhead_s": stats.overhead_s,
            "baseline_tokens_per_second": stats.baseline_tokens_per_second,
            "speedup": stats.speedup,
            "state": stats.state,
            "reason": stats.reason,
        },
        "pair": {
            "target": _model_json(pair.target),
            "draft": _model_json(pair.draft) if pair.draft else None,
            "verdict": pair.verdict.kind if pair.verdict else None,
            "warnings": list(warnings),
        },
        "settings": {
            **asdict(options.sampling),
            **asdict(options.drafting),
            "max_tokens": options.max_tokens,
            "ctx_size": pair.target.context.size,
            "threads": pair.threads,
            "devices": list(pair.devices),
            "flash_attn": pair.options.flash_attn,
            "cache_type_k": pair.options.cache_type_k,
            "cache_type_v": pair.options.cache_type_v,
        },
    }


def _model_json(loaded: LoadedModel) -> dict[str, Any]:
    return asdict(loaded.info())


def figures(finished: Finished) -> str:
    """The figures in one or two lines."""
    stats = finished.stats
    parts = [f"{stats.completion_tokens} tokens"]
    if stats.tokens_per_second is not None:
        parts.append(f"{stats.tokens_per_second:.1f} tokens/s")
    if stats.ttft_s is not None:
        parts.append(f"first after {stats.ttft_s:.2f} s")
    if stats.acceptance_rate is not None:
        parts.append(f"accepted {stats.accepted} of {stats.drafted} drafted ({stats.acceptance_rate:.0%})")
    if stats.tokens_per_pass is not None:
        parts.append(f"{stats.tokens_per_pass:.2f} tokens per pass")
    if stats.baseline_tokens_per_second is not None and stats.speedup is not None:
        parts.append(f"{stats.speedup:.2f}x the plain {stats.baseline_tokens_per_second:.1f} tokens/s")
    if finished.reason != "stop":
        parts.append(
            {
                "length": "stopped at --max-tokens",
                "context": "stopped at the end of the context",
                "cancelled": "stopped by you",
            }[finished.reason]
        )
    return f"[{', '.join(parts)}]\n[{stats.state}: {stats.reason}]"
