"""NumPy arrays as TF_Tensors and back."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np

from workbench.experiments.serving.server.c_api import POINTER, CApi

_STRING = 7  # TF_STRING of tensorflow/c/tf_datatype.h
_STRING_BYTES = 24  # of a TF_TString


def tensor_of(api: CApi, values: np.ndarray, kind: int) -> int:
    """A new TF_Tensor with the values of an array; who asks deletes it.

    Args:
      api: the C API.
      values: of the NumPy type of `kind`, or texts and bytes for strings.
      kind: number of the TensorFlow type.
    """
    dims = (ctypes.c_int64 * max(1, values.ndim))(*values.shape)
    if kind == _STRING:
        return _strings(api, values, dims)
    held = np.ascontiguousarray(values)
    tensor: int = api.TF_AllocateTensor(kind, dims, values.ndim, held.nbytes)
    ctypes.memmove(api.TF_TensorData(tensor), held.ctypes.data, held.nbytes)
    return tensor


def _strings(api: CApi, values: np.ndarray, dims: Any) -> int:
    tensor: int = api.TF_AllocateTensor(_STRING, dims, values.ndim, _STRING_BYTES * values.size)
    place = api.TF_TensorData(tensor) or 0
    for value in values.ravel().tolist():
        held = value.encode() if isinstance(value, str) else bytes(value)
        api.TF_StringInit(place)
        api.TF_StringCopy(place, held, len(held))
        place += _STRING_BYTES
    return tensor


def array_of(api: CApi, tensor: int) -> np.ndarray:
    """A copy of what a TF_Tensor holds; strings as bytes, 16-bit brain floats as float32."""
    import tensorflow as tf

    kind = api.TF_TensorType(tensor)
    shape = [api.TF_Dim(tensor, axis) for axis in range(api.TF_NumDims(tensor))]
    data, length = api.TF_TensorData(tensor), api.TF_TensorByteSize(tensor)
    if kind == _STRING:
        texts = np.empty(int(np.prod(shape)), object)
        for at in range(len(texts)):
            place = data + at * _STRING_BYTES
            texts[at] = ctypes.string_at(
                api.TF_StringGetDataPointer(place), api.TF_StringGetSize(place)
            )
        return texts.reshape(shape)
    dtype = np.dtype(tf.dtypes.as_dtype(kind).as_numpy_dtype)
    values = np.frombuffer(ctypes.string_at(data, length), dtype).reshape(shape)
    return values.astype(np.float32) if dtype.kind == "V" else values


def pointers(tensors: list[int]) -> Any:
    """TF_Tensors as the array of pointers that a run takes."""
    return (POINTER * max(1, len(tensors)))(*tensors)
