"""Actions that compare: two pairs side by side, and what is to answer on a side."""

from __future__ import annotations

import secrets
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from ...app.events import Loaded
from ...app.requests import LoadOptions
from ..actions import CommandError
from ..screens.picker import Choice, Picked, Picker
from ..side_by_side import Contender, as_loaded, lookup_alone, plain, with_draft
from .models import as_listed, draft_choices, measured_here, models_here, usable_draft
from .talk import when_loaded

if TYPE_CHECKING:
    from ..app import SpecchatApp
    from ..screens.comparing import ComparingScreen

NONE, LOOKUP = "none", "lookup"


def compare(app: SpecchatApp, name: str | None) -> None:
    """Open the comparison: what is loaded at the left; at the right what is named, or plain decoding."""
    from ..screens.comparing import ComparingScreen  # the screen knows the registry, which knows this

    if not when_loaded(app, compare, name):
        return
    session, load = app.session, app.load
    loaded, drafting = session.loaded, session.options.drafting
    assert load is not None
    assert loaded is not None
    left = as_loaded(loaded, load, drafting)
    if name is not None:
        right = _named(app, load, name)
        if left.drafting == right.drafting and left.load is None and right.load is None:
            left = plain(drafting) if right != plain(drafting) else lookup_alone(drafting)
    else:
        right = lookup_alone(drafting) if left == plain(drafting) else plain(drafting)

    def left_it(now_loaded: LoadOptions | None) -> None:
        app.prompt.focus()
        if session.phase == "ready" and now_loaded != load:
            app.say("The comparison is over; what this chat answers with is loaded again.")
            app.start_engine()
            app.transcript.to_end()

    prompts = [message for message in session.messages if message.role == "user"]
    screen = ComparingScreen(
        app,
        (left, right),
        loaded=load,
        title=_title(app, loaded),
        prompt=str(prompts[-1].record.get("typed", prompts[-1].text)) if prompts else "",
        system=session.system,
        options=session.options,
        choose=_choose,
        seeds=lambda: secrets.randbits(32),
    )
    app.push_screen(screen, left_it)
    app.listener = screen


def _title(app: SpecchatApp, loaded: Loaded) -> str:
    temperature = app.session.options.sampling.temperature
    target = f"{loaded.target.name} {loaded.target.quantization}"
    return f"{target} · temperature {temperature:g} · the prompt by itself, without the conversation"


def _named(app: SpecchatApp, load: LoadOptions, name: str) -> Contender:
    """What a word or a file's name stands for; raises `CommandError` for a draft that cannot serve."""
    drafting = app.session.options.drafting
    if name.lower() == NONE:
        return plain(drafting)
    if name.lower() == LOOKUP:
        return lookup_alone(drafting)
    name = as_listed(app, name)
    header = usable_draft(load.target, name)
    return with_draft(f"{header.name} {header.quantization}", replace(load, draft=name), drafting)


def _choose(screen: ComparingScreen, side: int) -> None:
    """Choose what answers on a side, among what is on this disk."""
    app = screen.chat
    load, loaded = app.load, app.session.loaded
    assert load is not None
    assert loaded is not None
    target = loaded.target.path
    found = [model for model in models_here(app) if str(model.path) != target]
    first = [
        Choice(NONE, "No draft", "plain decoding by the same target"),
        Choice(LOOKUP, "Lookup alone", "the text so far drafts where it repeats itself"),
    ]
    screen.hint("looking at the models on this disk")

    def picked(result: Picked | None) -> None:
        screen.prompt.focus()
        if result is None:
            return
        try:
            screen.change(side, _named(app, load, str(result.value)))
        except CommandError as error:
            screen.hint(str(error))

    def show(choices: list[Choice]) -> None:
        if app.screen is screen:
            app.push_screen(Picker("What is to draft on this side?", choices), picked)

    advice = measured_here(app)

    def look() -> None:
        app.call_from_thread(show, [*first, *draft_choices(Path(target), found, advice)])

    app.run_worker(look, thread=True, exit_on_error=False)
