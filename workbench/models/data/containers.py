"""Click logs in the containers that users have: text, TFRecord, Parquet.

Whatever the container, a file is checked as the lines of text that its rows stand for, so that its
faults have the same messages. `rows` reads all three in a graph.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

from workbench.errors import DataError
from workbench.models.data.table_format import CheckedTable, Container, TableFormat
from workbench.models.data.text_table import check_table, text_blocks

_PARQUET = b"PAR1"
# A record begins with its length and a masked checksum (CRC-32C) of that.
_LENGTH_BYTES, _HEADER_BYTES = 8, 12
_CRC32C = 0x82F63B78
_CRC_MASK = 0xA282EAD8


def check_file(
    path: str | os.PathLike[str], layout: TableFormat, *, rows: int | None = None
) -> CheckedTable:
    """Checks the first `rows` rows (all rows when None) of a file of text, TFRecord or Parquet.

    What the file is, it says itself, whatever its name. TFRecord loads TensorFlow.

    Raises:
      DataError: see `check_table`, `check_tfrecord` and `check_parquet`.
    """
    container = container_of(path)
    if container == "parquet":
        from workbench.models.data.parquet import check_parquet

        return check_parquet(path, layout, rows=rows)
    if container == "tfrecord":
        from workbench.models.data.tfrecord import check_tfrecord

        return check_tfrecord(path, layout, rows=rows)
    return check_table(path, layout, rows=rows)


def container_of(path: str | os.PathLike[str]) -> Container:
    """What a file begins like; text, if like nothing else or if it cannot be read."""
    # Opening a pipe would wait until somebody writes to it.
    if not os.path.isfile(path):
        return "text"
    try:
        with open(path, "rb") as file:
            head = file.read(_HEADER_BYTES)
    except OSError:
        return "text"
    if head.startswith(_PARQUET):
        return "parquet"
    checksum = int.from_bytes(head[_LENGTH_BYTES:], "little")
    if len(head) == _HEADER_BYTES and checksum == _masked_crc(head[:_LENGTH_BYTES]):
        return "tfrecord"
    return "text"


def _masked_crc(data: bytes) -> int:
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (_CRC32C if crc & 1 else 0)
    crc ^= 0xFFFFFFFF
    return ((crc >> 15 | crc << 17) + _CRC_MASK) & 0xFFFFFFFF


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
