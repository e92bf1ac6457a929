"""What the program says of one file before it loads it: read, judged both ways, measured, told."""

from __future__ import annotations

import contextlib
import io
from pathlib import Path

from specchat.app.deriving import Source, destination, estimated_bytes, made_before
from specchat.app.footprint import context_that_fits
from specchat.app.inspecting import inspect
from specchat.app.processor import Processor
from specchat.app.requests import LoadOptions
from specchat.models.derived import Recipe
from specchat.models.errors import SpecchatError
from specchat.models.gguf_file import GgufHeader, read_header
from specchat.models.gguf_layout import read_layout
from specchat.models.pair import judge
from specchat.models.pruning import refuse_unprunable

_HERE = Processor("any", frozenset({"AVX2"}))
_RECIPE = Recipe("Q4_0", skipped=(1,))


def examine(path: Path, sound: GgufHeader, *, inspects: bool = True) -> str | None:
    """Everything that is told of a file beside a sound one: why it is refused; None where it is not.

    What `specchat inspect` prints takes most of the time: it is left out where it is not asked for.

    Raises:
        AssertionError: Something that is told is not fit for a terminal.
    """
    try:
        header = read_header(path)
    except SpecchatError as error:
        _one_line(str(error))
        return str(error)
    for verdict in (judge(sound, header), judge(header, sound)):
        for reason in verdict.reasons:
            _one_line(reason)
    options = LoadOptions(str(path))
    assert context_that_fits([header, sound], options, _HERE, 1 << 32) >= 0
    _one_line("".join((header.name, header.quantization, header.architecture, header.organisation)))
    for as_json in (False, True) if inspects else ():
        told, complained = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(told), contextlib.redirect_stderr(complained):
            inspect(options, (str(sound.path),), _HERE, as_json, "specchat inspect")
        assert not complained.getvalue()
        for line in told.getvalue().splitlines():
            _one_line(line)
    if not inspects:
        return None
    source = Source(header, read_layout(path), "0")
    try:
        refuse_unprunable(source.layout, _RECIPE.skipped)
        assert estimated_bytes(source, _RECIPE) >= 0
        made_before(source, _RECIPE, destination(source, _RECIPE, path.parent))
    except SpecchatError as error:
        _one_line(str(error))
    return None


def _one_line(text: str) -> None:
    assert text.isprintable(), ascii(text)
