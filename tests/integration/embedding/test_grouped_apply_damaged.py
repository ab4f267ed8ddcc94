"""WorkbenchResourceGroupedApply given what no lookup gives: an error or an update, no crash."""

from __future__ import annotations

import contextlib
import os
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st
from tensorflow.python.eager import context

from tests.builders.grouped_arguments import two_features
from workbench import _native

# More of them under AddressSanitizer: make native-fuzz.
CASES = settings(
    max_examples=2000 if "WORKBENCH_FUZZ_EXAMPLES" in os.environ else 50, deadline=None
)
ROWS, DIM = 6, 3


def arguments() -> dict[str, Any]:
    """Two features of two tables: ids [1], [5, 1] and [2], []."""
    return {
        "tables": [tf.Variable(tf.ones([ROWS, DIM])) for _ in range(2)],
        "slots": [tf.Variable(tf.ones([ROWS, DIM])) for _ in range(2)],
        "scalars": [0.5, 0.0],
        "gradients": [tf.ones([2, 2 * DIM])],
        **two_features(DIM),
        "columns": [0, DIM],
        "rule": "adagrad",
    }


def apply(given: dict[str, Any]) -> None:
    held = {key: [each.handle for each in given[key]] for key in ("tables", "slots")}
    _native.library().workbench_resource_grouped_apply(**{**given, **held})


def test_as_a_lookup_gives_them() -> None:
    with context.eager_mode():
        made = arguments()
        apply(made)
        (first, second), (sums, _) = made["tables"], made["slots"]
        np.testing.assert_allclose(sums[:, 0], [1, 5, 1, 1, 1, 2])
        np.testing.assert_allclose(first[1], 1 - 0.5 * 2 / np.sqrt(5), rtol=1e-6)
        np.testing.assert_allclose(second[2], 1 - 0.5 / np.sqrt(2), rtol=1e-6)


def test_with_weights() -> None:
    with context.eager_mode():
        made = {**arguments(), "weights": [tf.constant([1.0, 3.0, 2.0])], "weights_of": [0]}
        apply(made)
        sums = made["slots"][0]
        np.testing.assert_allclose(sums[:, 0], [1, 10, 1, 1, 1, 10])


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"weights": [[1.0]], "weights_of": [0]}, "'clicks': 1 weights for 3 ids"),
        ({"weights": [[1.0]]}, "weights_of has 0 values; expected 1"),
        ({"weights": [[1.0]], "weights_of": [2]}, r"weights_of\[0\] is 2; expected each feature"),
        ({"weights": [[1.0]] * 2, "weights_of": [1, 1]}, r"weights_of\[1\] is 1; expected each"),
        ({"tables": [tf.float32, [ROWS, DIM + 1]]}, "expected \\[rows, 3\\]|shapes"),
        ({"slots": [tf.float32, [ROWS + 1, DIM]]}, "table and slots have shapes"),
        ({"tables": [tf.float64, [ROWS, DIM]]}, "the table is of type double"),
        ({"scalars": [0.5]}, "rule 'adagrad' is given 2 slots and 1 scalars"),
        ({"rule": "adam"}, "rule 'adam' is given 2 slots and 2 scalars; expected 4 and 8"),
        ({"columns": [0]}, "columns has 1 values; expected 2"),
        ({"columns": [0, DIM + 1]}, "'orders'.*columns from 4 are not in gradient"),
        ({"columns": [-1, 0]}, "'clicks'.*columns from -1"),
        ({"gradients": [np.ones([3, 2 * DIM], np.float32)]}, "gradients"),
        ({"ids": [[1, 9, 1], [2]]}, "row 9 is not in a table of 6 rows"),
    ],
)
def test_what_is_refused(changed: dict[str, Any], said: str) -> None:
    with context.eager_mode():
        made = arguments()
        for name, value in changed.items():
            if name in ("tables", "slots"):
                dtype, shape = value
                made[name] = [tf.Variable(tf.ones(shape, dtype)), made[name][1]]
            elif name == "ids":
                made[name] = [tf.constant(each, tf.int64) for each in value]
            else:
                made[name] = value
        with pytest.raises(tf.errors.InvalidArgumentError, match=said):
            apply(made)


@CASES
@given(data=st.data())
def test_anything_else(data: Any) -> None:
    few = st.integers(-2, 8)
    with context.eager_mode():
        made = arguments()
        count = data.draw(st.integers(0, 6))
        made["ids"][0] = tf.constant(
            data.draw(st.lists(few, min_size=count, max_size=count)), tf.int64
        )
        if data.draw(st.booleans()):
            made["rows"][0] = tf.constant(data.draw(st.lists(few, max_size=5)), tf.int64)
        else:
            pairs = data.draw(st.lists(st.tuples(few, few), min_size=count, max_size=count))
            made["rows"][0] = tf.constant(np.array(pairs, np.int64).reshape(count, 2))
            shape = data.draw(st.lists(few, max_size=3))
            made["dense_shapes"] = [tf.constant(shape, tf.int64), made["dense_shapes"][1]]
        made["gradients"] = [tf.ones(data.draw(st.tuples(*[st.integers(0, 9)] * 2)))]
        made["columns"] = data.draw(st.tuples(few, few))
        made["default_ids"] = data.draw(st.tuples(few, few))
        made["table_of"] = data.draw(st.tuples(*[st.integers(0, 1)] * 2))
        shape = data.draw(st.tuples(*[st.integers(0, 7)] * 2))
        made["tables"][0] = tf.Variable(tf.ones(shape))
        made["slots"][0] = tf.Variable(tf.ones(data.draw(st.sampled_from((shape, (ROWS, DIM))))))
        with contextlib.suppress(tf.errors.InvalidArgumentError):
            apply(made)
