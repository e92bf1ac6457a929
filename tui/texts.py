"""What the screen says in words: what is loaded, how an answer went, the help."""

from __future__ import annotations

from collections.abc import Mapping

from textual.content import Content

from ..app.decoding.stats import AnswerStats, FinishReason
from ..app.events import Loaded, ModelInfo, PrefillProgress
from . import figures
from .transcript.entries import ORIGIN_STYLES
from .transcript.ink import printable

RESTART = "Ctrl+R starts it again, and so does sending a prompt. The conversation is kept."
NOT_KEPT = "the prompt is not kept in the conversation"
AS_BEFORE = "Nothing came of it: the conversation is as it was before."
ANSWERING = "answering, Esc stops"
RESTING = {
    "loading": "loading",
    "ready": "ready",
    "answering": ANSWERING,
    "stopping": "stopping",
    "unloaded": "not loaded, Ctrl+R tries again",
    "dead": "engine gone, Ctrl+R restarts",
}
"""What goes on, by the phase of the engine."""
EDITING = "changing an earlier prompt, Esc leaves it as it was"
WAITS = "waits for the models; Esc takes it back"
RETRY = "Ctrl+R tries again, F4 chooses another model, Ctrl+Q leaves."
MARKS: dict[FinishReason, str] = {
    "stop": "",
    "length": "the longest answer that was asked for",
    "context": "the context is full: /new begins a new conversation",
    "cancelled": "stopped",
}
_FAINT = "$text-muted"


def mark(kept: str) -> str:
    """What is to be said of an answer that was kept with this mark."""
    return {"length": MARKS["length"], "context": MARKS["context"]}.get(kept, kept)


def nearly_full(used: int, size: int) -> str:
    """What a context that has little room left means."""
    return (
        f"The context is {100 * used / size:.0f} % full ({used:,} of {size:,} tokens). "
        "Soon the oldest turns are no longer sent; /new begins a new conversation."
    )


def recorded_figures(record: Mapping[str, object]) -> str:
    """The figures that an answer was kept with."""
    stats = record.get("stats")
    return answer_figures(AnswerStats(**stats)) if isinstance(stats, dict) else ""


def welcome(first: str | None) -> Content:
    """What there is to do without a model."""
    lines = [Content("No model was named.").stylize("bold $text")]
    if first:
        lines.append(
            Content.assemble("Type and press Enter: ", (printable(first), "bold $text"), " answers.")
        )
    lines.append(
        Content.assemble(
            ("F4", "bold $text-primary"),
            " chooses among the models on this disk, and those that can be downloaded. ",
            ("F1", "bold $text-primary"),
            " lists everything else.",
        )
    )
    return Content("\n").join(lines)


def loaded_summary(loaded: Loaded) -> Content:
    """What is loaded, and what fits less than well."""
    lines = [_model("target", loaded.target)]
    if loaded.draft is not None:
        lines.append(_model("draft", loaded.draft))
    else:
        lines.append(Content.assemble(("draft   ", _FAINT), "none"))
    devices = ", ".join(loaded.devices) or "CPU"
    threads = f"{loaded.threads} thread{'s' * (loaded.threads != 1)}"
    machine = f"{figures.count(loaded.context_size)} tokens · {threads} · {devices}"
    lines.append(Content.assemble(("context ", _FAINT), printable(machine)))
    lines += [
        Content.assemble(("! ", "bold $text-warning"), printable(warning)) for warning in loaded.warnings
    ]
    return Content("\n").join(lines)


def _model(role: str, model: ModelInfo) -> Content:
    facts = (
        f" · {model.quantization} · {figures.size(model.size_bytes)}"
        f" · {figures.parameters(model.parameters)} parameters"
    )
    return Content.assemble((f"{role:<8}", _FAINT), (printable(model.name), "bold"), printable(facts))


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


def help_lines(keys: Mapping[str, str]) -> list[tuple[Content, Content]]:
    """All commands and keys, from the registry, each with what it does; `keys` are those the user has set.

    A line that explains nothing beside it has an empty second part.
    """
    from .registry import COMMANDS, KEYS

    lines: list[tuple[Content, Content]] = []

    def heading(text: str) -> None:
        lines.append((Content(text).stylize("bold $text-primary"), Content("")))

    def line(left: str, right: str) -> None:
        lines.append((Content(f"  {left}  ").stylize("$text"), Content(right).stylize(_FAINT)))

    for group in dict.fromkeys(command.group for command in COMMANDS):
        heading(group)
        for command in COMMANDS:
            if command.group == group:
                shown = keys.get(command.name, command.shown)
                line(command.usage, command.help + (f" ({shown})" if shown else ""))
        heading("")
    line("//…", "send a text that starts with a slash")
    line("@path", "in a prompt: the text file goes along")
    heading("")
    heading("Keys")
    for key in KEYS:
        line(keys.get(key.name, key.shown), f"{key.help} [{key.name}]")
    heading("")
    last = "The words in brackets name an action in [keys] of the settings file."
    lines.append((Content(last).stylize(_FAINT), Content("")))
    return lines


def without_text(reason: FinishReason) -> str:
    """How an answer ended in which nothing was said."""
    return f"{MARKS[reason] or 'an empty answer'}; {NOT_KEPT}"
