"""The colours of code."""

from __future__ import annotations

from functools import lru_cache

from pygments.lexers import get_lexer_by_name
from pygments.token import Token
from pygments.util import ClassNotFound
from textual.content import Content
from textual.highlight import HighlightTheme, highlight


class CodeTheme(HighlightTheme):
    """Textual's colours for code, without underlines, which mean something else here."""

    STYLES = {  # noqa: RUF012 (Textual declares it so)
        **HighlightTheme.STYLES,
        Token.Comment: "$text-muted italic",
        Token.Name: "$text",
        Token.Name.Function: "$text-warning",
        Token.Name.Function.Magic: "$text-warning",
        Token.Keyword.Namespace: "$text-accent",
        Token.Operator: "$text 80%",
        Token.Error: "$text",
    }


@lru_cache(maxsize=64)
def known_language(name: str) -> str:
    """The name, or `text` where there are no rules for it: guessing a language costs a second."""
    try:
        get_lexer_by_name(name)
    except ClassNotFound:
        return "text"
    return name


def warm_up() -> None:
    """Do what the first code costs, imports and regular expressions, while nobody waits for tokens."""
    for language in ("python", "bash", "json"):
        highlighted("import this", language)


def highlighted(code: str, language: str) -> Content:
    """Code with the colours of its language."""
    if not code:
        return Content("")
    lines = code.count("\n")
    content = highlight(code, language=known_language(language or "text"), theme=CodeTheme)
    # The highlighter drops trailing empty lines; the code keeps them.
    missing = lines - content.plain.count("\n")
    return content if missing <= 0 else Content.assemble(content, "\n" * missing)
