import random

from textual.geometry import Region

from specchat.app.decoding.stats import AnswerStats
from specchat.tui.direct_drawing import PiecesUpdate

from .scripted_engine import ScriptedEngine, chat, ready, type_in


class Terminal:
    """What a terminal shows: one styled character to a cell."""

    def __init__(self, app) -> None:
        self._app = app
        self.cells = self.drawn_anew()

    def drawn_anew(self) -> list[list[tuple[str, str]]]:
        return [self._cells(strip) for strip in self._app.screen._compositor.render_strips()]

    def take_update(self) -> int:
        """Draw what has changed; says how many cells were drawn."""
        compositor = self._app.screen._compositor
        update = compositor.render_partial_update()
        if update is None:
            return 0
        assert isinstance(update, PiecesUpdate)
        for x, y, strip in update.pieces:
            self.cells[y][x : x + strip.cell_length] = self._cells(strip)
        return sum(strip.cell_length for _, _, strip in update.pieces)

    @staticmethod
    def _cells(strip) -> list[tuple[str, str]]:
        return [(character, str(segment.style)) for segment in strip for character in segment.text]


async def test_what_is_drawn_bit_by_bit_is_what_drawing_all_anew_would_show():
    engine = ScriptedEngine()
    app = chat(engine)
    async with app.run_test(size=(120, 24)) as pilot:
        await ready(pilot)
        await type_in(pilot, "x")
        await pilot.pause()
        terminal = Terminal(app)
        # What a timer would draw is drawn here instead.
        app.screen._compositor_refresh = lambda: None
        for n in range(40):
            stats = AnswerStats(tokens_per_second=10.0 + n, drafted=n, accepted=n // 2)
            engine.write(f"words {n} " * 4 + "\n\n" * (n % 3 == 0), stats=stats)
            app.look()
            await pilot.pause()
            if n == 20:
                await pilot.press("pageup")
            if n == 30:
                await pilot.press("f9")
                terminal.cells = terminal.drawn_anew()
                app.screen._compositor._dirty_regions.clear()
            assert terminal.take_update() > 0 or n > 20
            assert terminal.cells == terminal.drawn_anew()


async def test_each_cell_of_any_region_is_drawn_once_with_what_is_in_front():
    engine = ScriptedEngine()
    app = chat(engine)
    async with app.run_test(size=(120, 24), notifications=True) as pilot:
        await ready(pilot)
        await type_in(pilot, "x")
        for _ in range(12):
            engine.write("a line of it\n\n")
        app.look()
        await pilot.pause()
        app.notify("over the text")
        await pilot.pause(0.1)
        compositor, terminal, draw = app.screen._compositor, Terminal(app), random.Random(1)
        assert any("over the text" in strip.text for strip in compositor.render_strips())
        for _ in range(200):
            x, y = draw.randrange(-5, 120), draw.randrange(-3, 24)
            regions = {Region(x, y, draw.randrange(1, 130), draw.randrange(1, 30)), Region(3, 3, 9, 1)}
            cells = {
                (column, line)
                for region in regions
                for column in range(max(0, region.x), min(120, region.right))
                for line in range(max(0, region.y), min(24, region.bottom))
            }
            compositor._dirty_regions.update(regions)
            for column, line in cells:
                terminal.cells[line][column] = ("?", "")
            assert terminal.take_update() == len(cells)
            assert terminal.cells == terminal.drawn_anew()
