"""Actions that change how answers are made and how the screen looks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .. import themes
from ..actions import CommandError
from ..parameters import BY_NAME, PARAMETERS, Parameter
from ..screens.picker import Choice, Picked, Picker

if TYPE_CHECKING:
    from ...app.requests import AnswerOptions
    from ..app import SpecchatApp

SPECULATING = {
    "auto": "From the next answer on drafts are made where they pay.",
    "off": "No drafts from the next answer on.",
    "always": "From the next answer on drafts are always made.",
}


def set_parameter(parameter: Parameter):
    """The action that shows or changes one parameter."""

    def run(app: SpecchatApp, typed: str | None) -> None:
        session = app.session
        if typed is None:
            app.say(f"{parameter.title}: {parameter.text(session.options)}")
            return
        value = parameter.parse(typed)
        session.options = parameter.set(session.options, value)
        if parameter.name == "spec":
            app.say(SPECULATING[str(value)])
        else:
            app.say(f"{parameter.title} {parameter.text(session.options)} from the next answer on.")

    return run


def parameters(app: SpecchatApp, _value: object) -> None:
    """All parameters on one screen."""
    from ..screens.parameters import ParametersScreen

    session = app.session

    def used(result: tuple[AnswerOptions, str] | None) -> None:
        app.prompt.focus()
        if result is None:
            return
        options, system = result
        changed = [
            f"{each.title.lower()} {each.text(options)}"
            for each in PARAMETERS
            if each.value(options) != each.value(session.options)
        ]
        session.options = options
        if system != session.system:
            session.set_system(system)
            changed.append("the system prompt")
        app.say(f"From the next answer on: {', '.join(changed)}." if changed else "Nothing has changed.")

    app.push_screen(ParametersScreen(session.options, session.system, app.presets), used)


def preset(app: SpecchatApp, argument: str | None) -> None:
    """Use the parameters saved under a name, or save them."""
    session, presets = app.session, app.presets
    if argument is None:
        names = presets.names()
        if not names:
            app.say("There are no presets yet; /preset save NAME keeps the parameters as they are.")
            return

        def picked(result: Picked | None) -> None:
            app.prompt.focus()
            if result is not None:
                preset(app, result.value)

        app.push_screen(Picker("Presets", [Choice(name, name) for name in names]), picked)
        return
    word, _, name = argument.partition(" ")
    if word == "save":
        if not name.strip():
            raise CommandError("/preset save takes a name")
        problem = presets.save(name.strip(), session.options, session.system)
        app.say(problem or f"The parameters are saved as “{name.strip()}”.", "error" if problem else "info")
        return
    session.options, system = presets.load(argument, session.options, session.system)
    if system != session.system:
        session.set_system(system)
    app.say(f"From the next answer on the preset “{argument}”.")


def system(app: SpecchatApp, text: str | None) -> None:
    """Show or change what the model is told first."""
    session = app.session
    if text is None:
        app.say(f"System prompt: {session.system}" if session.system else "No system prompt.")
        return
    session.set_system("" if text.lower() == "none" else text)
    app.say("The next answer gets this system prompt." if session.system else "The system prompt is gone.")


def theme(app: SpecchatApp, name: str | None) -> None:
    """Change the colours."""
    if name is not None:
        if name not in themes.BY_NAME:
            raise CommandError(f"/theme is {', '.join(themes.BY_NAME)}, not “{name}”")
        app.theme = themes.BY_NAME[name].name
        return

    def picked(result: Picked | None) -> None:
        app.prompt.focus()
        if result is not None:
            app.theme = themes.BY_NAME[result.value].name

    shades = {True: "dark", False: "light"}
    choices = [
        Choice(name, name, f"a {shades[each.dark]} one", current=each.name == app.theme)
        for name, each in themes.BY_NAME.items()
    ]
    app.push_screen(Picker("Themes", choices), picked)


def origin(app: SpecchatApp, _value: object) -> None:
    """Change between Markdown and colours by origin."""
    on = app.transcript.view == "markdown"
    app.query_one("#legend").set_class(on, "shown")
    app.transcript.show_view("origin" if on else "markdown")


def thoughts(app: SpecchatApp, _value: object) -> None:
    """Unfold or fold what models thought before they answered."""
    shown = not app.transcript.thoughts
    app.transcript.show_thoughts(shown)
    app.incoming.hint("what a model thinks is shown" if shown else "what a model thinks is folded away")


def panel(app: SpecchatApp, _value: object) -> None:
    """Show or hide the panel."""
    app.screen.toggle_class("-no-panel")


def help_me(app: SpecchatApp, _value: object) -> None:
    """Show the keys and the commands."""
    from ..texts import help_lines
    from ..transcript.entries import HelpEntry

    entry, transcript = HelpEntry(help_lines(app.settings.keys)), app.transcript
    transcript.add(entry)

    def from_its_start() -> None:
        transcript.scroll_to(y=transcript.virtual_size.height - len(entry.lines), animate=False)

    app.call_after_refresh(from_its_start)


def palette(app: SpecchatApp, _value: object) -> None:
    """Find an action by its name."""
    from ..registry import ACTIONS

    choices = [
        Choice(
            each,
            each.help[:1].upper() + each.help[1:],
            " · ".join(filter(None, (each.shown, each.command and each.usage))),
            each.name,
        )
        for each in ACTIONS
        if each.run is not None
    ]

    def picked(result: Picked | None) -> None:
        app.prompt.focus()
        if result is None:
            return
        argument = result.value.argument
        if argument and not argument.startswith("["):
            app.prompt.put(f"/{result.value.command} ")
        else:
            app.do(result.value)

    app.push_screen(Picker("What would you like to do?", choices), picked)


def words_of(name: str):
    """What may stand after a parameter's command."""
    return lambda _app: BY_NAME[name].choices
