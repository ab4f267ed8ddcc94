"""The rules of fused lookups, eager calls, errors, and tables that lie in this process."""

from __future__ import annotations

import contextlib
import functools
import time
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from tensorflow.python.eager import context

from tests.builders.grids import rest_slow
from tests.builders.intra_op_threads import require_same_bits
from tests.builders.sparse_ids import GOLDEN_TABLE, VERSIONS, golden, run, sparse
from workbench.errors import OptionError, UnsupportedError
from workbench.ops.embedding_variable import optimizers
from workbench.ops.lookup.fused import (
    fused_embedding_lookup_sparse,
    fused_embedding_lookup_sparse_v2,
    fused_safe_embedding_lookup_sparse,
)

v1 = tf.compat.v1


class TestRules:
    @pytest.mark.parametrize("version", VERSIONS)
    def test_ids_may_come_in_any_order_of_rows(self, version: str) -> None:
        ids = sparse([[1, 0], [0, 0], [1, 1]], [3, 4, 5], [2, 2])
        found = fused_safe_embedding_lookup_sparse(
            tf.constant(GOLDEN_TABLE), ids, combiner="sum", fusion_version=version
        )
        np.testing.assert_array_equal(run(found), [[9, 10], [18, 20]])

    @pytest.mark.parametrize(
        "look_up", [fused_embedding_lookup_sparse, fused_embedding_lookup_sparse_v2]
    )
    def test_fill_empty_row_off_ignores_the_default(self, look_up: Any) -> None:
        ids = sparse([[0, 0]], [4], [3, 1])
        found = look_up(
            tf.constant(GOLDEN_TABLE), ids, combiner="sum", default_id=2, fill_empty_row=False
        )
        np.testing.assert_array_equal(run(found), [[9, 10], [0, 0], [0, 0]])

    def test_a_filled_row_needs_no_row_of_the_table_without_a_default(self) -> None:
        table = v1.get_variable("table", [4, 2], use_resource=False)
        found = fused_safe_embedding_lookup_sparse(table, sparse([], [], [3, 1]))
        gradient = v1.train.GradientDescentOptimizer(1.0).compute_gradients(found, [table])[0][0]
        assert run(gradient.indices).size == 0

    @pytest.mark.parametrize("version", VERSIONS)
    @pytest.mark.parametrize("partitions", rest_slow([1, 2], 2))
    def test_threads_change_no_bit(self, version: str, partitions: int) -> None:
        require_same_bits(functools.partial(found_and_gradient, version, partitions))

    def test_a_step_does_not_cost_more_for_more_rows(self) -> None:
        """Stock copies a resource table at every step that trains it; see its own ratio below."""

        def step_s(rows: int, version: str) -> float:
            with tf.Graph().as_default():
                table = v1.get_variable(
                    "table", [rows, 32], use_resource=True, initializer=v1.zeros_initializer()
                )
                ids = sparse([[i, 0] for i in range(256)], range(256), [256, 1])
                if version == "stock":
                    found = v1.nn.safe_embedding_lookup_sparse(table, ids)
                else:
                    found = fused_safe_embedding_lookup_sparse(table, ids, fusion_version=version)
                train = v1.train.GradientDescentOptimizer(0.1).minimize(tf.reduce_sum(found**2))
                with v1.Session() as session:
                    session.run(v1.global_variables_initializer())
                    step = session.make_callable(train)
                    took = []
                    for _ in range(12):
                        begin = time.perf_counter()
                        step()
                        took.append(time.perf_counter() - begin)
                    return min(took[2:])

        growth = {
            version: step_s(1_000_000, version) / step_s(1_000, version)
            for version in (*VERSIONS, "stock")
        }
        assert growth["v1"] < 8 and growth["v2"] < 8, growth
        assert growth["stock"] > 8, growth


class TestEager:
    @pytest.mark.parametrize("version", VERSIONS)
    @pytest.mark.parametrize("compiled", [False, True])
    def test_and_functions_give_the_same(self, version: str, compiled: bool) -> None:
        with contextlib.ExitStack() as stack:
            stack.enter_context(context.eager_mode())
            table = tf.Variable(GOLDEN_TABLE)

            def step() -> tuple[tf.Tensor, tf.Tensor]:
                ids, _ = golden()
                with tf.GradientTape() as tape:
                    out = fused_safe_embedding_lookup_sparse(
                        table, ids, combiner="sum", fusion_version=version
                    )
                return out, tf.convert_to_tensor(tape.gradient(out, table))

            out, gradient = tf.function(step)() if compiled else step()
            np.testing.assert_array_equal(out[0], [6, 8])
            np.testing.assert_array_equal(gradient[:, 0], [0, 2, 0, 1, 1, 0, 0, 0, 0, 0])


class TestErrors:
    @pytest.mark.parametrize("version", VERSIONS)
    @pytest.mark.parametrize("parts", [1, 2])
    def test_an_id_beyond_the_table_is_named(self, version: str, parts: int) -> None:
        table = tf.constant(GOLDEN_TABLE)
        shards = [table] if parts == 1 else [table[:3], table[3:]]
        found = fused_safe_embedding_lookup_sparse(
            shards,
            sparse([[0, 0], [2, 0]], [1, 10], [3, 1]),
            name="C7",
            fusion_version=version,
        )
        with pytest.raises(
            tf.errors.InvalidArgumentError, match=r"feature 'C7': row 2: id 10 is not in \[0, 10\)"
        ):
            run(found)

    @pytest.mark.parametrize("version", VERSIONS)
    def test_an_id_below_0_is_an_error_unless_it_is_pruned(self, version: str) -> None:
        found = fused_safe_embedding_lookup_sparse(
            tf.constant(GOLDEN_TABLE),
            sparse([[1, 0]], [-3], [2, 1]),
            prune=False,
            fusion_version=version,
        )
        with pytest.raises(
            tf.errors.InvalidArgumentError, match=r"row 1: id -3 is not in \[0, 10\)"
        ):
            run(found)

    @pytest.mark.parametrize("version", VERSIONS)
    def test_a_default_beyond_the_table(self, version: str) -> None:
        found = fused_safe_embedding_lookup_sparse(
            tf.constant(GOLDEN_TABLE), sparse([], [], [2, 1]), default_id=10, fusion_version=version
        )
        with pytest.raises(tf.errors.InvalidArgumentError, match=r"row 0: id 10 is not in"):
            run(found)

    @pytest.mark.parametrize("version", VERSIONS)
    def test_indices_outside_the_dense_shape(self, version: str) -> None:
        found = fused_safe_embedding_lookup_sparse(
            tf.constant(GOLDEN_TABLE), sparse([[5, 0]], [1], [2, 1]), fusion_version=version
        )
        with pytest.raises(
            tf.errors.InvalidArgumentError, match=r"indices\[0\] is \[5, 0\], outside dense_shape"
        ):
            run(found)

    @pytest.mark.parametrize("version", VERSIONS)
    def test_second_derivatives(self, version: str) -> None:
        table = tf.constant(GOLDEN_TABLE)
        ids, _ = golden()
        found = fused_safe_embedding_lookup_sparse(table, ids, fusion_version=version)
        (first,) = tf.gradients(found * found, table)
        with pytest.raises(UnsupportedError, match="second derivatives of the fused"):
            tf.gradients(first.values, found.op.inputs[0])

    @pytest.mark.parametrize(
        ("changed", "kind", "message"),
        [
            ({"fusion_version": "v3"}, OptionError, "fusion_version is 'v3'; expected 'v1' or"),
            ({"combiner": "max"}, OptionError, "combiner is 'max'; expected one of mean, sum"),
            ({"partition_strategy": "ring"}, OptionError, "partition_strategy is 'ring'"),
            ({"default_id": 1.5}, OptionError, "default_id is 1.5; expected an integer id"),
            ({"max_norm": -1.0}, OptionError, "max_norm is -1.0; expected a length"),
            ({"blocknums": [1]}, UnsupportedError, "DynamicEmbeddingVariable has no"),
            ({"embedding_weights": []}, ValueError, "Missing embedding_weights"),
            ({"embedding_weights": None}, ValueError, "Missing embedding_weights"),
            ({"embedding_weights": np.zeros([3])}, OptionError, r"shape \(3,\); expected \[rows"),
            ({"embedding_weights": np.zeros([3, 2])}, UnsupportedError, "has dtype float64"),
            (
                {"embedding_weights": [np.zeros([3, 2], "f"), np.zeros([3, 4], "f")]},
                OptionError,
                r"shards of dims \[2, 4\]",
            ),
            (
                {"embedding_weights": [np.zeros([3, 2], "f"), np.zeros([3, 2])]},
                OptionError,
                r"dtypes \['float32', 'float64'\]; expected one of each",
            ),
            ({"sparse_ids": np.zeros([2, 2])}, OptionError, "expected a SparseTensor of rank 2"),
        ],
    )
    def test_of_options(self, changed: dict[str, Any], kind: Any, message: str) -> None:
        arguments = {
            "embedding_weights": tf.zeros([4, 2]),
            "sparse_ids": sparse([[0, 0]], [1], [1, 1]),
            **changed,
        }
        with pytest.raises(kind, match=message):
            fused_safe_embedding_lookup_sparse(**arguments)

    @pytest.mark.parametrize("version", VERSIONS)
    def test_of_weights_that_are_not_one_for_each_id(self, version: str) -> None:
        ids = sparse([[0, 0], [0, 1]], [1, 2], [1, 2])
        weights = sparse([[0, 0]], [1.0], [1, 2], np.float32)
        # As TensorFlow's own lookup, which says it with these words when the graph is built.
        with pytest.raises(ValueError, match="Dimensions 2 and 1 are not compatible"):
            v1.nn.safe_embedding_lookup_sparse(tf.zeros([4, 2]), ids, weights, combiner="sum")
        with pytest.raises(OptionError, match="1 weights for 2 ids; .* are not compatible"):
            fused_safe_embedding_lookup_sparse(
                tf.zeros([4, 2]), ids, weights, combiner="sum", fusion_version=version
            )

    def test_of_ids_that_are_no_integers(self) -> None:
        ids = sparse([[0, 0]], [1.0], [1, 1], np.float32)
        with pytest.raises(OptionError, match="ids have dtype float32; expected int32 or int64"):
            fused_safe_embedding_lookup_sparse(tf.zeros([4, 2]), ids)


class TestLocalTables:
    def lookup_ops(self, look_up: Any, table: Any, **options: Any) -> list[str]:
        ids = sparse([[0, 0]], [1], [2, 1])
        look_up(table, ids, **options)
        types = {op.type for op in tf.compat.v1.get_default_graph().get_operations()}
        return sorted(name for name in types if "LookUp" in name or "Gather" in name)

    def test_are_combined_where_they_lie(self) -> None:
        table = v1.get_variable("table", [4, 2], use_resource=False)
        found = self.lookup_ops(fused_embedding_lookup_sparse, table)
        assert found == ["WorkbenchLocalLookUp", "WorkbenchPreLookUp"]

    def test_behind_a_handle_too(self) -> None:
        table = v1.get_variable("table", [4, 2], use_resource=True)
        found = self.lookup_ops(fused_embedding_lookup_sparse_v2, table)
        assert found == ["WorkbenchResourceLocalLookUp"]

    def test_on_another_device_they_are_gathered_there(self) -> None:
        with tf.device("/job:ps/task:0"):
            table = v1.get_variable("table", [4, 2], use_resource=False)
        found = self.lookup_ops(fused_embedding_lookup_sparse, table)
        assert found == ["Gather", "WorkbenchPostLookUp", "WorkbenchPreLookUp"]
        (gather,) = [op for op in v1.get_default_graph().get_operations() if op.type == "Gather"]
        assert gather.device == "/job:ps/task:0" or gather.colocation_groups() == [b"loc:@table"]

    def test_with_max_norm_they_are_gathered(self) -> None:
        found = self.lookup_ops(fused_embedding_lookup_sparse, tf.zeros([4, 2]), max_norm=1.0)
        assert found == ["Gather", "WorkbenchPostLookUp", "WorkbenchPreLookUp"]

    def test_that_nobody_initialized(self) -> None:
        table = v1.get_variable("table", [4, 2], use_resource=True)
        found = fused_embedding_lookup_sparse(table, sparse([[0, 0]], [1], [2, 1]))
        with v1.Session() as session, pytest.raises(tf.errors.OpError, match="table"):
            session.run(found)

    def test_gradients_name_each_row_once_in_order(self) -> None:
        table = tf.constant(GOLDEN_TABLE)
        ids = sparse([[0, 0], [0, 1], [1, 0], [1, 1]], [7, 3, 7, 0], [2, 2])
        for look_up in (fused_embedding_lookup_sparse, fused_embedding_lookup_sparse_v2):
            (slices,) = tf.gradients(look_up(table, ids, combiner="sum"), table)
            rows, values = run([slices.indices, slices.values])
            np.testing.assert_array_equal(rows, [0, 3, 7])
            np.testing.assert_array_equal(values[:, 0], [1, 1, 2])

    @pytest.mark.parametrize("resource", [False, True])
    @pytest.mark.parametrize("kind", ["GradientDescent", "Adagrad", "Adam", "Ftrl"])
    def test_workbenchs_optimizers_search_no_duplicates(self, kind: str, resource: bool) -> None:
        def train(home: Any, name: str) -> tuple[tf.Operation, tf.Tensor]:
            table = v1.get_variable(
                name, [9, 2], initializer=v1.ones_initializer(), use_resource=resource
            )
            ids = sparse([[0, 0], [0, 1], [1, 0]], [5, 5, 2], [2, 2])
            loss = tf.reduce_sum(fused_embedding_lookup_sparse(table, ids, combiner="sum") ** 2)
            optimizer = getattr(home, f"{kind}Optimizer")(0.1)
            before = len(v1.get_default_graph().get_operations())
            made = optimizer.minimize(loss, var_list=[table])
            ops = v1.get_default_graph().get_operations()[before:]
            searched = any(op.type == "Unique" for op in ops)
            assert searched == (home is v1.train and kind != "GradientDescent")
            native = any("RowsApply" in op.type for op in ops)
            assert native == (home is not v1.train and kind in ("GradientDescent", "Adagrad"))
            return made, tf.convert_to_tensor(table)

        ours, stock = train(optimizers, "ours"), train(v1.train, "stock")
        with v1.Session() as session:
            session.run(v1.global_variables_initializer())
            for _ in range(3):
                session.run([ours[0], stock[0]])
            # Ftrl and Adam are stock's own kernels; the other two compute what stock does.
            np.testing.assert_allclose(*session.run([ours[1], stock[1]]), rtol=1e-6)


def found_and_gradient(version: str, partitions: int) -> list[np.ndarray]:
    random = np.random.default_rng(1)
    rows = np.sort(random.integers(0, 3000, 40_000))
    at = np.stack([rows, np.arange(rows.size)], 1)
    with tf.Graph().as_default():
        ids = sparse(at, random.integers(0, 500, rows.size), [3000, rows.size])
        table = tf.constant(random.normal(size=(500, 33)).astype(np.float32))
        shards = [table] if partitions == 1 else [table[:100], table[100:]]
        found = fused_safe_embedding_lookup_sparse(shards, ids, fusion_version=version)
        (slices,) = tf.gradients(found * found, [shards[0]])
        with v1.Session() as session:
            return session.run([found, slices.values])
