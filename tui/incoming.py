"""What the engine says, put on the screen."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING

from ..app.events import (
    Ask,
    Cancel,
    Died,
    Event,
    Failed,
    Finished,
    Loaded,
    LoadProgress,
    PrefillProgress,
    Progress,
)
from . import texts
from .branch_view import BranchView
from .figures_view import FiguresView
from .resident import resident
from .session import Phase, ReadPrompt
from .transcript.entries import AnswerEntry, LoadingEntry, NoticeEntry, PromptEntry
from .widgets.status import NEARLY_FULL

if TYPE_CHECKING:
    from .app import SpecchatApp

HINT_SECONDS = 4.0
SAVING_INTERVAL = 2.0


class Incoming:
    """Turns events into what is seen; it runs in the screen's own thread, called by its timer."""

    def __init__(self, app: SpecchatApp) -> None:
        self._app = app
        self._session = app.session
        self._loading: LoadingEntry | None = None
        self._asked: PromptEntry | None = None
        self._answer: AnswerEntry | None = None
        self._branch = BranchView(app)
        self._told_full = False
        self._told_trouble = ""
        self._decoding = False
        self._grown = False
        self._load_changed = False
        self._figures = FiguresView(app)
        self._saving_due = 0.0
        self._hint_until = 0.0

    @property
    def phase(self) -> Phase:
        """What the engine is doing for the conversation."""
        return self._session.phase

    @property
    def unfinished(self) -> str:
        """What there is of the answer that is under way."""
        return self._answer.text if self._answer is not None else ""

    def begin(self) -> None:
        """Show that nothing is measured yet."""
        self._figures.draw(sample=False)

    def take(self, event: Event) -> None:
        """One event."""
        match event:
            case LoadProgress():
                if self._loading is not None:
                    self._loading.take(event)
                    self._load_changed = True
                    self._activity(f"loading the {event.role}, {100 * event.fraction:.0f} %")
            case Loaded():
                self._loaded(event)
            case PrefillProgress():
                if self._session.phase == "answering":
                    self._activity(texts.prefill(event))
            case Progress():
                self._progress(event)
            case Finished():
                self._finished(event)
            case Failed():
                self._failed(event.message)
            case Died():
                self.died(event.message)

    def draw(self, now: float) -> None:
        """Draw what changed since the last time, each thing at its own pace."""
        app = self._app
        if self._hint_until and now >= self._hint_until:
            self.rest()
        if self._load_changed and self._loading is not None:
            app.transcript.changed(self._loading)
        self._load_changed = False
        if self._grown and self._answer is not None:
            self._grown = False
            app.transcript.grow(self._answer)
        busy, loading = self._session.busy, self._session.phase == "loading"
        self._figures.draw_what_is_due(now, answering=busy, loading=loading)
        if busy and now >= self._saving_due:
            self._saving_due = now + SAVING_INTERVAL
            self.keep_so_far()

    # Loading.

    def nothing_to_load(self) -> None:
        """No model was named: say what Enter does, and where the others are."""
        self._session.phase = "unloaded"
        first = self._app.first_choice()
        self._app.say(texts.welcome(first.name if first else None))
        self._activity("no model yet, F4 chooses one")

    def begin_loading(self) -> None:
        """A load has been asked for."""
        self._session.phase = "loading"
        self._session.loaded = None
        self._loading = LoadingEntry()
        self._app.transcript.add(self._loading)
        self._activity("loading")

    def wait_with(self, prompt: ReadPrompt) -> None:
        """Keep a prompt until the models are there."""
        self._session.waiting = prompt
        self._asked = PromptEntry(prompt.typed, texts.WAITS)
        self._app.transcript.add(self._asked)

    def take_back(self) -> str:
        """Give the waiting prompt back to be edited."""
        text = self._session.waiting.typed if self._session.waiting else ""
        self._session.waiting = None
        if self._asked is not None:
            self._app.transcript.drop(self._asked)
            self._asked = None
        return text

    def _loaded(self, event: Loaded) -> None:
        app, session = self._app, self._session
        session.loaded_with(event)
        summary = NoticeEntry(texts.loaded_summary(event))
        if self._loading is not None:
            app.transcript.replace(self._loading, summary)
            self._loading = None
        else:
            app.transcript.add(summary)
        app.panel.models(event)
        self._figures.forget()
        self._figures.context = (0, event.context_size)
        app.state.set(state=event.state, reason=event.reason)
        self._figures.draw(sample=False)
        self._figures.draw_memory()
        self._activity("ready")
        pending, app.once_loaded = app.once_loaded, None
        if session.waiting is not None:
            prompt, session.waiting = session.waiting, None
            asked, self._asked = self._asked, None
            self.begin_answer(prompt, asked)
        elif pending is not None:
            pending()

    # Answers.

    def begin_answer(self, prompt: ReadPrompt, entry: PromptEntry | None = None) -> None:
        """Send a prompt, and make room for its answer."""
        app, session = self._app, self._session
        if session.editing is not None:
            self._branch.cut(session.editing)
        if entry is None:
            entry = PromptEntry(prompt.typed)
            app.transcript.add(entry)
        entry.mark = prompt.files
        app.transcript.changed(entry)
        self._asked = entry
        self._branch.said.append(entry)
        self._await_answer(session.ask(prompt.text, prompt.record))

    def answer_again(self) -> None:
        """Make another answer to the last prompt."""
        if self._session.unanswered:
            self._branch.mark_last("")
        else:
            self._branch.cut(-1)
        self._await_answer(self._session.again())

    def continue_answer(self) -> None:
        """Go on with the last answer."""
        answer = self._branch.said.pop()
        assert isinstance(answer, AnswerEntry)
        answer.reopen()
        self._await_answer(self._session.go_on(), answer)

    def _await_answer(self, command: Ask, answer: AnswerEntry | None = None) -> None:
        app = self._app
        app.transcript.answering = True
        if answer is None:
            self._answer = AnswerEntry()
            self._answer.unfolded = app.transcript.thoughts
            app.transcript.add(self._answer)
        else:
            self._answer = answer
            app.transcript.changed(answer)
        self._branch.said.append(self._answer)
        self._figures.begin_answer()
        self._figures.draw(sample=False)
        app.pacer.restart(time.thread_time())
        self._hint_until = 0.0
        self._activity("reading the prompt, Esc stops")
        self._decoding = False
        app.transcript.to_end()
        app.send(command)
        self._tell_trouble()

    def show_branch(self) -> None:
        """Show the messages of the conversation in place of all that is shown."""
        session = self._session
        self._branch.show(session.messages, session.versions(), session.unanswered)
        self._told_full = False
        self._figures.forget()
        self._figures.context = (0, 0)  # known again with the next answer
        self._figures.draw(sample=False)

    def _tell_trouble(self) -> None:
        """Say once that nothing is saved, and why."""
        trouble = self._session.trouble
        if trouble and trouble != self._told_trouble:
            self._app.say(f"This is not being saved: {trouble}", "warning")
        self._told_trouble = trouble

    def keep_so_far(self) -> None:
        """Save what there is of the answer under way; nothing else changes."""
        if self._answer is not None:
            self._session.keep_so_far(self._answer.new_text, self._answer.in_thought)

    def keep_partial(self) -> None:
        """Keep what there is of an answer whose end nobody waits for."""
        if self._session.busy and self._answer is not None:
            self._break_off("stopped", "")

    def stop(self) -> None:
        """Ask the engine to stop; the answer ends when it says so."""
        self._session.phase = "stopping"
        self._activity("stopping")
        self._app.send(Cancel())

    def clear(self) -> None:
        """Begin a new conversation, after the running answer has stopped."""
        session = self._session
        if session.busy:
            session.clear_when_stopped = True
            if session.phase == "answering":
                self.stop()
            return
        session.clear()
        self._app.transcript.clear()
        self._branch.forget()
        self._told_full = False
        if self._loading is not None:
            self._app.transcript.add(self._loading)
        if session.waiting is not None and self._asked is not None:
            self._app.transcript.add(self._asked)
        self._figures.forget()
        self._figures.context = (0, self._figures.context[1])
        self._app.say("A new conversation.")
        self._figures.draw(sample=False)

    def _progress(self, event: Progress) -> None:
        if not self._session.busy or self._answer is None:
            return
        if event.pieces:
            if not self._decoding and self._session.phase == "answering":
                self._decoding = True
                self._activity(texts.ANSWERING)
            self._answer.in_thought = event.in_thought or self._answer.in_thought
            self._answer.take(event.pieces)
            self._grown = True
        self._figures.stats = event.stats
        self._figures.speed = event.live_tokens_per_second
        self._figures.context = (event.context_used, event.context_size)
        self._figures.changed = True

    def _finished(self, event: Finished) -> None:
        session, answer = self._session, self._answer
        if not session.busy or answer is None:
            return
        kept = session.finished(event)
        mark = texts.MARKS[event.reason] if kept else texts.without_text(event.reason)
        self._figures.stats = event.stats
        self._figures.speed = event.stats.tokens_per_second
        self._figures.context = (event.context_used, event.context_size)
        text, figures = event.text, texts.answer_figures(event.stats)
        if kept:
            text, figures = session.messages[-1].text, texts.recorded_figures(session.messages[-1].record)
        self._end_answer(text, mark, figures, kept)
        self._branch.seen_from(event.dropped_turns)
        full = event.context_used >= NEARLY_FULL * event.context_size
        if full and not event.dropped_turns and not self._told_full:
            self._told_full = True
            self._app.say(texts.nearly_full(event.context_used, event.context_size), "warning")
        if session.clear_when_stopped:
            self.clear()

    def _end_answer(self, text: str, mark: str, figures: str, kept: bool) -> bool:
        """Show how an answer ended; say whether what was in view before it had to be brought back."""
        assert self._answer is not None
        self._answer.finish(text, mark, figures)
        self._app.transcript.answering = False
        self._app.transcript.changed(self._answer)
        if not kept:
            del self._branch.said[-2:]
        self._branch.tell_versions(self._session.versions())
        self._answer = self._asked = None
        self._grown = False
        as_before = len(self._session.messages) > len(self._branch.said)
        if as_before:
            self.show_branch()
            self._app.say(texts.AS_BEFORE)
        self._figures.draw(sample=False)
        self._figures.draw_memory()
        self._activity("ready")
        self._tell_trouble()
        return as_before

    # What goes wrong.

    def _break_off(self, mark: str, without: str) -> bool:
        """End an answer that nothing more will come of; say whether its prompt is still there."""
        assert self._answer is not None
        made_with = {**self._session.made_with, "in_thought": self._answer.in_thought}
        kept = self._session.end_answer(self._answer.new_text, mark=mark, record=made_with)
        text = self._answer.text
        return self._end_answer(text, mark if text else without, "", kept) or kept

    def _failed(self, message: str) -> None:
        session = self._session
        if session.busy and self._answer is not None:
            kept = self._break_off("failed", "")
            note = "" if kept else f". {texts.NOT_KEPT.capitalize()}; Up brings it back."
            self._app.say(f"{message.rstrip('.') if note else message}{note}", "error")
            if session.clear_when_stopped:
                self.clear()
        elif session.phase == "loading":
            session.phase = "unloaded"
            self._app.once_loaded = None
            session.refused = message
            self._end_loading()
            self._app.say(f"{message}\n{texts.RETRY}", "error")
            self._activity("not loaded, Ctrl+R tries again")
        else:
            self._app.say(message, "error")

    def died(self, message: str) -> None:
        """The engine is gone: keep what there is, and say how to go on."""
        session = self._session
        if session.phase == "dead":
            return
        if session.busy and self._answer is not None:
            self._break_off("cut off", "no answer")
            if session.clear_when_stopped:
                self.clear()
        session.phase = "dead"
        session.loaded = None
        self._end_loading()
        self._app.panel.models(None)
        self._app.panel.memory(None, resident(os.getpid()))
        self._app.panel.draw()
        self._app.state.forget()
        self._app.say(f"{message}\n{texts.RESTART}", "error")
        self._activity("engine gone, Ctrl+R restarts")

    def _end_loading(self) -> None:
        if self._loading is not None:
            self._app.transcript.drop(self._loading)
            self._loading = None
        if self._session.waiting is not None:
            # The prompt goes back to where it can be sent again.
            text = self.take_back()
            if not self._app.prompt.text.strip():
                self._app.prompt.put(text)

    # What is seen of it.

    def hint(self, text: str) -> None:
        """Say something for a moment, where it is said what goes on."""
        self._hint_until = time.monotonic() + HINT_SECONDS
        self._app.state.set(activity=text)

    def rest(self) -> None:
        """What was said for a moment is over."""
        self._hint_until = 0.0
        session = self._session
        changing = session.editing is not None and session.phase == "ready"
        self._activity(texts.EDITING if changing else texts.RESTING[session.phase])

    def _activity(self, text: str) -> None:
        if not self._hint_until:
            self._app.state.set(activity=text)
