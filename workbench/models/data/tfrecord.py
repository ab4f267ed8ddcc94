"""Click logs as TFRecord files of tf.train.Example: checking one, parsing its rows.

Labels and numbers are float features, categories and lists are bytes features, and each of them
may be integers instead, in all rows; an empty field is a feature that is absent. Other features are
left alone.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Generator, Iterator, Sequence
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import tensorflow as tf
from google.protobuf.message import DecodeError
from tqdm import tqdm

from workbench.errors import DataError
from workbench.experiments.worker.wire.failure import cause_of
from workbench.models.data.record_file import record_blocks
from workbench.models.data.table_format import CheckedTable, Column, TableFormat
from workbench.models.data.text_table import check_lines

v1 = tf.compat.v1

_CPU = v1.ConfigProto(device_count={"GPU": 0})
_CHECKED_ROWS = 1024
_SHOW_PROGRESS_AFTER_S = 2.0


def parse_examples(
    rows: tf.Tensor, layout: TableFormat, integers: frozenset[str] = frozenset()
) -> dict[str, tf.Tensor]:
    """The columns of serialized examples, string [batch], by name, each [batch].

    Labels and numbers are float32, 0 where they are absent; all else is string, values of a list
    joined as in a line of text. Those named in `integers` have integers in the examples.
    """
    features = {column.name: _feature(column, column.name in integers) for column in layout.columns}
    found = tf.io.parse_example(rows, features)
    return {column.name: _column(column, found[column.name]) for column in layout.columns}


def _feature(column: Column, integer: bool) -> Any:
    if column.kind == "list" or (column.kind == "category" and integer):
        return tf.io.RaggedFeature(tf.int64 if integer else tf.string)
    if column.kind == "category":
        return tf.io.FixedLenFeature([], tf.string, "")
    kind = tf.int64 if integer else tf.float32
    return tf.io.FixedLenFeature([], kind, 0 if column.kind == "number" else None)


def _column(column: Column, found: Any) -> tf.Tensor:
    if column.kind in ("label", "number"):
        return tf.cast(found, tf.float32)
    if found.dtype != tf.string:
        found = tf.strings.as_string(found)
    if isinstance(found, tf.RaggedTensor):
        return tf.strings.reduce_join(found, axis=1, separator=column.joined_by.decode())
    return found


def check_tfrecord(
    path: str | os.PathLike[str],
    layout: TableFormat,
    *,
    rows: int | None = None,
    compression: str = "",
) -> CheckedTable:
    """Checks the first `rows` rows (all rows when None) of a TFRecord file by their text.

    Raises:
      DataError: the file is damaged, a record is no example with these features, a value holds a
        separator of the text format, or a row breaks a rule of `check_table`.
    """
    path = Path(path)
    if rows is not None and rows < 1:
        raise DataError(f"{path}: asked to read {rows} rows; expected at least 1")
    checked, parser = 0, _Parser(path, layout)
    for columns in _columns(parser, compression, rows):
        for column in layout.columns:
            _require_plain(path, layout, column, columns[column.name], checked + 1)
        checked += check_lines(path, layout, _lines(layout, columns), checked + 1)
    if not checked:
        raise DataError(f"{path}: is empty; expected examples of {layout.summary}")
    return CheckedTable(
        path=path,
        rows=checked,
        more=rows is not None and checked == rows and _holds(path, compression, rows + 1),
        layout=layout,
        container="tfrecord",
        compression=compression,
        integers=parser.integers,
    )


def tfrecord_blocks(table: CheckedTable, layout: TableFormat) -> Iterator[bytes]:
    """The lines that the checked rows stand for, many at a time, each with LF at its end.

    A number that is absent is an empty field, as it was.
    """
    parser = _Parser(table.path, layout, table.integers)
    for columns in _columns(parser, table.compression, table.rows):
        yield _lines(layout, columns)


def _columns(
    parser: _Parser, compression: str, rows: int | None
) -> Iterator[dict[str, np.ndarray]]:
    """The columns of the first rows as bytes, some rows at a time; absent numbers are empty."""
    path, done = parser.path, 0
    read = record_blocks(path, rows, _CHECKED_ROWS) if compression else _batches(path, rows)
    # Neither is the default of its thread: the caller may have its own meanwhile.
    with contextlib.closing(parser.session), contextlib.closing(read), tqdm(
        unit=" rows", unit_scale=True, desc=f"Checking {path.name}",
        delay=_SHOW_PROGRESS_AFTER_S, leave=False,
    ) as bar:  # fmt: skip
        for records in read:
            yield parser.columns(records, done)
            done += len(records)
            bar.update(len(records))


def _batches(path: Path, rows: int | None) -> Generator[list[bytes]]:
    """The first records of a file, some at a time, as TensorFlow reads them."""
    done, graph = 0, tf.Graph()
    with graph.as_default():
        batch = _records(path, rows).batch(_CHECKED_ROWS)
        following = v1.data.make_one_shot_iterator(batch).get_next()
    with contextlib.closing(v1.Session(graph=graph, config=_CPU)) as run:
        while True:
            try:
                records = run.run(following)
            except tf.errors.OutOfRangeError:
                return
            except tf.errors.OpError as error:
                _refuse_damage(path, error, done)
            yield records.tolist()
            done += len(records)


def _records(path: Path, rows: int | None) -> Any:
    dataset = tf.data.TFRecordDataset(os.fsencode(path))
    return dataset if rows is None else dataset.take(rows)


class _Parser:
    """Parses examples, and learns which of their features are integers.

    Attributes:
      path: the file.
      session: of TensorFlow; its end is the caller's.
      integers: names of the columns whose features are integers, as far as a row had them.
    """

    def __init__(
        self, path: Path, layout: TableFormat, integers: frozenset[str] = frozenset()
    ) -> None:
        self.path, self.integers = path, integers
        self._layout = layout
        self._seen: set[str] = set(integers)
        self.session = v1.Session(graph=tf.Graph(), config=_CPU)
        self._build()

    def columns(self, records: Sequence[bytes], behind: int) -> dict[str, np.ndarray]:
        """The columns of these records as bytes, of which `behind` were parsed before.

        Raises:
          DataError: names the row that is no example with these features.
        """
        try:
            parsed = self._parse(records)
        except tf.errors.InvalidArgumentError:
            if self._learn(records):
                return self.columns(records, behind)
            self._refuse(records, behind)
        for name in parsed.keys() - self._seen:
            if parsed[name].any():
                self._seen.add(name)
        return parsed

    def _build(self) -> None:
        with self.session.graph.as_default():
            self._given = v1.placeholder(tf.string, [None])
            self._parsed = parse_examples(self._given, self._layout, self.integers)
            self._texts = _texts(self._given, self._parsed, self._layout, self.integers)

    def _parse(self, records: Sequence[bytes]) -> dict[str, np.ndarray]:
        found: dict[str, np.ndarray] = self.session.run(self._texts, {self._given: records})
        return found

    def _learn(self, records: Sequence[bytes]) -> bool:
        """Takes the types of columns that no row had before from the first row that has them.

        Returns:
          Whether other columns than before are integers.
        """
        unknown = {column.name for column in self._layout.columns} - self._seen
        integers = set(self.integers) - unknown
        for record in records:
            try:
                features = tf.train.Example.FromString(record).features.feature
            except DecodeError:
                break
            for name in [name for name in unknown if name in features]:
                kind = features[name].WhichOneof("kind")
                if kind is not None:
                    unknown.discard(name)
                    integers |= {name} if kind == "int64_list" else set()
            if not unknown:
                break
        if integers == self.integers:
            return False
        self.integers = frozenset(integers)
        self._build()
        return True

    def _refuse(self, records: Sequence[bytes], behind: int) -> NoReturn:
        for row, record in enumerate(records, start=behind + 1):
            try:
                # Of two ops that fail the first one would say why.
                self.session.run(self._parsed, {self._given: [record]})
                self._parse([record])
            except tf.errors.InvalidArgumentError as error:
                raise DataError(
                    f"{self.path}, row {row}: is no such example: {_cause(error)}; expected floats "
                    "or integers for labels and numbers, bytes or integers for all else, and one "
                    "type in all rows"
                ) from None
        raise AssertionError("examples can be parsed one by one, but not together")


def _texts(
    records: tf.Tensor,
    parsed: dict[str, tf.Tensor],
    layout: TableFormat,
    integers: frozenset[str],
) -> dict[str, tf.Tensor]:
    """Columns as text, string [batch]; lists joined, empty where a feature is absent."""
    texts = dict(parsed)
    again: dict[str, Any] = {}
    for column in layout.columns:
        if column.kind in ("label", "number"):
            kind = tf.int64 if column.name in integers else tf.float32
            again[column.name] = tf.io.RaggedFeature(kind)
        elif column.kind == "category" and column.name in integers:
            # Its text would be that of all values joined: there may be one.
            again[column.name] = tf.io.FixedLenFeature([], tf.int64, 0)
    for name, values in tf.io.parse_example(records, again).items():
        if not isinstance(values, tf.RaggedTensor):
            continue
        # Nine digits tell any two float32 apart, and whole numbers keep theirs.
        digits = {"shortest": True, "precision": 9} if values.dtype == tf.float32 else {}
        texts[name] = tf.strings.reduce_join(tf.strings.as_string(values, **digits), axis=1)
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


def _cause(error: Exception) -> str:
    # In brackets follows the op that failed.
    return cause_of(error).partition("[[")[0].strip().rstrip(".")


def _holds(path: Path, compression: str, rows: int) -> bool:
    """Whether a file has at least this many rows."""
    if compression:
        try:
            return sum(map(len, record_blocks(path, rows, _CHECKED_ROWS))) == rows
        except DataError:
            return True
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
