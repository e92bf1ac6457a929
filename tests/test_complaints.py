"""The list of complaints names tests that are there."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parent.parent


def test_each_of_the_fifteen_complaints_names_tests_that_are_there():
    rows = re.findall(
        r"^\| (\d+) \|.*\| ([^|]*) \|$", (ROOT / "docs/complaints.md").read_text(), re.MULTILINE
    )
    there = {
        name
        for file in (ROOT / "tests").rglob("test_*.py")
        for name in re.findall(r"def (test_\w+)\(", file.read_text())
    }
    assert [int(number) for number, _ in rows] == list(range(1, 16))
    for number, named in rows:
        names = re.findall(r"`(test_\w+)`", named)
        assert names, f"complaint {number} names no test"
        assert set(names) <= there, f"complaint {number}: {set(names) - there}"
