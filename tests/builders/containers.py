"""Writes the rows of a checked log as Parquet or as TFRecord, as users' own tools would."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from workbench.models.data.containers import known_layout, line_blocks
from workbench.models.data.table_format import CheckedTable, Column, TableFormat

# One column of each kind.
SMALL = TableFormat(
    summary="label, N, C, L",
    separator=b"\t",
    columns=(
        Column(name="label", kind="label"),
        Column(name="N", kind="number"),
        Column(name="C", kind="category"),
        Column(name="L", kind="list", joined_by=b"|", most=3),
    ),
)


def write_parquet(checked: CheckedTable, path: Path) -> CheckedTable:
    """Numbers as float32, categories as strings, lists as lists of strings; empty fields as null.

    Returns:
      What was written, as a check of it would.
    """
    layout = known_layout(checked)
    path.parent.mkdir(parents=True, exist_ok=True)
    rows = list(_rows(checked))
    columns = [
        pa.array([_value(column, row[place]) for row in rows], _type(column))
        for place, column in enumerate(layout.columns)
    ]
    pq.write_table(pa.table(columns, [column.name for column in layout.columns]), path)
    return dataclasses.replace(checked, path=path, more=False, container="parquet", compression="")


def write_tfrecord(checked: CheckedTable, path: Path) -> CheckedTable:
    """Numbers as float features, categories and lists as bytes; an empty field has no feature.

    Returns:
      What was written, as a check of it would.
    """
    import tensorflow as tf

    layout = known_layout(checked)
    with tf.io.TFRecordWriter(str(path)) as out:
        for row in _rows(checked):
            feature = {
                column.name: _feature(column, field)
                for column, field in zip(layout.columns, row, strict=True)
                if field
            }
            example = tf.train.Example(features=tf.train.Features(feature=feature))
            out.write(example.SerializeToString())
    return dataclasses.replace(checked, path=path, more=False, container="tfrecord", compression="")


def _rows(checked: CheckedTable) -> Iterator[list[bytes]]:
    separator = known_layout(checked).separator
    for block in line_blocks(checked):
        for line in block.removesuffix(b"\n").split(b"\n"):
            yield line.split(separator)


def _type(column: Column) -> pa.DataType:
    if column.kind == "list":
        return pa.list_(pa.string())
    return pa.string() if column.kind == "category" else pa.float32()


def _value(column: Column, field: bytes) -> object:
    if column.kind == "list":
        return [part.decode() for part in field.split(column.joined_by)] if field else []
    if column.kind == "category":
        return field.decode()
    return float(field) if field else None


def _feature(column: Column, field: bytes):  # type: ignore[no-untyped-def]
    import tensorflow as tf

    if column.kind in ("label", "number"):
        return tf.train.Feature(float_list=tf.train.FloatList(value=[float(field)]))
    values = field.split(column.joined_by) if column.kind == "list" else [field]
    return tf.train.Feature(bytes_list=tf.train.BytesList(value=values))
