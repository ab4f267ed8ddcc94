"""What a table of training data looks like, and what a checked one is known to hold."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Literal

from workbench.errors import OptionError

Kind = Literal["label", "number", "category", "list"]
Container = Literal["text", "tfrecord", "parquet"]


@dataclasses.dataclass(frozen=True, kw_only=True)
class Column:
    """One column: a label is 0 or 1, a number may be empty, a category is any text.

    A list is categories, none of them empty, joined by a byte.

    Attributes:
      name: as messages call it.
      kind: what its fields hold.
      joined_by: of a list, the byte between its values.
      least, most: of a list, how many values a field may have; None sets no end.
      as_long_as: of a list, the column before it that has as many values in each row.
    """

    name: str
    kind: Kind
    joined_by: bytes = b""
    least: int = 0
    most: int | None = None
    as_long_as: str | None = None


@dataclasses.dataclass(frozen=True, kw_only=True)
class TableFormat:
    """A text format of one row a line.

    Attributes:
      summary: the columns in a few words, for messages.
      separator: one byte between fields.
      columns: in file order.
    """

    summary: str
    separator: bytes
    columns: tuple[Column, ...]


@dataclasses.dataclass(frozen=True, kw_only=True)
class CheckedTable:
    """A file whose first `rows` rows are known to be well formed.

    Attributes:
      path: the file.
      rows: rows checked, which are the rows that may be read.
      more: whether the file goes on after them.
      layout: the columns that every row has; None if nothing is known but the lines.
      container: how the rows lie in the file.
      compression: how a file of text or TFRecord is compressed; "" for a plain one.
      integers: of a TFRecord file, names of the columns whose features are integers.
      generated: whether its rows and a seed make it again.
      shard: which of its rows are read: of every so many, the one at the index: (index, count).
    """

    path: Path
    rows: int
    more: bool
    layout: TableFormat | None = None
    container: Container = "text"
    compression: str = ""
    integers: frozenset[str] = frozenset()
    generated: bool = False
    shard: tuple[int, int] = (0, 1)


def require_columns(data: CheckedTable, layout: TableFormat, model: str) -> None:
    """Refuses a file that does not begin with the columns of a format; it may have more of them.

    A file of which nothing but its lines is known is taken as it is.

    Raises:
      OptionError: the file is of another format.
    """
    found = data.layout
    if found is None:
        return
    begins = found.columns[: len(layout.columns)]
    if begins != layout.columns or found.separator != layout.separator:
        raise OptionError(
            f"{data.path} was checked as rows of {found.summary}; {model} reads {layout.summary}"
        )
