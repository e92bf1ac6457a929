"""The demo: a small packaged model, and a prompt where drafting from the text so far pays most."""

from __future__ import annotations

from pathlib import Path

from ..models.locate import packaged_demo_model

DEMO_PROMPT = """\
Copy this shopping list exactly as it is, but replace milk by oat milk:

- 2 bottles of milk
- 1 loaf of rye bread
- 500 grams of tomatoes
- 1 jar of strawberry jam
- 6 eggs from the market
- 1 packet of black tea
"""
"""Asks for an edit of a given text: most of the answer stands in the prompt."""


def demo_model() -> Path:
    """Where the packaged model lies; found by its files, with no network.

    Raises:
        ModelFileError: the package is not installed.
    """
    return packaged_demo_model()
