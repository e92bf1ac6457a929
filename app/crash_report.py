"""A report of what should not have happened: a file that the user may send, without what was said."""

from __future__ import annotations

import contextlib
import json
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import datetime
from pathlib import Path
from traceback import TracebackException

import platformdirs

from ..models.text import printable
from .private_files import make_folder, open_new
from .requests import AnswerOptions, LoadOptions
from .sharing import versions, without_home

_MOST_REPORTS = 20
_LONGEST_LINE = 2000
_RUN = 12
"""Characters in a row that a line and what was said have in common only if the one repeats the other."""
_LEFT_OUT = "(left out: it repeats what was said)"
_QUOTED = re.compile(r"""(['"])(.{2,}?)\1""")


@dataclass(frozen=True)
class Crash:
    """What happened, and what may explain it."""

    where: str
    """The part of the program, for a person: "the screen", "specchat run"."""
    traceback: Sequence[str] = ()
    """Lines, the error itself in the last one."""
    log: Sequence[str] = ()
    """The last lines of llama.cpp's log."""
    settings: Mapping[str, object] = field(default_factory=dict[str, object])
    said: Sequence[str] = ()
    """Prompts, answers and whatever else belongs to the user alone."""


def default_folder() -> Path:
    """Where reports are kept: a folder of the platform's for what a program leaves behind."""
    return platformdirs.user_state_path("specchat") / "crashes"


def traceback_lines(error: BaseException) -> list[str]:
    """Where an error came from, without the values of any variable."""
    text = "".join(TracebackException.from_exception(error, capture_locals=False).format())
    return text.splitlines()


def settings_of(load: LoadOptions | None, answer: AnswerOptions) -> dict[str, object]:
    """The settings that a report shows; a template is text of the user's own, and only named."""
    loading = asdict(load) if load is not None else {}
    if loading.get("chat_template"):
        loading["chat_template"] = "(the user's own)"
    return {"load": loading, "answer": asdict(answer)}


def write_report(
    crash: Crash,
    folder: Path,
    *,
    whole: bool = False,
    now: Callable[[], datetime] = datetime.now,
) -> Path | None:
    """Keep a report, readable by its owner alone; only the newest are kept. `None`: it could not be written.

    Args:
        crash: What happened.
        folder: Where reports are; it is made if need be.
        whole: Whether what was said stays in it, which the user has to ask for.
        now: The time.
    """
    at = now()
    text = "\n".join(_lines(crash, at, whole)) + "\n"
    with contextlib.suppress(OSError):
        make_folder(folder)
        path = _new_file(folder, f"crash-{at:%Y%m%d-%H%M%S-%f}", text)
        for old in sorted(folder.glob("crash-*.txt"))[:-_MOST_REPORTS]:
            if old != path:
                old.unlink(missing_ok=True)
        return path
    return None


def where_it_is(path: Path | None, *, whole: bool = False) -> str:
    """The rest of a line about what happened: where the report is, and what is in it."""
    if path is None:
        return "no report of it could be written"
    content = "with what was said, as --debug asks" if whole else "without what was said"
    return f"a report that you may send is in {printable(without_home(str(path)))} ({content})"


def unexpected(error: Exception, command: str, *, debug: bool, said: Sequence[str] = ()) -> str:
    """Write a report of an error that ended a command; returns what happened, in one line.

    Too little memory is no error to report, and leaves none to report it with.

    Args:
        error: The error.
        command: As it is called: "specchat run".
        debug: Whether what was said stays in the report.
        said: Prompts and answers.
    """
    if isinstance(error, MemoryError):
        return "no memory is left; free some, or raise the limit that is set on it (ulimit -v, a container's)"
    crash = Crash(command, traceback_lines(error), said=said)
    path = write_report(crash, default_folder(), whole=debug)
    told = " ".join(printable(repr(error)).split())
    return f"{told}; {where_it_is(path, whole=debug)}; --debug shows where"


def _lines(crash: Crash, at: datetime, whole: bool) -> Iterator[str]:
    yield f"specchat: something went wrong in {crash.where}, {at:%Y-%m-%d %H:%M:%S}"
    if whole:
        yield "What was said is in this report, since --debug was given. Read it before you send it."
    else:
        yield "Prompts and answers are left out. Read it before you send it all the same."
    yield from ("", "versions")
    for name, version in versions().items():
        yield f"  {name:{18}}{version or '-'}"
    yield from ("", "settings")
    for line in json.dumps(crash.settings, indent=2, ensure_ascii=False, default=str).splitlines():
        yield f"  {without_home(line)}"
    for title, lines in (("traceback", crash.traceback), ("the last lines of the log", crash.log)):
        yield from ("", title)
        for line in lines or ("-",):
            told = printable(line[:_LONGEST_LINE])
            if not whole:
                told = _LEFT_OUT if _repeats(told, crash.said) else _without_values(told)
            yield f"  {without_home(told)}"
    if whole:
        yield from ("", "what was said")
        for text in crash.said:
            yield from (f"  {printable(line)}" for line in text.splitlines())
            yield ""


def _repeats(line: str, said: Sequence[str]) -> bool:
    """Whether the line holds something of these texts, as they are or as Python writes them."""
    in_code = line.startswith(" ")
    quoted = [] if in_code else [piece for _, piece in _QUOTED.findall(line)]
    for text in (part for whole in said for part in {whole, *whole.splitlines()}):
        for written in {text, repr(text)[1:-1], ascii(text)[1:-1], printable(text)}:
            short = written.strip()
            if not short:
                continue
            if len(short) < _RUN and re.search(rf"(?<!\w){re.escape(short)}(?!\w)", line):
                return True
            if any(line[at : at + _RUN] in written for at in range(len(line) - _RUN + 1)):
                return True
            if any(piece in written for piece in quoted):
                return True
    return False


def _without_values(line: str) -> str:
    """The line of an error without the texts that it quotes, unless they are names of the program's."""
    if line.startswith(" "):
        return line  # a file, or a line of its code
    return _QUOTED.sub(lambda found: found[0] if found[2].isidentifier() else f"{found[1]}…{found[1]}", line)


def _new_file(folder: Path, name: str, text: str) -> Path:
    """Write a file that is new, for its owner alone."""
    for number in range(1, 1000):
        path = folder / f"{name}-{number}.txt"
        with contextlib.suppress(FileExistsError):
            with os.fdopen(open_new(path), "w", encoding="utf-8", errors="backslashreplace") as file:
                file.write(text)
            return path
    raise FileExistsError(name)
