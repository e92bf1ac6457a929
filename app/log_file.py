"""The log of a command: where it can no longer be written, that is said once, and the work goes on."""

from __future__ import annotations

import logging
import sys
from pathlib import Path

from ..models.gguf_layout import shown


class LogFile(logging.FileHandler):
    """Writes to a file as long as it can."""

    def handleError(self, record: logging.LogRecord) -> None:
        """Say why the file cannot be written, and leave it."""
        logging.getLogger().removeHandler(self)
        reason = getattr(sys.exc_info()[1], "strerror", None) or "it cannot be written"
        print(f"note: the log {shown(Path(self.baseFilename))} ends here: {reason}", file=sys.stderr)


def log_to(path: Path) -> None:
    """Write everything that is logged to this file, from now on."""
    logging.basicConfig(level=logging.INFO, handlers=[LogFile(path)], format="%(asctime)s %(message)s")
