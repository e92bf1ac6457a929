"""`specchat compare`: measures contenders, and says which to use, as a table, as JSON, and as a page."""

from __future__ import annotations

import argparse
import io
from dataclasses import asdict
from pathlib import Path
from typing import Any, cast

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.text import Text

from ..models.errors import LoadError, ModelFileError, PairError, SpecchatError, TemplateError
from ..models.gguf_layout import shown
from .compare_events import Answering, Compared, Happening, Noted, Preparing, Wanted
from .compare_prompts import PromptsError, built_in_prompts, chosen, read_prompts
from .compare_table import tables, texts
from .comparison import Comparison, Contender, Row
from .crash_report import unexpected
from .exit_codes import DONE, FAILED, INTERRUPTED, UNUSABLE
from .interrupt import Interrupt
from .log_file import LogFile
from .options import Parser
from .recommending import keep_recommendations
from .remembered import Remembered, default_path
from .requests import AnswerOptions, LoadOptions
from .terminal import log_to, one_line, show, show_json, tell_failure

_WIDTH = 80
_UNUSABLE = (ModelFileError, PairError, LoadError, TemplateError, PromptsError)


def compare_command(
    parser: Parser,
    options: argparse.Namespace,
    load: LoadOptions,
    answer: AnswerOptions,
    log_file: Path | None,
) -> int:
    """Compare what the options name; returns the exit code."""
    _check(parser, options, answer)
    report, png = (_output(parser, name) for name in (options.report, options.png))
    if log_file is not None:
        log_to(LogFile(log_file))
    remembered = Remembered(default_path())
    interrupt = Interrupt()
    asked: list[str] = []
    try:
        wanted = _wanted(options, load, answer)
        asked += [wanted.system or "", *(prompt for kind in wanted.prompts.values() for prompt in kind)]
        from .comparing import compare

        with _Progress() as progress:
            comparison = compare(wanted, progress.tell, cancelled=interrupt.came, remembered=remembered)
    except SpecchatError as error:
        return _fail(parser, str(error), UNUSABLE if isinstance(error, _UNUSABLE) else FAILED)
    except Exception as error:
        if options.debug:
            raise
        return _fail(parser, unexpected(error, parser.prog, debug=options.debug, said=asked), FAILED)
    finally:
        interrupt.restore()
    if not comparison.answers:
        return _fail(parser, _nothing(interrupt), INTERRUPTED if interrupt.came() else FAILED)
    keep_recommendations(comparison, remembered)
    if options.json:
        show_json(as_json(comparison))
    else:
        show(as_text(comparison))
    try:
        _write(comparison, report, png)
    except SpecchatError as error:
        return _fail(parser, str(error), FAILED)
    if interrupt.came():
        return INTERRUPTED
    if answer.drafting.strict and any(one.same_as_plain is False for one in comparison.answers):
        return _fail(parser, "texts differ from the plain ones, which --strict does not allow", FAILED)
    return DONE


def _check(parser: Parser, options: argparse.Namespace, answer: AnswerOptions) -> None:
    """End with exit code 2 where options do not go together."""
    drafting = answer.drafting
    if drafting.speculate == "off":
        parser.error("--speculate off leaves nothing to compare")
    if drafting.drafter == "lookup" and options.drafts:
        parser.error("--drafter lookup uses no draft: leave out --draft, or say --drafter both")
    if drafting.drafter == "model" and not options.drafts:
        parser.error("--drafter model needs drafts: -md/--draft")


def _wanted(options: argparse.Namespace, load: LoadOptions, answer: AnswerOptions) -> Wanted:
    """What the options ask for.

    Raises:
        PromptsError: the prompts cannot be read, or there are none of a kind.
    """
    prompts = read_prompts(Path(options.prompts)) if options.prompts else built_in_prompts()
    return Wanted(
        targets=tuple(options.targets),
        drafts=tuple(options.drafts or ()),
        load=load,
        options=answer,
        prompts=chosen(prompts, options.kinds),
        system=options.system,
        repeats=options.repeats,
        time_limit_s=options.time_limit,
    )


def _fail(parser: Parser, message: str, code: int) -> int:
    """Say what is wrong in one line; returns the exit code."""
    tell_failure(parser.prog, message)
    return code


def as_json(comparison: Comparison) -> dict[str, Any]:
    """The comparison as JSON can hold it, with each row's acceptance rate; what was not measured is None."""
    told = asdict(comparison)
    for row, of in zip(told["rows"], comparison.rows, strict=True):
        row["acceptance_rate"] = of.acceptance_rate
        row["name"] = comparison.contenders[of.contender].name
    return told


def as_text(comparison: Comparison) -> str:
    """The comparison for a person, in 80 columns: what to use, the tables, and whether texts are the same."""
    lines: list[RenderableType] = [Text(comparison.unrest)] if comparison.unrest else []
    for one in comparison.recommendations:
        lines += [Text(one.sentence), *(Text(f"  {other}") for other in one.others)]
    lines += [Text(), tables(comparison.contenders, comparison.rows)]
    settings = comparison.settings
    said = f"{len(comparison.answers)} answers of up to {settings['tokens_per_answer']} tokens at "
    said += f"temperature {settings['temperature']:g} in {comparison.seconds:.0f} s; speed-ups are against "
    said += "the plain answer to the same prompt beside it: the median, and the least and the largest, "
    said += "none where nothing was drafted. Counted: by the passes alone, at what each cost beforehand."
    if not comparison.complete:
        said = f"Not all was measured. {said}"
    lines += [Text(), Text(said), *map(Text, texts(comparison))]
    console = Console(file=io.StringIO(), width=_WIDTH, color_system=None)
    console.print(Group(*lines))
    return cast("io.StringIO", console.file).getvalue().rstrip()


def _write(comparison: Comparison, report: Path | None, png: Path | None) -> None:
    if report is None and png is None:
        return
    # Only here, since drawing takes libraries that nothing else needs.
    from .comparison_report import write_page, write_picture

    if report is not None:
        write_page(comparison, report)
    if png is not None:
        write_picture(comparison, png)


def _output(parser: Parser, name: str | None) -> Path | None:
    """Where a report goes; a file that cannot be written is said before anything is measured."""
    if not name:
        return None
    path = Path(name).expanduser()
    if path.is_dir() or not path.parent.is_dir():
        parser.error(f"{shown(path)} cannot be written: it is a folder, or its folder does not exist")
    return path


def _nothing(interrupt: Interrupt) -> str:
    if interrupt.came():
        return "stopped before the first answer"
    return "the time was over before the first answer: give a longer --time-limit, or a smaller model"


class _Progress:
    """What happens, on stderr: drawn anew where a person looks, a line for each prompt elsewhere.

    It is drawn between answers only: what is drawn while one is measured would take part of the processor.
    """

    def __init__(self) -> None:
        self._console = Console(stderr=True, highlight=False)
        self._watched = self._console.is_terminal
        self._live = Live(console=self._console, auto_refresh=False, transient=True)
        self._contenders: tuple[Contender, ...] = ()
        self._rows: tuple[Row, ...] = ()

    def __enter__(self) -> _Progress:
        if self._watched:
            self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._watched:
            self._live.stop()

    def tell(self, happening: Happening) -> None:
        """Show what happens."""
        match happening:
            case Preparing():
                self._draw(happening.what)
            case Noted():
                self._console.print(Text(one_line(f"note: {happening.text}")), soft_wrap=True)
            case Answering():
                seconds = happening.left_s
                left = f"{seconds / 60:.0f} min" if seconds >= 90 else f"{seconds:.0f} s"
                self._draw(
                    f"{happening.kind} {happening.prompt + 1}: {happening.name} answers; "
                    f"{happening.answered} of about {happening.expected}, about {left} left; Ctrl+C stops"
                )
            case Compared():
                self._contenders, self._rows = happening.contenders, happening.rows
                if not self._watched:
                    self._console.print(Text(one_line(_told(happening))), soft_wrap=True)

    def _draw(self, line: str) -> None:
        if self._watched:
            table = [tables(self._contenders, self._rows)] if self._rows else []
            self._live.update(Group(*table, Text(one_line(line))), refresh=True)


def _told(compared: Compared) -> str:
    """A prompt's answers in a line."""
    group = compared.group
    rates = [
        f"{compared.contenders[one.contender].name} {one.stats.tokens_per_second or 0.0:.1f}"
        for one in compared.answers
    ]
    return f"{group.kind} {group.prompt + 1}: {', '.join(rates)} tokens/s"
