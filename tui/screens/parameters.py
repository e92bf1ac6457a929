"""The parameters of the next answer, all in one place, and presets of them."""

from __future__ import annotations

from textual import events, on
from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical, VerticalScroll
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Button, Input, Label, Select, Static, TextArea

from ...app.requests import AnswerOptions
from ..actions import CommandError
from ..parameters import BY_NAME, PARAMETERS
from ..presets import Presets
from ..transcript.ink import printable
from ..widgets.field import Field, LongField


class ParametersScreen(ModalScreen["tuple[AnswerOptions, str] | None"]):
    """Fields for every parameter and the system prompt; they count from the next answer on."""

    def __init__(self, options: AnswerOptions, system: str, presets: Presets) -> None:
        super().__init__()
        self._options, self._system, self._presets = options, system, presets

    def compose(self) -> ComposeResult:
        """One field under the other."""
        with Vertical(id="parameters"):
            title = Content("Parameters, from the next answer on").stylize("bold $text-primary")
            yield Static(title, id="parameters-title")
            with VerticalScroll(id="parameter-fields", can_focus=False):
                for each in PARAMETERS:
                    with Horizontal(classes="parameter"):
                        yield Label(each.title, classes="parameter-name")
                        text = each.text(self._options)
                        if each.choices:
                            yield Select(
                                [(word, word) for word in each.choices], value=text, allow_blank=False,
                                compact=True, id=f"parameter-{each.name}",
                            )  # fmt: skip
                        else:
                            yield Field(text, compact=True, id=f"parameter-{each.name}")
                        yield Label(each.help, classes="parameter-help")
                yield Label("System prompt", classes="parameter-name")
                yield LongField(self._system, compact=True, id="parameter-system")
            with Vertical(id="parameters-foot"):
                with Horizontal(id="presets"):
                    yield Select(
                        [(Content(printable(name)), name) for name in self._presets.names()], prompt="preset",
                        compact=True, id="preset-load",
                    )  # fmt: skip
                    yield Field(placeholder="save as preset: name, Enter", compact=True, id="preset-name")
                yield Static("", id="parameters-say")
                with Horizontal(id="parameters-end"):
                    yield Button("Use (Ctrl+S)", id="use", variant="primary", compact=True)
                    yield Button("Back (Esc)", id="back", compact=True)

    def on_mount(self) -> None:
        """Begin with the first field."""
        self.query_one("#parameter-temp").focus()

    def on_key(self, event: events.Key) -> None:
        """Esc leaves everything as it was, Ctrl+S takes it."""
        if event.key == "escape":
            event.stop()
            self.dismiss(None)
        elif event.key == "ctrl+s":
            event.stop()
            self._use()

    @on(Button.Pressed, "#back")
    def _back(self) -> None:
        self.dismiss(None)

    @on(Button.Pressed, "#use")
    def _use(self) -> None:
        if (options := self._read()) is not None:
            self.dismiss((options, self.query_one("#parameter-system", TextArea).text.strip()))

    @on(Input.Submitted)
    def _submitted(self, event: Input.Submitted) -> None:
        if event.input.id != "preset-name":
            self._use()
            return
        name = event.value.strip()
        options = self._read()
        if not name or options is None:
            return
        system = self.query_one("#parameter-system", TextArea).text.strip()
        problem = self._presets.save(name, options, system)
        self._say(problem or f"saved as “{name}”")

    @on(Select.Changed, "#preset-load")
    def _load(self, event: Select.Changed) -> None:
        if event.value is Select.NULL:
            return
        try:
            options, system = self._presets.load(str(event.value), self._options, self._system)
        except CommandError as error:
            self._say(str(error))
            return
        for each in PARAMETERS:
            text = each.text(options)
            field = self.query_one(f"#parameter-{each.name}")
            if isinstance(field, (Input, Select)):
                field.value = text
        self.query_one("#parameter-system", TextArea).text = system
        self._say(f"preset “{event.value}”")

    def _read(self) -> AnswerOptions | None:
        options = self._options
        for name, each in BY_NAME.items():
            field = self.query_one(f"#parameter-{name}")
            assert isinstance(field, (Input, Select))
            try:
                options = each.set(options, each.parse(str(field.value)))
            except CommandError as error:
                self._say(str(error))
                field.focus()
                return None
        return options

    def _say(self, text: str) -> None:
        self.query_one("#parameters-say", Static).update(Content(text).stylize("$text-warning"))
