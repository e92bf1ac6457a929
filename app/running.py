"""One answer without a screen: the answer on stdout, everything else on stderr."""

from __future__ import annotations

import sys
from dataclasses import asdict
from pathlib import Path

from .crash_report import unexpected
from .engine import Engine
from .events import Ask, Event, Failed, Finished, Load, Loaded, LoadProgress, PrefillProgress, Progress
from .exit_codes import DONE, FAILED, INTERRUPTED, UNUSABLE
from .interrupt import Interrupt
from .log_file import LogFile
from .remembered import Remembered, default_path
from .reporting import answer_json, figures
from .requests import AnswerOptions, LoadOptions, Turn
from .terminal import Streamed, log_to, show_json, status, tell, tell_failure
from .verifying import verify_answer


def run_once(
    load: LoadOptions,
    options: AnswerOptions,
    prompt: str,
    system: str | None,
    *,
    as_json: bool,
    verify: bool,
    log_file: Path | None,
    debug: bool,
    name: str,
) -> int:
    """Load, answer, report; returns the exit code."""
    if log_file is not None:
        log_to(LogFile(log_file))
    turns = ((Turn("system", system),) if system else ()) + (Turn("user", prompt),)
    output = _Output(name, streaming=not as_json)
    interrupt = Interrupt()
    engine = Engine(output.take, interrupt.came, remembered=Remembered(default_path()))
    try:
        engine.load(Load(load, options.drafting))
        if output.failure is not None:
            return INTERRUPTED if interrupt.came() else output.fail(UNUSABLE)
        engine.ask(Ask(turns, options))
        finished = output.finished
        if finished is None:
            return output.fail(FAILED)
        verification = None
        if verify and not interrupt.came():
            output.streaming = False
            verification = verify_answer(engine, turns, options, output)
            if verification is None:
                return INTERRUPTED if interrupt.came() else output.fail(FAILED)
            output.note(verification.told())
        if as_json:
            assert engine.pair is not None
            answer = answer_json(finished, engine.pair, options, output.warnings)
            if verification is not None:
                answer["verify"] = asdict(verification)
            show_json(answer)
        else:
            output.note(figures(finished))
        if finished.reason == "cancelled":
            return INTERRUPTED
        return FAILED if verification is not None and not verification.explained else DONE
    except OSError:
        raise  # the answer cannot be written: whoever runs the command line knows what to say
    except Exception as error:
        if debug:
            raise
        tell_failure(name, unexpected(error, name, debug=debug, said=(prompt, system or "")))
        return FAILED
    finally:
        engine.close()
        interrupt.restore()


class _Output:
    """Events to streams: text to stdout as it comes, progress to stderr where a person is looking."""

    def __init__(self, name: str, *, streaming: bool) -> None:
        self.streaming = streaming
        self.finished: Finished | None = None
        self.failure: str | None = None
        self.warnings: tuple[str, ...] = ()
        self._name = name
        self._watched = sys.stderr.isatty()
        self._ended_line = True
        self._answer = Streamed()

    def take(self, event: Event) -> None:
        """Show one event."""
        match event:
            case LoadProgress():
                self._status(f"loading the {event.role} {event.name}: {event.fraction:.0%}")
            case PrefillProgress() if event.total:
                self._status(f"reading the prompt ({event.role}): {event.done} of {event.total} tokens")
            case Loaded():
                self._status("")
                self.warnings = event.warnings
                for warning in event.warnings:
                    self.note(f"note: {warning}")
            case Progress():
                self._status("")
                if self.streaming:
                    text = "".join(piece.text for piece in event.pieces)
                    self._ended_line = text.endswith("\n")
                    self._answer.show(text)
            case Finished():
                self._status("")
                self.finished = event
                if self.streaming and not self._ended_line:
                    self._answer.show("\n")
                if event.dropped_turns:
                    self.note(f"the oldest {event.dropped_turns} turns did not fit and were not sent")
            case Failed():
                self._status("")
                self.failure = event.message
            case _:
                pass

    def note(self, text: str) -> None:
        """A line for the person, on stderr."""
        tell(text)

    def fail(self, code: int) -> int:
        """Say what failed, in one line; returns the exit code."""
        tell_failure(self._name, self.failure)
        return code

    def _status(self, text: str) -> None:
        if self._watched:
            status(text)
