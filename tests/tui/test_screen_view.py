"""How the transcript is seen: origins, scrolling, selecting, sizes and colours."""

from __future__ import annotations

import pytest
from textual.geometry import Offset
from textual.selection import Selection

from specchat.app.decoding.stats import AnswerStats
from specchat.app.events import Piece, Progress
from specchat.tui.transcript.entries import AnswerEntry
from tests.tui.scripted_engine import ScriptedEngine, chat, ready, seen, type_in, wait_until

ORIGINS = (Piece("The ", "target"), Piece("**draft**", "accepted"), Piece(" wrote", "correction"))


def progress(*pieces: Piece) -> Progress:
    return Progress(pieces, AnswerStats(), 10.0, 100, 4096)


def answer_of(app) -> AnswerEntry:
    return next(entry for entry in reversed(app.transcript.entries) if isinstance(entry, AnswerEntry))


def styled(app) -> dict[str, object]:
    """The styles of the answer's first line, by their texts."""
    line = answer_of(app).lines[0]
    return {segment.text: segment.style for segment in line.strip if segment.text.strip()}


async def test_a_key_colours_answers_by_origin_and_back():
    engine = ScriptedEngine()
    app = chat(engine)
    async with app.run_test(size=(120, 40)) as pilot:
        await ready(pilot)
        await type_in(pilot, "x")
        engine.say(progress(*ORIGINS))
        await wait_until(pilot, lambda: "The draft wrote" in seen(app))
        assert not app.query_one("#legend").display
        await pilot.press("ctrl+o")
        await wait_until(pilot, lambda: "The **draft** wrote" in seen(app))
        legend = app.query_one("#legend")
        assert legend.display
        assert "accepted from the draft" in legend.text
        engine.say(progress(Piece(" this", "accepted")))
        await wait_until(pilot, lambda: "wrote this" in seen(app))
        engine.finish("The **draft** wrote this")
        await ready(pilot)
        assert "The **draft** wrote this" in seen(app)
        await pilot.press("ctrl+o")
        await wait_until(pilot, lambda: "The draft wrote this" in seen(app))
        assert not legend.display


async def test_origins_differ_in_more_than_colour():
    engine = ScriptedEngine()
    app = chat(engine)
    async with app.run_test(size=(120, 40)) as pilot:
        await ready(pilot)
        await pilot.press("ctrl+o")
        await type_in(pilot, "x")
        engine.say(progress(*ORIGINS))
        await wait_until(pilot, lambda: "wrote" in seen(app))
        styles = styled(app)
        assert styles["**draft**"].underline
        assert not styles["**draft**"].bold
        assert styles[" wrote"].bold
        assert not styles[" wrote"].underline
        assert not styles["The "].bold
        assert not styles["The "].underline


async def long_answer(pilot, engine, lines: int = 80) -> None:
    await ready(pilot)
    await type_in(pilot, "x")
    engine.write("".join(f"line {n}\n\n" for n in range(lines)))
    await wait_until(pilot, lambda: f"line {lines - 1}" in seen(pilot.app))


async def test_the_view_follows_the_text_until_it_is_scrolled_up():
    engine = ScriptedEngine()
    app = chat(engine)
    async with app.run_test(size=(120, 30)) as pilot:
        await long_answer(pilot, engine)
        transcript = app.transcript
        assert transcript.scroll_y == transcript.max_scroll_y > 0
        await pilot.press("pageup")
        at = transcript.scroll_y
        assert at < transcript.max_scroll_y
        await wait_until(pilot, lambda: "↓ more below, End" in app.state.text)
        engine.write("".join(f"more {n}\n\n" for n in range(30)))
        await wait_until(pilot, lambda: "more 29" in seen(app))
        assert transcript.scroll_y == at
        engine.finish(answer_of(app).text)
        await ready(pilot)
        assert transcript.scroll_y == at
        await pilot.press("end")
        assert transcript.scroll_y == transcript.max_scroll_y
        await wait_until(pilot, lambda: "more below" not in app.state.text)


async def test_scrolling_back_to_the_end_follows_again():
    engine = ScriptedEngine()
    app = chat(engine)
    async with app.run_test(size=(120, 30)) as pilot:
        await long_answer(pilot, engine)
        transcript = app.transcript
        await pilot.press("pageup", "pagedown")
        assert transcript.following
        engine.write("and more\n\n" * 10)
        await wait_until(pilot, lambda: "and more" in seen(app))
        assert transcript.scroll_y == transcript.max_scroll_y


async def test_the_mouse_wheel_scrolls_while_the_prompt_has_the_focus():
    engine = ScriptedEngine()
    app = chat(engine)
    async with app.run_test(size=(120, 30)) as pilot:
        await long_answer(pilot, engine)
        await pilot._post_mouse_events([__import__("textual.events").events.MouseScrollUp], app.transcript)
        await wait_until(pilot, lambda: not app.transcript.following)
        assert app.prompt.has_focus


async def test_keys_go_to_the_start_and_to_the_end():
    engine = ScriptedEngine()
    app = chat(engine)
    async with app.run_test(size=(120, 30)) as pilot:
        await long_answer(pilot, engine)
        await pilot.press("ctrl+home")
        assert app.transcript.scroll_y == 0
        await pilot.press("ctrl+end")
        assert app.transcript.scroll_y == app.transcript.max_scroll_y
        await pilot.press(*"ab", "home")
        await pilot.press("end")
        assert app.prompt.cursor_location == (0, 2)


async def test_sending_a_prompt_goes_to_the_end():
    engine = ScriptedEngine()
    app = chat(engine)
    async with app.run_test(size=(120, 30)) as pilot:
        await long_answer(pilot, engine)
        engine.finish(answer_of(app).text)
        await ready(pilot)
        await pilot.press("ctrl+home")
        await type_in(pilot, "next")
        assert app.transcript.scroll_y == app.transcript.max_scroll_y


async def test_ctrl_c_copies_the_selection_without_the_screens_line_breaks():
    engine = ScriptedEngine()
    app = chat(engine)
    async with app.run_test(size=(60, 30)) as pilot:
        await ready(pilot)
        await type_in(pilot, "x")
        text = "one two three four five six seven eight nine ten eleven twelve thirteen"
        engine.finish(text + "\n\nend")
        await ready(pilot)
        start = app.transcript._starts[app.transcript.entries.index(answer_of(app))]
        app.screen.selections = {app.transcript: Selection(Offset(4, start), Offset(2, start + 3))}
        await pilot.press("ctrl+c")
        assert app.clipboard == text[4:] + "\n\nen"
        assert app.is_running
        assert "sent to the terminal's clipboard" in app.state.text


async def test_the_mouse_selects_text_in_the_transcript():
    engine = ScriptedEngine()
    app = chat(engine)
    async with app.run_test(size=(80, 30)) as pilot:
        await ready(pilot)
        await type_in(pilot, "x")
        engine.finish("alpha beta gamma")
        await ready(pilot)
        transcript = app.transcript
        y = transcript._starts[transcript.entries.index(answer_of(app))] - int(transcript.scroll_y)
        await pilot.mouse_down(transcript, offset=(2 + 6, y))
        await pilot.hover(transcript, offset=(2 + 8, y))
        await pilot.hover(transcript, offset=(2 + 9, y))
        await pilot.mouse_up(transcript, offset=(2 + 9, y))
        assert app.screen.get_selected_text() == "beta"


async def test_ctrl_c_copies_from_the_prompt_stops_an_answer_and_never_quits():
    engine = ScriptedEngine()
    app = chat(engine)
    async with app.run_test(size=(120, 30)) as pilot:
        await ready(pilot)
        await pilot.press("ctrl+c")
        assert "nothing is selected; Ctrl+Q leaves" in app.state.text
        app.prompt.insert("copy me")
        app.prompt.select_all()
        await pilot.press("ctrl+c")
        assert app.clipboard == "copy me"
        app.prompt.clear()
        await type_in(pilot, "x")
        await pilot.press("ctrl+c")
        assert app.session.phase == "stopping"
        assert app.is_running


async def test_under_100_columns_the_panel_folds_into_one_line():
    engine = ScriptedEngine()
    app = chat(engine)
    async with app.run_test(size=(120, 30)) as pilot:
        await long_answer(pilot, engine)
        assert app.panel.display
        assert not app.figures.display
        await pilot.resize_terminal(80, 24)
        await wait_until(pilot, lambda: app.figures.display)
        assert not app.panel.display
        assert "10.0 tok/s · accepted - · speed-up - · context 100/4,096" in app.figures.text
        widths = {line.strip.cell_length for entry in app.transcript.entries for line in entry.lines}
        assert widths == {app.transcript.scrollable_content_region.width}
        assert app.transcript.scroll_y == app.transcript.max_scroll_y
        await pilot.resize_terminal(200, 60)
        await wait_until(pilot, lambda: app.panel.display)
        assert app.transcript.scroll_y == app.transcript.max_scroll_y
        assert "plain" in app.state.text or "drafting" in app.state.text


async def test_a_new_theme_recolours_what_is_there():
    engine = ScriptedEngine()
    app = chat(engine)
    async with app.run_test(size=(120, 30)) as pilot:
        await ready(pilot)
        await type_in(pilot, "x")
        engine.finish("text")
        await ready(pilot)
        before = styled(app)["text"].bgcolor
        await type_in(pilot, "/theme light")
        await wait_until(pilot, lambda: styled(app)["text"].bgcolor != before)
        assert app.theme == "specchat-light"
        assert sum(styled(app)["text"].bgcolor.triplet) > 600


async def test_escape_sequences_in_an_answer_are_not_sent_to_the_terminal():
    engine = ScriptedEngine()
    app = chat(engine)
    async with app.run_test(size=(120, 30)) as pilot:
        await ready(pilot)
        await type_in(pilot, "x")
        engine.write("a\x1b[2Jb")
        await wait_until(pilot, lambda: "a�[2Jb" in seen(app))
        engine.finish("a\x1b[2Jb\x07")
        await ready(pilot)
        assert "\x1b" not in seen(app)
        assert app.session.turns[-1].text == "a\x1b[2Jb\x07"


async def many_turns(pilot, app, turns: int) -> None:
    await ready(pilot)
    for n in range(turns):
        entry = AnswerEntry()
        entry.finish(f"turn {n} " + "word " * 60)
        app.transcript.add(entry)


async def test_after_a_resize_what_is_out_of_view_is_made_little_by_little():
    app = chat(ScriptedEngine())
    async with app.run_test(size=(140, 30)) as pilot:
        await many_turns(pilot, app, 300)
        transcript = app.transcript
        await pilot.resize_terminal(90, 30)
        await wait_until(pilot, lambda: not transcript._stale)
        assert transcript.scroll_y == transcript.max_scroll_y
        assert transcript.line_at(transcript._height - 1) is transcript.entries[-1].lines[-1]
        assert all(entry.lines for entry in transcript.entries)
        assert transcript._starts == sorted(set(transcript._starts))


async def test_while_an_answer_comes_what_is_out_of_view_waits_until_it_is_scrolled_to():
    app = chat(ScriptedEngine())
    async with app.run_test(size=(140, 30)) as pilot:
        await many_turns(pilot, app, 300)
        transcript = app.transcript
        transcript.answering = True
        await pilot.resize_terminal(90, 30)
        await pilot.pause(0.3)
        assert transcript._stale
        await pilot.press("ctrl+home")
        await wait_until(pilot, lambda: not transcript._stale)
        assert transcript.scroll_y == 0
        assert transcript.entries[0].lines[0].text in seen(app)


async def test_a_resize_keeps_the_place_that_is_being_read():
    app = chat(ScriptedEngine())
    async with app.run_test(size=(140, 30)) as pilot:
        await many_turns(pilot, app, 100)
        transcript = app.transcript
        reading = transcript.entries[50]
        transcript.scroll_to(y=transcript._starts[50], animate=False)
        await pilot.resize_terminal(90, 30)
        await wait_until(pilot, lambda: not transcript._stale)
        assert transcript.line_at(int(transcript.scroll_y)) is reading.lines[0]
        assert not transcript.following


async def test_a_terminal_that_shows_all_of_it_has_nothing_more_below():
    engine = ScriptedEngine()
    app = chat(engine)
    async with app.run_test(size=(120, 15)) as pilot:
        await long_answer(pilot, engine, 10)
        await pilot.press("ctrl+home")
        await wait_until(pilot, lambda: "more below" in app.state.text)
        await pilot.resize_terminal(120, 60)
        await wait_until(pilot, lambda: "more below" not in app.state.text)
        assert app.transcript.following


async def test_no_size_is_too_small_to_draw():
    engine = ScriptedEngine()
    app = chat(engine)
    async with app.run_test(size=(120, 30)) as pilot:
        await long_answer(pilot, engine, 10)
        await pilot.press("ctrl+o")
        for size in ((1, 1), (10, 3), (33, 8), (100, 6), (101, 12), (300, 90)):
            await pilot.resize_terminal(*size)
            engine.write("more of it\n\n```\ncode\n```\n\n")
            app.look()
            await pilot.pause()
        assert app.is_running


async def test_a_new_answer_starts_without_the_figures_of_the_last():
    engine = ScriptedEngine()
    app = chat(engine)
    async with app.run_test(size=(120, 30)) as pilot:
        await ready(pilot)
        await type_in(pilot, "x")
        stats = AnswerStats(
            tokens_per_second=12.5, completion_tokens=9, target_passes=5, baseline_tokens_per_second=8.0
        )
        engine.finish("text", stats=stats)
        await ready(pilot)
        assert "12.5 tok/s" in app.panel.text
        await type_in(pilot, "y")
        assert "12.5 tok/s" not in app.panel.text
        assert "8.0 tok/s" in app.panel.text


def drawn(app) -> list[str]:
    """The transcript as it is drawn, line by line."""
    transcript = app.transcript
    region = transcript.size.region
    return [strip.text.rstrip() for strip in transcript.render_lines(region)]


async def test_what_is_kept_of_the_last_drawing_is_what_drawing_anew_would_give():
    engine = ScriptedEngine()
    app = chat(engine)
    async with app.run_test(size=(100, 24)) as pilot:
        await ready(pilot)
        await type_in(pilot, "x")
        for n in range(12):
            engine.write(f"word {n} " * 9 + "\n\n" * (n % 2))
            app.look()
            await pilot.pause()
            if n == 4:
                await type_in(pilot, "/temp 0")
            if n == 8:
                await pilot.press("pageup")
            before = drawn(app)
            app.transcript._drawn_for = None
            assert before == drawn(app)
            screen = "\n".join(strip.text for strip in app.screen._compositor.render_strips())
            assert all(line in screen for line in before)
        engine.finish("short")
        await ready(pilot)
        before = drawn(app)
        app.transcript._drawn_for = None
        assert before == drawn(app)


@pytest.mark.parametrize("key", ["f2", "f3", "f4", "ctrl+p"])
async def test_no_cursor_blinks(key: str):
    app = chat(ScriptedEngine())
    async with app.run_test(size=(120, 40)) as pilot:
        await ready(pilot)
        await pilot.press(key)
        await pilot.pause()
        fields = [*app.screen.query("Input, TextArea"), *app.screen_stack[0].query("Input, TextArea")]
        assert len(fields) > 1
        assert not any(field.cursor_blink for field in fields)
