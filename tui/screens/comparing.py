"""Two pairs answer the same prompt, one after the other and side by side on the screen."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from textual import events, on
from textual.app import ComposeResult
from textual.containers import Horizontal
from textual.content import Content
from textual.screen import Screen

from ...app.events import Command, Died, Event, Failed, Loaded
from ...app.requests import AnswerOptions, LoadOptions, Turn
from .. import texts
from ..actions import Action, CommandError, Say
from ..direct_drawing import DirectCompositor
from ..registry import COMPARE_FOOTER, COMPARE_KEYS, keys_by_name, understand
from ..session import Phase
from ..side_by_side import SIDES, Contender, SideBySide
from ..transcript.ink import printable
from ..widgets.lines import Lines
from ..widgets.prompt import Prompt
from ..widgets.side_view import SideView
from ..widgets.status import Keys

if TYPE_CHECKING:
    from ..app import SpecchatApp

HINT_SECONDS = 4.0
READY = "Enter asks both, one after the other; Enter again the other way round."
BUSY = "One at a time: two would take the processor from each other."
GONE = "The engine is gone; Esc leads back to the chat, which starts it again."
NO_RESULT = "No result: both sides have to answer to the end."

Choose = Callable[["ComparingScreen", int], None]
"""Lets the user choose what answers on a side."""


class ComparingScreen(Screen["LoadOptions | None"]):
    """Has the engine while it is open; what it ends with is what the engine then has loaded."""

    BLANK = True

    def __init__(
        self,
        chat: SpecchatApp,
        contenders: tuple[Contender, Contender],
        *,
        loaded: LoadOptions,
        title: str,
        prompt: str,
        system: str,
        options: AnswerOptions,
        choose: Choose,
        seeds: Callable[[], int],
    ) -> None:
        """A comparison.

        Args:
            chat: whose engine answers.
            contenders: what answers, left and right.
            loaded: what the engine has loaded.
            title: what is the same on both sides.
            prompt: what is offered to be asked.
            system: what the model is told first.
            options: how answers are made.
            choose: lets the user choose what answers on a side.
            seeds: a seed for answers above temperature 0 that have none.
        """
        super().__init__()
        self._compositor = DirectCompositor()
        self.contest = SideBySide(*contenders, loaded)
        self.chat, self._title, self._offered = chat, title, prompt
        self._system, self._options = system, options
        self._choose, self._seeds = choose, seeds
        self._leaving = False
        self._hint_until = 0.0
        self.sides = [SideView(side) for side in SIDES]
        self.prompt = Prompt(self._submit, self._carry_out, lambda _: (), lambda _: None, id="prompt")
        self._verdict = Lines(id="verdict")
        self._legend = Lines(id="legend")

    def compose(self) -> ComposeResult:
        """The two sides, and below them how it came out, the prompt, the keys."""
        yield Lines(id="compare-title")
        yield Horizontal(*self.sides, id="sides")
        yield self._legend
        yield self._verdict
        yield self.prompt
        yield Keys(COMPARE_FOOTER, id="keys")

    def on_mount(self) -> None:
        """Take the engine's news from here on."""
        self.query_one("#compare-title", Lines).show(
            [Content.assemble(("Compare  ", "bold $text-primary"), (printable(self._title), "$text-muted"))]
        )
        self._legend.show([texts.origin_legend()])
        self.prompt.keys = keys_by_name(self.chat.settings.keys, COMPARE_KEYS)
        self.prompt.put(self._offered)
        self.prompt.focus()
        self._show_origin(True)
        self.call_after_refresh(self._show_all)

    def _show_all(self) -> None:
        for place in range(len(self.sides)):
            self._present(place)
        self._draw_result()

    # What the engine says: `Listener`.

    @property
    def phase(self) -> Phase:
        """What the engine is doing for the comparison."""
        return self.contest.phase

    def take(self, event: Event) -> None:
        """One event."""
        contest, turn = self.contest, self.contest.turn
        if turn is None and not isinstance(event, Died):
            return
        stopping = contest.phase == "stopping"
        command = contest.take(event)
        if isinstance(event, Died):
            self.chat.incoming.died(event.message)
            if turn is not None:
                self.sides[turn].fail(event.message)
        elif turn is not None:
            if stopping and isinstance(event, (Loaded, Failed)):
                self.sides[turn].end("stopped")
            else:
                self.sides[turn].take(event)
        if command is not None:
            self._tell(command)
        if contest.turn != turn:
            self._turn_over()

    def draw(self, now: float) -> None:
        """Draw what has changed."""
        if self._hint_until and now >= self._hint_until:
            self._hint_until = 0.0
            self._draw_result()
        for side in self.sides:
            side.draw(now)

    def stop(self) -> None:
        """Stop the answer, and the round with it."""
        turn = self.contest.turn
        command = self.contest.stop()
        if command is not None and turn is not None:
            self.sides[turn].state.set(activity="stopping")
            self._tell(command)

    def hint(self, text: str) -> None:
        """Say something for a moment, in place of the result."""
        self._hint_until = time.monotonic() + HINT_SECONDS
        self._verdict.show([Content(text).stylize("$text-warning")])

    # What the user wants.

    def _submit(self, text: str) -> bool:
        """Ask both sides; the prompt stays, to be asked again."""
        contest = self.contest
        if contest.busy:
            self.hint("Esc stops the answers first")
        elif contest.phase == "dead":
            self.hint(GONE)
        elif (turns := self._turns(text)) is not None:
            self.chat.pacer.restart(time.thread_time())
            command = contest.begin(turns, self._options, self._seeds())
            self._draw_result()
            first = contest.turn
            assert first is not None
            self.sides[1 - first].wait(f"waits for the {SIDES[first]} one")
            self.sides[first].begin()
            self._tell(command)
        return False

    def _turns(self, text: str) -> tuple[Turn, ...] | None:
        try:
            wish = understand(text)
        except CommandError:
            wish = None
        if not isinstance(wish, Say):
            self.hint("commands are for the chat, where Esc leads back to; // sends a slash")
            return None
        prompt = self.chat.read_prompt(wish.text, self.hint)
        if prompt is None:
            return None
        first = (Turn("system", self._system),) if self._system else ()
        return (*first, Turn("user", prompt.text))

    def _carry_out(self, action: Action) -> None:
        getattr(self, f"action_{action.name}")()

    def action_compare_left(self) -> None:
        """Choose what answers at the left."""
        self._change(0)

    def action_compare_right(self) -> None:
        """Choose what answers at the right."""
        self._change(1)

    def action_compare_back(self) -> None:
        """Stop the answers; with none, leave."""
        if not self.contest.busy:
            self._leave()
        elif self.contest.phase == "stopping":
            self._leaving = True  # as soon as the engine has stopped
        else:
            self.stop()

    def action_origin(self) -> None:
        """Change between Markdown and colours by origin."""
        self._show_origin(self.sides[0].transcript.view == "markdown")

    def action_thoughts(self) -> None:
        """Unfold or fold what models thought."""
        shown = not self.sides[0].transcript.thoughts
        for side in self.sides:
            side.transcript.show_thoughts(shown)

    def change(self, side: int, contender: Contender) -> None:
        """Put another contender on a side."""
        self.contest.change(side, contender)
        self._show_all()

    def _change(self, side: int) -> None:
        if self.contest.busy:
            self.hint("Esc stops the answers first")
        else:
            self._choose(self, side)

    def on_key(self, event: events.Key) -> None:
        """Keys that come while nothing has the focus."""
        if (action := self.prompt.keys.get(event.key)) is not None and action.where != "prompt":
            event.stop()
            self._carry_out(action)
        self.prompt.focus()

    @on(Prompt.Typed)
    def _typed(self, message: Prompt.Typed) -> None:
        message.stop()  # nothing is completed here

    @on(Prompt.Scroll)
    def _scroll(self, message: Prompt.Scroll) -> None:
        message.stop()
        for side in self.sides:
            message.scroll(side.transcript)

    # What is seen.

    def _present(self, place: int) -> None:
        drafted = self.contest.contenders[place].drafting.speculate != "off"
        self.sides[place].wait("has not answered yet")
        self.sides[place].state.set(state="drafting" if drafted else "plain", reason="")

    def _turn_over(self) -> None:
        """Another side has its turn, or none has."""
        contest = self.contest
        if contest.turn is not None:
            self.sides[contest.turn].begin()
        elif self._leaving:
            self._leave()
        else:
            for side in self.sides:
                if side.waiting:
                    side.wait("was not asked")
            self._draw_result(over=True)

    def _draw_result(self, *, over: bool = False) -> None:
        contest = self.contest
        for place, view in enumerate(self.sides):
            view.introduce(contest.contenders[place].name, len(contest.rounds), contest.median(place))
        speeds, same = contest.verdict()
        if contest.phase == "dead":
            lines = [Content(GONE).stylize("$text-warning")]
        elif over and not speeds:
            lines = [Content(NO_RESULT).stylize("$text-warning")]
        elif contest.busy and not speeds:
            lines = [Content(BUSY).stylize("$text-muted")]
        elif speeds:
            lines = [Content(speeds).stylize("bold"), Content(same).stylize("$text-muted")]
        else:
            lines = [Content(READY).stylize("$text-muted")]
        self._verdict.show(lines)

    def _show_origin(self, on: bool) -> None:
        self._legend.set_class(on, "shown")
        for side in self.sides:
            side.transcript.show_view("origin" if on else "markdown")

    def _tell(self, command: Command) -> None:
        self.chat.send(command)
        if self.chat.session.phase == "dead" and self.contest.phase != "dead":
            self.take(Died("The engine does not answer."))

    def _leave(self) -> None:
        self.chat.listener = self.chat.incoming
        self.dismiss(self.contest.loaded)
