"""The chat: draws what the engine says, and tells it what the user wants."""

from __future__ import annotations

import sys
import time

from textual import on
from textual.app import App, ComposeResult
from textual.containers import Horizontal
from textual.content import Content
from textual.screen import Screen

from ..app.events import Command, Load
from ..app.exit_codes import UNUSABLE
from ..app.requests import AnswerOptions, LoadOptions
from . import texts, themes
from .actions import (
    Clear,
    CommandError,
    Help,
    Intent,
    Leave,
    Say,
    SetDraftMax,
    SetSpeculate,
    SetSystem,
    SetTemperature,
    SetTheme,
    bindings,
    understand,
)
from .engine_client import EngineClient
from .incoming import Incoming
from .pacing import SHORTEST, RefreshPacer
from .session import Session
from .transcript.code import warm_up
from .transcript.entries import NoticeEntry, NoticeKind
from .transcript.widget import Transcript
from .widgets.lines import Lines
from .widgets.panel import Panel
from .widgets.prompt import Prompt
from .widgets.status import CompactFigures, Keys, StateLine

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
        load: LoadOptions,
        answer: AnswerOptions,
        system: str | None = None,
        *,
        title: str = "",
        notice: str = "",
        theme: str = themes.DARK.name,
        delays: tuple[float, float, float] = (SHORTEST, LOADING_DELAY, IDLE_DELAY),
    ) -> None:
        """`delays` are the seconds between looks at the engine: answering at the least, loading, idle."""
        super().__init__()
        self.animation_level = "none"
        for known in (themes.DARK, themes.LIGHT):
            self.register_theme(known)
        self.theme = theme
        if title:
            self.title = title
        self.engine = engine
        self.load = load
        self.session = Session(answer, system)
        self.pacer = RefreshPacer(shortest=delays[0])
        self._delays = delays
        self._notice = notice
        self.incoming = Incoming(self)

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
        yield Prompt(self._submit, id="prompt")
        yield Keys(id="keys")

    def on_mount(self) -> None:
        """Ask for nothing before the first paint."""
        self.transcript = self.query_one(Transcript)
        self.panel = self.query_one(Panel)
        self.state = self.query_one(StateLine)
        self.figures = self.query_one(CompactFigures)
        self.prompt = self.query_one(Prompt)
        self.query_one("#legend", Lines).show([texts.origin_legend()])
        self.prompt.focus()
        self.incoming.begin()
        if self._notice:
            self.say(self._notice)
        self.call_after_refresh(self._begin)

    def _begin(self) -> None:
        self.start_engine()
        self._tick()
        self.call_after_refresh(warm_up)

    def start_engine(self) -> None:
        """Start the engine's process where there is none, and load the models."""
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
        for event in self.engine.drain():
            self.incoming.take(event)
        self.incoming.draw(time.monotonic())

    def _tick(self) -> None:
        delay = self.pacer.next_delay(time.thread_time())
        self.look()
        if not self.session.busy:
            delay = self._delays[1 if self.session.phase == "loading" else 2]
        self.set_timer(delay, self._tick)

    def say(self, text: str | Content, kind: NoticeKind = "info") -> None:
        """Put a notice into the transcript."""
        self.transcript.add(NoticeEntry(text, kind))

    # What the user wants.

    def _submit(self, text: str) -> bool:
        """Carry out what was typed; say whether the prompt has done its part."""
        try:
            wish = understand(text)
        except CommandError as error:
            self.say(str(error), "warning")
        else:
            if not isinstance(wish, Say):
                self._carry_out(wish)
            elif not self._ask(wish.text):
                return False
        self.transcript.to_end()
        return True

    def _ask(self, text: str) -> bool:
        session = self.session
        if session.busy:
            self.incoming.hint("Esc stops the answer first")
            return False
        if session.waiting is not None:
            self.incoming.hint("a prompt is waiting already; Esc takes it back")
            return False
        if session.phase == "ready":
            self.incoming.begin_answer(text)
        else:
            self.incoming.wait_with(text)
            if session.phase in ("dead", "unloaded"):
                self.start_engine()
        return True

    def _carry_out(self, wish: Intent) -> None:
        session = self.session
        options = session.options
        match wish:
            case Help():
                self.action_help()
            case Clear():
                self.incoming.clear()
            case Leave():
                self.exit(0)
            case SetSystem(text=None):
                self.say(f"System prompt: {session.system}" if session.system else "No system prompt.")
            case SetSystem(text=text):
                session.system = text or ""
                self.say("The next answer gets this system prompt." if text else "The system prompt is gone.")
            case SetTemperature(value=None):
                self.say(f"Temperature: {options.sampling.temperature:g}")
            case SetTemperature(value=float(value)):
                session.set_temperature(value)
                self.say(f"Temperature {value:g} from the next answer on.")
            case SetSpeculate(mode=None):
                self.say(f"Drafting: {options.drafting.speculate}")
            case SetSpeculate(mode=str(mode)):
                session.set_speculate(mode)
                self.say(
                    {
                        "auto": "From the next answer on drafts are made where they pay.",
                        "off": "No drafts from the next answer on.",
                        "always": "From the next answer on drafts are always made.",
                    }[mode]
                )
            case SetDraftMax(value=None):
                most = options.drafting.draft_max
                self.say(f"At most {most} draft tokens per pass." if most else "As many draft tokens as pay.")
            case SetDraftMax(value=int(value)):
                session.set_draft_max(value)
                self.say(f"At most {value} draft tokens per pass from the next answer on.")
            case SetTheme(name=None):
                self.say("/theme dark or /theme light")
            case SetTheme(name=str(name)):
                self.theme = name

    def action_help(self) -> None:
        """Show the keys and the commands."""
        self.say(texts.help_text())
        self.transcript.to_end()

    def action_stop(self) -> None:
        """Stop the answer; with none, take back the waiting prompt, or go back to the end."""
        if self.session.phase == "answering":
            self.incoming.stop()
        elif self.session.waiting is not None:
            self.prompt.put(self.incoming.take_back())
        else:
            self.screen.clear_selection()
            self.transcript.to_end()
        self.prompt.focus()

    def action_toggle_origin(self) -> None:
        """Change between Markdown and colours by origin."""
        origin = self.transcript.view == "markdown"
        self.query_one("#legend").set_class(origin, "shown")
        self.transcript.show_view("origin" if origin else "markdown")

    def action_restart(self) -> None:
        """Start the engine again, or load again."""
        if self.session.phase in ("dead", "unloaded"):
            self.start_engine()
            self.transcript.to_end()
        else:
            self.incoming.hint("the engine is running")

    def action_copy(self) -> None:
        """Copy what is selected, in the transcript or in the prompt; with nothing selected, stop."""
        text = self.screen.get_selected_text() or self.prompt.selected_text
        if text:
            self.copy_to_clipboard(text)
            self.incoming.hint(f"{len(text)} characters sent to the terminal's clipboard")
        elif self.session.phase == "answering":
            self.incoming.stop()
        else:
            self.incoming.hint("nothing is selected; Ctrl+Q leaves")

    async def action_quit(self) -> None:
        """Leave at once; whoever started the chat closes the engine."""
        self.exit(0)

    @on(Prompt.Scroll)
    def _scroll(self, message: Prompt.Scroll) -> None:
        transcript = self.transcript
        if message.to == "start":
            transcript.scroll_home(animate=False)
        elif message.to == "end":
            transcript.to_end()
        else:
            step = max(1, transcript.size.height - 2)
            transcript.scroll_relative(y=message.pages * step, animate=False)

    @on(Transcript.FollowChanged)
    def _follow_changed(self, message: Transcript.FollowChanged) -> None:
        self.state.set(below=not message.following)


def run_chat(
    engine: EngineClient,
    load: LoadOptions,
    answer: AnswerOptions,
    *,
    system: str | None = None,
    title: str = "",
    notice: str = "",
) -> int:
    """Run the chat until the user leaves; return the exit code."""
    app = SpecchatApp(engine, load, answer, system, title=title, notice=notice)
    try:
        result = app.run()
    finally:
        engine.close()
    if app.session.refused is not None:
        # The screen is gone with what it said: say it once more where the next command is typed.
        print(f"specchat: {app.session.refused}", file=sys.stderr)
        return UNUSABLE
    return result if result is not None else (app.return_code or 0)
