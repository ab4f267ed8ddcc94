"""The ops of a saved iterator refuse what no save of ours wrote."""

from __future__ import annotations

import pytest
import tensorflow as tf
from tensorflow.core.framework import tensor_pb2, types_pb2

from workbench import _native

v1 = tf.compat.v1


def other_variants(shape: list[int]) -> tf.Tensor:
    one = tf.raw_ops.EmptyTensorList(
        element_shape=tf.constant([], tf.int32), max_num_elements=-1, element_dtype=tf.int32
    )
    return tf.fill(shape, one)


def fails(fetch, message: str) -> None:
    with v1.Session() as session, pytest.raises(tf.errors.InvalidArgumentError, match=message):
        session.run(fetch)


def test_a_state_takes_items_only():
    library = _native.library()
    state = library.workbench_input_state(other_variants([1]), [other_variants([])])
    fails(state, "input 1 holds a .*; expected workbench::HeldItems")


@pytest.mark.parametrize("shape", [[0], [2], [1, 1]])
def test_a_state_takes_scalars_only(shape):
    library = _native.library()
    state = library.workbench_input_state(other_variants([1]), [other_variants(shape)])
    fails(state, "input 1 has shape .*; expected a scalar")


@pytest.mark.parametrize("shape", [[], [1, 1]])
def test_a_restore_takes_a_vector_only(shape):
    state = other_variants(shape)
    fails(_native.library().workbench_input_state_only(state), "expected a vector")
    preload = _native.library().workbench_buffer_preload(
        state, dtypes=[tf.int32], shared_name="damaged"
    )
    fails(preload, "expected a vector")


@pytest.mark.parametrize("count", [0, 3])
def test_what_is_not_ours_is_given_on(count):
    state = _native.library().workbench_input_state_only(other_variants([count]))
    with v1.Session() as session:
        assert session.run(tf.shape(state)).tolist() == [count]


def read_back(text: bytes) -> tf.Tensor:
    """A state with the items that a checkpoint has with this text, as a restore reads it."""
    proto = tensor_pb2.TensorProto(dtype=types_pb2.DT_VARIANT)
    proto.tensor_shape.dim.add(size=1)
    proto.variant_val.add(type_name="workbench::HeldItems", metadata=text)
    state = tf.raw_ops.ParseTensor(serialized=proto.SerializeToString(), out_type=tf.variant)
    return tf.shape(_native.library().workbench_input_state_only(state))


@pytest.mark.parametrize(
    "text", [b"", b"1", b"2\nclicks", b"1\nclicks\n1", b"1\nclicks\n-1", b"1\nclicks\nmany"]
)
def test_damaged_items_are_not_read(text):
    fails(read_back(text), "tensor|variant|parse")


def test_items_of_a_stage_that_is_not_there_are_refused():
    refused = pytest.raises(tf.errors.FailedPreconditionError, match="that stage 'clicks' had read")
    with v1.Session() as session, refused:
        session.run(read_back(b"1\nclicks"))
