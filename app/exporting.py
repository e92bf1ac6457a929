"""A conversation written out: Markdown for a person, JSON for a program, and a name for the file.

The JSON is one object:

    {"format": 1, "title", "updated", "pair", "system", "head", "messages": [
        {"id", "parent", "role": "user"|"assistant", "text", "token_ids", "mark", "created", "record"}, ...]}

Times are in UTC, ISO 8601. `parent` is the id of the message before, or null for a first one; `head` is the
last message of the branch that was in view. `mark` says why an answer is not whole ("stopped", "length",
"context", "cut off", "failed"), "" that it is. `record` holds an answer's figures, pair and settings, as far
as they were kept, under the names that `run --json` gives them. A time that no calendar has is null.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, tzinfo
from typing import cast

from .clocks import date_and_time
from .history import Conversation, Message
from .terminal import json_text

FORMAT = 1
"""Of the JSON; a field that is added does not change it."""

_LONGEST_NAME = 100
_REASONS = {
    "stopped": "it was stopped",
    "length": "it is as long as was asked for",
    "context": "the context was full",
    "cut off": "it was cut off",
    "failed": "the model failed",
}
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})(.*)")


def export_markdown(
    conversation: Conversation, messages: Sequence[Message], zone: tzinfo | None = None
) -> str:
    """The messages as a page: each under a heading, answers with their figures.

    Args:
        conversation: What the page is about.
        messages: In the order of the page.
        zone: Whose time the page tells; the machine's own if none is given.
    """
    said = date_and_time(conversation.updated, zone)
    about = (said, conversation.pair, f"{len(messages)} message{'s' * (len(messages) != 1)}")
    parts = [f"# {conversation.title or 'Conversation'}", " · ".join(filter(None, about))]
    if conversation.system:
        parts += ["## System", _closed(conversation.system)]
    for message in messages:
        parts += ["## You" if message.role == "user" else "## Answer", _closed(message.text)]
        if message.mark:
            parts.append(f"*This answer is not whole: {_REASONS.get(message.mark, message.mark)}.*")
        figures = figures_line(message.record)
        if figures:
            parts.append(f"<sub>{figures}</sub>")
    return "\n\n".join(parts) + "\n"


def export_json(conversation: Conversation, messages: Sequence[Message]) -> str:
    """All that is known of the conversation and these messages, in the format that this module describes."""
    return json_text(
        {
            "format": FORMAT,
            "title": conversation.title,
            "updated": utc(conversation.updated),
            "pair": conversation.pair,
            "system": conversation.system,
            "head": conversation.head,
            "messages": [
                {
                    "id": message.id,
                    "parent": message.parent,
                    "role": message.role,
                    "text": message.text,
                    "token_ids": list(message.token_ids),
                    "mark": message.mark,
                    "created": utc(message.created),
                    "record": dict(message.record),
                }
                for message in messages
            ],
        },
    )


def figures_line(record: Mapping[str, object]) -> str:
    """An answer's figures in a line, from its record's `stats`; what was not measured is left out."""
    stats = record.get("stats")
    figures = cast("Mapping[str, object]", stats if isinstance(stats, Mapping) else {})

    def figure(name: str) -> float | None:
        value = figures.get(name)
        return value if isinstance(value, int | float) else None

    rate, plain = figure("tokens_per_second"), figure("baseline_tokens_per_second")
    drafted, accepted = figure("drafted"), figure("accepted")
    tokens, ttft = figure("completion_tokens"), figure("ttft_s")
    parts: list[str] = []
    if tokens is not None:
        parts.append(f"{tokens:.0f} tokens")
    if rate is not None:
        parts.append(f"{rate:.1f} tokens/s")
    if ttft is not None:
        parts.append(f"first after {ttft:.2f} s")
    if drafted and accepted is not None:
        parts.append(f"accepted {accepted:.0f} of {drafted:.0f} drafted")
        if rate is not None and plain:
            parts.append(f"{rate / plain:.2f}x")
    return " · ".join(parts)


def file_name(title: str, suffix: str) -> str:
    """A name for a file that is about this title: letters, digits and hyphens, whatever the title holds."""
    kept = "".join(
        character if character.isalnum() or unicodedata.category(character)[0] == "M" else " "
        for character in unicodedata.normalize("NFC", title)
    )
    # Limits of file systems count bytes.
    name = "-".join(kept.split()).encode()[:_LONGEST_NAME].decode("utf-8", "ignore").strip("-")
    return (name or "conversation") + suffix


def _closed(text: str) -> str:
    """The text with its last code block closed: one that was cut off would swallow the rest of the page."""
    text = text.strip("\n")
    fence = ""
    for line in text.splitlines():
        found = _FENCE.match(line)
        if found and not fence and not (found[1][0] == "`" and "`" in found[2]):
            fence = found[1]
        elif found and fence and found[1].startswith(fence) and not found[2].strip():
            fence = ""
    return f"{text}\n{fence}" if fence else text


def utc(seconds: float) -> str | None:
    """Seconds since the epoch as the JSON has them; null where no calendar has them."""
    try:
        return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds")
    except (ValueError, OverflowError, OSError):
        return None
