"""Tokens per second in the chat against `specchat run`, on one prompt, by turns in one sitting.

    python benchmarks/chat_speed.py TARGET [DRAFT] [--repeats 6] [--tokens 200] [--speculate off]

The chat runs in a real pseudo terminal of 140x45, its panel open, on the real engine's process; the prompt is
typed into it. Both print the same figure: tokens per second since the first token, as the engine counts it.
"""

import argparse
import fcntl
import json
import os
import pty
import select
import statistics
import struct
import subprocess
import sys
import tempfile
import termios
import time
from pathlib import Path

from specchat.app.decoding.settings import Sampling
from specchat.app.events import Event, Finished, Loaded
from specchat.app.history import History
from specchat.app.process import EngineProcess
from specchat.app.requests import AnswerOptions, Drafting, LoadOptions
from specchat.tui.app import run_chat

PROMPT = "Write a Python class for a bank account, with a docstring and tests for every method."


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("target")
    parser.add_argument("draft", nargs="?")
    parser.add_argument("--repeats", type=int, default=6)
    parser.add_argument("--tokens", type=int, default=200)
    parser.add_argument("--speculate", choices=("off", "auto", "always"), default="off")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        chat(options)
        return
    inside, outside = [], []
    for number in range(options.repeats):
        # Each goes first as often as the other: what comes second is slower on some machines by some percent.
        for where, answer in ((outside, headless), (inside, in_chat))[:: -1 if number % 2 else 1]:
            where.append(answer(options))
        print(f"{number + 1}: run {outside[-1]:.2f}, chat {inside[-1]:.2f} tokens/s", flush=True)
    ratios = [chat / run for chat, run in zip(inside, outside, strict=True)]
    print(
        f"median: run {statistics.median(outside):.2f} ({min(outside):.2f} to {max(outside):.2f}), "
        f"chat {statistics.median(inside):.2f} ({min(inside):.2f} to {max(inside):.2f}) tokens/s; "
        f"chat / run {statistics.median(ratios):.1%} ({min(ratios):.1%} to {max(ratios):.1%})"
    )


def headless(options: argparse.Namespace) -> float:
    draft = ["-md", options.draft] if options.draft else []
    done = subprocess.run(
        [sys.executable, "-m", "specchat.tui.entry", "run", "-m", options.target, *draft, "-p", PROMPT, "--temp", "0",
         "-n", str(options.tokens), "--speculate", options.speculate, "--json"],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    return json.loads(done.stdout)["stats"]["tokens_per_second"]


def in_chat(options: argparse.Namespace) -> float:
    """Type the prompt into a chat in a pseudo terminal once it has loaded, and read the figure it ends with."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report"
        words = [options.target, *([options.draft] if options.draft else [])]
        pid, terminal = pty.fork()
        if pid == 0:
            os.environ["TERM"] = "xterm-256color"
            os.execv(
                sys.executable,
                [sys.executable, __file__, *words, "--tokens", str(options.tokens),
                 "--speculate", options.speculate, "--child", str(report)],
            )  # fmt: skip
        fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 45, 140, 0, 0))
        asked = False
        deadline = time.monotonic() + 300
        while time.monotonic() < deadline and not report.with_suffix(".finished").exists():
            ready, _, _ = select.select([terminal], [], [], 0.2)
            if ready:
                os.read(terminal, 1 << 16)
            if not asked and report.with_suffix(".loaded").exists():
                os.write(terminal, PROMPT.encode() + b"\r")
                asked = True
        os.write(terminal, b"\x11")
        time.sleep(0.2)
        figure = float(report.with_suffix(".finished").read_text())
        end = time.monotonic() + 10
        while time.monotonic() < end and os.waitpid(pid, os.WNOHANG)[0] == 0:
            if select.select([terminal], [], [], 0.1)[0]:
                try:
                    os.read(terminal, 1 << 16)
                except OSError:
                    break
        os.close(terminal)
        return figure


class Reporting(EngineProcess):
    """The engine's process, which leaves a file when it has loaded and when an answer has finished."""

    def __init__(self, report: Path) -> None:
        super().__init__()
        self._report = report

    def drain(self) -> list[Event]:
        events = super().drain()
        for event in events:
            if isinstance(event, Loaded):
                self._report.with_suffix(".loaded").touch()
            elif isinstance(event, Finished):
                partial = self._report.with_suffix(".partial")
                partial.write_text(str(event.stats.tokens_per_second))
                partial.rename(self._report.with_suffix(".finished"))
        return events


def chat(options: argparse.Namespace) -> None:
    answer = AnswerOptions(Sampling(temperature=0.0), Drafting(options.speculate), options.tokens)
    load = LoadOptions(options.target, options.draft)
    run_chat(
        Reporting(Path(options.child)),
        load,
        answer,
        history=History(Path(options.child).with_name("chat.db")),
    )


if __name__ == "__main__":
    main()
