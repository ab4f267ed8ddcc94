"""Requests from a file: rows of a TFRecord or a Parquet file, put together to requests."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from workbench.errors import DataError, first_line
from workbench.experiments.serving.server.signature import Input, Signature
from workbench.files.file_kinds import HEAD_BYTES, PARQUET, compression_of, kind_of

Row = Mapping[str, Any]


def file_rows(signature: Signature, path: str, most: int) -> list[Row]:
    """The first rows of a file, values by input.

    A Parquet file has a column for each input. A TFRecord file holds tf.train.Example records with
    a feature for each input. Where the signature has one input of strings, each record is a value
    of it as it is.

    Args:
      signature: what the rows are for.
      path: the file.
      most: how many rows are read.

    Raises:
      DataError: the file cannot be read, is of another kind, has no rows, or lacks an input.
    """
    try:
        with open(path, "rb") as file:
            head = file.read(HEAD_BYTES)
    except OSError as error:
        raise DataError(f"{path}: cannot be read: {error.strerror}") from None
    kind = kind_of(head)
    if kind is PARQUET:
        rows = list(_parquet_rows(signature, path, most))
    elif kind is None or compression_of(head) == "gzip":
        rows = list(_record_rows(signature, path, most, compression_of(head)))
    else:
        raise DataError(f"{path}: is {kind}; expected a TFRecord or a Parquet file")
    if not rows:
        raise DataError(f"{path}: has no rows; expected a TFRecord or a Parquet file of them")
    return rows


def requests_of_rows(
    signature: Signature, rows: Sequence[Row], size: int, count: int
) -> Iterator[dict[str, Any]]:
    """Requests of so many rows each; a short file is read again from its begin."""
    endless = itertools.cycle(rows)
    for _ in range(count):
        batch = list(itertools.islice(endless, size))
        yield {spec.name: _column(spec, [row[spec.name] for row in batch])
               for spec in signature.inputs}  # fmt: skip


def _column(spec: Input, values: list[Any]) -> Any:
    """One input of a request, from its value in each row."""
    if spec.is_sparse:
        held = [_listed(value) for value in values]
        indices = [(row, at) for row, texts in enumerate(held) for at in range(len(texts))]
        width = max(map(len, held), default=0)
        return (
            np.array(indices, np.int64).reshape(-1, 2),
            np.array([value for texts in held for value in texts], _kind(spec)),
            np.array([len(held), width], np.int64),
        )
    widths = {len(_listed(value)) for value in values}
    if len(widths) > 1:
        raise DataError(f"{spec.words}, has rows of {min(widths)} to {max(widths)} values")
    array = np.array([_listed(value) for value in values], _kind(spec))
    if spec.shape is None:
        return array
    inner = [1 if size is None else size for size in spec.shape[1:]]
    if None in spec.shape[1:] and array.size:
        inner[spec.shape[1:].index(None)] = -1
    try:
        return array.reshape([len(values), *inner] if spec.shape else [])
    except ValueError:
        raise DataError(f"{spec.words}, is given {widths.pop()} values in a row") from None


def _listed(value: Any) -> list[Any]:
    if value is None:
        return []
    return value if isinstance(value, list) else [value]


def _kind(spec: Input) -> Any:
    return object if spec.dtype.name == "string" else None


def _parquet_rows(signature: Signature, path: str, most: int) -> Iterator[Row]:
    names = [spec.name for spec in signature.inputs]
    try:
        with pq.ParquetFile(path) as file:
            missing = [name for name in names if name not in file.schema_arrow.names]
            if missing:
                raise DataError(
                    f"{path}: has no column {missing[0]!r}, only "
                    f"{', '.join(map(repr, file.schema_arrow.names[:20]))}"
                )
            rows = (
                row
                for batch in file.iter_batches(batch_size=min(most, 4096), columns=names)
                for row in batch.to_pylist()
            )
            yield from itertools.islice(rows, most)
    except (pa.ArrowException, OSError) as error:
        raise DataError(f"{path}: cannot be read: {first_line(error)}") from None


def _record_rows(signature: Signature, path: str, most: int, compression: str) -> Iterator[Row]:
    import tensorflow as tf

    v1 = tf.compat.v1
    options = v1.io.TFRecordOptions(
        v1.io.TFRecordCompressionType.GZIP if compression else v1.io.TFRecordCompressionType.NONE
    )
    try:
        records = list(itertools.islice(v1.io.tf_record_iterator(path, options), most))
    except tf.errors.OpError as error:
        raise DataError(
            f"{path}: is neither a TFRecord nor a Parquet file, or is damaged: "
            f"{first_line(error.message)}"
        ) from None
    for number, record in enumerate(records):
        yield _row_of(signature, record, f"{path}, record {number + 1}")


def _row_of(signature: Signature, record: bytes, where: str) -> Row:
    """The values of a record by input."""
    import tensorflow as tf
    from google.protobuf.message import DecodeError

    example = tf.train.Example()
    try:
        example.ParseFromString(record)
        features = example.features.feature
    except DecodeError:
        features = {}
    only = signature.inputs[0] if len(signature.inputs) == 1 else None
    if only is not None and only.dtype.name == "string" and only.name not in features:
        return {only.name: record}
    row = {}
    for spec in signature.inputs:
        if spec.name not in features and not spec.is_sparse:
            raise DataError(
                f"{where}: has no feature {spec.name!r}, only "
                f"{', '.join(map(repr, sorted(features)[:20])) or 'none'}"
            )
        row[spec.name] = _values(features[spec.name]) if spec.name in features else []
    return row


def _values(feature: Any) -> list[Any]:
    kind = feature.WhichOneof("kind")
    return list(getattr(feature, kind).value) if kind else []
