"""The demo: a small packaged model, and a prompt where drafting from the text so far pays most."""

from __future__ import annotations

from pathlib import Path

from ..models.locate import packaged_demo_model

DEMO_PROMPT = """\
Correct the spelling in this letter, and write the whole letter again:

Dear neighbours,

On Saturday we will have a small party in our gardn, with musik until ten o'clock. If it is too loud, \
please ring the bell. You are of course all invited. There will be cake, coffee and cold drinks, and the \
children can play in the yard.

Kind regards,
the family from number seven
"""
"""Asks for an edit of a given text: most of the answer stands in the prompt."""

DEMO_REPEAT_PENALTY = 1.1

DEMO_NOTICE = (
    "This is the demo: a small packaged model, drafted from the text so far. So small a model is fast "
    "already and gains little. With models of your own: specchat --target q4.gguf --draft tiny.gguf"
)


def demo_model() -> Path:
    """Where the packaged model lies; found by its files, with no network.

    Raises:
        ModelFileError: the package is not installed.
    """
    return packaged_demo_model()
