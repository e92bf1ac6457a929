"""Text files in a prompt: which `@path` means one, what is read of it, and how the model gets to see it."""

from __future__ import annotations

import codecs
import heapq
import itertools
import os
import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote, urlsplit

from ..models.errors import SpecchatError
from ..models.gguf_layout import shown
from ..models.text import is_plain, printable

LARGEST = 256 * 1024
"""Bytes of a file that a prompt takes where nothing else is said: more than most contexts hold."""

_MOST_ENTRIES = 10_000
"""How many entries of a folder are looked at to complete a path."""
_LONGEST_PATH = 4096
_MOST_PUNCTUATION = 8
_MOST_DAMAGE = 0.1
"""The share of a text's characters that may be none."""
_MENTION = re.compile(r"""(?:^|(?<=[\s(\[{<"'“„‘,;:]))@(?:"([^"\n]+)"|((?:\\[ ]|\S)+))""")
_AFTER_A_PATH = ".,;:!?)]}>\"'”’…"
_LANGUAGES = {
    "py": "python", "pyi": "python", "js": "javascript", "mjs": "javascript", "ts": "typescript",
    "rs": "rust", "rb": "ruby", "h": "c", "hpp": "cpp", "cc": "cpp", "cs": "csharp", "kt": "kotlin",
    "sh": "bash", "zsh": "bash", "ps1": "powershell", "md": "markdown", "yml": "yaml", "htm": "html",
    "tex": "latex", "pl": "perl", "hs": "haskell", "jl": "julia", "ex": "elixir", "tf": "hcl",
    "txt": "", "text": "", "log": "",
}  # fmt: skip


class AttachmentError(SpecchatError):
    """A file that cannot be part of a prompt."""


@dataclass(frozen=True)
class Attachment:
    """A text file that was read."""

    name: str
    text: str
    size: int
    """Bytes of the file."""
    language: str
    """What a code block of it is called; empty for plain text."""


@dataclass(frozen=True)
class Mention:
    """An `@path` in a prompt that is an existing file."""

    start: int
    end: int
    name: str
    """The path as it was written."""
    path: Path


@dataclass(frozen=True)
class Expanded:
    """A prompt as the model reads it."""

    text: str
    attachments: tuple[Attachment, ...]
    problems: tuple[str, ...]
    """Why a file that was mentioned is not in it, one line each."""


def attach(path: Path, limit_bytes: int = LARGEST, name: str | None = None) -> Attachment:
    """Read a text file.

    Args:
        path: The file.
        limit_bytes: The largest that is taken.
        name: What it is called in the prompt; its last part where nothing is said.

    Raises:
        AttachmentError: it is missing, no file, not readable, too large, or no text.
    """
    try:
        if path.is_dir():
            raise AttachmentError(f"{shown(path)} is a folder: name a file in it")
        if path.exists() and not path.is_file():
            raise AttachmentError(f"{shown(path)} is no ordinary file: only text files can be attached")
        with path.open("rb") as file:
            data = file.read(limit_bytes + 1)
            size = max(os.fstat(file.fileno()).st_size, len(data))
    except FileNotFoundError:
        raise AttachmentError(f"there is no file {shown(path)}: check the path") from None
    except PermissionError:
        raise AttachmentError(f"{shown(path)} may not be read: check its permissions") from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "no possible path"
        raise AttachmentError(f"{shown(path)} cannot be read ({reason}): check the path") from None
    if len(data) > limit_bytes:
        raise AttachmentError(
            f"{shown(path)} is {size:,} bytes, and a prompt takes files of up to {limit_bytes:,}: "
            "attach a part of it"
        )
    return Attachment(_one_line(name or path.name), _decoded(data, path), size, _language(path))


def mentions(text: str, folder: Path) -> list[Mention]:
    """The words of a prompt that mean a file: `@notes.md`, `@~/a.py`, `@"with spaces.txt"`.

    Only what exists counts, so an address or a decorator is what it was.

    Args:
        text: The prompt.
        folder: What relative paths are relative to.
    """
    found: list[Mention] = []
    for match in _MENTION.finditer(text):
        for name, end in _readings(match):
            path = _located(name, folder)
            if path is not None:
                found.append(Mention(match.start(), end, name, path))
                break
    return found


def expand(text: str, folder: Path, limit_bytes: int = LARGEST) -> Expanded:
    """A prompt with each file that it mentions after it, in a code block that the file cannot end."""
    attached: dict[Path, Attachment] = {}
    problems: dict[Path, str] = {}
    for mention in mentions(text, folder):
        if mention.path in attached or mention.path in problems:
            continue
        try:
            attached[mention.path] = attach(mention.path, limit_bytes, mention.name)
        except AttachmentError as error:
            problems[mention.path] = str(error)
    files = tuple(attached.values())
    whole = "\n\n".join([text, *map(as_block, files)])
    return Expanded(whole, files, tuple(problems.values()))


def as_block(attachment: Attachment) -> str:
    """A file as the model reads it: its name, and a code block longer than any fence inside it."""
    longest = max(map(len, re.findall("`+", attachment.text)), default=0)
    fence = "`" * max(3, longest + 1)
    end = "" if attachment.text.endswith("\n") or not attachment.text else "\n"
    return f"{attachment.name}:\n{fence}{attachment.language}\n{attachment.text}{end}{fence}"


def as_mention(path: str) -> str:
    """How a path is written in a prompt so that it is found there."""
    return f'@"{path}"' if re.search(r"\s", path) else f"@{path}"


def pasted_path(text: str) -> Path | None:
    """The existing file that a paste is the path of, as terminals paste what is dropped on them.

    They give whole paths: quoted, with escaped spaces, as they are, or as a file:// address.
    """
    text = text.strip()
    if not text or len(text) > 3 * _LONGEST_PATH or "\n" in text:
        return None
    names = [text, _unquoted(text), _from_address(text)]
    paths = (_located(name, Path("/")) for name in names if name.startswith(("/", "~/")))
    return next((path for path in paths if path is not None), None)


def complete_path(prefix: str, folder: Path, limit: int = 50) -> list[str]:
    """What `@prefix` may become: files, and folders with a slash; hidden ones where a dot asks for them.

    Args:
        prefix: What stands after the `@` so far.
        folder: What relative paths are relative to.
        limit: The most that are given.
    """
    head, slash, begun = prefix.rpartition("/")
    head += slash
    try:
        with os.scandir(folder / Path(head).expanduser()) as entries:
            wanted = (
                entry
                for entry in itertools.islice(entries, _MOST_ENTRIES)
                if entry.name.casefold().startswith(begun.casefold())
                and is_plain(entry.name)
                and (begun.startswith(".") or not entry.name.startswith("."))
            )
            first = heapq.nsmallest(limit, wanted, key=lambda entry: (entry.name.casefold(), entry.name))
            return [head + entry.name + "/" * _is_folder(entry) for entry in first]
    except (OSError, ValueError, RuntimeError):  # no such folder, no possible path, no such home
        return []


def _readings(match: re.Match[str]) -> Iterator[tuple[str, int]]:
    """The paths that a mention may mean, and where each ends: a full stop may be the sentence's."""
    if match[1] is not None:
        yield match[1], match.end()
        return
    word = match[2]
    for _ in range(_MOST_PUNCTUATION):
        end = match.start(2) + len(word)
        yield word, end
        if "\\ " in word:
            yield word.replace("\\ ", " "), end
        if len(word) == 1 or word[-1] not in _AFTER_A_PATH:
            return
        word = word[:-1]


def _located(name: str, folder: Path) -> Path | None:
    """The existing file of this name."""
    try:
        path = folder / Path(name).expanduser()
        return path if path.is_file() else None
    except (OSError, ValueError, RuntimeError):  # too long, no possible path, no such home
        return None


def _unquoted(text: str) -> str:
    """The one word that a shell would read; empty where it would read several."""
    try:
        words = shlex.split(text)
    except ValueError:  # an open quote
        return ""
    return words[0] if len(words) == 1 else ""


def _from_address(text: str) -> str:
    """The path of a file:// address; empty for anything else."""
    try:
        address = urlsplit(text)
    except ValueError:
        return ""
    local = address.scheme == "file" and address.netloc in ("", "localhost")
    return unquote(address.path) if local else ""


def _is_folder(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError:
        return False


def _decoded(data: bytes, path: Path) -> str:
    """The text of a file; a character in ten may be damaged, but a file of other bytes is none."""
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        text = data.decode("utf-16", "replace")
    else:
        text = data.decode("utf-8-sig", "replace")
    odd = sum(1 for c in text if c == "\ufffd" or (ord(c) < 32 and c not in "\t\n\r\f\x1b"))
    if "\0" in text or odd > _MOST_DAMAGE * len(text):
        raise AttachmentError(f"{shown(path)} is no text: only text files can be attached")
    return text


def _language(path: Path) -> str:
    suffix = path.suffix[1:].lower()
    return _LANGUAGES.get(suffix, suffix if suffix.isascii() and suffix.isalnum() else "")


def _one_line(name: str) -> str:
    return "".join(c if c.isprintable() else "\ufffd" for c in printable(name))
