"""Lists and parameters on terminals of any size: what is chosen and what is to be pressed is in view."""

from __future__ import annotations

from textual.pilot import Pilot
from textual.widgets import OptionList

from specchat.tui.screens.parameters import ParametersScreen
from specchat.tui.screens.picker import Choice, Picker
from tests.tui.scripted_engine import ScriptedEngine, chat, ready, wait_until
from tests.tui.test_other_screens_harmless import drawn

SIZES = [(100, 30), (50, 10)]
ROWS = 40


async def resized(pilot: Pilot, size: tuple[int, int]) -> None:
    await pilot.resize_terminal(*size)
    await wait_until(pilot, lambda: pilot.app.screen.size == size)
    await pilot.pause()


async def test_of_a_list_of_any_length_the_chosen_row_and_the_keys_are_in_view():
    app = chat(ScriptedEngine())
    async with app.run_test(size=SIZES[0]) as pilot:
        await ready(pilot)
        choices = [Choice(number, f"row {number}.", "detail " * (number % 20)) for number in range(ROWS)]
        app.push_screen(Picker("Which? " * 40, choices, keys={"delete": "delete"}))
        await pilot.pause()
        listed = app.screen.query_one(OptionList)
        for size in SIZES:
            await resized(pilot, size)
            for key, row in (("ctrl+home", 0), ("pagedown", None), ("ctrl+end", ROWS - 1)):
                await pilot.press(key)
                row = listed.highlighted if row is None else row
                assert listed.highlighted == row
                assert f"row {row}." in drawn(app), (size, key)
                assert all(word in drawn(app) for word in ("Enter", "Delete", "Esc back")), (size, key)


async def test_the_parameters_are_told_whole_and_the_keys_are_in_view():
    app = chat(ScriptedEngine())
    async with app.run_test(size=(80, 24)) as pilot:
        await ready(pilot)
        await pilot.press("f3")
        await wait_until(pilot, lambda: isinstance(app.screen, ParametersScreen))
        await pilot.press(*"99", "enter")  # no temperature is that high
        fields = app.screen.query_one("#parameter-fields")
        for told in app.screen.query(".parameter-help"):
            assert told.parent is not None
            assert told.parent.region.contains_region(told.region), told
            assert told.region.right <= fields.region.right, told
        assert all(word in drawn(app) for word in ("Ctrl+S", "Esc", "not “99”", "save as preset"))
