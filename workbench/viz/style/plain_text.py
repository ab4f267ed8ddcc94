"""Aligned columns of text, for terminals and for front ends that show nothing else."""

from __future__ import annotations

import re
import textwrap
import unicodedata
from collections.abc import Sequence

from workbench.errors import visible

_BREAK = re.compile("[\t\n\r]")
_WIDE = 100


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


def wrapped(text: str, indent: str = "") -> list[str]:
    """A text in lines; no name is broken, nor what a no-break space holds together."""
    return textwrap.wrap(
        plain(text),
        _WIDE,
        initial_indent=indent,
        subsequent_indent=indent,
        break_long_words=False,
        break_on_hyphens=False,
    )


def _width(text: str) -> int:
    """Columns that a terminal gives to a text: wide letters take two, marks none."""
    return sum(
        0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1
        for c in plain(text)
    )
