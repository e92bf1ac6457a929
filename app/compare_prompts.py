"""What contenders are asked: prompts of five kinds that are built in, or the user's own from a file."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

from ..models.errors import SpecchatError
from ..models.gguf_layout import shown
from ..models.text import printable
from .bounded_files import read_bounded

Prompts = Mapping[str, Sequence[str]]
"""Prompts by their kind."""

_OWN = "yours"
"""The kind of prompts from a file that names none."""

_LONGEST_KIND = 20


class PromptsError(SpecchatError):
    """Prompts that cannot be asked."""


def built_in_prompts() -> Prompts:
    """Five kinds, from where drafting pays most to where it pays least; short, and complete in themselves."""
    return {
        "code": (
            "Write a Python function that merges two sorted lists into one, with a docstring and tests.",
            "Write a JavaScript class for a least-recently-used cache with get and set.",
            "Write a C function that reverses a singly linked list in place, and a main that shows it.",
        ),
        "json": (
            "Give a JSON array of five books, each with title, author, year, pages and a list of genres.",
            "Write a JSON schema for a customer with name, email, address, phone numbers and birthday.",
            "Give a JSON array with ten countries, each with name, capital, population and currency.",
        ),
        "edit": (
            f"Rename `people` to `persons` in this code and show all of it:\n\n```python\n{PARSER}```",
            f"Change the port of the server to 9090 and show the whole file:\n\n```toml\n{CONFIG}```",
            f"Add a column `note TEXT` at the end of the table and show all of it:\n\n```sql\n{TABLE}```",
        ),
        "explanation": (
            "Explain how a hash table works, and what happens when two keys collide.",
            "Why is the sky blue during the day and red in the evening? Explain it in two paragraphs.",
            "Explain what a database index is, when it helps, and what it costs.",
        ),
        "story": (
            "Tell a short story about a lighthouse keeper who finds a letter in a bottle.",
            "Write the beginning of a mystery that is set on a night train through the mountains.",
            "Tell a story about an old robot that learns to paint.",
        ),
    }


def read_prompts(path: Path) -> Prompts:
    """The prompts of a file: JSON lines with "kind" and "prompt", or plain texts between lines of `---`.

    Raises:
        PromptsError: there is no such file, or it holds no prompts.
    """
    try:
        text = read_bounded(path.expanduser())
    except (OSError, UnicodeDecodeError, RuntimeError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is no UTF-8 text"
        raise PromptsError(f"the prompts {shown(path)} could not be read: {reason}") from None
    if text.lstrip().startswith("{"):
        found = list(_json_lines(path, text.splitlines()))
    else:
        found = [(_OWN, part.strip()) for part in re.split(r"(?m)^---[ \t]*$", text)]
    prompts: dict[str, list[str]] = {}
    for kind, prompt in found:
        if prompt:
            prompts.setdefault(kind, []).append(prompt)
    if not prompts:
        raise PromptsError(f"{shown(path)} holds no prompts: write some, with lines of --- between them")
    return prompts


def chosen(prompts: Prompts, kinds: Sequence[str] | None) -> Prompts:
    """The prompts of these kinds, in their order; all where none are named.

    Raises:
        PromptsError: there is no such kind.
    """
    if not kinds:
        return prompts
    for kind in kinds:
        if kind not in prompts:
            raise PromptsError(f"there are no prompts of the kind {kind!a}; there are {', '.join(prompts)}")
    return {kind: prompts[kind] for kind in kinds}


def _json_lines(path: Path, lines: Iterable[str]) -> Iterable[tuple[str, str]]:
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            told: Any = json.loads(line)
        except (ValueError, RecursionError):
            told = None
        said = cast("dict[str, Any]", told) if isinstance(told, dict) else {}
        kind, prompt = said.get("kind", _OWN), said.get("prompt")
        if not isinstance(kind, str) or not isinstance(prompt, str):
            raise PromptsError(
                f'{shown(path)}, line {number}: each line is an object with "kind" and "prompt", both texts'
            )
        kind = printable(" ".join(kind.split()))[:_LONGEST_KIND].strip()
        yield kind or _OWN, prompt.strip()


# Benchmarks ask about these texts as well: the figures they have recorded are of them as they are.

PARSER = """\
def parse_line(line):
    parts = line.strip().split(",")
    name = parts[0]
    age = int(parts[1])
    city = parts[2]
    return {"name": name, "age": age, "city": city}


def parse_file(path):
    people = []
    with open(path) as file:
        for line in file:
            people.append(parse_line(line))
    return people
"""

CONFIG = """\
[server]
host = "127.0.0.1"
port = 8080
workers = 4
timeout = 30

[database]
host = "127.0.0.1"
port = 5432
name = "shop"
user = "shop"
pool = 10

[log]
level = "info"
file = "/var/log/shop.log"
rotate = "daily"
keep = 14
"""

TABLE = """\
CREATE TABLE orders (
    id INTEGER PRIMARY KEY,
    customer_id INTEGER NOT NULL,
    created_at TEXT NOT NULL,
    shipped_at TEXT,
    status TEXT NOT NULL,
    total REAL NOT NULL
);

CREATE INDEX orders_by_customer ON orders (customer_id);
CREATE INDEX orders_by_status ON orders (status);
"""
