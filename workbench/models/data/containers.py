"""Click logs in the containers that users have: text, TFRecord, Parquet.

Whatever the container, a file is checked as the lines of text that its rows stand for, so that its
faults have the same messages. `rows` reads all three in a graph.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from workbench.errors import DataError
from workbench.models.data.log_file import open_log
from workbench.models.data.record_file import HEADER_BYTES, begins_like_records
from workbench.models.data.table_format import CheckedTable, Container, TableFormat
from workbench.models.data.text_table import check_table, text_blocks

_PARQUET = b"PAR1"


def check_file(
    path: str | os.PathLike[str], layout: TableFormat, *, rows: int | None = None
) -> CheckedTable:
    """Checks the first `rows` rows (all rows when None) of a file of text, TFRecord or Parquet.

    What the file is, it says itself, whatever its name. TFRecord loads TensorFlow.

    Raises:
      DataError: see `check_table`, `check_tfrecord` and `check_parquet`.
    """
    container, compression = container_of(path)
    if container == "parquet":
        from workbench.models.data.parquet import check_parquet

        return check_parquet(path, layout, rows=rows)
    if container == "tfrecord":
        from workbench.models.data.tfrecord import check_tfrecord

        return check_tfrecord(path, layout, rows=rows, compression=compression)
    return check_table(path, layout, rows=rows)


def container_of(path: str | os.PathLike[str]) -> tuple[Container, str]:
    """What a file begins like, and how it is compressed.

    It is text if it is like nothing else or cannot be read.
    """
    # Opening a pipe would wait until somebody writes to it.
    if not os.path.isfile(path):
        return "text", ""
    try:
        with open(path, "rb") as file:
            if file.read(len(_PARQUET)) == _PARQUET:
                return "parquet", ""
        with open_log(Path(path)) as log:
            records = begins_like_records(log.read(HEADER_BYTES))
            return "tfrecord" if records else "text", log.compression
    except (OSError, DataError):
        return "text", ""


def line_blocks(table: CheckedTable) -> Iterator[bytes]:
    """The lines of the checked rows, many at a time, each with LF at its end."""
    if table.container == "text":
        return text_blocks(table)
    layout = known_layout(table)
    if table.container == "parquet":
        from workbench.models.data.parquet import parquet_blocks

        return parquet_blocks(table, layout)
    from workbench.models.data.tfrecord import tfrecord_blocks

    return tfrecord_blocks(table, layout)


def known_layout(table: CheckedTable) -> TableFormat:
    """The columns of a checked table.

    Raises:
      DataError: nothing is known of them.
    """
    if table.layout is None:
        raise DataError(
            f"{table.path}: its columns are not known; use what `check_file` returned for it"
        )
    return table.layout
