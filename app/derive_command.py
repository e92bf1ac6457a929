"""`specchat derive`: a draft made from a model's own file, with what was measured for it on stderr."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import NoReturn

from ..models.derived import Recipe, parse_ranges
from ..models.errors import LoadError, ModelFileError, SpecchatError
from ..models.gguf_file import read_header
from ..models.gguf_layout import shown
from ..models.llama import Context
from ..models.locate import locate_model
from ..models.pruning import refuse_unprunable
from ..models.quantizing import FILE_TYPES, TENSOR_TYPES
from ..models.template import ChatTemplate
from .crash_report import unexpected
from .derive_memory import refuse_making_without_room, refuse_search_without_room
from .derive_report import as_json, larger_sentence, layers_sentence, quant_sentence, quant_table, trial_row
from .deriving import (
    Derived,
    DeriveError,
    NameTakenError,
    Source,
    destination,
    made_before,
    open_source,
    put,
    scratch,
    write,
)
from .exit_codes import DONE, FAILED, INTERRUPTED, UNUSABLE
from .footprint import Machine
from .interrupt import Interrupt, Stopped
from .options import Parser
from .own_text import Sample, opened, write_samples
from .processor import thread_count
from .quant_search import CANDIDATES, QuantSearch, find_fastest
from .self_drafts import LayerSearch, find_layers
from .terminal import show_json, show_path, status, tell

_CONTEXT = 768
_TOKENS = 64
"""Of each answer that the model writes to be guessed."""

_AUTO = "auto"


def derive_command(parser: Parser, words: Sequence[str], machine: Machine | None = None) -> int:
    """Make the draft that the words ask for, on this machine or another; returns the exit code."""
    options = parser.parse_args(words)
    recipe = _recipe(parser, options)
    interrupt = Interrupt()
    work = _Work(options, recipe, interrupt, machine or Machine())
    try:
        work.run()
        return INTERRUPTED if interrupt.came() else DONE
    except Stopped:
        work.say(f"{parser.prog}: stopped; nothing was made")
        return INTERRUPTED
    except BrokenPipeError:
        raise  # the reader of the path has left: whoever runs the command line ends quietly
    except (ModelFileError, LoadError) as error:
        return work.fail(f"{parser.prog}: {error}", UNUSABLE)
    except SpecchatError as error:
        return work.fail(f"{parser.prog}: {error}", FAILED)
    except Exception as error:
        if options.debug:
            raise
        return work.fail(f"{parser.prog}: {unexpected(error, parser.prog, debug=options.debug)}", FAILED)
    finally:
        interrupt.restore()


def _recipe(parser: Parser, options: argparse.Namespace) -> Recipe:
    """What of the recipe is said; `auto` is left empty."""

    def wrong(message: str) -> NoReturn:
        parser.error(message)

    if not options.quant and not options.skip_layers:
        wrong("say what to make: --quant TYPE, --skip-layers LIST, or either with auto")
    quant, output = (options.quant or "").upper(), (options.output_type or "").upper()
    if quant == _AUTO.upper():
        quant = ""
        if output:
            wrong("--quant auto chooses the output matrix, too; leave out --output-type")
    elif quant and quant not in FILE_TYPES:
        wrong(f"there is no quantization {options.quant!a} to make; there are {', '.join(FILE_TYPES)}, auto")
    elif output and not quant:
        wrong("--output-type goes with --quant TYPE")
    elif output and output not in TENSOR_TYPES:
        wrong(f"{options.output_type!a} is no type of output matrix; there are {', '.join(TENSOR_TYPES)}")
    skipped: tuple[int, ...] = ()
    if options.skip_layers and options.skip_layers.lower() != _AUTO:
        try:
            skipped = parse_ranges(options.skip_layers)
        except ValueError as error:
            wrong(f"--skip-layers takes numbers and ranges, 4,9-12, or auto: {error}")
    return Recipe(quant, output, skipped)


class _Work:
    """One draft on its way: what is measured, then what is written."""

    def __init__(
        self, options: argparse.Namespace, recipe: Recipe, interrupt: Interrupt, machine: Machine
    ) -> None:
        self._options, self._recipe, self._interrupt = options, recipe, interrupt
        self._machine = machine
        self._finds_quant = (options.quant or "").lower() == _AUTO
        self._finds_layers = (options.skip_layers or "").lower() == _AUTO
        self._threads = thread_count(options.threads)
        self._watched = sys.stderr.isatty()
        self._status_shown = False

    def run(self) -> None:
        """Make it, and print where it is.

        Raises:
            SpecchatError: It cannot be made.
        """
        path = locate_model(self._options.model)
        if self._options.memory_check and (self._finds_quant or self._finds_layers):
            refuse_search_without_room(
                read_header(path), self._recipe, self._machine, _CONTEXT,
                finds_quant=self._finds_quant, gpu_layers=self._options.gpu_layers,
            )  # fmt: skip
        source = open_source(path, lambda part: self._status(f"reading {shown(path)}: {part:.0%}"))
        if self._recipe.skipped or self._finds_layers:
            refuse_unprunable(source.layout, self._recipe.skipped)
        output = Path(self._options.output).expanduser() if self._options.output else None
        quants, layers = None, None
        if not (self._finds_quant or self._finds_layers):
            derived = self._there_or_made(source, self._recipe, output)
        else:
            folder = destination(source, Recipe("auto"), output).parent
            with scratch(folder) as made:
                quants, layers = self._search(source, made)
                recipe = self._found(quants, layers)
                there = quants.made if quants is not None and quants.chosen == recipe else None
                derived = self._there_or_made(source, recipe, output, there) if str(recipe) else None
        self._status("")
        if derived is not None:
            was = "was made before" if derived.reused else "made"
            self.say(
                f"{was}: {shown(Path(path.name))} {derived.recipe.words}, {derived.size_bytes / 1e6:,.0f} MB"
            )
            if derived.size_bytes > source.header.size_bytes:
                self.say(larger_sentence(source))
        if self._options.json:
            show_json(as_json(source, derived, quants, layers))
        else:
            show_path(derived.path if derived else path)

    def say(self, line: str) -> None:
        """A line for the person, on stderr."""
        self._status("")
        tell(line)

    def fail(self, line: str, code: int) -> int:
        """The same, for what failed; returns the exit code."""
        self.say(line)
        return code

    def _there_or_made(
        self, source: Source, recipe: Recipe, output: Path | None, made: Path | None = None
    ) -> Derived:
        """The draft under its name: from before, as it was made for the search, or made now."""
        path = destination(source, recipe, output)
        there = made_before(source, recipe, path)
        if there is not None:
            return there
        try:
            if made is not None:
                return put(made, recipe, path)
            if self._options.memory_check:
                refuse_making_without_room(source.header, self._machine)
            with scratch(path.parent) as folder:
                self._status(f"writing {shown(Path(path.name))}")
                return put(write(source, recipe, folder, self._threads), recipe, path)
        except NameTakenError:
            # Another process may have made the same draft meanwhile.
            there = made_before(source, recipe, path)
            if there is None:
                raise
            return there

    def _search(self, source: Source, folder: Path) -> tuple[QuantSearch | None, LayerSearch | None]:
        quants, layers = None, None
        options = self._options
        with opened(source.path, self._threads, options.gpu_layers, _CONTEXT) as context:
            vocabulary = source.header.vocabulary
            template = ChatTemplate.from_model(
                source.header.chat_template, vocabulary.bos_text, vocabulary.eos_text, vocabulary
            )
            samples = write_samples(context, template, _TOKENS, self._on_token)
            if not samples:
                raise DeriveError(
                    f"{shown(source.path)} answers nothing to any prompt, so nothing can be compared; "
                    "say --quant TYPE or --skip-layers LIST"
                )
            if self._finds_quant:
                quants = self._search_quant(source, context, samples, folder)
                self._recipe = replace(
                    self._recipe,
                    quant=quants.chosen.quant if quants.chosen else "",
                    output=quants.chosen.output if quants.chosen else "",
                )
            if self._finds_layers and not self._interrupt.came():
                deadline = time.monotonic() + options.search_time
                self.say(f"layers left out, of 0-{source.header.block_count - 1}:")
                layers = find_layers(
                    source, context, samples, folder, self._recipe,
                    threads=self._threads,
                    gpu_layers=options.gpu_layers,
                    goes_on=lambda: time.monotonic() < deadline,
                    on_trial=lambda rated: self._on_trial(trial_row(rated), deadline),
                    check=self._interrupt.check,
                )  # fmt: skip
                self.say(layers_sentence(layers))
        return quants, layers

    def _search_quant(
        self, source: Source, context: Context, samples: Sequence[Sample], folder: Path
    ) -> QuantSearch:
        quants = find_fastest(
            source, context, samples, folder,
            threads=self._threads,
            gpu_layers=self._options.gpu_layers,
            least_agreement=self._options.agreement,
            on_candidate=lambda recipe, number: self._status(
                f"measuring {recipe} ({number + 1} of {len(CANDIDATES)})"
            ),
            check=self._interrupt.check,
        )  # fmt: skip
        for line in (*quant_table(quants, source), quant_sentence(quants, source)):
            self.say(line)
        return quants

    def _found(self, quants: QuantSearch | None, layers: LayerSearch | None) -> Recipe:
        if layers is not None:
            return replace(self._recipe, skipped=layers.chosen.skipped)
        if quants is not None and quants.chosen is None and not self._recipe.skipped:
            return Recipe()
        return self._recipe

    def _on_token(self, count: int) -> None:
        self._interrupt.check()
        self._status(f"the model writes what is to be guessed: {count} tokens")

    def _on_trial(self, row: str, deadline: float) -> None:
        self.say(row)
        self._status(f"{max(0.0, deadline - time.monotonic()):.0f} s left; Ctrl+C takes the best so far")

    def _status(self, text: str) -> None:
        """A line that the next one replaces, where a person is looking; an empty one only clears it."""
        if self._watched and (text or self._status_shown):
            status(text)
            self._status_shown = bool(text)
