"""The branch of the conversation that is in view, as entries of the transcript."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ..app.history import Message
from . import texts
from .transcript.entries import AnswerEntry, ContextEntry, Entry, PromptEntry

if TYPE_CHECKING:
    from .app import SpecchatApp

UNANSWERED = "no answer yet; F5 answers it"


class BranchView:
    """The entries of the messages in view, in order, and the line from which on the model sees them."""

    def __init__(self, app: SpecchatApp) -> None:
        self._app = app
        self.said: list[Entry] = []
        self._line: ContextEntry | None = None

    def show(self, messages: Sequence[Message], versions: Sequence[str], unanswered: bool) -> None:
        """Show these messages, with which version each is, in place of all that is shown."""
        self.said = [self._entry(message) for message in messages]
        self._line = None
        if unanswered:
            self.mark_last(UNANSWERED)
        for entry, version in zip(self.said, versions, strict=True):
            entry.version = version
        self._app.transcript.show(self.said)
        self._app.prompt.recall([entry.text for entry in self.said if isinstance(entry, PromptEntry)])

    def mark_last(self, mark: str) -> None:
        """Say something of the last prompt."""
        last = self.said[-1] if self.said else None
        if isinstance(last, PromptEntry):
            last.mark = mark
            if last in self._app.transcript.entries:
                self._app.transcript.changed(last)

    def tell_versions(self, versions: Sequence[str]) -> None:
        """Say of each message which version it is, where it has several."""
        for entry, version in zip(self.said, versions, strict=False):
            if entry.version != version:
                entry.version = version
                self._app.transcript.changed(entry)

    def cut(self, place: int) -> None:
        """Take the messages from this one on out of view."""
        for entry in self.said[place:]:
            self._app.transcript.drop(entry)
        del self.said[place:]
        self.seen_from(0)

    def forget(self) -> None:
        """Another conversation begins, and the transcript is empty."""
        self.said, self._line = [], None

    def seen_from(self, unseen: int) -> None:
        """Draw the line after so many messages that the model no longer sees; none where it sees all."""
        transcript = self._app.transcript
        if self._line is not None and self._line in transcript.entries:
            transcript.drop(self._line)
        self._line = None
        if 0 < unseen < len(self.said):
            self._line = ContextEntry(unseen)
            transcript.insert(self._line, self.said[unseen])

    def _entry(self, message: Message) -> Entry:
        record = message.record
        if message.role == "user":
            return PromptEntry(str(record.get("typed", message.text)), str(record.get("files", "")))
        entry = AnswerEntry()
        entry.unfolded = self._app.transcript.thoughts
        entry.in_thought = bool(record.get("in_thought", False))
        entry.finish(message.text, texts.mark(message.mark), texts.recorded_figures(record))
        return entry
