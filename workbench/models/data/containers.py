"""Click logs in the containers that users have: text, TFRecord, Parquet; one into another.

Whatever the container, a file is checked as the lines of text that its rows stand for, so that its
faults have the same messages. `rows` reads all three in a graph.
"""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from workbench.atomic_file import make_directory
from workbench.errors import DataError
from workbench.models.data.table_format import CheckedTable, Container, TableFormat
from workbench.models.data.text_table import check_table, text_blocks

_PARQUET = b"PAR1"
# A record begins with its length and a masked checksum (CRC-32C) of that.
_LENGTH_BYTES, _HEADER_BYTES = 8, 12
_CRC32C = 0x82F63B78
_CRC_MASK = 0xA282EAD8

Writer = Callable[[Iterable[bytes], TableFormat, Path], None]


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


def write_tfrecord(checked: CheckedTable, path: str | os.PathLike[str]) -> CheckedTable:
    """Writes the checked rows as a TFRecord file of examples; a file there is replaced.

    Loads TensorFlow. Returns what was written, checked as it is; see `tfrecord` for its features.

    Raises:
      DataError: the columns are not known, or `path` is the checked file or a directory.
    """
    from workbench.models.data.tfrecord import write_blocks

    return _written(checked, Path(path), "tfrecord", write_blocks)


def write_parquet(checked: CheckedTable, path: str | os.PathLike[str]) -> CheckedTable:
    """Writes the checked rows as a Parquet file; a file there is replaced.

    Returns what was written, checked as it is; see `parquet` for its columns.

    Raises:
      DataError: the columns are not known, or `path` is the checked file or a directory.
    """
    from workbench.models.data.parquet import write_blocks

    return _written(checked, Path(path), "parquet", write_blocks)


def _written(
    checked: CheckedTable, path: Path, container: Container, write: Writer
) -> CheckedTable:
    layout = known_layout(checked)
    if path.is_dir():
        raise DataError(f"{path}: is a directory; give the path of the file to write")
    if path.resolve() == checked.path.resolve():
        raise DataError(f"{path}: is the file that is read; give another path to write")
    make_directory(path.parent)
    write(line_blocks(checked), layout, path)
    return dataclasses.replace(checked, path=path, more=False, container=container, compression="")


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
