"""Rows of a checked file in a graph: a dataset of them as they lie on disk, and parsing a batch.

Text and TFRecord are read by TensorFlow. Of Parquet, which it cannot read, Arrow makes blocks of
lines in C++, and a Python generator only hands them over, once in some thousand rows. That is half
the CPU time of a generator of columns, which needs Python's lock for each of them. Such a dataset
belongs to its process: a graph with one cannot be saved or sent to a server.
"""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from workbench.models.data import CheckedTable, TableFormat
from workbench.models.records import known_layout
from workbench.models.tfrecord import parse_examples


def row_dataset(data: CheckedTable) -> Any:
    """The checked rows, each a scalar string: a line, or a serialized example of a TFRecord."""
    if data.container == "tfrecord":
        return tf.data.TFRecordDataset(str(data.path)).take(data.rows)
    if data.container == "parquet":
        return _parquet_lines(data)
    return tf.data.TextLineDataset(str(data.path)).take(data.rows)


def _parquet_lines(data: CheckedTable) -> Any:
    layout = known_layout(data)

    def blocks() -> Any:
        from workbench.models.parquet import parquet_blocks

        # Behind the last line end there is no line.
        return (block.removesuffix(b"\n") for block in parquet_blocks(data, layout))

    read = tf.data.Dataset.from_generator(blocks, output_signature=tf.TensorSpec([], tf.string))
    return read.map(lambda block: tf.strings.split(block, "\n")).unbatch()


def parse_rows(rows: tf.Tensor, data: CheckedTable) -> dict[str, tf.Tensor]:
    """The columns of a batch of rows of `row_dataset`, string [batch], by name, each [batch].

    Labels and numbers are float32, 0 where a field is empty; all else is string, values of a list
    joined as in a line.
    """
    layout = known_layout(data)
    if data.container == "tfrecord":
        return parse_examples(rows, layout)
    return parse_lines(rows, layout)


def parse_lines(lines: tf.Tensor, layout: TableFormat) -> dict[str, tf.Tensor]:
    """The columns of lines of text; see `parse_rows`."""
    numbers = ("label", "number")
    defaults = [tf.constant([0.0] if c.kind in numbers else [""]) for c in layout.columns]
    fields = tf.io.decode_csv(
        lines, defaults, field_delim=layout.separator.decode(), use_quote_delim=False
    )
    return {column.name: field for column, field in zip(layout.columns, fields, strict=True)}
