"""Columns of a Parquet file that may come from anybody: read once it is known what they take."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from workbench.errors import DataError, first_line
from workbench.files.saved_values import require_room

# What pandas takes for a text, at least, and Arrow for where it begins.
_OF_A_TEXT = 24
# Arrow's, and what its parts throw that are not.
_DAMAGE = (pa.ArrowException, OSError, ValueError, TypeError, KeyError, MemoryError, OverflowError)


class NoParquetError(DataError):
    """A file is no Parquet file at all, or cannot be read."""


class Columns:
    """An open Parquet file.

    Attributes:
      path: its name.
      names: of its columns.
      notes: what its metadata say, by name.
    """

    def __init__(self, path: str | os.PathLike[str], file: pq.ParquetFile) -> None:
        """Of an open file; see `opened`."""
        self.path = os.fspath(path)
        self.names: list[str] = list(file.schema_arrow.names)
        self.notes: Mapping[bytes, bytes] = dict(file.metadata.metadata or {})
        self._file = file

    def read(self, names: Sequence[str]) -> pd.DataFrame:
        """These columns of all rows.

        Raises:
          DataError: they are damaged, or would take far more memory than the file has.
        """
        try:
            require_room(self._needed(names), os.path.getsize(self.path))
            table = self._file.read(columns=list(names))
            # Texts of bytes that are none, and places in them that lie outside.
            table.validate(full=True)
            return table.to_pandas()
        except DataError:
            raise
        except _DAMAGE as error:
            raise DataError(first_line(error)) from error

    def _needed(self, names: Sequence[str]) -> int:
        """Bytes that the columns take in memory, from what the file says of itself."""
        metadata, schema = self._file.metadata, self._file.schema_arrow
        if metadata.num_rows < 0:
            raise DataError(f"it has {metadata.num_rows} rows")
        wide = sum(_width(schema.field(name).type) for name in names)
        packed = sum(
            metadata.row_group(group).total_byte_size for group in range(metadata.num_row_groups)
        )
        return max(metadata.num_rows * wide, packed)


def _width(kind: pa.DataType) -> int:
    try:
        return max(1, kind.bit_width // 8)
    except ValueError:
        return _OF_A_TEXT


@contextmanager
def opened(path: str | os.PathLike[str]) -> Iterator[Columns]:
    """Opens a Parquet file.

    Raises:
      NoParquetError: it is none, it is cut off or its end is damaged.
    """
    try:
        file = pq.ParquetFile(path)
        columns = Columns(path, file)
    except _DAMAGE as error:
        raise NoParquetError(first_line(error)) from error
    with file:
        yield columns
