"""A Markdown table as lines of aligned columns."""

from __future__ import annotations

from textual.content import Content

from .ink import breaks

_GAP = 2
_NARROWEST = 4


def table_rows(cells: list[list[Content]], aligns: list[str], width: int) -> list[Content]:
    """The header, a rule and the rows; where there is too little room, the widest columns wrap."""
    if not cells or not cells[0]:
        return []
    columns = len(cells[0])
    rows = [(row + [Content("")] * columns)[:columns] for row in cells]
    widths = _fit([max(1, *(row[i].cell_length for row in rows)) for i in range(columns)], width)
    aligns = (aligns + [""] * columns)[:columns]
    lines: list[Content] = []
    for number, row in enumerate(rows):
        wrapped = [cell.divide(breaks(cell.plain, widths[i])) for i, cell in enumerate(row)]
        for level in range(max(len(parts) for parts in wrapped)):
            parts = [part[level].rstrip() if level < len(part) else Content("") for part in wrapped]
            line = Content(" " * _GAP).join([_aligned(p, widths[i], aligns[i]) for i, p in enumerate(parts)])
            lines.append(line.stylize("bold") if number == 0 else line)
        if number == 0:
            rule = (" " * _GAP).join("─" * column for column in widths)
            lines.append(Content(rule).stylize("$text-disabled"))
    return lines


def _aligned(content: Content, width: int, align: str) -> Content:
    room = width - content.cell_length
    if align == "right":
        return content.pad_left(room)
    if align == "center":
        return content.pad_left(room // 2).pad_right(room - room // 2)
    return content.pad_right(room)


def _fit(widths: list[int], width: int) -> list[int]:
    room = max(len(widths) * _NARROWEST, width - _GAP * (len(widths) - 1))
    while sum(widths) > room and max(widths) > _NARROWEST:
        widths[widths.index(max(widths))] -= 1
    return widths
