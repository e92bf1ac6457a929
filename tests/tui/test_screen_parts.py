"""The parts that need no screen: pacing, figures, the registry, the conversation's state."""

from __future__ import annotations

import pytest
from rich.cells import cell_len

from specchat.app.decoding.stats import AnswerStats
from specchat.app.requests import AnswerOptions
from specchat.tui import figures, parameters, registry, texts
from specchat.tui.actions import Action, CommandError, Do, Say
from specchat.tui.pacing import RefreshPacer
from specchat.tui.transcript.entries import HelpEntry
from specchat.tui.transcript.ink import Ink


def test_a_cheap_refresh_comes_at_the_shortest_interval():
    pacer = RefreshPacer(share=0.03)
    cpu = 0.0
    for _ in range(20):
        delay = pacer.next_delay(cpu)
        cpu += 0.001
    assert delay == 0.1


def test_a_costly_refresh_is_spaced_so_that_the_share_is_kept():
    pacer = RefreshPacer(share=0.03)
    cpu = 0.0
    for _ in range(60):
        delay = pacer.next_delay(cpu)
        cpu += 0.012
    assert delay == pytest.approx(0.012 / 0.03, rel=0.05)


def test_however_costly_a_refresh_the_text_moves_once_a_second():
    pacer = RefreshPacer()
    for cpu in range(50):
        delay = pacer.next_delay(float(cpu))
    assert delay == pytest.approx(1.0, rel=0.01)


def test_what_was_spent_before_an_answer_is_not_held_against_it():
    pacer = RefreshPacer()
    pacer.next_delay(0.0)
    pacer.restart(5.0)
    assert pacer.next_delay(5.001) == 0.1


@pytest.mark.parametrize(
    "text",
    [
        figures.rate(None),
        figures.percent(None),
        figures.times(None),
        figures.plain_number(None),
        figures.seconds(None),
        figures.size(None),
    ],
)
def test_what_was_not_measured_is_a_dash(text):
    assert text == "-"


def test_figures_are_told_in_the_units_a_person_uses():
    assert figures.rate(12.34) == "12.3"
    assert figures.rate(1234.5) == "1234"
    assert figures.percent(0.615) == "62 %"
    assert figures.times(1.316) == "1.32×"
    assert figures.seconds(0.42) == "420 ms"
    assert figures.seconds(2.04) == "2.0 s"
    assert figures.count(4096) == "4,096"
    assert figures.size(1_117_000_000) == "1.12 GB"
    assert figures.size(93_000_000) == "93 MB"
    assert figures.parameters(1_543_000_000) == "1.5B"
    assert figures.parameters(494_000_000) == "494M"


def test_a_sparkline_shows_the_last_values_from_zero_up():
    assert figures.sparkline([0, 5, 10], 8) == "▁▅█"
    assert figures.sparkline([1, 2, 3, 4], 2) == "▆█"
    assert figures.sparkline([0.5], 8, top=1.0) == "▅"
    assert figures.sparkline([], 8) == ""
    assert figures.sparkline([0, 0], 8) == "▁▁"


def test_a_text_is_for_the_model_and_two_slashes_are_sent_as_one():
    assert registry.understand("  hello ") == Say("hello")
    assert registry.understand("//etc/hosts is what?") == Say("/etc/hosts is what?")
    assert registry.understand("a /b c") == Say("a /b c")


@pytest.mark.parametrize(
    ("typed", "name", "value"),
    [
        ("/help", "help", None),
        ("/HELP", "help", None),
        ("/clear", "new", None),
        ("/new", "new", None),
        ("/quit", "leave", None),
        ("/exit", "leave", None),
        ("/system", "system", None),
        ("/system You are terse.\nVery.", "system", "You are terse.\nVery."),
        ("/edit 3", "edit", 3),
        ("/version prev", "version", -1),
        ("/temp 0,7", "set_temp", "0,7"),
        ("/theme light", "theme", "light"),
        ("/copy code 2", "copy_answer", "code 2"),
    ],
)
def test_commands_are_understood(typed: str, name: str, value: object):
    assert registry.understand(typed) == Do(registry.BY_NAME[name], value)


@pytest.mark.parametrize(
    ("typed", "says"),
    [
        ("/hlep", "/help"),
        ("/sytem x", "/system"),
        ("/temperature 1", "/temp"),
        ("/exits", "/exit"),
        ("/", "/help"),
        ("/edit last", "a number"),
        ("/version third", "next or prev"),
        ("/help me", "nothing after it"),
        ("/new all", "nothing after it"),
    ],
)
def test_a_wrong_command_says_what_is_right(typed, says):
    with pytest.raises(CommandError, match=says):
        registry.understand(typed)


@pytest.mark.parametrize(
    ("name", "typed", "says"),
    [
        ("spec", "maybe", "on, off or always"),
        ("temp", "hot", "from 0"),
        ("temp", "-1", "from 0"),
        ("temp", "nan", "from 0"),
        ("top-p", "1.5", "from 0 to 1"),
        ("repeat-penalty", "0", "above 0"),
        ("draft-max", "0", "from 1 to 32"),
        ("draft-max", "1.5", "from 1 to 32"),
        ("draft-max", "99", "from 1 to 32"),
        ("seed", "x", "random"),
    ],
)
def test_a_value_that_cannot_be_says_what_can(name: str, typed: str, says: str):
    with pytest.raises(CommandError, match=says):
        parameters.BY_NAME[name].parse(typed)


@pytest.mark.parametrize("parameter", parameters.PARAMETERS, ids=lambda one: one.name)
def test_a_parameter_reads_what_it_shows(parameter: parameters.Parameter):
    options = AnswerOptions()
    assert parameter.parse(parameter.text(options)) == parameter.value(options)
    assert parameter.set(options, parameter.value(options)) == options


def test_the_help_is_made_from_the_registry():
    text = "\n".join(f"{left.plain}{right.plain}" for left, right in texts.help_lines({}))
    assert all(command.usage in text and command.help in text for command in registry.COMMANDS)
    assert all(key.shown in text and key.help in text for key in registry.KEYS)


@pytest.mark.parametrize("width", [40, 60, 80, 100, 140])
def test_what_the_help_says_of_a_name_stands_in_a_column_of_its_own(width: int):
    entry = HelpEntry(texts.help_lines({}))
    entry.layout(Ink(width, {}), "markdown")
    drawn = [line.strip.text.removeprefix("▎ ").rstrip() for line in entry.lines]
    names = {left.plain.strip() for left, _ in texts.help_lines({})}
    column = next(line for line in drawn if line.startswith("  /regen")).index("answer the last")
    for line in drawn[: drawn.index("Keys")]:
        alone = line.strip() in names
        assert alone or (line[:column].strip() in {"", *names} and line[column - 1] == " "), line
    assert all(cell_len(line.strip.text) <= width for line in entry.lines)


@pytest.mark.parametrize("together", [registry.CHAT_KEYS, registry.COMPARE_KEYS], ids=["chat", "compare"])
def test_each_key_is_bound_once(together: tuple[Action, ...]):
    keys = [key for action in together for key in action.keys.split(",")]
    assert sorted(keys) == sorted(set(keys))


def test_an_answers_figures_leave_out_what_was_not_measured():
    assert texts.answer_figures(AnswerStats()) == ""
    plain = AnswerStats(completion_tokens=12, tokens_per_second=9.0)
    assert texts.answer_figures(plain) == "12 tokens · 9.0 tok/s"
    drafted = AnswerStats(
        completion_tokens=12,
        tokens_per_second=12.0,
        drafted=10,
        accepted=6,
        baseline_tokens_per_second=8.0,
    )
    assert texts.answer_figures(drafted).endswith("60 % accepted · 1.50×")
