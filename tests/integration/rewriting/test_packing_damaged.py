"""The ops that pack tensors and take them apart: all comes back; what was not packed is an error,
never a crash."""

from __future__ import annotations

import contextlib
import os
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as drawn
from tensorflow.python.eager import context

from workbench import _native

FUZZED = settings(max_examples=int(os.environ.get("WORKBENCH_FUZZ_EXAMPLES", "50")), deadline=None)
DTYPES = (
    *(np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64),
    *(np.float16, np.float32, np.float64, np.complex64, np.bool_),
)
TENSORS = st.lists(
    st.sampled_from(DTYPES).flatmap(
        lambda dtype: drawn.arrays(dtype, drawn.array_shapes(min_dims=0, min_side=0, max_side=4))
    ),
    min_size=1,
    max_size=5,
)


def packed(tensors: list[np.ndarray]) -> np.ndarray:
    return np.asarray(_native.library().workbench_pack_tensors(tensors))


def unpacked(bytes_: np.ndarray, tensors: list[np.ndarray]) -> list[np.ndarray]:
    types = [tf.as_dtype(each.dtype) for each in tensors]
    found = _native.library().workbench_unpack_tensors(bytes_, T=types)
    return [np.asarray(each) for each in found]


@FUZZED
@given(tensors=TENSORS)
def test_come_back_to_the_bit(tensors: list[np.ndarray]) -> None:
    with context.eager_mode():
        for given_one, found in zip(tensors, unpacked(packed(tensors), tensors), strict=True):
            assert found.dtype == given_one.dtype and found.shape == given_one.shape
            assert found.tobytes() == given_one.tobytes()


@FUZZED
@given(tensors=TENSORS, data=st.data())
def test_damaged_bytes(tensors: list[np.ndarray], data: Any) -> None:
    with context.eager_mode():
        bytes_ = packed(tensors)[: data.draw(st.integers(0, 400))].copy()
        for at in data.draw(st.lists(st.integers(0, 400), max_size=3)):
            if at < len(bytes_):
                bytes_[at] = data.draw(st.integers(0, 255))
        with contextlib.suppress(tf.errors.InvalidArgumentError):
            for given_one, found in zip(tensors, unpacked(bytes_, tensors), strict=True):
                assert found.dtype == given_one.dtype
                assert found.size <= len(bytes_)


@pytest.mark.parametrize(
    ("change", "tensor"),
    [
        (lambda bytes_: bytes_[:-1], 1),
        (lambda bytes_: np.append(bytes_, np.uint8(0)), 2),
        (lambda bytes_: bytes_[:0], 0),
    ],
)
def test_says_where_it_is_wrong(change: Any, tensor: int) -> None:
    tensors = [np.arange(3), np.ones(2, np.float32)]
    with (
        context.eager_mode(),
        pytest.raises(
            tf.errors.InvalidArgumentError,
            match=f"what WorkbenchPackTensors makes of 2 tensors .* from tensor {tensor} on",
        ),
    ):
        unpacked(change(packed(tensors)), tensors)


def test_strings_are_refused() -> None:
    with (
        context.eager_mode(),
        pytest.raises(tf.errors.InvalidArgumentError, match="T has string; expected types whose"),
    ):
        _native.library().workbench_pack_tensors([tf.constant("text"), tf.constant(1)])


def test_ids_take_what_their_range_needs() -> None:
    ids = np.arange(9_000, 10_000)
    with context.eager_mode():
        assert len(packed([ids])) < 2 * len(ids) + 10
        assert len(packed([ids[:200].astype(np.int32)])) < 200 + 10
