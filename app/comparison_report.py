"""Writes a comparison as a page to read in a browser and as a picture to paste into a forum."""

from __future__ import annotations

from pathlib import Path

from ..models.errors import SpecchatError
from ..models.gguf_layout import shown
from .comparison import Comparison


class ReportError(SpecchatError):
    """A report that could not be written."""


def write_page(comparison: Comparison, path: Path) -> None:
    """Write one self-contained HTML file.

    Raises:
        ReportError: The file cannot be written.
    """
    from .report.page import page_of

    _write(path, page_of(comparison).encode())


def write_picture(comparison: Comparison, path: Path) -> None:
    """Write one PNG with the gist of the figures and the charts.

    Raises:
        ReportError: The file cannot be written.
    """
    from .report.picture import picture_of

    _write(path, picture_of(comparison))


def _write(path: Path, content: bytes) -> None:
    try:
        path.write_bytes(content)
    except OSError as error:
        raise ReportError(f"the report {shown(path)} could not be written: {error.strerror}") from error
