"""What llama.cpp prints goes to a file or nowhere, and no debugger is started for it."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

PRINTS = """
import os, sys
from pathlib import Path
from specchat.app.last_words import keep_words
keep_words(Path(sys.argv[1]) if sys.argv[1] else None, unnamed=False)
os.write(1, os.environ["GGML_NO_BACKTRACE"].encode() + b" from C")
os.write(2, b", and more")
"""


@pytest.mark.parametrize(("set_before", "said"), [(None, "1"), ("0", "0")])
def test_what_is_printed_goes_to_the_file_alone_and_debuggers_are_told_to_stay_away(
    tmp_path: Path, set_before: str | None, said: str
):
    environment = {name: value for name, value in os.environ.items() if name != "GGML_NO_BACKTRACE"}
    environment |= {"GGML_NO_BACKTRACE": set_before} if set_before else {}
    file = tmp_path / "words"
    for name in (str(file), "", str(tmp_path)):
        done = subprocess.run(
            [sys.executable, "-c", PRINTS, name], env=environment, capture_output=True, check=True, timeout=60
        )
        assert (done.stdout, done.stderr) == (b"", b"")
    assert file.read_text() == f"{said} from C, and more"
