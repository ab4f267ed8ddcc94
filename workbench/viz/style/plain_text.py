"""Aligned columns of text, for terminals and for front ends that show nothing else."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence

from workbench.errors import visible

_BREAK = re.compile("[\t\n\r]")


def aligned(rows: Sequence[Sequence[str]], left: set[int]) -> list[str]:
    """Rows of cells as lines; the columns in `left` start at the left, all others end right."""
    widths = [max(map(_width, column)) for column in zip(*rows, strict=True)]
    lines = []
    for row in rows:
        cells = []
        for number, (cell, width) in enumerate(zip(row, widths, strict=True)):
            space = " " * (width - _width(cell))
            cells.append(cell + space if number in left else space + cell)
        lines.append("  ".join(cells).rstrip())
    return lines


def plain(text: str) -> str:
    """One line without control characters: a name must not move the cursor or start a line."""
    return _BREAK.sub(lambda found: repr(found[0])[1:-1], visible(text))


def _width(text: str) -> int:
    """Columns that a terminal gives to a text: wide letters take two, marks none."""
    return sum(
        0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1
        for c in plain(text)
    )
