"""Markdown to rows of styled text."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from markdown_it import MarkdownIt
from markdown_it.token import Token
from textual.content import Content, Span

from .code import highlighted
from .ink import Row, printable
from .table import table_rows

RULE = "─" * 24
_HEADINGS = {
    "h1": "bold underline $text-primary",
    "h2": "bold $text-primary",
    "h3": "bold $text-secondary",
}
_BULLETS = ("•", "◦", "▪")
_INLINE = {"em": "italic", "strong": "bold", "s": "strike", "link": "underline $text-primary"}


@lru_cache(maxsize=1)
def _parser() -> MarkdownIt:
    return MarkdownIt("commonmark").enable(["table", "strikethrough"])


def markdown_rows(source: str, width: int) -> list[Row]:
    """The rows of a Markdown text; only tables need the width."""
    return _Renderer(width).render(_parser().parse(source))


class _Container:
    """A list item or a quotation around blocks: what stands before their lines."""

    def __init__(self, first: Content, rest: Content) -> None:
        self._first: Content | None = first
        self._rest = rest

    @property
    def unused(self) -> bool:
        """Whether no row has been written in it."""
        return self._first is not None

    def take(self) -> Content:
        """The prefix of the next row's first line."""
        taken, self._first = self._first, None
        return self._rest if taken is None else taken

    @property
    def rest(self) -> Content:
        """The prefix of every line after the first."""
        return self._rest


@dataclass
class _List:
    number: int | None
    """The next item's, in an ordered list."""
    loose: bool = False
    """Its items have blank lines between them."""


class _Renderer:
    def __init__(self, width: int) -> None:
        self._width = width
        self._rows: list[Row] = []
        self._containers: list[_Container] = []
        self._lists: list[_List] = []
        self._gap = False

    def render(self, tokens: list[Token]) -> list[Row]:
        index = 0
        while index < len(tokens):
            token = tokens[index]
            if token.type == "table_open":
                end = next(i for i in range(index, len(tokens)) if tokens[i].type == "table_close")
                self._table(tokens[index:end])
                index = end
            else:
                self._take(token, tokens[index + 1] if index + 1 < len(tokens) else None)
            index += 1
        return self._rows

    def _take(self, token: Token, following: Token | None) -> None:
        match token.type:
            case "heading_open" if following is not None:
                style = _HEADINGS.get(token.tag, "bold")
                self._emit(inline(following.children or []).stylize(style))
                self._gap = True
            case "paragraph_open" if following is not None:
                self._emit(inline(following.children or []))
                self._gap = not token.hidden
                if self._lists:
                    self._lists[-1].loose = not token.hidden
            case "fence" | "code_block":
                language = token.info.strip().split(" ")[0] if token.info else ""
                self._emit(highlighted(token.content.removesuffix("\n"), language), code=True)
                self._gap = True
            case "html_block":
                self._emit(Content(token.content.rstrip("\n")).stylize("$text-muted"))
                self._gap = True
            case "hr":
                self._emit(Content(RULE).stylize("$text-disabled"))
                self._gap = True
            case "bullet_list_open":
                self._lists.append(_List(None))
            case "ordered_list_open":
                start = token.attrGet("start")
                self._lists.append(_List(1 if start is None else int(start)))
            case "bullet_list_close" | "ordered_list_close":
                self._lists.pop()
                self._gap = self._lists[-1].loose if self._lists else True
            case "list_item_open":
                self._open_item()
            case "list_item_close" | "blockquote_close":
                if self._containers[-1].unused:
                    self._emit(Content(""))
                self._containers.pop()
                self._gap = self._gap or token.type == "blockquote_close"
            case "blockquote_open":
                mark = Content("▏ ").stylize("$text-secondary")
                self._containers.append(_Container(mark, mark))
            case _:
                pass

    def _open_item(self) -> None:
        current = self._lists[-1]
        if current.number is None:
            depth = sum(1 for each in self._lists if each.number is None)
            marker = _BULLETS[(depth - 1) % len(_BULLETS)] + " "
        else:
            marker = f"{current.number}. "
            current.number += 1
        self._containers.append(
            _Container(Content(marker).stylize("$text-primary"), Content(" " * len(marker)))
        )

    def _emit(self, content: Content, code: bool = False) -> None:
        if self._gap and self._rows:
            # A new item's mark belongs to its own first line, not to the blank line before it.
            blank = Content("").join([c.rest for c in self._containers])
            self._rows.append(Row(Content(""), blank, blank))
        self._gap = False
        rest = Content("").join([container.rest for container in self._containers])
        first = Content("").join([container.take() for container in self._containers])
        self._rows.append(Row(content, first, rest, code))

    def _table(self, tokens: list[Token]) -> None:
        cells: list[list[Content]] = []
        aligns: list[str] = []
        for token in tokens:
            if token.type == "tr_open":
                cells.append([])
            elif token.type == "th_open":
                aligns.append(str(token.attrGet("style") or "").removeprefix("text-align:"))
            elif token.type == "inline" and cells:
                cells[-1].append(inline(token.children or []))
        taken = sum(container.rest.cell_length for container in self._containers)
        for content in table_rows(cells, aligns, self._width - taken):
            self._emit(content)
        self._gap = True


def inline(tokens: list[Token]) -> Content:
    """The text of a paragraph with its emphasis, code and links."""
    parts: list[str] = []
    spans: list[Span] = []
    open_at: list[tuple[str, int]] = []
    links: list[tuple[str, int]] = []
    length = 0

    def add(text: str, style: str = "") -> None:
        nonlocal length
        text = printable(text)  # Markdown can spell what turns the direction: &#x202e;
        parts.append(text)
        if style:
            spans.append(Span(length, length + len(text), style))
        length += len(text)

    for token in tokens:
        kind = token.type
        if kind in ("text", "html_inline"):
            add(token.content)
        elif kind in ("softbreak", "hardbreak"):
            # A model's line breaks are meant, as in a poem or an address.
            add("\n")
        elif kind == "code_inline":
            add(token.content, "$text-warning on $code-background")
        elif kind == "image":
            add(f"[{token.content or 'image'}]", "italic")
            add(f" ({token.attrGet('src') or ''})", "$text-muted")
        elif kind.endswith("_open"):
            open_at.append((kind.removesuffix("_open"), length))
            if kind == "link_open":
                links.append((str(token.attrGet("href") or ""), length))
        elif kind.endswith("_close") and open_at:
            name, start = open_at.pop()
            if style := _INLINE.get(name):
                spans.append(Span(start, length, style))
            if kind == "link_close" and links:
                target, start = links.pop()
                if target and target != "".join(parts)[start:]:
                    add(f" ({target})", "$text-muted")
    return Content("".join(parts), spans=spans)
