import json
import re
import struct
import subprocess
import sys
from dataclasses import replace
from html import unescape
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from specchat.app.comparison import Comparison, Row, Spread
from specchat.app.comparison_report import ReportError, write_page, write_picture
from specchat.app.report.canvas import Canvas
from specchat.app.report.charts import charts_of
from specchat.app.report.drawing import DARK, LIGHT, STYLED, draw_svg, looks_of
from specchat.app.report.table import lines_of
from tests.app.comparisons import BOTH, KINDS, LOOKUP, MODEL, PLAIN, comparison, contender, empty, model
from tests.hostile_text import SEQUENCES, is_harmless

HOSTILE = "</td></svg><script>alert(1)</script>\"'&amp;{{ 7 * 7 }}\x1b[2J\u202e" + "".join(SEQUENCES[::6])
VOID = {"meta", "link", "br", "hr", "img", "input"}


class Page(HTMLParser):
    """A page as a browser sees it; fails on an element that is not closed in its place."""

    def __init__(self, path: Path) -> None:
        super().__init__(convert_charrefs=True)
        self.source = path.read_text(encoding="utf-8")
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.rows: list[list[str]] = []
        self._open: list[str] = []
        self._texts: list[str] = []
        self.feed(self.source)
        self.close()
        assert self._open == []
        self.text = re.sub(r"\s+", " ", " ".join(self._texts))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self._open.append(tag)
        if tag == "tr":
            self.rows.append([])
        if tag in ("th", "td"):
            self.rows[-1].append("")

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        if "style" in self._open:
            return
        self._texts.append(data)
        if "th" in self._open or "td" in self._open:
            self.rows[-1][-1] += f" {data}" if "small" in self._open else data

    def count(self, tag: str) -> int:
        return sum(element == tag for element, _ in self.elements)


def page(written: Comparison, folder: Path) -> Page:
    write_page(written, folder / "out.html")
    return Page(folder / "out.html")


@pytest.fixture(scope="module")
def full(tmp_path_factory: pytest.TempPathFactory) -> Page:
    return page(comparison(), tmp_path_factory.mktemp("full"))


def test_the_page_begins_with_what_was_compared_where_and_what_to_use(full: Page):
    said = comparison()
    assert full.text.index("Qwen2.5 Coder 1.5B Instruct (Q4_K_M) on AMD EPYC 9B14") >= 0
    advice = full.text.index(said.recommendations[0].sentence)
    assert advice < full.text.index("All kinds of prompts together")
    assert all(other in full.text for other in said.recommendations[0].others)
    assert "incomplete" not in full.text


@pytest.mark.parametrize("kind", [*KINDS, None])
def test_every_contender_has_its_figures_in_a_row_of_each_kind(full: Page, kind: str | None):
    said = comparison()
    for row in (row for row in said.rows if row.kind == kind):
        figures = [said.contenders[row.contender].name, *_printed(row)]
        matching = [cells for cells in full.rows if all(any(f in cell for cell in cells) for f in figures)]
        assert matching, figures


def _printed(row: Row) -> list[str]:
    assert row.tokens_per_second is not None
    assert row.ttft_s is not None
    assert row.tokens_per_pass is not None
    rate, ttft = row.tokens_per_second, row.ttft_s
    figures = [
        f"{rate.median:.1f} {rate.low:.1f}–{rate.high:.1f}",
        f"{ttft.median:.2f} s {ttft.low:.2f}–{ttft.high:.2f}",
        f"{row.tokens_per_pass:.2f}",
    ]
    for spread in (row.speedup, row.counted_speedup):
        if spread is not None:
            figures.append(f"{spread.median:.2f}x {spread.low:.2f}–{spread.high:.2f}")
    if row.acceptance_rate is not None:
        figures.append(f"{row.acceptance_rate:.0%} {row.accepted} of {row.drafted}")
    return figures


def test_the_page_loads_nothing_and_runs_nothing(full: Page):
    for tag, attributes in full.elements:
        assert tag not in ("script", "link", "img", "iframe", "object", "image", "use", "a", "base")
        assert not [
            name for name in attributes if name in ("src", "href", "xlink:href") or name.startswith("on")
        ]
        assert tag == "svg" or not any("//" in (value or "") for value in attributes.values())
    assert "url(" not in full.source
    assert "@import" not in full.source
    policy = [a["content"] for tag, a in full.elements if tag == "meta" and "http-equiv" in a]
    assert policy == ["default-src 'none'; style-src 'unsafe-inline'"]


def test_the_page_is_small_and_knows_nothing_of_folders(full: Page):
    assert len(full.source.encode()) < 1_000_000
    assert "jane" not in full.source
    assert "qwen2.5-coder-0.5b-instruct-q4_0.gguf" in full.text
    assert "prompts.txt" in full.text


def test_elements_of_different_drawings_are_not_mixed_up(full: Page):
    """An id that two drawings in one page share would clip one by the other's frame."""
    assert not [attributes for _, attributes in full.elements if "id" in attributes]


def test_settings_and_build_are_in_the_page(full: Page):
    for text in ("drafting speculate auto", "drafting strict no", "ctx size 4096", "AVX2 = 1 | FMA = 1"):
        assert text in full.text


def test_both_sizes_of_each_chart_have_a_mark_for_each_figure(full: Page):
    said = comparison()
    labels = [attributes.get("aria-label") or "" for _, attributes in full.elements]
    for name in ("lookup", "qwen2.5-coder-0.5b-q4_0, both", "qwen2.5-coder-0.5b-q4_k_m"):
        own = [label for label in labels if f"contender: {name}" in label]
        for kind in (*KINDS, "all kinds"):
            assert len([x for x in own if f"kind: {kind}" in x and x.startswith("times as fast")]) >= 4, kind
        places = [x for x in own if x.startswith("place in the draft")]
        assert {int(x.split(": ")[1].split(";")[0]) for x in places} == {1, 2, 3, 4}
    for size, seconds in said.costs[0].target_s.items():
        assert len([x for x in labels if x.startswith(f"tokens in the pass: {size}; milliseconds: ")]) >= 2
        assert seconds
    lines = [a for _, a in full.elements if a.get("aria-roledescription") == "line mark"]
    assert len([a for a in lines if "tokens of the answer" in (a["aria-label"] or "")]) == 2 * 4 * len(KINDS)


def test_charts_take_their_colours_from_the_page_in_light_and_dark(full: Page):
    assert f"--paper: {LIGHT.paper}" in full.source
    assert f"--paper: {DARK.paper}" in full.source
    assert 'stroke="var(--mark-0)"' in full.source
    used = set(re.findall(r"var\(--([a-z0-9-]+)\)", full.source))
    assert used <= set(re.findall(r"--([a-z0-9-]+):", full.source))


def test_names_from_strangers_are_text(tmp_path: Path):
    bad = contender(
        HOSTILE, "both", model(HOSTILE, HOSTILE), model(HOSTILE, HOSTILE, f"C:\\Users\\jane\\{HOSTILE}")
    )
    said = comparison([replace(PLAIN, target=bad.target), bad], kinds=[HOSTILE])
    said = replace(said, machine=(HOSTILE,), build=HOSTILE, settings={HOSTILE: HOSTILE}, date=HOSTILE)
    hostile = page(said, tmp_path)
    write_picture(said, tmp_path / "out.png")
    assert hostile.count("script") == 0
    assert "<script>alert(1)</script>" in hostile.text
    assert "{{ 7 * 7 }}" in hostile.text
    assert "jane" not in hostile.source
    assert is_harmless(unescape(hostile.source))


def test_a_comparison_that_was_stopped_says_so_and_shows_what_there_is(tmp_path: Path):
    said = comparison(kinds=("code", "story"), complete=False)
    stopped = page(replace(said, rows=tuple(row for row in said.rows if row.contender != 3)), tmp_path)
    assert "This comparison is incomplete." in stopped.text
    assert "the 24 answers that there were" in stopped.text
    missing = [cells for cells in stopped.rows if MODEL.name in cells[0] and len(cells) == 8]
    assert missing
    assert all(cells[1:7] == ["-"] * 6 for cells in missing)


def test_where_nothing_was_measured_every_figure_is_a_dash(tmp_path: Path):
    said = empty()
    nothing = page(said, tmp_path)
    assert nothing.count("svg") == 0
    assert "Nothing was measured" in nothing.text
    figures = [cells for cells in nothing.rows if len(cells) == 9][1:]
    assert [cells[1:] for cells in figures] == [["-"] * 7 + ["1.4 GB"]] * 2
    write_picture(said, tmp_path / "out.png")
    assert _size(tmp_path / "out.png")[0] > 1500


def test_one_contender_alone_has_its_page(tmp_path: Path):
    alone = page(comparison([PLAIN], kinds=["code"]), tmp_path)
    assert "What a pass costs" in alone.text
    assert "Speed-up by kind" not in alone.text
    write_picture(comparison([PLAIN], kinds=["code"]), tmp_path / "out.png")


def test_each_target_has_its_own_chart_of_what_a_pass_costs(tmp_path: Path):
    larger = model("Qwen2.5 Coder 7B Instruct")
    both = [PLAIN, BOTH, contender("7B plain", "none", larger), contender("7B lookup", "lookup", larger)]
    said = comparison(both, kinds=["code"])
    several = page(said, tmp_path)
    assert "1.5B Instruct (Q4_K_M) and Qwen2.5 Coder 7B Instruct (Q4_K_M) on AMD" in several.text
    assert several.text.count("What a pass costs: ") == 2
    assert all(advice.sentence in several.text for advice in said.recommendations)
    write_picture(said, tmp_path / "out.png")


def test_what_is_recommended_is_marked_also_where_it_is_plain_decoding(tmp_path: Path):
    said = comparison(kinds=["code"])
    said = replace(said, recommendations=(replace(said.recommendations[0], best=None),))
    write_page(said, tmp_path / "out.html")
    best = re.findall(r'<tr class="best">.*?</tr>', (tmp_path / "out.html").read_text(encoding="utf-8"), re.S)
    assert len(best) == 1
    assert "plain" in best[0]


def test_a_figure_measured_once_has_no_spread():
    said = comparison(kinds=["code"])
    once = replace(said.rows[0], tokens_per_second=Spread(14.25, 14.25, 14.25, 1))
    line = lines_of(replace(said, rows=(once,)), "code")[0]
    assert (line.cells[2].text, line.cells[2].spread) == ("14.2", "")


def test_texts_unlike_the_plain_one_are_counted():
    said = comparison(kinds=["code"])
    answers = [replace(answer, same_as_plain=place > 0) for place, answer in enumerate(said.answers)]
    line = lines_of(replace(said, answers=tuple(answers)), "code")[0]
    assert line.cells[-1].text == "2 of 3"


def test_thirty_contenders_all_look_different():
    said = empty([PLAIN, *(replace(LOOKUP, name=f"lookup {number}") for number in range(30))])
    looks = looks_of(said, LIGHT)
    assert len({(look.colour, look.shape) for look in looks}) == 31
    assert [look.shape for look in looks].count("circle") == 1


def test_plain_decoding_of_two_targets_is_grey_and_told_apart():
    first, second = looks_of(empty([PLAIN, replace(PLAIN, name="7B plain")]), LIGHT)
    assert first.colour == second.colour == LIGHT.soft
    assert first.shape != second.shape
    assert first.dash != second.dash


def test_long_names_stay_within_a_chart_for_a_phone():
    long = replace(BOTH, name="an-organisation-with-a-long-name/" + "qwen2.5-coder-0.5b-instruct-" * 6)
    for chart in charts_of(Canvas(comparison([PLAIN, long], kinds=["code"]), STYLED, 270)):
        width = re.search(r'<svg[^>]* width="([\d.]+)"', draw_svg(chart.spec, STYLED))
        assert width is not None
        assert float(width[1]) < 400


def test_no_chart_asks_for_anything_from_elsewhere():
    for chart in charts_of(Canvas(comparison(), LIGHT, 400, columns=2)):
        assert not {"url", "href", "projection", "lookup"} & set(_keys(json.loads(json.dumps(chart.spec))))


def _keys(value: Any) -> list[str]:
    if isinstance(value, dict):
        return [*value, *(key for inner in value.values() for key in _keys(inner))]
    return [key for inner in value for key in _keys(inner)] if isinstance(value, list) else []


def test_the_picture_is_a_png_of_a_size_to_paste(tmp_path: Path):
    write_picture(comparison(), tmp_path / "out.png")
    width, height = _size(tmp_path / "out.png")
    assert 1600 < width < 2600
    assert 1600 < height < 3600
    assert (tmp_path / "out.png").stat().st_size < 3_000_000


def _size(path: Path) -> tuple[int, int]:
    content = path.read_bytes()
    assert content[:8] == b"\x89PNG\r\n\x1a\n"
    width, height = struct.unpack(">II", content[16:24])
    return width, height


@pytest.mark.parametrize("write", [write_page, write_picture])
def test_a_report_that_cannot_be_written_says_which_and_why(tmp_path: Path, write: Any):
    with pytest.raises(ReportError, match=r"missing.out could not be written: No such file"):
        write(empty(), tmp_path / "missing" / "out")


def test_the_library_that_draws_is_loaded_only_for_a_report():
    code = "import sys, specchat.app.comparison_report; print({'vl_convert', 'jinja2'} & set(sys.modules))"
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert told.stdout.strip() == "set()"
