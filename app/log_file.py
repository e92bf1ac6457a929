"""The log of a command: where it can no longer be written, that is said once, and the work goes on."""

from __future__ import annotations

import io
import logging
import os
import sys
from pathlib import Path

from ..models.gguf_layout import shown
from .private_files import open_to_append
from .terminal import tell


class LogFile(logging.FileHandler):
    """Writes to a file, its owner's alone, as long as it can."""

    def _open(self) -> io.TextIOWrapper:
        return os.fdopen(open_to_append(Path(self.baseFilename)), "a", encoding="utf-8")

    def handleError(self, record: logging.LogRecord) -> None:
        """Say why the file cannot be written, and leave it."""
        logging.getLogger().removeHandler(self)
        reason = getattr(sys.exc_info()[1], "strerror", None) or "it cannot be written"
        tell(f"note: the log {shown(Path(self.baseFilename))} ends here: {reason}")
