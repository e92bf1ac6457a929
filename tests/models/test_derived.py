import contextlib
from dataclasses import replace

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from specchat.models.derived import KEY, Origin, Recipe, layers_in_words, parse_ranges, ranges
from specchat.models.text import on_one_line

layers = st.sets(st.integers(0, 300), min_size=1).map(sorted).map(tuple)


@given(layers)
def test_what_is_written_as_ranges_is_read_back(numbers: tuple[int, ...]):
    assert parse_ranges(ranges(numbers)) == numbers


@pytest.mark.parametrize(
    ("text", "numbers"),
    [("4", (4,)), ("4,9-12", (4, 9, 10, 11, 12)), (" 9-10, 4 ", (4, 9, 10)), ("3-3,2-4", (2, 3, 4))],
)
def test_ranges_are_read_in_any_order_each_number_once(text: str, numbers: tuple[int, ...]):
    assert parse_ranges(text) == numbers


@pytest.mark.parametrize(
    "text", ["", ",", "a", "1-", "-1", "5-3", "1--2", "1.5", "4;5", "99999999", "\u0664", "1,\n"]
)
def test_what_is_no_range_is_refused(text: str):
    with pytest.raises(ValueError, match=r"."):
        parse_ranges(text)


@given(st.text(max_size=60))
def test_any_other_text_is_refused_or_read_and_never_fails_otherwise(text: str):
    with contextlib.suppress(ValueError):
        assert parse_ranges(text)


def test_a_recipe_says_what_is_done():
    recipe = Recipe("Q4_0", "Q8_0", (4, 9, 10))
    assert str(recipe) == "Q4_0.output-Q8_0.skip-4,9-10"
    assert recipe.words == "as Q4_0 with its output matrix as Q8_0 without layers 4, 9-10"
    assert (str(Recipe(skipped=(3,))), Recipe(skipped=(3,)).words) == ("skip-3", "without layer 3")
    assert str(Recipe()) == ""
    assert layers_in_words((1, 2)) == "layers 1-2"


@given(layers, layers)
def test_recipes_have_names_of_their_own_that_any_disk_takes(some: tuple[int, ...], other: tuple[int, ...]):
    names = [Recipe("Q4_K_M", "Q4_0", skipped).in_a_name for skipped in (some, other)]
    assert (names[0] == names[1]) == (some == other)
    assert all(len(name) < 120 and "/" not in name for name in names)


@example("\ufffd", (0,))
@example("x" * 300, (0,))
@given(st.text(st.characters(exclude_categories=["C", "Z"]), max_size=300), layers)
def test_an_origin_is_read_back_from_notes_that_llama_cpp_can_take(source: str, skipped: tuple[int, ...]):
    origin = Origin(source, 5_000_000_000, "f" * 64, 400, str(Recipe(skipped=skipped)), skipped)
    notes = origin.notes()
    assert all(key.startswith(KEY) and len(text.encode()) <= 127 for key, text in notes.items())
    assert Origin.read(notes) == replace(origin, source=on_one_line(source))


def test_other_metadata_tell_no_origin():
    assert Origin.read({"general.name": "Tiny"}) is None
    assert Origin.read({f"{KEY}source": "x", f"{KEY}source_bytes": "many"}) is None
    assert Origin.read({f"{KEY}source": 5}) is None


def test_a_name_out_of_a_file_is_one_line():
    origin = Origin("a\x1b[2Jb\nc", 1, "", 2, "", ())
    read = Origin.read(origin.notes())
    assert read is not None
    assert read.source.isprintable()
