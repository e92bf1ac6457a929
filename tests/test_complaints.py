"""The pages of complaints and of reliability name tests that are there."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parent.parent


def there() -> set[str]:
    """All tests."""
    return {
        name
        for file in (ROOT / "tests").rglob("test_*.py")
        for name in re.findall(r"def (test_\w+)\(", file.read_text())
    }


def test_each_of_the_fifteen_complaints_names_tests_that_are_there():
    rows = re.findall(
        r"^\| (\d+) \|.*\| ([^|]*) \|$", (ROOT / "docs/complaints.md").read_text(), re.MULTILINE
    )
    assert [int(number) for number, _ in rows] == list(range(1, 16))
    for number, named in rows:
        names = re.findall(r"`(test_\w+)`", named)
        assert names, f"complaint {number} names no test"
        assert set(names) <= there(), f"complaint {number}: {set(names) - there()}"


def test_what_the_page_of_reliability_names_is_there():
    page = (ROOT / "docs/reliability.md").read_text()
    names, files = (
        set(re.findall(r"`(test_\w+)`", page)),
        re.findall(r"`((?:tests|benchmarks)/[\w/]+\.py)", page),
    )
    assert len(names) > 80
    assert names <= there(), names - there()
    assert files
    assert all((ROOT / file).is_file() for file in files), files
