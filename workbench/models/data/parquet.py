"""Click logs as Parquet: checking a file, and its rows as the lines of text they are.

A column may be of any type that has a text: numbers, strings, decimals, dictionaries, lists of
them or lists joined already; an empty field is null. Other columns are left alone.

Arrow turns rows into lines in one call for some thousand of them, without Python's lock, so that
readers of lines do the rest: see `rows.row_dataset`.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset
import pyarrow.parquet as pq
from tqdm import tqdm

from workbench.errors import DataError, first_line
from workbench.models.data.table_format import CheckedTable, Column, TableFormat
from workbench.models.data.text_table import check_lines

_CHECKED_ROWS = 65_536
# Few enough that a batch behind a block does not wait long for it.
_READ_ROWS = 4096
_SHOW_PROGRESS_AFTER_S = 2.0
# No column of a format is called so.
_LINE = "\n"


def check_parquet(
    path: str | os.PathLike[str], layout: TableFormat, *, rows: int | None = None
) -> CheckedTable:
    """Checks the first `rows` rows (all rows when None) of a Parquet file by their text.

    Raises:
      DataError: the file cannot be read, has no such column or one of another type, holds a tab,
        line end or other separator inside a value, or breaks a rule of `check_table`.
    """
    path = Path(path)
    if rows is not None and rows < 1:
        raise DataError(f"{path}: asked to read {rows} rows; expected at least 1")
    with _opened(path) as file:
        columns = _columns(path, layout, file.schema_arrow)
        there = file.metadata.num_rows
        if not there:
            raise DataError(f"{path}: has no rows; expected rows of {layout.summary}")
        count = there if rows is None else min(rows, there)
        checked = 0
        with tqdm(total=count, unit=" rows", unit_scale=True, desc=f"Checking {path.name}",
                  delay=_SHOW_PROGRESS_AFTER_S, leave=False) as bar:  # fmt: skip
            for part in _parts(path, columns, count, _CHECKED_ROWS):
                for column in layout.columns:
                    _require_plain(path, layout, column, part.column(column.name), checked + 1)
                checked += check_lines(path, layout, _joined(part.column(_LINE)), checked + 1)
                bar.update(part.num_rows)
    return CheckedTable(
        path=path, rows=count, more=there > count, layout=layout, container="parquet"
    )


def parquet_blocks(table: CheckedTable, layout: TableFormat) -> Iterator[bytes]:
    """The lines of the checked rows, some thousand at a time, each with LF at its end."""
    with _opened(table.path) as file:
        line = _columns(table.path, layout, file.schema_arrow)[_LINE]
    for part in _parts(table.path, {_LINE: line}, table.rows, _READ_ROWS):
        yield _joined(part.column(_LINE))


def _opened(path: Path) -> pq.ParquetFile:
    try:
        return pq.ParquetFile(_source(path))
    except (pa.ArrowInvalid, OSError) as error:
        raise DataError(f"{path}: is no Parquet file: {first_line(error)}") from None


def _source(path: Path) -> Any:
    """The file's name, or the open file where Arrow would refuse a name that is no text."""
    try:
        str(path).encode()
    except UnicodeEncodeError:
        return path.open("rb")
    return str(path)


def _columns(path: Path, layout: TableFormat, schema: pa.Schema) -> dict[str, pc.Expression]:
    """Each column of the format as strings or lists of strings, and the line of each row."""
    none = pc.scalar("")
    columns, fields = {}, []
    for column in layout.columns:
        if schema.names.count(column.name) != 1:
            raise DataError(
                f"{path}: has no column {column.name!r}; expected one of each of {layout.summary}; "
                f"it has {_some(schema.names)}"
            )
        dtype = schema.field(column.name).type
        if not _has_text(column, dtype):
            raise DataError(
                f"{path}, column {column.name}: is of type {dtype}; "
                f"expected {_type(column)}{' or text' if column.kind == 'list' else ''}"
            )
        values = _as_text(pc.field(column.name), dtype)
        columns[column.name] = values
        if _is_list(dtype):
            values = pc.binary_join(values, pc.scalar(column.joined_by.decode()))
        fields.append(pc.coalesce(values, none))
    line = pc.binary_join_element_wise(*fields, pc.scalar(layout.separator.decode()))
    columns[_LINE] = pc.binary_join_element_wise(line, none, pc.scalar("\n"))
    return columns


def _has_text(column: Column, dtype: pa.DataType) -> bool:
    """Whether a column of this type can be read as a column of the format."""
    if pa.types.is_dictionary(dtype):
        dtype = dtype.value_type
    text = (
        pa.types.is_string(dtype)
        or pa.types.is_large_string(dtype)
        or pa.types.is_binary(dtype)
        or pa.types.is_large_binary(dtype)
    )
    if column.kind == "list":
        value = Column(name=column.name, kind="category")
        return text or (_is_list(dtype) and _has_text(value, dtype.value_type))
    number = pa.types.is_integer(dtype) or pa.types.is_floating(dtype)
    number = number or pa.types.is_decimal(dtype) or pa.types.is_null(dtype)
    return number or (text if column.kind == "category" else pa.types.is_boolean(dtype))


def _is_list(found: pa.DataType) -> bool:
    return bool(pa.types.is_list(found) or pa.types.is_large_list(found))


def _as_text(values: pc.Expression, found: pa.DataType) -> pc.Expression:
    if _is_list(found):
        return values.cast(pa.list_(pa.string()))
    return (values.cast(pa.int8()) if pa.types.is_boolean(found) else values).cast(pa.string())


def _parts(
    path: Path, columns: dict[str, pc.Expression], rows: int, at_once: int
) -> Iterator[pa.RecordBatch]:
    """The first rows of a file, some at a time."""
    left = rows
    source = _source(path)
    form = pyarrow.dataset.ParquetFileFormat()
    by_name = isinstance(source, str)
    file = pyarrow.dataset.dataset(source, format=form) if by_name else form.make_fragment(source)
    read = file.scanner(columns=columns, batch_size=at_once, use_threads=False).to_batches()
    while left:
        try:
            part = next(read, None)
        except (pa.ArrowException, OSError) as error:
            raise DataError(
                f"{path}, behind row {rows - left}: cannot be read: {first_line(error)}"
            ) from None
        if part is None:
            return
        part = part.slice(0, left)
        yield part
        left -= part.num_rows


def _require_plain(
    path: Path, layout: TableFormat, column: Column, values: pa.Array, first_row: int
) -> None:
    """Refuses values that would come apart in a line."""
    apart = layout.separator + b"\r\n"
    rows = np.arange(len(values))
    if pa.types.is_list(values.type):
        rows = pc.list_parent_indices(values).to_numpy()
        values, apart = values.flatten(), apart + column.joined_by
        if values.null_count:
            at = int(rows[int(pc.index(values.is_null(), True).as_py())])
            raise DataError(
                f"{path}, row {first_row + at}, column {column.name}: holds a null; "
                "expected a list without"
            )
    wrong = pc.fill_null(pc.match_substring_regex(values, f"[{apart.decode()}]"), False)
    at = pc.index(wrong, True).as_py()
    if at >= 0:
        raise DataError(
            f"{path}, row {first_row + int(rows[at])}, column {column.name}: "
            f"{values[at].as_py()!r} holds a separator; expected none of {apart.decode()!r}"
        )


def _joined(lines: pa.Array) -> bytes:
    """The text of lines: one after another in a single buffer, they are just that."""
    ends = np.frombuffer(lines.buffers()[1], np.int32)[lines.offset : lines.offset + len(lines) + 1]
    text: bytes = lines.buffers()[2].slice(int(ends[0]), int(ends[-1] - ends[0])).to_pybytes()
    return text


def _type(column: Column) -> pa.DataType:
    if column.kind == "list":
        return pa.list_(pa.string())
    return pa.string() if column.kind == "category" else pa.float32()


def _some(names: list[str]) -> str:
    shown = ", ".join(itertools.islice((repr(name) for name in names), 8))
    return shown + (f" and {len(names) - 8} more" if len(names) > 8 else "") if names else "none"
