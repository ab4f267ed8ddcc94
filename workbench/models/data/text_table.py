"""Click logs on disk: what a tabular text file must look like, checking one, reading its lines.

A file is checked before any graph reads it, so that a mistake in it is one line that names file,
row and column instead of a failure inside an op.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
from tqdm import tqdm

from workbench.errors import DataError
from workbench.models.data.lists import list_fault, list_suspects
from workbench.models.data.log_file import LogFile, open_log
from workbench.models.data.table_format import CheckedTable, TableFormat

_BLOCK_BYTES = 8 << 20
_LONGEST_ROW_BYTES = 1 << 20
_SHOW_PROGRESS_FROM_BYTES = 256 << 20
_NUMBER = re.compile(r"-?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)
_FLOAT32_MAX = 3.4028235e38


def check_table(
    path: str | os.PathLike[str], layout: TableFormat, *, rows: int | None = None
) -> CheckedTable:
    """Checks the first `rows` rows of a file (all rows when None).

    Windows line ends and a last line without an end are accepted; gzip, bz2, xz and zstd are
    decompressed as they are read.

    Raises:
      DataError: the file is missing, unreadable, empty, damaged or no text, or a row has a wrong
        number of columns, a label other than 0 or 1, something else than a number, or a list of
        another length.
    """
    path = Path(path)
    if rows is not None and rows < 1:
        raise DataError(f"{path}: asked to read {rows} rows; expected at least 1")
    with open_log(path) as file:
        shown = file.size >= _SHOW_PROGRESS_FROM_BYTES
        with tqdm(
            total=file.size,
            unit="B",
            unit_scale=True,
            desc=f"Checking {path.name}",
            disable=not shown,
        ) as bar:
            return _check_blocks(layout, file, rows, bar)


def text_blocks(table: CheckedTable, block_bytes: int = _BLOCK_BYTES) -> Iterator[bytes]:
    """The checked lines of a text file, about `block_bytes` at a time, each with LF at its end."""
    left = table.rows
    with open_log(table.path) as file:
        for block in _whole_lines(file, block_bytes):
            block, _ = _first_lines(block.replace(b"\r\n", b"\n"), left)
            yield block
            left -= block.count(b"\n")
            if not left:
                return


def _check_blocks(layout: TableFormat, file: LogFile, rows: int | None, bar: Any) -> CheckedTable:
    path, checked = file.path, 0
    for block in _whole_lines(file, _BLOCK_BYTES):
        bar.update(file.position() - bar.n)
        if rows is not None:
            block, cut = _first_lines(block, rows - checked)
        checked += check_lines(path, layout, block, checked + 1)
        if rows is not None and checked == rows:
            more = cut or bool(file.read(1))
            return _checked(file, rows, more, layout)
    if checked == 0:
        raise DataError(f"{path}: is empty; expected rows of {layout.summary}")
    return _checked(file, checked, False, layout)


def _checked(file: LogFile, rows: int, more: bool, layout: TableFormat) -> CheckedTable:
    return CheckedTable(
        path=file.path, rows=rows, more=more, layout=layout, compression=file.compression
    )


def _whole_lines(file: LogFile, block_bytes: int) -> Iterator[bytes]:
    """Blocks that end at the end of a line; the last line gets its end if it has none."""
    rest = b""
    rows = 0
    while read := file.read(block_bytes):
        block = rest + read
        end = block.rfind(b"\n") + 1
        rest = block[end:]
        rows += block.count(b"\n")
        if len(rest) > _LONGEST_ROW_BYTES:
            hint = "; its lines end with CR alone: convert them" if b"\r" in rest else ""
            where = f"{file.path}, row {rows + 1}"
            raise DataError(f"{where}: is over {_LONGEST_ROW_BYTES} bytes long, no row{hint}")
        if end:
            yield block[:end]
    if rest:
        yield rest + b"\n"


def _first_lines(block: bytes, count: int) -> tuple[bytes, bool]:
    """At most `count` lines of a block, and whether something was left off."""
    ends = np.flatnonzero(np.frombuffer(block, np.uint8) == 10)
    if len(ends) <= count:
        return block, False
    return block[: int(ends[count - 1]) + 1], True


def check_lines(path: Path, layout: TableFormat, block: bytes, first_row: int) -> int:
    """Checks whole lines, of which the first is row `first_row`; returns how many there are."""
    _require_text(path, block, first_row)
    if b"\r" in block:
        block = block.replace(b"\r\n", b"\n")
        if b"\r" in block:
            row = first_row + block.count(b"\n", 0, block.index(b"\r"))
            raise DataError(f"{path}, row {row}: has a carriage return inside; expected line ends")
    data = np.frombuffer(block, np.uint8)
    marks = np.flatnonzero((data == layout.separator[0]) | (data == 10))
    width = len(layout.columns)
    line_marks = np.flatnonzero(data[marks] == 10)
    counts = np.diff(line_marks, prepend=-1)
    wrong = np.flatnonzero(counts != width)
    good = int(wrong[0]) if len(wrong) else len(counts)
    ends = marks[: good * width].reshape(good, width)
    for index in _suspects(layout, data, ends):
        start = int(ends[index - 1, -1]) + 1 if index else 0
        _check_row(path, layout, block[start : int(ends[index, -1])], first_row + int(index))
    if len(wrong):
        _refuse_width(path, layout, int(counts[good]), first_row + good)
    return good


def _require_text(path: Path, block: bytes, first_row: int) -> None:
    at = block.find(b"\0")
    if at >= 0:
        row = first_row + block.count(b"\n", 0, at)
        raise DataError(f"{path}, row {row}: has a NUL byte; expected a text file")
    if block.isascii():
        return
    try:
        block.decode("utf-8")
    except UnicodeDecodeError as error:
        row = first_row + block.count(b"\n", 0, error.start)
        byte = block[error.start]
        raise DataError(
            f"{path}, row {row}: byte 0x{byte:02x} is not UTF-8 text; save the file as UTF-8"
        ) from None


def _suspects(layout: TableFormat, data: np.ndarray, ends: np.ndarray) -> np.ndarray:
    """Rows that are not plainly right: anything but 0 or 1 as label, digits only as numbers.

    Vectorised over the block, so that only these rows are looked at one by one.
    """
    if not len(ends):
        return np.empty(0, np.int64)
    starts = np.empty_like(ends)
    starts[:, 1:] = ends[:, :-1] + 1
    starts[0, 0] = 0
    starts[1:, 0] = ends[:-1, -1] + 1
    suspect = np.zeros(len(ends), bool)
    for i, column in enumerate(layout.columns):
        if column.kind == "label":
            first = data[starts[:, i]]
            suspect |= (ends[:, i] - starts[:, i] != 1) | ((first != 48) & (first != 49))
    plain = np.zeros(256, np.uint8)
    plain[48:58] = 1
    plain[layout.separator[0]] = 1
    for first_column, last_column in _runs_of_numbers(layout):
        start, end = starts[:, first_column], ends[:, last_column]
        # Between start and end (a separator or line end, so the slice is never empty) and from
        # there to the next start: only the even slices are of interest.
        edges = np.stack([start, end], axis=1).ravel()
        worst = np.minimum.reduceat(plain[data], edges)[::2]
        empty = start == end
        # float32 ends at 39 digits.
        longest = 38 + last_column - first_column + 1
        suspect |= ((worst == 0) & ~empty) | (end - start >= longest)
    return np.flatnonzero(suspect | list_suspects(layout, data, starts, ends))


def _runs_of_numbers(layout: TableFormat) -> list[tuple[int, int]]:
    runs: list[tuple[int, int]] = []
    for i, column in enumerate(layout.columns):
        if column.kind != "number":
            continue
        if runs and runs[-1][1] == i - 1:
            runs[-1] = (runs[-1][0], i)
        else:
            runs.append((i, i))
    return runs


def _check_row(path: Path, layout: TableFormat, line: bytes, row: int) -> None:
    fields = dict(zip((c.name for c in layout.columns), line.split(layout.separator), strict=True))
    for column in layout.columns:
        text = fields[column.name].decode()
        where = f"{path}, row {row}, column {column.name}"
        if column.kind == "label" and not (_is_number(text) and float(text) in (0.0, 1.0)):
            header = "; if row 1 holds the names of the columns, remove it" if row == 1 else ""
            raise DataError(f"{where}: {_shown(text)} is no label; expected 0 or 1{header}")
        if column.kind == "number" and text and not _is_number(text):
            raise DataError(
                f"{where}: {_shown(text)} is not a number; leave the field empty if it is unknown"
            )
        if column.kind == "list" and (fault := list_fault(layout, column, fields)):
            raise DataError(f"{where}: {fault}")


def _is_number(text: str) -> bool:
    return _NUMBER.fullmatch(text) is not None and abs(float(text)) <= _FLOAT32_MAX


def _shown(text: str) -> str:
    return repr(text if len(text) <= 40 else text[:40] + "…")


def _refuse_width(path: Path, layout: TableFormat, found: int, row: int) -> NoReturn:
    between = "tabs" if layout.separator == b"\t" else repr(layout.separator.decode())
    raise DataError(
        f"{path}, row {row}: {found} {'column' if found == 1 else 'columns'}; expected "
        f"{len(layout.columns)} ({layout.summary}) separated by {between}"
    )
