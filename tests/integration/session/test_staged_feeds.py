"""staged(feed_dict=…): placeholders of the staged side get values before each put."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

import workbench as wb
from tests.builders.epochs import take_all
from tests.builders.stage_plans import numbers
from workbench.errors import OptionError

v1 = tf.compat.v1


def monitored():
    return v1.train.MonitoredTrainingSession(hooks=[wb.make_prefetch_hook()])


class TestFeedDict:
    def test_values_are_evaluated_before_each_put(self):
        fed = v1.placeholder(tf.int64, [])
        back = wb.staged(fed * 10, feed_dict={fed: numbers(3)})
        with monitored() as session:
            assert take_all(session, back) == [0, 10, 20]

    def test_sparse_placeholders_are_fed_whole(self):
        fed = v1.sparse_placeholder(tf.float32, [2, 2])
        value = tf.sparse.from_dense(tf.constant([[0.0, 1.0], [2.0, 0.0]]))
        back = wb.staged(tf.sparse.to_dense(fed), feed_dict={fed: value})
        with monitored() as session:
            np.testing.assert_array_equal(session.run(back), [[0, 1], [2, 0]])

    def test_a_value_that_is_no_tensor_is_refused(self):
        fed = v1.placeholder(tf.float32, [])
        with pytest.raises(OptionError, match=r"feed_dict .* to 3\.0 of type float"):
            wb.staged(fed, feed_dict={fed: 3.0})

    @pytest.mark.parametrize("use_resource", [True, False])
    def test_a_variable_is_fed_its_value(self, use_resource):
        variable = v1.get_variable("v", initializer=[1, 2], use_resource=use_resource)
        fed = v1.placeholder(tf.int32, [2])
        back = wb.staged(fed * 10, feed_dict={fed: variable})
        with monitored() as session:
            assert session.run(back).tolist() == [10, 20]

    def test_a_handle_is_refused(self):
        variable = v1.get_variable("v", initializer=[1.0], use_resource=True)
        fed = v1.placeholder(tf.resource, [], name="fed")
        back = tf.raw_ops.ReadVariableOp(resource=fed, dtype=tf.float32)
        with pytest.raises(OptionError, match=r"'fed:0' to 'v:0' of dtype resource; a handle"):
            wb.staged(back, feed_dict={fed: variable.handle})

    def test_another_dtype_is_refused(self):
        fed = v1.placeholder(tf.float32, [], name="fed")
        with pytest.raises(OptionError, match=r"'fed:0' of dtype float32 to 'n:0' of dtype int32"):
            wb.staged(fed, feed_dict={fed: tf.constant(1, name="n")})

    def test_a_shape_that_does_not_fit_is_refused(self):
        fed = v1.placeholder(tf.int32, [], name="fed")
        with pytest.raises(OptionError, match=r"'fed:0' of shape \(\) to 'n:0' of shape \(2,\)"):
            wb.staged(fed, feed_dict={fed: tf.constant([1, 2], name="n")})

    def test_a_sparse_shape_that_does_not_fit_is_refused(self):
        fed = v1.sparse_placeholder(tf.float32, [2, 2])
        with pytest.raises(OptionError, match=r"of shape \(2, 2\) to .* of shape \(1, 3\)"):
            wb.staged(
                tf.sparse.to_dense(fed), feed_dict={fed: tf.sparse.from_dense([[1.0, 0.0, 2.0]])}
            )

    def test_a_shape_that_is_not_known_is_checked_before_each_put(self):
        fed = v1.placeholder(tf.int64, [1])
        value = tf.range(numbers() + 1)
        back = wb.staged(fed, feed_dict={fed: value}, name="clicks")
        with v1.Session() as session, wb.prefetching(session):
            assert session.run(back).tolist() == [0]
            with pytest.raises(
                tf.errors.InvalidArgumentError,
                match=r"(?s)stage 'clicks'.*\[2\] is not compatible with expected shape \[1\]",
            ):
                session.run(back)

    def test_a_key_that_is_no_tensor_is_refused(self):
        with pytest.raises(OptionError, match=r"has the key 'x:0' of type str; expected a place"):
            wb.staged(tf.constant(1), feed_dict={"x:0": tf.constant(1)})
