"""A finished table and its outlets."""

from __future__ import annotations

import dataclasses
from typing import Any

from workbench.viz.style import assets
from workbench.viz.style.fragments import alone, fragment
from workbench.viz.style.plain_text import aligned, plain


@dataclasses.dataclass(frozen=True)
class Table:
    """A finished table: the first column names the rows, the others are numbers, or `words`.

    `total` is the row below the line, empty where there is none. `nodes` are the graph nodes that
    rows stand for, `tables` the embedding tables: "" for a row of none, empty where no row does.
    """

    caption: str
    heads: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    total: tuple[str, ...] = ()
    nodes: tuple[str, ...] = ()
    tables: tuple[str, ...] = ()
    words: frozenset[int] = frozenset()


def table_lines(table: Table) -> list[str]:
    """A table as aligned lines, names and words to the left, numbers to the right."""
    rows = [table.heads, *table.rows, *([table.total] if table.total else [])]
    return [plain(line) for line in aligned(rows, left={0, *table.words})]


def table_html(table: Table) -> str:
    """A table as HTML with its own style."""
    module: Any = assets.templates().get_template("shared/table.html.j2").module
    return alone(fragment(module.table(table)))
