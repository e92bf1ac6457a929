"""What the screen says in words: what is loaded, how an answer went, the help."""

from __future__ import annotations

from textual.content import Content

from ..app.decoding.stats import AnswerStats, FinishReason
from ..app.events import Loaded, ModelInfo, PrefillProgress
from . import figures
from .actions import COMMANDS, KEYS
from .transcript.entries import ORIGIN_STYLES

RESTART = "Ctrl+R starts it again, and so does sending a prompt. The conversation is kept."
RETRY = "Ctrl+R tries again, Ctrl+Q leaves."
MARKS: dict[FinishReason, str] = {
    "stop": "",
    "length": "the longest answer that was asked for",
    "context": "the context is full: /clear begins a new conversation",
    "cancelled": "stopped",
}
_FAINT = "$text-muted"


def loaded_summary(loaded: Loaded) -> Content:
    """What is loaded, and what fits less than well."""
    lines = [_model("target", loaded.target)]
    if loaded.draft is not None:
        lines.append(_model("draft", loaded.draft))
    else:
        lines.append(Content.assemble(("draft   ", _FAINT), "none"))
    devices = ", ".join(loaded.devices) or "CPU"
    machine = f"{figures.count(loaded.context_size)} tokens · {loaded.threads} threads · {devices}"
    lines.append(Content.assemble(("context ", _FAINT), machine))
    lines += [Content.assemble(("! ", "bold $text-warning"), warning) for warning in loaded.warnings]
    return Content("\n").join(lines)


def _model(role: str, model: ModelInfo) -> Content:
    facts = (
        f" · {model.quantization} · {figures.size(model.size_bytes)}"
        f" · {figures.parameters(model.parameters)} parameters"
    )
    return Content.assemble((f"{role:<8}", _FAINT), (model.name, "bold"), facts)


def prefill(event: PrefillProgress) -> str:
    """How far the prompt has been read."""
    who = "" if event.role == "target" else " for the draft"
    kept = f" ({figures.count(event.reused)} kept)" if event.reused else ""
    return f"reading the prompt{who}, {event.done} of {event.total}{kept}, Esc stops"


def answer_figures(stats: AnswerStats) -> str:
    """An answer's figures on one line, without those that were not measured."""
    if not stats.completion_tokens:
        return ""
    parts = [f"{figures.count(stats.completion_tokens)} tokens"]
    if stats.tokens_per_second is not None:
        parts.append(f"{figures.rate(stats.tokens_per_second)} tok/s")
    if stats.acceptance_rate is not None:
        parts.append(f"{figures.percent(stats.acceptance_rate)} accepted")
    if stats.speedup is not None:
        parts.append(figures.times(stats.speedup))
    return " · ".join(parts)


def origin_legend() -> Content:
    """What the styles of the origin view mean."""
    return Content.assemble(
        ("origin  ", _FAINT),
        ("accepted from the draft", ORIGIN_STYLES["accepted"]),
        "  ",
        ("corrected by the target", ORIGIN_STYLES["correction"]),
        "  ",
        ("the target's own", ORIGIN_STYLES["target"]),
    )


def help_text() -> Content:
    """All commands and keys, from the registry."""
    widest = max(len(command.usage) for command in COMMANDS) + 3
    parts: list[str | tuple[str, str]] = [("Commands\n", "bold $text-primary")]
    for command in COMMANDS:
        parts += [(f"  {command.usage:<{widest}}", "$text"), (command.help + "\n", _FAINT)]
    parts += [(f"  {'//…':<{widest}}", "$text"), ("send a text that starts with a slash\n", _FAINT)]
    parts.append(("\nKeys\n", "bold $text-primary"))
    for key in KEYS:
        parts += [(f"  {key.shown:<{widest}}", "$text"), (key.help + "\n", _FAINT)]
    return Content.assemble(*parts).rstrip()
