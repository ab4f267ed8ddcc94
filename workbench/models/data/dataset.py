"""Rows of a checked file in a graph: a dataset of them as they lie on disk, and parsing a batch.

Text and TFRecord are read by TensorFlow. Of Parquet, which it cannot read, Arrow makes blocks of
lines in C++, of compressed files a C library, and a Python generator only hands them over, once in
some thousand rows. That is half the CPU time of a generator of columns, which needs Python's lock
for each of them. Such a dataset belongs to its process: a graph with one cannot be saved or sent to
a server.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import tensorflow as tf

from workbench.models.data.containers import known_layout
from workbench.models.data.record_file import record_blocks
from workbench.models.data.table_format import CheckedTable, TableFormat
from workbench.models.data.text_table import text_blocks
from workbench.models.data.tfrecord import parse_examples

# Some thousand rows, so that a batch behind a block does not wait long for it.
_TEXT_BLOCK_BYTES = 1 << 20
_RECORDS = 4096


def row_dataset(data: CheckedTable) -> Any:
    """The checked rows, each a scalar string: a line, or a serialized example of a TFRecord."""
    index, count = data.shard
    rows = _all_rows(data)
    return rows.shard(count, index) if count > 1 else rows


def _all_rows(data: CheckedTable) -> Any:
    # As bytes, since a name may be no text in the encoding of this process.
    path = os.fsencode(data.path)
    if data.container == "tfrecord":
        if data.compression:
            return _records_of_blocks(data)
        return tf.data.TFRecordDataset(path).take(data.rows)
    if data.container == "parquet" or data.compression:
        return _lines_of_blocks(data)
    return tf.data.TextLineDataset(path).take(data.rows)


def _records_of_blocks(data: CheckedTable) -> Any:
    def blocks() -> Iterator[list[bytes]]:
        return record_blocks(data.path, data.rows, _RECORDS)

    read = tf.data.Dataset.from_generator(blocks, output_signature=tf.TensorSpec([None], tf.string))
    return read.unbatch()


def _lines_of_blocks(data: CheckedTable) -> Any:
    def blocks() -> Iterator[bytes]:
        if data.container == "parquet":
            from workbench.models.data.parquet import parquet_blocks

            found = parquet_blocks(data, known_layout(data))
        else:
            found = text_blocks(data, _TEXT_BLOCK_BYTES)
        # Behind the last line end there is no line.
        return (block.removesuffix(b"\n") for block in found)

    read = tf.data.Dataset.from_generator(blocks, output_signature=tf.TensorSpec([], tf.string))
    return read.map(lambda block: tf.strings.split(block, "\n")).unbatch()


def parse_rows(rows: tf.Tensor, data: CheckedTable) -> dict[str, tf.Tensor]:
    """The columns of a batch of rows of `row_dataset`, string [batch], by name, each [batch].

    Labels and numbers are float32, 0 where a field is empty; all else is string, values of a list
    joined as in a line.
    """
    layout = known_layout(data)
    if data.container == "tfrecord":
        return parse_examples(rows, layout, data.integers)
    return parse_lines(rows, layout)


def parse_lines(lines: tf.Tensor, layout: TableFormat) -> dict[str, tf.Tensor]:
    """The columns of lines of text; see `parse_rows`."""
    numbers = ("label", "number")
    defaults = [tf.constant([0.0] if c.kind in numbers else [""]) for c in layout.columns]
    fields = tf.io.decode_csv(
        lines, defaults, field_delim=layout.separator.decode(), use_quote_delim=False
    )
    return {column.name: field for column, field in zip(layout.columns, fields, strict=True)}
