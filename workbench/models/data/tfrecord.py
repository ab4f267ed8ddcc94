"""Click logs as TFRecord files of tf.train.Example: checking one, parsing its rows.

Labels and numbers are float features, categories and lists are bytes features; an empty field is a
feature that is absent. Other features are left alone.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import tensorflow as tf
from tqdm import tqdm

from workbench.errors import DataError, first_line
from workbench.models.data.table_format import CheckedTable, Column, TableFormat
from workbench.models.data.text_table import check_lines

v1 = tf.compat.v1

_CPU = v1.ConfigProto(device_count={"GPU": 0})
_CHECKED_ROWS = 1024
_SHOW_PROGRESS_AFTER_S = 2.0


def parse_examples(rows: tf.Tensor, layout: TableFormat) -> dict[str, tf.Tensor]:
    """The columns of serialized examples, string [batch], by name, each [batch].

    Labels and numbers are float32, 0 where they are absent; all else is string, values of a list
    joined as in a line of text.
    """
    features = {column.name: _feature(column) for column in layout.columns}
    found = tf.io.parse_example(rows, features)
    return {
        column.name: tf.strings.reduce_join(
            found[column.name], axis=1, separator=column.joined_by.decode()
        )
        if column.kind == "list"
        else found[column.name]
        for column in layout.columns
    }


def _feature(column: Column) -> Any:
    if column.kind == "list":
        return tf.io.RaggedFeature(tf.string)
    if column.kind == "category":
        return tf.io.FixedLenFeature([], tf.string, "")
    if column.kind == "number":
        return tf.io.FixedLenFeature([], tf.float32, 0.0)
    return tf.io.FixedLenFeature([], tf.float32)


def check_tfrecord(
    path: str | os.PathLike[str], layout: TableFormat, *, rows: int | None = None
) -> CheckedTable:
    """Checks the first `rows` rows (all rows when None) of a TFRecord file by their text.

    Raises:
      DataError: the file is damaged, a record is no example with these features, a value holds a
        separator of the text format, or a row breaks a rule of `check_table`.
    """
    path = Path(path)
    if rows is not None and rows < 1:
        raise DataError(f"{path}: asked to read {rows} rows; expected at least 1")
    checked = 0
    for columns in _columns(path, layout, rows):
        for column in layout.columns:
            _require_plain(path, layout, column, columns[column.name], checked + 1)
        checked += check_lines(path, layout, _lines(layout, columns), checked + 1)
    if not checked:
        raise DataError(f"{path}: is empty; expected examples of {layout.summary}")
    more = rows is not None and checked == rows and _holds(path, rows + 1)
    return CheckedTable(path=path, rows=checked, more=more, layout=layout, container="tfrecord")


def tfrecord_blocks(table: CheckedTable, layout: TableFormat) -> Iterator[bytes]:
    """The lines that the checked rows stand for, many at a time, each with LF at its end.

    A number that is absent is an empty field, as it was.
    """
    for columns in _columns(table.path, layout, table.rows):
        yield _lines(layout, columns)


def _columns(path: Path, layout: TableFormat, rows: int | None) -> Iterator[dict[str, np.ndarray]]:
    """The columns of the first rows as bytes, some rows at a time; absent numbers are empty."""
    with tf.Graph().as_default(), v1.Session(config=_CPU) as run:
        batch = _records(path, rows).batch(_CHECKED_ROWS)
        following = v1.data.make_one_shot_iterator(batch).get_next()
        given = v1.placeholder(tf.string, [None])
        texts = _texts(given, layout)
        done = 0
        with tqdm(unit=" rows", unit_scale=True, desc=f"Checking {path.name}",
                  delay=_SHOW_PROGRESS_AFTER_S, leave=False) as bar:  # fmt: skip
            while True:
                try:
                    records = run.run(following)
                except tf.errors.OutOfRangeError:
                    return
                except tf.errors.OpError as error:
                    _refuse_damage(path, error, done)
                try:
                    found = run.run(texts, {given: records})
                except tf.errors.InvalidArgumentError:
                    _refuse_record(path, lambda one: run.run(texts, {given: [one]}), records, done)
                yield found
                done += len(records)
                bar.update(len(records))


def _records(path: Path, rows: int | None) -> Any:
    dataset = tf.data.TFRecordDataset(os.fsencode(path))
    return dataset if rows is None else dataset.take(rows)


def _texts(records: tf.Tensor, layout: TableFormat) -> dict[str, tf.Tensor]:
    """Columns as text, string [batch]; lists joined, empty where a feature is absent."""
    texts = parse_examples(records, layout)
    numbers = [column.name for column in layout.columns if column.kind in ("label", "number")]
    several = {name: tf.io.RaggedFeature(tf.float32) for name in numbers}
    found = tf.io.parse_example(records, several)
    for name, values in found.items():
        # Nine digits tell any two float32 apart, and whole numbers keep theirs.
        shown = tf.strings.as_string(values, shortest=True, precision=9)
        texts[name] = tf.strings.reduce_join(shown, axis=1)
    return texts


def _lines(layout: TableFormat, columns: dict[str, np.ndarray]) -> bytes:
    fields = [columns[column.name].tolist() for column in layout.columns]
    lines = [layout.separator.join(row) for row in zip(*fields, strict=True)]
    return b"\n".join(lines) + b"\n"


def _require_plain(
    path: Path, layout: TableFormat, column: Column, values: np.ndarray, first_row: int
) -> None:
    """Refuses values that would come apart in a line."""
    if column.kind not in ("category", "list"):
        return
    apart = layout.separator + b"\r\n"
    for mark in (apart[i : i + 1] for i in range(len(apart))):
        for row, value in enumerate(values.tolist(), start=first_row):
            if mark in value:
                raise DataError(
                    f"{path}, row {row}, column {column.name}: "
                    f"{value.decode(errors='replace')!r} holds a separator; expected none of "
                    f"{apart.decode()!r}"
                )


def _refuse_damage(path: Path, error: Exception, behind: int) -> NoReturn:
    """Says behind which row a file is damaged; the records of a batch come all or none."""
    good = behind
    with tf.Graph().as_default(), v1.Session(config=_CPU) as run:
        one = v1.data.make_one_shot_iterator(_records(path, None).skip(behind)).get_next()
        try:
            while True:
                run.run(one)
                good += 1
        except tf.errors.OpError:
            pass
    raise DataError(
        f"{path}, behind row {good}: is damaged: {_cause(error)}; write the file again"
    ) from None


def _refuse_record(
    path: Path, parse: Callable[[bytes], Any], records: np.ndarray, behind: int
) -> NoReturn:
    for row, record in enumerate(records.tolist(), start=behind + 1):
        try:
            parse(record)
        except tf.errors.InvalidArgumentError as error:
            raise DataError(
                f"{path}, row {row}: is no such example: {_cause(error)}; expected floats for "
                "labels and numbers, bytes for all else"
            ) from None
    raise AssertionError("a batch of examples can be parsed one by one, but not together")


def _cause(error: Exception) -> str:
    message = error.message if isinstance(error, tf.errors.OpError) else error
    # In brackets follows the op that failed.
    return first_line(message).partition("[[")[0].strip()


def _holds(path: Path, rows: int) -> bool:
    """Whether a file has at least this many rows."""
    with tf.Graph().as_default(), v1.Session(config=_CPU) as run:
        one = v1.data.make_one_shot_iterator(_records(path, None).skip(rows - 1)).get_next()
        try:
            run.run(one)
        except tf.errors.OutOfRangeError:
            return False
        except tf.errors.OpError:
            # There is more, whatever it is; it is not read.
            return True
    return True
