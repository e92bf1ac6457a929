"""Actions on what is loaded: another target, another draft, a model that is not here yet."""

from __future__ import annotations

import os
import threading
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from ...app.catalog import (
    FoundModel,
    ModelRow,
    Place,
    as_draft,
    best_first,
    default_places,
    describe,
    find_models,
)
from ...app.downloading import DownloadCancelled, download
from ...app.known_models import HubFile, Known, known_models
from ...app.recommending import Advice, recommended_draft
from ...app.remembered import Remembered, default_path
from ...app.requests import LoadOptions
from ...models.errors import ModelFileError, SpecchatError
from ...models.gguf_file import GgufHeader, read_header
from ...models.locate import locate_model
from ...models.pair import judge
from .. import figures
from ..actions import CommandError
from ..screens.picker import Choice, Picked, Picker

if TYPE_CHECKING:
    from ..app import SpecchatApp


def pick_target(app: SpecchatApp, name: str | None) -> None:
    """Load a target by its name, or choose one of those on the disk."""
    if app.session.busy:
        app.incoming.hint("Esc stops the answer first")
        return
    if name is not None:
        use_target(app, as_listed(app, name))
        return
    found = models_here(app)
    here = {model.path.name for model in found}
    current = app.session.loaded.target.path if app.session.loaded else ""
    picker = Picker(
        "Which model is to answer?",
        [
            *(_found_choice(model, current) for model in found),
            *(_download_choice(known) for known in known_models() if known.target.file not in here),
        ],
        empty="No model fits; /model FILE takes any GGUF file.",
    )

    def picked(result: Picked | None) -> None:
        app.prompt.focus()
        if result is None:
            return
        if isinstance(result.value, Known):
            fetch(app, result.value)
        else:
            use_target(app, result.value)

    app.push_screen(picker, picked)

    def look() -> None:
        for model in found:
            row = describe(model, app.headers)
            app.call_from_thread(picker.update, str(model.path), _row_choice(row, current))

    app.run_worker(look, thread=True, exit_on_error=False)


def use_target(app: SpecchatApp, name: str) -> None:
    """Load this target, without a draft; one that cannot be loaded leaves everything as it was."""
    try:
        read_header(locate_model(name))
    except SpecchatError as error:
        app.say(str(error), "error")
        return
    before = app.load or LoadOptions(name)
    app.load = replace(before, target=name, draft=None)
    app.start_engine()
    app.transcript.to_end()
    if before.draft is not None:
        app.say("It is loaded without a draft; /draft chooses one that fits.")


def pick_draft(app: SpecchatApp, name: str | None) -> None:
    """Load a draft by its name, none, or choose one of those on the disk."""
    session = app.session
    if session.busy:
        app.incoming.hint("Esc stops the answer first")
        return
    if app.load is None or session.loaded is None:
        app.incoming.hint("a target comes first: F4")
        return
    if name is not None:
        use_draft(app, None if name.lower() == "none" else as_listed(app, name))
        return
    target_path = session.loaded.target.path
    found = [model for model in models_here(app) if str(model.path) != target_path]
    app.incoming.hint("looking at the models on this disk")
    advice = measured_here(app)
    current = session.loaded.draft.path if session.loaded.draft else ""
    none = Choice(
        None, "No draft", "the text so far still drafts where it repeats itself", current=not current
    )

    def look() -> None:
        choices = [none, *draft_choices(Path(target_path), found, advice, current)]
        app.call_from_thread(_show_drafts, app, choices)

    app.run_worker(look, thread=True, exit_on_error=False)


def as_listed(app: SpecchatApp, name: str) -> str:
    """The path of a model that is named as the lists show it; any other name as it is."""
    return next((str(model.path) for model in models_here(app) if model.name == name), name)


def measured_here(app: SpecchatApp) -> Advice | None:
    """What a comparison found of drafts for the target that is loaded."""
    loaded = app.session.loaded
    return recommended_draft(loaded.target, Remembered(default_path())) if loaded else None


def use_draft(app: SpecchatApp, name: str | None) -> None:
    """Load this draft beside the target; one that cannot serve it leaves everything as it was."""
    assert app.load is not None
    if name is not None:
        try:
            usable_draft(app.load.target, name)
        except CommandError as error:
            app.say(str(error), "error")
            return
    app.load = replace(app.load, draft=name)
    app.start_engine()
    app.transcript.to_end()


def usable_draft(target: str, name: str) -> GgufHeader:
    """The header of a draft that can serve the target.

    Raises:
        CommandError: it cannot, and why.
    """
    try:
        draft = read_header(locate_model(name))
        verdict = judge(read_header(locate_model(target)), draft)
    except SpecchatError as error:
        raise CommandError(str(error)) from None
    if not verdict.usable:
        raise CommandError(f"{draft.path.name} cannot draft here. {' '.join(verdict.reasons[:2])}")
    return draft


def _show_drafts(app: SpecchatApp, choices: list[Choice]) -> None:
    def picked(result: Picked | None) -> None:
        app.prompt.focus()
        if result is not None:
            use_draft(app, result.value)

    app.incoming.rest()
    app.push_screen(Picker("Which model is to draft?", choices), picked)


def fetch(app: SpecchatApp, known: Known) -> None:
    """Download a pair, then load it; Esc stops, and the next time it goes on from there."""
    if app.fetching is not None:
        app.incoming.hint("a download is under way already; Esc stops it")
        return
    app.fetching = stop = threading.Event()
    what = "the target and its draft" if known.draft else "a target without a draft"
    app.say(f"Downloading {known.name}, {what}, {figures.size(known.size_bytes)}. Esc stops.")

    def ended(paths: list[Path], problem: str) -> None:
        app.fetching = None
        if problem:
            app.say(problem, "error")
            return
        if app.engine_busy:
            app.say(f"{known.name} is here; F4 and /draft load it once the answer has ended.")
            return
        target, *drafts = map(str, paths)
        draft = drafts[0] if drafts else None
        app.load = replace(app.load or LoadOptions(target), target=target, draft=draft)
        app.start_engine()
        app.transcript.to_end()

    def run() -> None:
        paths: list[Path] = []
        try:
            for file in known.files:
                paths.append(_fetch_one(app, file, stop))
        except DownloadCancelled:
            app.call_from_thread(ended, paths, "The download was stopped; another try goes on from there.")
        except SpecchatError as error:
            app.call_from_thread(ended, paths, str(error))
        else:
            app.call_from_thread(ended, paths, "")

    app.run_worker(run, thread=True, exit_on_error=False)


def _fetch_one(app: SpecchatApp, file: HubFile, stop: threading.Event) -> Path:
    """Download a file, saying once a second how far it is."""
    told = 0.0

    def on_progress(done: int, total: int) -> None:
        nonlocal told
        if (now := time.monotonic()) - told >= 1.0 or done >= total:
            told = now
            shown = f"downloading, {figures.size(done)} of {figures.size(total)}, Esc stops"
            app.call_from_thread(app.incoming.hint, shown)

    return download(file.repository, file.file, on_progress=on_progress, cancelled=stop.is_set)


def _download_choice(known: Known) -> Choice:
    size = figures.size(known.size_bytes)
    facts = f"download{' with its draft' if known.draft else ''}, {size} · {known.licence}"
    return Choice(known, known.name, facts, f"{known.target.repository} {known.target.file}")


def models_here(app: SpecchatApp) -> list[FoundModel]:
    """The models on this disk, first those that this chat has used, wherever they lie."""
    used = [Place("used in this chat", Path(path)) for path in app.session.used]
    return find_models([*used, *default_places(os.environ, Path.home(), app.settings.model_folders)])


def _found_choice(model: FoundModel, current: str) -> Choice:
    path = str(model.path)
    facts = f"{figures.size(model.size_bytes)} · {model.place}"
    return Choice(path, model.name, facts, path, current=path == current)


def _row_choice(row: ModelRow, current: str) -> Choice:
    found = row.found
    if not row.usable:
        return Choice(str(found.path), found.name, f"cannot be used: {row.why_not}", usable=False)
    facts = (
        row.quantization, f"{figures.parameters(row.parameters)} parameters", figures.size(found.size_bytes),
        found.place,
    )  # fmt: skip
    path = str(found.path)
    return Choice(path, found.name, " · ".join(facts), f"{row.name} {path}", current=path == current)


def draft_choices(
    target_path: Path, found: list[FoundModel], advice: Advice | None, current: str = ""
) -> list[Choice]:
    """The drafts by their paths: those that fit first, the smaller before, each with what was measured."""
    choices: list[Choice] = []
    try:
        target = read_header(target_path)
    except ModelFileError:
        return choices
    names = {}
    rows = []
    for model in found:
        try:
            header = read_header(model.path)
        except ModelFileError:
            continue
        row = as_draft(target, header)
        rows.append(row)
        names[row.draft] = (header.quantization, model)
    for row in best_first(rows):
        quantization, model = names[row.draft]
        facts = (
            f"{quantization} · {figures.size(model.size_bytes)} ({row.share:.0%} of the target), "
            f"{model.place} · {row.text}"
        )
        path = str(row.draft.absolute())
        if advice is not None and path in advice.measured:
            best = ", the best" if path == advice.draft else ""
            facts = f"measured here{best}: {advice.measured[path]} · {facts}"
        choices.append(
            Choice(
                str(row.draft), model.name, facts, str(row.draft),
                usable=row.usable, current=str(row.draft) == current,
            )
        )  # fmt: skip
    return choices
