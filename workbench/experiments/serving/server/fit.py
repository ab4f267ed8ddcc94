"""A request that a user gives → the arrays that are fed, or what does not fit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from workbench.errors import DataError
from workbench.experiments.serving.server.signature import Input, Signature


def fed_arrays(signature: Signature, request: Any, where: str) -> tuple[np.ndarray, ...]:
    """The arrays of a request, in the order of the signature's feeds.

    A sparse input is an array, of which every element is a value, or a SparseTensorValue, or its
    indices, values and dense shape.

    Args:
      signature: what is called.
      request: arrays by the names of the inputs.
      where: what the request is called in a message.

    Raises:
      DataError: it lacks an input or has another one, or a value does not fit; names the input.
    """
    if not isinstance(request, Mapping):
        raise DataError(
            f"{where} is a {type(request).__name__}; expected a dict of arrays by input: "
            f"{_inputs(signature)}"
        )
    names = {spec.name for spec in signature.inputs}
    missing = sorted(names - request.keys())
    others = sorted(map(str, request.keys() - names))
    if missing or others:
        what = f"lacks the input {missing[0]!r}" if missing else f"has an unknown {others[0]!r}"
        raise DataError(f"{where} {what}; signature {signature.name!r} has {_inputs(signature)}")
    arrays: list[np.ndarray] = []
    for spec in signature.inputs:
        value = request[spec.name]
        arrays += _sparse(spec, value, where) if spec.is_sparse else [_dense(spec, value, where)]
    return tuple(arrays)


def rows_of(signature: Signature, arrays: Sequence[np.ndarray]) -> int:
    """How many rows a request has: the first dimension of its first input; 0 where it has none."""
    first = signature.inputs[0] if signature.inputs else None
    if first is None:
        return 0
    if first.is_sparse:
        return int(arrays[2][0]) if len(arrays[2]) else 0
    return int(arrays[0].shape[0]) if arrays[0].ndim else 0


def _dense(spec: Input, value: Any, where: str) -> np.ndarray:
    array = _array(spec, value, where)
    shape = spec.shape
    fits = shape is None or (
        len(shape) == array.ndim
        and all(want in (None, have) for want, have in zip(shape, array.shape, strict=True))
    )
    if not fits:
        raise DataError(f"{where}: {spec.words}, is given the shape {list(array.shape)}")
    return array


def _sparse(spec: Input, value: Any, where: str) -> list[np.ndarray]:
    parts = _parts(value)
    if parts is None:
        array = _array(spec, value, where)
        array = array[:, None] if array.ndim == 1 else array
        indices = np.argwhere(np.ones(array.shape, bool)).astype(np.int64)
        parts = (indices, array.ravel(), np.array(array.shape, np.int64))
    indices, values, dense_shape = parts
    indices = np.asarray(indices, np.int64)
    dense_shape = np.asarray(dense_shape, np.int64)
    held = _array(spec, values, where)
    flat = dense_shape.ndim == 1 and held.ndim == 1
    if not flat or indices.shape != (len(held), len(dense_shape)):
        raise DataError(
            f"{where}: {spec.words}, is given indices of the shape {list(indices.shape)}, values "
            f"of {list(held.shape)} and a dense shape of {list(dense_shape.shape)}"
        )
    if len(indices) and not ((indices >= 0) & (indices < dense_shape)).all():
        raise DataError(f"{where}: {spec.words}, has an index outside of {dense_shape.tolist()}")
    return [indices, held, dense_shape]


def _parts(value: Any) -> tuple[Any, Any, Any] | None:
    """Indices, values and dense shape of a sparse value; None of an array."""
    if all(hasattr(value, name) for name in ("indices", "values", "dense_shape")):
        return value.indices, value.values, value.dense_shape
    if isinstance(value, tuple) and len(value) == 3:
        return value
    return None


def _array(spec: Input, value: Any, where: str) -> np.ndarray:
    """The value as an array of the input's type, without a loss.

    Raises:
      DataError: it is of another type, or a number is out of range.
    """
    wanted = spec.dtype
    try:
        array = np.asarray(value)
    except ValueError as error:
        raise DataError(f"{where}: {spec.words}, is given no array: {error}") from None
    if wanted.name == "string":
        if array.dtype.kind not in "OSU" or not all(
            isinstance(text, str | bytes) for text in array.ravel().tolist()
        ):
            raise DataError(f"{where}: {spec.words}, is given {array.dtype.name}")
        return array.astype(object)
    kind = np.dtype(wanted.as_numpy_dtype)
    if array.dtype == kind or not array.size:
        return array.astype(kind)
    if not _can_be(array.dtype, kind):
        raise DataError(f"{where}: {spec.words}, is given {array.dtype.name}")
    cast = array.astype(kind)
    if kind.kind in "iu" and not np.array_equal(cast, array):
        raise DataError(f"{where}: {spec.words}, is given a number that it cannot hold")
    return cast


def _can_be(have: np.dtype[Any], want: np.dtype[Any]) -> bool:
    """Whether values of a type may become another one, if no number is lost by that."""
    if have.kind not in "biuf":
        return False
    # Whole numbers of one sign may be of the other; NumPy has no kind of brain floats.
    if have.kind in "iu" and want.kind in "iu":
        return True
    return want.kind == "V" or np.can_cast(have, want, "same_kind")


def _inputs(signature: Signature) -> str:
    return "; ".join(spec.words for spec in signature.inputs) or "no inputs"
