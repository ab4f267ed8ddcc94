"""The ops of fused lookups are handed anything: an error or a result, never a crash.

What is undamaged, or damaged where it does not count, is accepted with the right values.
"""

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

from tests.builders.sparse_ids import GOLDEN_TABLE
from workbench import _native

# More of them under AddressSanitizer: make native-fuzz.
FUZZED = settings(max_examples=int(os.environ.get("WORKBENCH_FUZZ_EXAMPLES", "50")), deadline=None)


class TestDamagedInputs:
    @FUZZED
    @given(data=st.data())
    def test_before_the_lookup(self, data: Any) -> None:
        size = st.integers(-1, 4)
        number = st.integers(-(2**63), 2**63 - 1) | st.integers(-2, 5)

        def vector(length: int) -> np.ndarray:
            return np.array([data.draw(number) for _ in range(length)], np.int64)

        count, rank = data.draw(st.integers(0, 4)), data.draw(st.integers(0, 3))
        arguments = {
            "ids": vector(count),
            "indices": vector(count * rank).reshape(count, rank),
            "dense_shape": np.array([data.draw(size) for _ in range(rank)], np.int64),
            "weights": np.ones(data.draw(st.integers(0, 4)), np.float32),
            "use_weights": data.draw(st.booleans()),
            "prune_invalid_id": data.draw(st.booleans()),
            "prune_invalid_weight": data.draw(st.booleans()),
            "fill_empty_row": data.draw(st.booleans()),
            "default_id": data.draw(number),
        }
        parts = data.draw(st.integers(1, 3))
        library = _native.library()
        with context.eager_mode(), contextlib.suppress(tf.errors.InvalidArgumentError):
            found = library.workbench_pre_look_up(
                **arguments,
                table_rows=vector(data.draw(st.integers(0, 3))),
                num_partitions=parts,
                partition_strategy=data.draw(st.sampled_from(("div", "mod", "mod_key"))),
            )
            assert found.row_splits[-1] == sum(len(part) for part in found.partitioned_values)

    @FUZZED
    @given(data=st.data())
    def test_of_a_grouped_lookup_and_its_gradient(self, data: Any) -> None:
        number = st.integers(-(2**63), 2**63 - 1) | st.integers(-2, 5)
        near = st.integers(-1, 4)

        def vector(length: int, of: Any = number) -> np.ndarray:
            return np.array([data.draw(of) for _ in range(length)], np.int64)

        features = data.draw(st.integers(1, 3))
        ids, rows, shapes = [], [], []
        for _ in range(features):
            count, rank = data.draw(st.integers(0, 4)), data.draw(st.integers(1, 3))
            ids.append(vector(count, data.draw(st.sampled_from((number, near)))))
            of = data.draw(st.sampled_from((number, near)))
            at = vector(count * rank, of).reshape(count, rank)
            rows.append(at if rank > 1 else np.sort(at[:, 0]) if data.draw(near) else at[:, 0])
            shapes.append(vector(data.draw(st.sampled_from((rank, 2))), near))
        some = st.sampled_from((features, features, features, 2))
        attributes = {
            "table_of": [data.draw(st.integers(0, 1)) for _ in range(data.draw(some))],
            "combiners": ["mean", "sum", "sqrtn"][:features],
            "prune_invalid_ids": [data.draw(st.booleans()) for _ in range(features)],
            "fill_empty_rows": [data.draw(st.booleans()) for _ in range(features)],
            "default_ids": [int(each) for each in vector(features)],
            "dims": [data.draw(st.sampled_from((3, 3, 3, 2, 0))) for _ in range(2)],
            "features": ["a", "b", "c"][:features],
            "weights": [
                np.full(data.draw(st.sampled_from((len(each), len(each), 2))), 0.5, np.float32)
                for each in ids[: data.draw(st.integers(0, features))]
            ],
            "weights_of": data.draw(st.sampled_from(([], [0], [0, 1], [0, 1, 2], [1, 1], [-1]))),
            "concatenated": data.draw(st.booleans()),
        }
        outputs = 1 if attributes["concatenated"] else features
        library = _native.library()
        refused = contextlib.suppress(tf.errors.InvalidArgumentError)
        with context.eager_mode():
            tables = [tf.ones([5, 3]), tf.ones([4, 3])]
            found = None
            with refused:
                found = library.workbench_grouped_look_up(
                    tables, ids, rows, shapes, M=outputs, **attributes
                )
            gradients = found or [np.ones([2, 3], np.float32)] * outputs
            with refused:
                library.workbench_grouped_look_up_grad(
                    gradients, ids, rows, shapes, N=2, **attributes
                )
            with refused:
                library.workbench_grouped_look_up_weight_grad(
                    tables, gradients, ids, rows, shapes, **attributes
                )

    @FUZZED
    @given(data=st.data())
    def test_after_the_lookup(self, data: Any) -> None:
        def integers(dtype: Any, *shape: int) -> np.ndarray:
            size = int(np.prod(shape))
            return np.array([data.draw(st.integers(-1, 4)) for _ in range(size)], dtype).reshape(
                shape
            )

        length = st.integers(0, 4)
        parts, dim = data.draw(st.integers(1, 3)), data.draw(length)
        sizes = [data.draw(length) for _ in range(parts)]
        shards = [np.ones([size, dim], np.float32) for size in sizes]
        values = [np.zeros(size, np.int64) for size in sizes]
        splits = np.sort(integers(np.int32, data.draw(length)))
        places = {
            "permutation": integers(np.int32, data.draw(length), 2),
            "row_splits": splits,
            "weights": np.ones(data.draw(length), np.float32),
            "combiner": data.draw(st.sampled_from(("sum", "mean", "sqrtn"))),
            "use_weights": data.draw(st.booleans()),
            "max_norm": data.draw(st.sampled_from((-1.0, 0.5))),
        }
        index = integers(np.int32, data.draw(length))
        rows = max(0, len(splits) - 1)
        gradient = np.ones([data.draw(st.sampled_from((rows, 2))), dim], np.float32)
        shape = np.array([rows, data.draw(length)], np.int64)
        library = _native.library()
        refused = contextlib.suppress(tf.errors.InvalidArgumentError)
        with context.eager_mode():
            with refused:
                library.workbench_post_look_up(shards, values, shape, **places)
            with refused:
                library.workbench_post_look_up_v2(shards, values, shape, index, **places)
            with refused:
                library.workbench_post_look_up_grad(gradient, values, shards=shards, **places)
            with refused:
                library.workbench_post_look_up_v2_grad(
                    gradient, values, index, shards=shards, **places
                )
            local = {"combiner": places["combiner"], "use_index": places["use_weights"]}
            rows_of = integers(np.int64, data.draw(length))
            with refused:
                library.workbench_local_look_up(shards[0], shape, rows_of, index, splits, **local)
            handle = tf.Variable(shards[0]).handle
            with refused:
                library.workbench_resource_rows_apply(
                    handle, [handle], [0.1, 0.0], gradient, rows_of, rule="adagrad"
                )
            with refused:
                library.workbench_local_look_up_grad(gradient, rows_of, index, splits, **local)


# Four rows of ids [3], [-1], [9, 3], []: the second and the fourth are filled with 7.
IDS = {
    "ids": [9, -1, 3, 3],
    "indices": [[2, 0], [1, 1], [0, 0], [2, 1]],
    "dense_shape": [4, 2],
    "weights": [],
    "prune_invalid_id": True,
    "fill_empty_row": True,
    "default_id": 7,
}
SPLITS = [0, 1, 2, 4, 5]
TABLE = np.array(GOLDEN_TABLE, np.float32)
VECTORS = [TABLE[3], TABLE[7], TABLE[9] + TABLE[3], TABLE[7]]
GRADIENT = np.array([[1, 2], [10, 20], [100, 200], [1000, 2000]], np.float32)
INT32 = ("permutation", "row_splits", "unique_index")


def call(op: str, *inputs: Any, **arguments: Any) -> Any:
    """Runs an op with lists for its tensors."""
    for name, value in arguments.items():
        if isinstance(value, list) and name not in ("shards", "partitioned_values"):
            kind = np.float32 if name == "weights" else np.int32 if name in INT32 else np.int64
            arguments[name] = np.array(value, kind)
    return getattr(_native.library(), f"workbench_{op}")(*inputs, **arguments)


def lists(outputs: Any) -> Any:
    return tf.nest.map_structure(lambda tensor: tensor.numpy().tolist(), list(outputs))


def gathered(*rows: list[int]) -> dict[str, Any]:
    """What was gathered from two shards of five rows."""
    shards = [TABLE[5 * part :][np.array(of, np.int64)] for part, of in enumerate(rows)]
    return {"shards": shards, "partitioned_values": [np.array(of, np.int64) for of in rows]}


V1 = {
    **gathered([3, 3], [2, 2, 4]),
    "permutation": [[0, 0], [1, 0], [1, 2], [0, 1], [1, 1]],
    "row_splits": SPLITS,
    "weights": [],
    "combiner": "sum",
}
V2 = {
    **gathered([3], [2, 4]),
    "unique_index": [0, 1, 2, 0, 1],
    "permutation": [[0, 0], [1, 0], [1, 1]],
    "row_splits": SPLITS,
    "weights": [],
    "combiner": "sum",
}
ALL_IDS = {"values": [3, 7, 9, 3, 7], "unique_index": [], "row_splits": SPLITS, "combiner": "sum"}
UNIQUE = {**ALL_IDS, "values": [3, 7, 9], "unique_index": [0, 1, 2, 0, 1], "use_index": True}


@pytest.fixture
def eagerly():
    with context.eager_mode():
        yield


@pytest.mark.usefixtures("eagerly")
class TestUndamagedInputs:
    @pytest.mark.parametrize(
        "harmless",
        [
            {},
            {"weights": [0.5] * 9},  # Without use_weights none is read.
            {"prune_invalid_weight": True},
            {"ids": [9, -(2**63), 3, 3]},
            {"dense_shape": [4, 0]},  # Only rows are judged, not the places of ids in them.
            {"indices": [[2, 2**40], [1, -1], [0, 0], [2, 2**40]]},
        ],
    )
    def test_before_the_lookup(self, harmless: dict[str, Any]) -> None:
        given = {**IDS, **harmless}
        found = call("pre_look_up", **given, table_rows=[5, 5], num_partitions=2)
        assert lists(found) == [[[3, 3], [2, 2, 4]], V1["permutation"], SPLITS, [], []]
        found = call("prune_invalid_and_fill_empty_rows", **given, table_rows=10)
        assert lists(found) == [[3, 7, 9, 3, 7], SPLITS, [], []]

    def test_weights_before_the_lookup(self) -> None:
        given = {**IDS, "weights": [0.5, 9.0, np.nan, 2.0], "use_weights": True}
        found = call(
            "prune_invalid_and_fill_empty_rows", **given, prune_invalid_weight=True, table_rows=10
        )
        # The weight of the first row is no number: its id is dropped, and the row filled.
        weights, sources = [1.0, 1.0, 0.5, 2.0, 1.0], [-1, -1, 0, 3, -1]
        assert lists(found) == [[7, 7, 9, 3, 7], SPLITS, weights, sources]

    def test_a_default_that_no_row_needs_may_lie_outside_the_table(self) -> None:
        full = {**IDS, "ids": [9, 1], "indices": [[0, 0], [1, 0]], "dense_shape": [2, 1]}
        found = call(
            "prune_invalid_and_fill_empty_rows", **full | {"default_id": 99}, table_rows=10
        )
        assert lists(found) == [[9, 1], [0, 1, 2], [], []]

    def test_unique_ids_and_their_shards(self) -> None:
        found = call("unique_with_counts", values=[3, 7, 9, 3, 7])
        assert lists(found) == [[3, 7, 9], [0, 1, 2, 0, 1], [2, 2, 1]]
        found = call(
            "partition_with_permutation", values=[3, 7, 9], table_rows=[5, 5], num_partitions=2
        )
        assert lists(found) == [[[3], [2, 4]], V2["permutation"]]

    @pytest.mark.parametrize(("op", "inputs"), [("post_look_up", V1), ("post_look_up_v2", V2)])
    @pytest.mark.parametrize("harmless", [{}, {"dense_shape": [4, 0]}, {"dense_shape": [2, 2, 7]}])
    def test_after_the_lookup(self, op: str, inputs: Any, harmless: Any) -> None:
        found = call(op, **{"dense_shape": [4, 2], **inputs, **harmless})
        np.testing.assert_array_equal(tf.reshape(found, [4, 2]), VECTORS)

    def test_only_the_number_of_gathered_rows_counts(self) -> None:
        others = [np.array([-9, 2**62]), np.array([2**62] * 3)]
        found = call("post_look_up", **V1 | {"partitioned_values": others}, dense_shape=[4, 2])
        np.testing.assert_array_equal(found, VECTORS)

    def test_gradients_after_the_lookup(self) -> None:
        first, second, third, fourth = GRADIENT.tolist()
        (here, there), _ = lists(call("post_look_up_grad", GRADIENT, **V1))
        assert (here, there) == ([first, third], [second, fourth, third])
        (here, there), _ = lists(call("post_look_up_v2_grad", GRADIENT, **V2))
        assert (here, there) == ([[101, 202]], [[1010, 2020], third])

    @pytest.mark.parametrize("inputs", [ALL_IDS, UNIQUE])
    def test_a_local_lookup_and_its_gradient(self, inputs: Any) -> None:
        found = call("local_look_up", TABLE, **inputs, dense_shape=[4, 2])
        np.testing.assert_array_equal(found, VECTORS)
        rows, gradients = lists(call("local_look_up_grad", GRADIENT, **inputs))
        assert rows == [3, 7, 9]
        assert gradients == [[101, 202], [1010, 2020], [100, 200]]

    def test_an_update_of_rows(self) -> None:
        table, sums = tf.Variable(TABLE), tf.Variable(np.full_like(TABLE, 16.0))
        rows = np.array([7, 3], np.int64)
        gradient = np.array([[3.0, 0.0], [0.0, 3.0]], np.float32)
        given = (table.handle, [sums.handle], [0.5, 0.0], gradient, rows)
        call("resource_rows_apply", *given, rule="adagrad")
        wanted = TABLE.copy()
        wanted[7, 0] -= 0.5 * 3 / 5
        wanted[3, 1] -= 0.5 * 3 / 5
        np.testing.assert_allclose(table, wanted, rtol=1e-6)
