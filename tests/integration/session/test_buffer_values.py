"""The buffer's ops carry values of every type and shape, and refuse what does not fit."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf
from google.protobuf import text_format
from hypothesis import given
from hypothesis import strategies as st

from tests.builders.buffers import OWNER, Stage
from workbench import _native
from workbench.core.staging import buffer

v1 = tf.compat.v1

pytestmark = pytest.mark.usefixtures("on_the_cpu")

VALUES = [
    np.float32([[1.5, -2.0], [np.inf, 0.0]]),
    np.float64(3.25),
    np.float16([0.5]),
    tf.bfloat16.as_numpy_dtype(1.5) * np.ones(3, tf.bfloat16.as_numpy_dtype),
    np.int8([-1]),
    np.uint8([255]),
    np.int16([-300]),
    np.uint16([60000]),
    np.int32(7),
    np.int64([2**60]),
    np.uint64([2**63]),
    np.bool_([True, False]),
    np.complex64([1 + 2j]),
    np.array([b"", b"a\x00b", b"x" * 1000], dtype=object),
    np.zeros((0, 3), np.float32),
]


def test_values_come_back_as_they_were():
    tensors = [tf.constant(value) for value in VALUES]
    owner = tf.constant(OWNER, tf.int64)
    at = buffer.Buffer(capacity=1, shared_name="values")
    put = at.put(owner, tensors)
    taken = at.take([tensor.dtype for tensor in tensors])
    resume = at.resume(owner)
    with v1.Session() as session:
        session.run(resume)
        for _ in range(3):
            session.run(put)
            for value, back in zip(VALUES, session.run(taken), strict=True):
                np.testing.assert_array_equal(back, value)


_PLACES = st.lists(st.integers(0, len(VALUES) - 1), max_size=5)


@given(first=_PLACES, host=_PLACES, items=st.integers(1, 3))
def test_host_tensors_come_back_after_the_others(first, host, items):
    with tf.Graph().as_default(), tf.device("/CPU:0"), v1.Session() as session:
        owner = tf.constant(OWNER, tf.int64)
        at = buffer.Buffer(capacity=items, shared_name="both lists")
        order = [*first, *host]
        fed = [v1.placeholder(VALUES[place].dtype, VALUES[place].shape) for place in order]
        tensors, host_tensors = fed[: len(first)], fed[len(first) :]
        put = at.put(owner, tensors, host_tensors)
        taken = at.take(
            [tensor.dtype for tensor in tensors],
            [tensor.dtype for tensor in host_tensors],
            shapes=[tensor.shape for tensor in tensors],
            host_shapes=[tensor.shape for tensor in host_tensors],
            name="take",
        )
        assert [tensor.shape for tensor in taken] == [tensor.shape for tensor in fed]
        session.run(at.resume(owner))
        for _ in range(items):
            session.run(put, dict(zip(fed, (VALUES[place] for place in order), strict=True)))
        for _ in range(items):
            _, back = session.run(["take", taken])
            for place, value in zip(order, back, strict=True):
                np.testing.assert_array_equal(value, VALUES[place])
                assert value.dtype == VALUES[place].dtype
        assert session.run(at.size()) == 0


def test_shapes_of_each_list_are_known_or_not():
    at = buffer.Buffer(capacity=1, shared_name="shapes")
    dtypes, host_dtypes = [tf.float32, tf.int64], [tf.string]
    matrix, vector = tf.TensorShape([None, 3]), tf.TensorShape([7])

    def shapes_taken(**shapes):
        return [tensor.shape.rank for tensor in at.take(dtypes, host_dtypes, **shapes)]

    assert shapes_taken() == [None, None, None]
    assert shapes_taken(shapes=[matrix, vector]) == [2, 1, None]
    assert shapes_taken(host_shapes=[matrix]) == [None, None, 2]
    with pytest.raises(ValueError, match="^shapes has 1 entries.* for each of 2 tensors"):
        shapes_taken(shapes=[matrix])
    with pytest.raises(ValueError, match="host_shapes has 2 entries.* for each of 1 tensors"):
        shapes_taken(shapes=[matrix, vector], host_shapes=[matrix, vector])


def test_a_graph_from_before_host_tensors_runs():
    old = """
      node { name: "owner" op: "Placeholder" attr { key: "dtype" value { type: DT_INT64 } } }
      node { name: "value" op: "Placeholder" attr { key: "dtype" value { type: DT_INT32 } } }
      node { name: "resume" op: "WorkbenchBufferResume" input: "owner"
             attr { key: "shared_name" value { s: "old" } } }
      node { name: "put" op: "WorkbenchBufferPut" input: "owner" input: "value"
             attr { key: "shared_name" value { s: "old" } }
             attr { key: "dtypes" value { list { type: DT_INT32 } } } }
      node { name: "take" op: "WorkbenchBufferTake"
             attr { key: "shared_name" value { s: "old" } }
             attr { key: "dtypes" value { list { type: DT_INT32 } } }
             attr { key: "shapes" value { list { shape {} } } } }
    """
    _native.library()
    v1.import_graph_def(text_format.Parse(old, v1.GraphDef()), name="")
    with v1.Session() as session:
        session.run("resume", {"owner:0": OWNER})
        session.run("put", {"owner:0": OWNER, "value:0": 4})
        assert session.run("take:0") == 4
        assert session.graph.get_tensor_by_name("take:0").shape == []


def test_an_item_of_nothing_is_an_item():
    at = buffer.Buffer(capacity=1, shared_name="nothing")
    owner = tf.constant(OWNER, tf.int64)
    put = at.put(owner, [])
    assert at.take([], name="take_nothing") == []
    resume, size = at.resume(owner), at.size()
    with v1.Session() as session:
        session.run([resume])
        session.run(put)
        assert session.run(size) == 1
        session.run("take_nothing")
        assert session.run(size) == 0


def test_mismatches_name_both_sides():
    stage = Stage()
    larger = buffer.Buffer(capacity=9, shared_name="key/clicks").size()
    other = buffer.Buffer(capacity=1, shared_name="key/clicks").take(
        [tf.int32, tf.string], name="other_take"
    )
    with v1.Session() as session:
        stage.resume(session)
        stage.put(session, 1)
        with pytest.raises(tf.errors.InvalidArgumentError) as caught:
            session.run(larger)
        assert "capacity 1" in caught.value.message
        assert "capacity 9" in caught.value.message
        with pytest.raises(tf.errors.InvalidArgumentError) as caught:
            session.run(other)
        for part in ("1 tensors int32", "'other_take' has 2 tensors int32, string"):
            assert part in caught.value.message
        assert stage.take(session) == 1


def test_put_and_take_agree_on_which_tensors_are_the_hosts():
    at = buffer.Buffer(capacity=1, shared_name="lists", stage="clicks")
    owner = tf.constant(OWNER, tf.int64)
    number, text = tf.constant(1.0), tf.constant("a")
    put = at.put(owner, [number], [text], name="put")
    both_first = at.take([tf.float32, tf.string], name="both_first")
    both_host = at.take([], [tf.float32, tf.string], name="both_host")
    swapped = at.take([tf.string], [tf.float32], name="swapped")
    taken = at.take([tf.float32], [tf.string])
    with v1.Session() as session:
        session.run(at.resume(owner))
        session.run(put)
        for wrong, found in [
            (both_first, "'both_first' has 2 tensors float, string;"),
            (both_host, "'both_host' has 0 tensors and 2 host tensors float, string;"),
            (swapped, "'swapped' has 1 tensors string and 1 host tensors float;"),
        ]:
            with pytest.raises(tf.errors.InvalidArgumentError) as caught:
                session.run(wrong)
            for part in ("have 1 tensors float and 1 host tensors string, as 'put' said", found):
                assert part in caught.value.message
        assert session.run(taken) == [1.0, b"a"]


def test_bad_arguments_are_refused():
    owner = tf.constant(OWNER, tf.int64)
    with pytest.raises(ValueError, match="capacity"):
        buffer.Buffer(capacity=0, shared_name="x").size()
    with pytest.raises(ValueError, match="timeout_millis"):
        buffer.Buffer(capacity=1, shared_name="x").put(owner, [], timeout_millis=0)
    with pytest.raises(ValueError, match="must be 2"):
        buffer.Buffer(capacity=1, shared_name="x").resume(tf.constant([1, 2, 3], tf.int64))
    nameless = buffer.Buffer(capacity=1, shared_name="").size()
    any_owner = v1.placeholder(tf.int64)
    resume = buffer.Buffer(capacity=1, shared_name="x").resume(any_owner)
    stage = Stage()
    with v1.Session() as session:
        with pytest.raises(tf.errors.InvalidArgumentError, match="empty shared_name"):
            session.run(nameless)
        with pytest.raises(tf.errors.InvalidArgumentError, match=r"shape \[3\]; expected \[2\]"):
            session.run(resume, {any_owner: [1, 2, 3]})
        with pytest.raises(tf.errors.InvalidArgumentError, match="code is 99"):
            stage.cancel(session, 99, "")


def test_no_gradient_flows_through_a_buffer():
    weight = tf.constant(2.0)
    at = buffer.Buffer(capacity=1, shared_name="gradient")
    put = at.put(tf.constant(OWNER, tf.int64), [weight * 3.0])
    with tf.control_dependencies([put]):
        (taken,) = at.take([tf.float32])
    assert v1.gradients(taken * 2.0, [weight]) == [None]


def test_a_prepared_put_feeds():
    stage = Stage(capacity=2)
    with v1.Session() as session:
        stage.resume(session)
        put = buffer.prepared(
            session,
            feeds=[stage.owner.name, stage.value.name],
            targets=[stage.put_op.name],
            options=v1.RunOptions(),
        )
        put(OWNER, np.int32(1))
        put(OWNER, np.int32(2))
        assert [stage.take(session), stage.take(session)] == [1, 2]
