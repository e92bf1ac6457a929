"""What the screen takes of one core while an answer is decoded.

    python benchmarks/screen_cost.py             measure in a pseudo terminal of 140x45
    python benchmarks/screen_cost.py --turns 200  the same in a conversation of 200 turns, and how soon it opens
    python benchmarks/screen_cost.py --show       the same chat in this terminal, to be looked at

A stand-in for the engine emits rounds at a steady pace and decodes nothing, so that all the CPU time
of the process is the screen's. Printed: the share of the thread that runs Textual, and of the process.
"""

from __future__ import annotations

import argparse
import asyncio
import fcntl
import json
import os
import pty
import select
import struct
import subprocess
import sys
import tempfile
import termios
import time
from pathlib import Path

COLUMNS, LINES = 140, 45
ROUNDS_PER_SECOND = 10
SECONDS = 20

PARAGRAPH = (
    "Speculative decoding lets a **small draft model** propose the next few tokens, which the `target` "
    "then tests in one pass; what it *accepts* is exactly what it would have written itself, so only the "
    "speed changes.\n\n"
)
LIST = "- the draft proposes four\n- the target tests them in one pass\n- it replaces the first refused\n\n"
LINE = "    total_{n} = sum(value * weight for value, weight in zip(row_{n}, weights))  # row {n}\n"
CODE = "```python\ndef rounds(rows):\n" + "".join(LINE.format(n=n) for n in range(12)) + "```\n\n"
TEXT = "## What happens in a round\n\n" + (PARAGRAPH * 2 + LIST + CODE) * 3


def paced_engine(text: str = TEXT, load_seconds: float = 0.6):
    """An engine that answers with `text` at the pace above."""
    from specchat.app.decoding.stats import AnswerStats
    from specchat.app.events import (
        Ask,
        Cancel,
        Finished,
        Load,
        Loaded,
        LoadProgress,
        ModelInfo,
        Piece,
        PrefillProgress,
        Progress,
    )

    tokens = [text[i : i + 4] for i in range(0, len(text), 4)]
    origins = ("accepted", "correction", "accepted", "target")

    class PacedEngine:
        pid = os.getpid()

        def __init__(self) -> None:
            self.first_progress: float | None = None
            self._load_at: float | None = None
            self._ask_at: float | None = None
            self._rounds = 0
            self._cancelled = False

        def start(self) -> None: ...

        def close(self) -> None: ...

        def send(self, command) -> None:
            if isinstance(command, Load):
                self._load_at = time.monotonic()
            elif isinstance(command, Ask):
                self._ask_at, self._rounds, self._cancelled = time.monotonic(), 0, False
            elif isinstance(command, Cancel):
                self._cancelled = True

        def drain(self) -> list:
            now = time.monotonic()
            return [*self._loading(now), *self._answering(now)]

        def _loading(self, now: float) -> list:
            if self._load_at is None:
                return []
            done = min(1.0, (now - self._load_at) / load_seconds)
            target = LoadProgress("target", "Qwen2.5-Coder 1.5B Instruct", min(1.0, 2 * done))
            draft = LoadProgress("draft", "Qwen2.5-Coder 0.5B Instruct", max(0.0, 2 * done - 1))
            if done < 1:
                return [target] if done < 0.5 else [target, draft]
            self._load_at = None
            models = [
                ModelInfo(e.name, f"/models/{e.name}.gguf", q, size, weights, 32768)
                for e, q, size, weights in (
                    (target, "Q4_K_M", 1_117_320_736, 1_543_714_304),
                    (draft, "Q4_0", 428_730_208, 494_032_768),
                )
            ]
            warning = "The draft has 38 % of the target's bytes; more than 20 % rarely pays."
            return [
                target,
                draft,
                Loaded(*models, 4096, 2, ("CPU",), (warning,), "drafting", "0.5B draft, up to 4 tokens"),
            ]

        def _answering(self, now: float) -> list:
            if self._ask_at is None:
                return []
            events: list = []
            if self._rounds == 0:
                events.append(PrefillProgress("target", 120, 340, 0))
            due = int((now - self._ask_at - 0.4) * ROUNDS_PER_SECOND)
            while self._rounds < due and 2 * self._rounds < len(tokens) and not self._cancelled:
                i = self._rounds = self._rounds + 1
                stats = self._stats(i)
                pieces = tuple(
                    Piece(tokens[n], origins[n % 4]) for n in (2 * i - 2, 2 * i - 1) if n < len(tokens)
                )
                events.append(Progress(pieces, stats, 19.0 + (i % 17) / 5, 400 + 2 * i, 4096))
                self.first_progress = self.first_progress or now
            if 2 * self._rounds >= len(tokens) or self._cancelled:
                self._ask_at = None
                written = "".join(tokens[: 2 * self._rounds])
                reason = "cancelled" if self._cancelled else "stop"
                stats = self._stats(max(1, self._rounds))
                events.append(Finished(reason, written, (), 340, 0, stats, 400 + 2 * self._rounds, 4096))
            return events

        @staticmethod
        def _stats(i: int) -> AnswerStats:
            tested = (i, i * 2 // 3, i // 2, i // 4)
            accepted = (i * 2 // 3, i // 2, i // 4, i // 6)
            return AnswerStats(
                ttft_s=0.42,
                tokens_per_second=19.2 + (i % 17) / 50,
                completion_tokens=2 * i,
                target_passes=i,
                tokens_per_pass=2.0,
                plain_passes=i // 9,
                drafted=sum(tested),
                accepted=sum(accepted),
                accepted_by_position=accepted,
                tested_by_position=tested,
                target_s=0.09 * i,
                draft_s=0.02 * i,
                baseline_tokens_per_second=11.4 if i > 9 else None,
                state="drafting",
                reason=f"expected {1.5 + (i // 20 % 5) / 10:.1f}x, drafting 4",
            )

    return PacedEngine()


def long_conversation(path: Path, turns: int):
    """A history with one conversation of so many turns, an answer being 3 KB of Markdown, and its id."""
    from specchat.app.history import History

    history = History(path)
    conversation = history.begin()
    parent = None
    for turn in range(turns // 2):
        parent = history.add(conversation, parent, "user", f"Question {turn}: what happens in a round?")
        answer = f"## Answer {turn}\n\n" + PARAGRAPH * 3 + LIST + CODE + CODE
        parent = history.add(conversation, parent, "assistant", answer)
    return history, conversation


def child(report: str, seconds: float, turns: int) -> None:
    """The chat with the paced engine; it asks by itself and writes down its CPU time."""
    from specchat.app.history import IN_MEMORY, History
    from specchat.app.requests import AnswerOptions, LoadOptions
    from specchat.tui.app import SpecchatApp

    engine = paced_engine()
    history, conversation = History(IN_MEMORY), None
    if turns:
        history, conversation = long_conversation(Path(report).with_name("history.db"), turns)
    begun = time.perf_counter()
    app = SpecchatApp(
        engine,
        LoadOptions("target.gguf", "draft.gguf"),
        AnswerOptions(),
        history=history,
        resume=conversation,
    )
    painted: list[float] = []

    async def drive() -> None:
        while len(app.session.messages) < turns:
            await asyncio.sleep(0.005)
        app.call_after_refresh(lambda: painted.append(time.perf_counter() - begun))
        while app.session.phase != "ready" or not painted:
            await asyncio.sleep(0.05)
        await asyncio.sleep(5.0 if turns else 0.0)  # until the older turns are laid out, too
        app.incoming.begin_answer(app.read_prompt("Explain speculative decoding, with code."))
        while engine.first_progress is None:
            await asyncio.sleep(0.05)
        frames = app.frames
        thread, process, wall = time.thread_time(), time.process_time(), time.monotonic()
        await asyncio.sleep(seconds)
        spent = {
            "thread": time.thread_time() - thread,
            "process": time.process_time() - process,
            "wall": time.monotonic() - wall,
            "answering": app.session.busy,
            "frames": app.frames - frames,
            "painted": painted[0],
            "characters": sum(len(message.text) for message in app.session.messages),
        }
        Path(report).write_text(json.dumps(spent))
        app.exit(0)

    driving: list[asyncio.Task] = []

    async def begin() -> None:
        driving.append(asyncio.create_task(drive()))

    app.call_later(begin)
    app.run()


def measure(seconds: float, extra: list[str]) -> dict:
    """Run the child in a pseudo terminal, reading what it draws as a terminal would."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.json"
        parent, terminal = pty.openpty()
        fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", LINES, COLUMNS, 0, 0))
        environment = {**os.environ, "TERM": "xterm-256color", "COLORTERM": "truecolor"}
        command = [sys.executable, __file__, "--child", str(report), "--seconds", str(seconds), *extra]
        process = subprocess.Popen(command, stdin=terminal, stdout=terminal, stderr=terminal, env=environment)
        os.close(terminal)
        drawn = 0
        while process.poll() is None:
            if select.select([parent], [], [], 0.2)[0]:
                try:
                    drawn += len(os.read(parent, 65536))
                except OSError:
                    break
        process.wait()
        os.close(parent)
        return {**json.loads(report.read_text()), "bytes": drawn}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seconds", type=float, default=SECONDS)
    parser.add_argument("--turns", type=int, default=0, help="of the conversation that it goes on with")
    parser.add_argument("--show", action="store_true")
    parser.add_argument("--child", metavar="REPORT", help=argparse.SUPPRESS)
    parser.add_argument("--profile", metavar="FILE", help="write the child's cProfile there")
    options = parser.parse_args()
    if options.show:
        from specchat.app.history import IN_MEMORY, History
        from specchat.app.requests import AnswerOptions, LoadOptions
        from specchat.tui.app import run_chat

        load = LoadOptions("target.gguf", "draft.gguf")
        sys.exit(run_chat(paced_engine(load_seconds=4), load, AnswerOptions(), history=History(IN_MEMORY)))
    if options.child:
        if options.profile:
            import cProfile

            profile = cProfile.Profile()
            profile.runcall(child, options.child, options.seconds, options.turns)
            profile.dump_stats(options.profile)
        else:
            child(options.child, options.seconds, options.turns)
        return
    more = ["--turns", str(options.turns)]
    spent = measure(options.seconds, [*more, "--profile", options.profile] if options.profile else more)
    share = 100 * spent["thread"] / spent["wall"]
    whole = 100 * spent["process"] / spent["wall"]
    if not spent["answering"]:
        print("the answer ended before the measurement did: ask for fewer seconds", file=sys.stderr)
    print(f"{COLUMNS}x{LINES}, {ROUNDS_PER_SECOND} rounds/s of 2 tokens, {spent['wall']:.0f} s")
    if options.turns:
        print(
            f"{options.turns} turns, {spent['characters']:,} characters: first paint after {spent['painted']:.2f} s, "
            "from the start of the screen"
        )
    print(f"screen thread  {share:5.2f} % of a core   (process {whole:.2f} %)")
    each = 1000 * spent["thread"] / max(1, spent["frames"])
    print(f"a frame        {each:5.2f} ms of {spent['frames']} frames      bytes drawn {spent['bytes']:,}")


if __name__ == "__main__":
    main()
