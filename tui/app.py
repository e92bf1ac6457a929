"""The chat: draws what the engine says, and tells it what the user wants."""

from __future__ import annotations

import asyncio
import sys
import threading
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from textual import on
from textual.app import App, ComposeResult
from textual.containers import Horizontal
from textual.content import Content
from textual.driver import Driver
from textual.filter import LineFilter
from textual.screen import Screen

from ..app.attachments import as_mention, expand, pasted_path
from ..app.catalog import FoundModel, HeaderCache
from ..app.events import Command, Load
from ..app.exit_codes import FAILED, UNUSABLE
from ..app.history import History
from ..app.requests import AnswerOptions, LoadOptions
from ..app.settings import ChatSettings
from ..app.terminal import tell_failure
from . import texts, themes
from .actions import Action, CommandError, Say
from .commands import models
from .commands.talk import open_conversation
from .completion import completions
from .crashing import tell_of_crash, with_report
from .direct_drawing import DirectCompositor
from .ending import end_by_signals, save_the_rest
from .engine_client import EngineClient, Listener
from .harmless import HarmlessLines
from .incoming import Incoming
from .misset import misset
from .pacing import SHORTEST, RefreshPacer
from .presets import Presets
from .registry import BY_NAME, CHAT_KEYS, bindings, keys_by_name, understand
from .session import ReadPrompt, Session
from .transcript.code import warm_up
from .transcript.entries import NoticeEntry, NoticeKind
from .transcript.widget import Transcript
from .widgets.lines import Lines
from .widgets.panel import Panel
from .widgets.prompt import Prompt
from .widgets.status import CompactFigures, Keys, StateLine
from .widgets.suggestions import Suggestions

LOADING_DELAY = 0.1
IDLE_DELAY = 0.5
"""Seconds between looks at an engine that has nothing to say."""
NARROW = 100
"""Columns under which the panel folds away."""


class Middle(Horizontal):
    """The transcript and the panel; they cover it, and Textual draws it at every refresh all the same."""

    BLANK = True


class ChatScreen(Screen[None]):
    """The one screen; nothing of its own is seen."""

    BLANK = True

    def __init__(self) -> None:
        super().__init__()
        self._compositor = DirectCompositor()


class SpecchatApp(App[int]):
    """A chat with a target and a draft, which shows what the draft is worth while it answers."""

    TITLE = "specchat"
    CSS_PATH = "specchat.tcss"
    BINDINGS = bindings()
    ENABLE_COMMAND_PALETTE = False
    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (NARROW, "-wide")]  # noqa: RUF012 (Textual declares it so)
    VERTICAL_BREAKPOINTS = [(0, "-low"), (30, "-high")]  # noqa: RUF012

    def __init__(
        self,
        engine: EngineClient,
        load: LoadOptions | None,
        answer: AnswerOptions,
        system: str | None = None,
        *,
        history: History,
        settings: ChatSettings | None = None,
        resume: int | None = None,
        title: str = "",
        notice: str = "",
        delays: tuple[float, float, float] = (SHORTEST, LOADING_DELAY, IDLE_DELAY),
    ) -> None:
        """The chat.

        Args:
            engine: loads and answers.
            load: what to load; `None` leaves the choice to the user.
            answer: how the first answer is made.
            system: what the model is told first.
            history: where the conversation is kept.
            settings: what the user has set about the screen.
            resume: a conversation to go on with.
            title: the title of the terminal's window.
            notice: what is said at the start.
            delays: seconds between looks at the engine: answering at the least, loading, idle.
        """
        super().__init__()
        self._harmless = HarmlessLines()
        self.animation_level = "none"
        for known in themes.BY_NAME.values():
            self.register_theme(known)
        self.settings = settings or ChatSettings()
        self.theme = themes.BY_NAME.get(self.settings.theme, themes.DARK).name
        if title:
            self.title = title
        self.engine = engine
        self.load = load
        self.presets = Presets(self.settings.presets, self.settings.presets_path)
        self.once_loaded: Callable[[], object] | None = None
        """What is to be done when the models are there."""
        self.fetching: threading.Event | None = None
        """Stops the download that is under way."""
        self.headers: HeaderCache = {}
        """What the headers of models on the disk say, as far as they were read."""
        self.session = Session(answer, system, history)
        self.frames = 0
        """How often the engine's news have been drawn."""
        self.pacer = RefreshPacer(shortest=delays[0])
        self._delays = delays
        self._notice = notice
        self._resume = resume
        self.incoming = Incoming(self)
        self.listener: Listener = self.incoming
        """Who takes what the engine says: the conversation, or a screen that has the engine for a while."""

    def get_line_filters(self) -> Sequence[LineFilter]:
        """What every line goes through on its way to the terminal."""
        return [*super().get_line_filters(), self._harmless]

    def get_driver_class(self) -> type[Driver]:
        """What reads from the terminal and writes to it."""
        textuals = super().get_driver_class()
        if sys.platform == "win32":
            return textuals
        from .terminal_input import driver_for  # it is made of what only Unix has

        return driver_for(textuals)

    def get_default_screen(self) -> Screen[None]:
        """The screen that everything is on."""
        return ChatScreen()

    def compose(self) -> ComposeResult:
        """Everything is there from the first moment, loaded or not."""
        with Middle(id="middle"):
            yield Transcript(id="transcript")
            yield Panel(id="panel")
        yield Lines(id="legend")
        yield StateLine(id="state")
        yield CompactFigures(id="figures")
        yield Suggestions(id="suggestions")
        yield Prompt(self._submit, self.do, self._completions, self._mention, id="prompt")
        yield Keys(id="keys")

    def on_mount(self) -> None:
        """Ask for nothing before the first paint."""
        self.transcript = self.query_one(Transcript)
        self.panel = self.query_one(Panel)
        self.state = self.query_one(StateLine)
        self.figures = self.query_one(CompactFigures)
        self.prompt = self.query_one(Prompt)
        self.query_one("#legend", Lines).show([texts.origin_legend()])
        self.prompt.keys = keys_by_name(self.settings.keys, CHAT_KEYS)
        self.set_keymap(dict(self.settings.keys))
        self.screen.set_class(not self.settings.panel, "-no-panel")
        self.prompt.focus()
        self.incoming.begin()
        if self._notice:
            self.say(self._notice)
        for problem in misset(self.settings):
            self.say(problem, "warning")
        self.call_after_refresh(self._begin)

    def _begin(self) -> None:
        if self._resume is not None:
            open_conversation(self, self._resume)
        end_by_signals(self)
        self.start_engine()
        self.run_worker(self._watch_engine(), name="engine", exit_on_error=True)
        self.call_after_refresh(warm_up)

    def start_engine(self) -> None:
        """Start the engine's process where there is none, and load the models."""
        if self.load is None:
            self.incoming.nothing_to_load()
            return
        gone = self.session.phase == "dead" or self.engine.pid is None
        self.incoming.begin_loading()
        if gone:
            try:
                self.engine.start()
            except OSError as error:
                self.incoming.died(f"The engine could not be started: {error}")
                return
        self.send(Load(self.load, self.session.options.drafting))

    def send(self, command: Command) -> None:
        """Tell the engine; one that cannot hear is gone."""
        try:
            self.engine.send(command)
        except (OSError, ValueError) as error:
            self.incoming.died(f"The engine does not answer: {error}")

    def look(self) -> None:
        """Take what the engine has said, and draw it."""
        self.frames += 1
        for event in self.engine.drain():
            self.listener.take(with_report(self, event))
        self.listener.draw(time.monotonic())

    async def _watch_engine(self) -> None:
        """Look at the engine again and again; a timer for each look would cost a part of what it draws."""
        while True:
            delay = self.pacer.next_delay(time.thread_time())
            self.look()
            phase = self.listener.phase
            if phase not in ("answering", "stopping"):
                delay = self._delays[1 if phase == "loading" else 2]
            await asyncio.sleep(delay)

    def _handle_exception(self, error: Exception) -> None:
        """End; Textual would draw a traceback with the values of variables, and what was said is in some."""
        self._return_code = FAILED
        if self._exception is None:
            self._exception = error
            self._exception_event.set()
        self._close_messages_no_wait()

    @property
    def error(self) -> Exception | None:
        """What ended the app, if that was an error."""
        return self._exception

    @property
    def engine_busy(self) -> bool:
        """Whether the engine has something to do that a load would interrupt."""
        return self.session.busy or self.listener is not self.incoming

    def say(self, text: str | Content, kind: NoticeKind = "info") -> None:
        """Put a notice into the transcript."""
        self.transcript.add(NoticeEntry(text, kind))

    # What the user wants.

    def _submit(self, text: str) -> bool:
        """Carry out what was typed; say whether the prompt has done its part."""
        try:
            wish = understand(text)
            if isinstance(wish, Say):
                if not self._ask(wish.text):
                    return False
            else:
                self._run(wish.action, wish.value)
                if wish.action.keeps_prompt:
                    return False
        except CommandError as error:
            self.say(str(error), "warning")
        self.transcript.to_end()
        return True

    def first_choice(self) -> FoundModel | None:
        """The model that answers where none was named: the packaged one, or the first on the disk."""
        found = models.models_here(self)
        packaged = [model for model in found if model.place == "demo"]
        return (packaged or found or [None])[0]

    def load_first_choice(self) -> bool:
        """Load the first choice for a prompt that was typed before a model was chosen."""
        found = self.first_choice()
        if found is None:
            models.pick_target(self, None)
            return False
        self.load = LoadOptions(str(found.path))
        return True

    def do(self, action: Action) -> None:
        """Carry out an action that was asked for by a key or from the list of all."""
        try:
            self._run(action, None)
        except CommandError as error:
            self.incoming.hint(str(error))

    def action_carry_out(self, name: str) -> None:
        """Carry out an action by its name, where a key was pressed outside the prompt."""
        action = BY_NAME[name]
        if len(self.screen_stack) == 1 or action.priority:
            self.do(action)

    def _run(self, action: Action, value: object) -> None:
        assert action.run is not None
        action.run(self, value)

    def read_prompt(self, text: str, warn: Callable[[str], object] | None = None) -> ReadPrompt | None:
        """What the model reads of a prompt: its text, and the files that it names; `None` if one is none."""
        expanded = expand(text, Path.cwd())
        if expanded.problems:
            (warn or partial(self.say, kind="warning"))("\n".join(expanded.problems))
            return None
        if not expanded.attachments:
            return ReadPrompt(text, text, "", {})
        names = "with " + ", ".join(f"{each.name} ({each.size:,} bytes)" for each in expanded.attachments)
        return ReadPrompt(text, expanded.text, names, {"typed": text, "files": names})

    def _completions(self, before: str):
        return completions(before, self, Path.cwd())

    def _mention(self, pasted: str) -> str | None:
        path = pasted_path(pasted)
        return None if path is None else as_mention(str(path))

    @on(Prompt.Typed)
    def _typed(self) -> None:
        self.query_one(Suggestions).offer(self.prompt.completions)

    def _ask(self, text: str) -> bool:
        session = self.session
        if session.busy:
            self.incoming.hint("Esc stops the answer first")
            return False
        if session.waiting is not None:
            self.incoming.hint("a prompt is waiting already; Esc takes it back")
            return False
        if self.load is None and not self.load_first_choice():
            return False
        prompt = self.read_prompt(text)
        if prompt is None:
            return False
        if session.phase == "ready":
            self.incoming.begin_answer(prompt)
        else:
            self.incoming.wait_with(prompt)
            if session.phase in ("dead", "unloaded"):
                self.start_engine()
        return True

    @on(Prompt.Refused)
    def _refused(self, message: Prompt.Refused) -> None:
        self.listener.hint(message.why)

    @on(Prompt.Scroll)
    def _scroll(self, message: Prompt.Scroll) -> None:
        message.scroll(self.transcript)

    @on(Transcript.FollowChanged)
    def _follow_changed(self, message: Transcript.FollowChanged) -> None:
        self.state.set(below=not message.following)


def run_chat(
    engine: EngineClient,
    load: LoadOptions | None,
    answer: AnswerOptions,
    *,
    system: str | None = None,
    title: str = "",
    notice: str = "",
    history: History,
    settings: ChatSettings | None = None,
    resume: int | None = None,
) -> int:
    """Run the chat until the user leaves; return the exit code."""
    app = SpecchatApp(
        engine, load, answer, system, history=history, settings=settings, resume=resume, title=title,
        notice=notice,
    )  # fmt: skip
    try:
        result = app.run()
        if tell_of_crash(app):
            return FAILED
    finally:
        app.incoming.keep_so_far()
        save_the_rest(app.session)
        if app.fetching is not None:
            app.fetching.set()
        engine.close()
        history.close()
    if app.session.refused is not None:
        # The screen is gone with what it said: say it once more where the next command is typed.
        tell_failure("specchat", app.session.refused)
        return UNUSABLE
    return result if result is not None else (app.return_code or 0)
