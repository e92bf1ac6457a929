"""Where the user types."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from textual import events
from textual.message import Message
from textual.widgets import TextArea

from ..actions import Action
from ..completion import Completion
from ..transcript.widget import Transcript

MOST_CHARACTERS, MOST_LINES = 256 * 1024, 20_000
"""Of a pasted prompt: more than most contexts hold; the text area lays all of it out at every key."""

PLACEHOLDER = "Ask something.  Enter sends, Ctrl+J makes a new line, / lists the commands, @ names a file"
SHORT_PLACEHOLDER = "Enter sends · Ctrl+J new line · / commands"


class Prompt(TextArea):
    """A text that grows with its lines; Enter sends it, and Up brings back the one before."""

    class Scroll(Message):
        """The transcript is to be scrolled: by pages, or to one of its ends."""

        def __init__(self, pages: int = 0, to: str = "") -> None:
            super().__init__()
            self.pages = pages
            self.to = to

        def scroll(self, transcript: Transcript) -> None:
            """Do so."""
            if self.to == "start":
                transcript.to_start()
            elif self.to == "end":
                transcript.to_end()
            else:
                step = max(1, transcript.size.height - 2)
                transcript.scroll_relative(y=self.pages * step, animate=False)

    class Refused(Message):
        """What was pasted is not taken."""

        def __init__(self, why: str) -> None:
            super().__init__()
            self.why = why

    class Typed(Message):
        """The text has changed, and with it what it may be completed to."""

    def __init__(
        self,
        submit: Callable[[str], bool],
        carry_out: Callable[[Action], None],
        complete: Callable[[str], Sequence[Completion]],
        mention: Callable[[str], str | None],
        *,
        id: str | None = None,
    ) -> None:
        """A prompt.

        Args:
            submit: takes a text to be sent; the text stays where it is when that says no.
            carry_out: does what a key of the app is for.
            complete: what the text before the cursor may be completed to.
            mention: how a pasted text is mentioned, if it is the path of a file.
            id: Textual's.
        """
        super().__init__(id=id, compact=True, highlight_cursor_line=False, placeholder=PLACEHOLDER)
        self._submit = submit
        self._carry_out, self._complete, self._mention = carry_out, complete, mention
        self.keys: dict[str, Action] = {}
        """What each key does; Textual's text area knows the others."""
        self.completions: Sequence[Completion] = ()
        self._chosen = 0
        # A cursor that blinks wakes the program twice a second, and while an answer is decoded that
        # time is the decoder's.
        self.cursor_blink = False
        self._sent: list[str] = []
        self._at = 0
        self._unsent = ""

    def on_key(self, event: events.Key) -> None:
        """Act on a key in the order in which it was typed.

        Textual runs bindings in the app's own queue: a line pasted by a terminal that does not mark
        pastes, or typed fast, would be sent without its last letters.
        """
        action = self.keys.get(event.key)
        if action is None:
            return
        event.stop()
        event.prevent_default()
        if action.where == "prompt":
            getattr(self, f"action_{action.name}")()
        else:
            self._carry_out(action)

    def on_text_area_changed(self) -> None:
        """See what the text may be completed to."""
        before = self.get_text_range((0, 0), self.cursor_location)
        self.completions = self._complete(before) if before.startswith("/") or "@" in before else ()
        self._chosen = 0
        self.post_message(self.Typed())

    def action_complete(self) -> None:
        """Put the first completion in place of what is typed; where there is none, do nothing."""
        if not self.completions:
            return
        chosen = self.completions[self._chosen]
        row, column = self.cursor_location
        self.replace(chosen.text, (row, max(0, column - chosen.replaces)), (row, column))

    def recall(self, prompts: Sequence[str]) -> None:
        """Let Up bring these back, the last one first."""
        self._sent = list(prompts)
        self._at = len(self._sent)

    def mention(self, path: str) -> None:
        """Name a file that is to go along."""
        before = self.text[-1:]
        self.insert(f"{'' if not before or before.isspace() else ' '}{path} ")

    def on_resize(self) -> None:
        """Say the keys in as many words as there is room for."""
        self.placeholder = PLACEHOLDER if self.size.width > len(PLACEHOLDER) else SHORT_PLACEHOLDER

    def _remember(self, text: str) -> None:
        """Let Up bring this prompt back."""
        if not self._sent or self._sent[-1] != text:
            self._sent.append(text)
        self._at = len(self._sent)
        self._unsent = ""

    def put(self, text: str) -> None:
        """Show a text to be edited."""
        self.load_text(text)
        self.move_cursor(self.document.end)

    def action_submit(self) -> None:
        """Send what is typed."""
        text = self.text.strip()
        if text and self._submit(text):
            self._remember(text)
            self.clear()

    def action_newline(self) -> None:
        """Begin a new line."""
        self.insert("\n")

    def action_earlier(self) -> None:
        """One line up, or the prompt before."""
        if self._at and self.navigator.is_first_wrapped_line(self.cursor_location):
            if self._at == len(self._sent):
                self._unsent = self.text
            self._at -= 1
            self.put(self._sent[self._at])
        else:
            self.action_cursor_up()

    def action_later(self) -> None:
        """One line down, or the prompt after."""
        if self._at < len(self._sent) and self.navigator.is_last_wrapped_line(self.cursor_location):
            self._at += 1
            self.put(self._unsent if self._at == len(self._sent) else self._sent[self._at])
        else:
            self.action_cursor_down()

    def _too_long(self, pasted: str) -> str:
        """Why a paste is not taken; empty if it is."""
        characters, lines = len(pasted) + len(self.text), pasted.count("\n") + self.document.line_count
        if characters <= MOST_CHARACTERS and lines <= MOST_LINES:
            return ""
        much = f"{characters:,} characters, and a prompt takes {MOST_CHARACTERS:,}"
        if lines > MOST_LINES:
            much = f"{lines:,} lines, and a prompt takes {MOST_LINES:,}"
        return f"not pasted: {much}; paste a part of it"

    def action_page_up(self) -> None:
        """Scroll the transcript up."""
        self.post_message(self.Scroll(pages=-1))

    def action_page_down(self) -> None:
        """Scroll the transcript down."""
        self.post_message(self.Scroll(pages=1))

    def action_to_start(self) -> None:
        """Show the start of the transcript."""
        self.post_message(self.Scroll(to="start"))

    def action_to_end(self) -> None:
        """Show the end of the transcript."""
        self.post_message(self.Scroll(to="end"))

    def action_end(self) -> None:
        """To the end of the line; from there, to the end of the transcript."""
        if self.cursor_at_end_of_line:
            self.post_message(self.Scroll(to="end"))
        else:
            self.action_cursor_line_end()

    def on_paste(self, event: events.Paste) -> None:
        """Take line ends as they come from other systems; the text area then inserts the text."""
        event.text = event.text.replace("\r\n", "\n").replace("\r", "\n")
        if problem := self._too_long(event.text):
            event.prevent_default()
            event.stop()
            self.post_message(self.Refused(problem))
            return
        if (mention := self._mention(event.text)) is not None:
            event.text = f"{mention} "
