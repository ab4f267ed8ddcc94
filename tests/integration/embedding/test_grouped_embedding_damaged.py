"""WorkbenchEmbeddingGroupedLookUp and …Apply given anything: an error or a result, no crash."""

from __future__ import annotations

import contextlib
import itertools
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
    max_examples=2000 if "WORKBENCH_FUZZ_EXAMPLES" in os.environ else 40, deadline=None
)
DIM = 3
WRONG = tf.errors.InvalidArgumentError

_numbers = itertools.count()


def table(dim: int = DIM, **options: Any) -> tf.Tensor:
    return _native.library().workbench_embedding_variable(
        shared_name=f"grouped_{next(_numbers)}", dim=dim, **options
    )


def ids() -> dict[str, Any]:
    """Two features of two tables: keys [1], [5, 1] and [2], []."""
    return {"tables": [table(), table()], **two_features(DIM)}


def look_up(given: dict[str, Any], **changed: Any) -> Any:
    arguments = {"default_rows": [tf.ones([2, DIM])] * 2, "step": [], "M": 1, **given, **changed}
    return _native.library().workbench_embedding_grouped_look_up(T=tf.float32, **arguments)


def update(given: dict[str, Any], found: Any, **changed: Any) -> None:
    arguments = {
        "gradients": [tf.ones([2, 2 * DIM])],
        "scalars": [0.5],
        "found_rows": found.found_rows,
        "generations": found.generations,
        "columns": [0, DIM],
        "rule": "gradient_descent",
        **given,
        **changed,
    }
    _native.library().workbench_embedding_grouped_apply(**arguments)


def contents(handle: tf.Tensor) -> dict[int, float]:
    exported = _native.library().workbench_embedding_export(
        handle, [], dim=DIM, num_slots=0, slot_names=[], slot_initials=[]
    )
    return dict(zip(exported.keys.numpy().tolist(), exported[1][:, 0].numpy(), strict=True))


def test_as_a_lookup_gives_them() -> None:
    with context.eager_mode():
        given_ids = ids()
        found = look_up(given_ids)
        np.testing.assert_array_equal(found.vectors[0][:, 0], [1, 2])
        update(given_ids, found)
        first, second = map(contents, given_ids["tables"])
    assert first == {1: 0.0, 5: 0.5} and second == {2: 0.5}


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"dims": [DIM, 5]}, "has dimension 3; expected 5"),
        ({"default_rows": [np.zeros([2, 2], "f4")] * 2}, r"shape of default_rows is \[2,2\]"),
        ({"default_rows": [np.zeros([0, DIM], "f4")] * 2}, r"shape of default_rows is \[0,3\]"),
        ({"step": [[1, 2]]}, r"1 steps, the first of shape \[2\]; expected at most one scalar"),
        ({"prune_invalid_ids": [False, True], "ids": [[1, -2, 1], [2]]}, "'clicks': a key, or the"),
        ({"default_ids": [0, -2], "fill_empty_rows": [True, True]}, "'orders': a key, or the"),
        ({"max_norms": [-1.0, 0.5]}, "'orders': weights or max_norm; expected none"),
        ({"weights": [[1.0]], "weights_of": [1]}, "'orders': weights or max_norm; expected none"),
        ({"filtered": True}, "has a filter, which counts each key"),
        ({"rows": [[0, 1], [0, 1, 1]]}, "row_splits go from 0 to 1; expected 0 to 3"),
    ],
)
def test_what_a_lookup_refuses(changed: dict[str, Any], said: str) -> None:
    with context.eager_mode():
        made = {**ids(), **changed}
        if made.pop("filtered", False):
            made["tables"] = [table(filter_freq=2), made["tables"][1]]
        with pytest.raises(WRONG, match=said):
            look_up(made)


def test_a_handle_of_something_else_is_an_error() -> None:
    with context.eager_mode():
        variable = tf.Variable([1.0])
        with pytest.raises(tf.errors.OpError, match="expected the handle of an EmbeddingVariable"):
            look_up({**ids(), "tables": [variable.handle] * 2})


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        (
            {"found_rows": [[1, 2], [0]]},
            r"'clicks': found_rows \[2\] of gen.*; expected \[5\]",
        ),
        (
            {"generations": [[1], 2]},
            r"found_rows \[5\] of generation \[1\].*\[5\] and \[\]",
        ),
        ({"rule": "adam"}, "rule 'adam' is given 0 slots and 1 scalars; expected 4 and 6"),
        ({"slot_names": ["a"], "slot_initials": [0.0]}, "is given 1 slots and 1 scalars"),
        ({"slot_names": ["a"]}, "slot_names has 1 entries, slot_initials 0"),
        ({"scalars": [[0.5]]}, r"one of scalars has shape \[1\]"),
        ({"columns": [0]}, "columns has 1 values; expected 2"),
        ({"columns": [0, DIM + 1]}, "'orders'.*columns from 4 are not in gradient"),
        ({"gradients": [np.ones([3, 2 * DIM], "f4")]}, "gradients"),
        ({"twice": True}, "is given twice; expected each once"),
    ],
)
def test_what_an_update_refuses(changed: dict[str, Any], said: str) -> None:
    with context.eager_mode():
        made = ids()
        found = look_up(made)
        changed = dict(changed)
        if changed.pop("twice", False):
            made["tables"] = made["tables"][:1] * 2
        with pytest.raises(WRONG, match=said):
            update(made, found, **changed)


@CASES
@given(data=st.data())
def test_anything_else(data: Any) -> None:
    few = st.integers(-2, 8)
    with context.eager_mode():
        made = ids()
        count = data.draw(st.integers(0, 6))
        drawn = data.draw(st.lists(few, min_size=count, max_size=count))
        made["ids"][0] = tf.constant(drawn, tf.int64)
        if data.draw(st.booleans()):
            made["rows"][0] = tf.constant(data.draw(st.lists(few, max_size=5)), tf.int64)
        else:
            pairs = data.draw(st.lists(st.tuples(few, few), min_size=count, max_size=count))
            made["rows"][0] = tf.constant(np.array(pairs, np.int64).reshape(count, 2))
            shape = data.draw(st.lists(few, max_size=3))
            made["dense_shapes"] = [tf.constant(shape, tf.int64), made["dense_shapes"][1]]
        made["default_ids"] = data.draw(st.tuples(few, few))
        made["table_of"] = data.draw(st.tuples(*[st.integers(0, 1)] * 2))
        made["concatenated"] = data.draw(st.booleans())
        found = None
        with contextlib.suppress(WRONG):
            found = look_up(made, M=1 if made["concatenated"] else 2)
        if found is None:
            return
        many = st.integers(-(2**63), 2**63 - 1) | st.integers(-1, 600)
        sizes = [int(tf.size(each)) for each in found.found_rows]
        rows = [data.draw(st.lists(many, min_size=size, max_size=size)) for size in sizes]
        changed: dict[str, Any] = {"found_rows": [tf.constant(each, tf.int64) for each in rows]}
        if data.draw(st.booleans()):
            changed["generations"] = [tf.constant(-1, tf.int64)] * 2
        changed["columns"] = data.draw(st.tuples(few, few))
        changed["gradients"] = [tf.ones_like(each) for each in found.vectors]
        if data.draw(st.booleans()):
            changed |= {"slot_names": ["a", "b"], "slot_initials": [0.5, 0.5], "rule": "adagrad"}
        with contextlib.suppress(WRONG):
            update(made, found, **changed)
