"""Stock lookups that are fused in a step's function: it trains as it did."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

import workbench as wb
from workbench.errors import UnsupportedError

v1 = tf.compat.v1
ROWS = 12
OPTIMIZERS: dict[str, Callable[[], Any]] = {
    "adagrad": lambda: v1.train.AdagradOptimizer(0.1),
    "adam": lambda: v1.train.AdamOptimizer(0.01),
    "descent": lambda: v1.train.GradientDescentOptimizer(0.1),
}


def training_step(optimizer: str, variables: list[tf.Variable]) -> Any:
    """A step of TF2 over two features, and its optimizer's own variables in `variables`."""
    tables = [tf.Variable(tf.random.stateless_normal([ROWS, dim], (1, dim))) for dim in (8, 16)]
    variables += tables
    if optimizer == "keras":
        keras = tf.keras.optimizers.Adagrad(0.1)
        keras.build(tables)
        apply = keras.apply_gradients
        variables += [each.value for each in keras.variables]
    else:
        v1_optimizer = OPTIMIZERS[optimizer]()
        v1_optimizer._create_slots(tables)
        apply = v1_optimizer.apply_gradients
        variables += v1_optimizer.variables()

    @tf.function(autograph=False)
    def train_step(ids: tf.SparseTensor, dense: tf.Tensor) -> dict[str, tf.Tensor]:
        with tf.GradientTape() as tape:
            found = [
                v1.nn.safe_embedding_lookup_sparse(table, ids, combiner=combiner)
                for table, combiner in zip(tables, ("mean", "sum"), strict=True)
            ]
            loss = tf.add_n([tf.reduce_sum(tf.sin(each) * each) for each in found]) + tf.reduce_sum(
                dense
            )
        apply(zip(tape.gradient(loss, tables), tables, strict=True))
        # Read again, after the update.
        return {"loss": loss, "after": tf.reduce_sum(tables[0])}

    return train_step


def weighted_step(table: tf.Variable, combiner: str, *, is_safe: bool) -> Any:
    """A step of gradient descent over ids with weights; only if safe it reads a dense shape."""
    look_up = tf.nn.safe_embedding_lookup_sparse if is_safe else tf.nn.embedding_lookup_sparse

    @tf.function(autograph=False)
    def train_step(ids: tf.SparseTensor, weights: tf.Tensor) -> tf.Tensor:
        with tf.GradientTape() as tape:
            found = look_up(table, ids, ids.with_values(weights), combiner=combiner)
            loss = tf.reduce_sum(tf.sin(found))
        slices = tape.gradient(loss, table)
        table.scatter_sub(tf.IndexedSlices(0.1 * slices.values, slices.indices))
        return loss

    spec = [tf.SparseTensorSpec([None, None], tf.int64), tf.TensorSpec([None])]
    return train_step.get_concrete_function(*spec)


class TestFunctions:
    @pytest.mark.parametrize("is_safe", [True, False])
    @pytest.mark.parametrize("combiner", ["sum", "mean", "sqrtn"])
    def test_with_weights_train_as_stock_ones_do(self, combiner: str, is_safe: bool) -> None:
        start = np.random.default_rng(1).normal(size=(ROWS, 5)).astype(np.float32)
        table = tf.Variable(start)
        function = weighted_step(table, combiner, is_safe=is_safe)
        fused = wb.fuse_function(function)
        ops = {op.type for op in fused.graph.get_operations()}
        assert "WorkbenchResourceGroupedLookUp" in ops
        assert "SegmentSum" not in ops
        ids = tf.SparseTensor([[0, 0], [0, 1], [2, 0], [3, 1]], np.int64([1, 1, 3, 4]), [5, 2])
        weights = tf.constant([0.5, 2.0, 1.0, -0.25])
        results = []
        for each, given in ((function, [ids]), (fused, tf.nest.flatten(ids, True))):
            table.assign(start)
            results.append([*(each(*given, weights).numpy() for _ in range(3)), table.numpy()])
        for one, other in zip(*results, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6)

    @pytest.mark.parametrize("optimizer", ["adagrad", "adam", "descent", "keras"])
    def test_train_as_stock_ones_do(self, optimizer: str) -> None:
        random = np.random.default_rng(1)
        batches = [
            (
                tf.sparse.from_dense(random.integers(0, ROWS, (6, 3))),
                tf.constant(random.normal(size=[4]), tf.float32),
            )
            for _ in range(5)
        ]
        results = []
        for fused in (False, True):
            variables: list[tf.Variable] = []
            step = training_step(optimizer, variables)
            spec = [tf.SparseTensorSpec([None, None], tf.int64), tf.TensorSpec([4])]
            function = step.get_concrete_function(*spec)
            if fused:
                function = wb.fuse_function(function)
                ops = [op.type for op in function.graph.get_operations()]
                assert ops.count("WorkbenchResourceGroupedLookUp") == 1
                applied = sum(op.startswith("WorkbenchResourceGroupedApply") for op in ops)
                assert applied == 1
                assert not [op for op in ops if op.startswith(("SparseSegment", "SparseFill"))]
            returned = [
                {
                    name: value.numpy()
                    for name, value in function(
                        *tf.nest.flatten(batch, expand_composites=True)
                    ).items()
                }
                if fused
                else {name: value.numpy() for name, value in step(*batch).items()}
                for batch in batches
            ]
            results.append((returned, [each.numpy() for each in variables]))
        (stock, variables), (ours, fused_variables) = results
        for one, other in zip(ours, stock, strict=True):
            for name in other:
                np.testing.assert_allclose(one[name], other[name], rtol=2e-5)
        for one, other in zip(fused_variables, variables, strict=True):
            np.testing.assert_allclose(one, other, rtol=2e-5, atol=2e-5)

    def test_one_without_stock_lookups_stays(self) -> None:
        function = tf.function(lambda x: x + 1).get_concrete_function(tf.TensorSpec([2]))
        assert wb.fuse_function(function) is function

    def test_one_that_xla_compiles_is_refused(self) -> None:
        table = tf.Variable(tf.ones([ROWS, 4]))

        @tf.function(jit_compile=True)
        def looked_up(ids: tf.SparseTensor) -> tf.Tensor:
            return v1.nn.safe_embedding_lookup_sparse(table, ids)

        function = looked_up.get_concrete_function(tf.SparseTensorSpec([None, None], tf.int64))
        with pytest.raises(UnsupportedError, match="XLA compiles .* has no fused lookups"):
            wb.fuse_function(function)


def test_a_gradient_belongs_to_one_of_two_lookups_of_the_same_ids() -> None:
    table = tf.Variable(tf.ones([2, 2]))

    @tf.function(autograph=False)
    def step(ids: tf.Tensor) -> tf.Tensor:
        with tf.GradientTape() as tape:
            first, second = (tf.nn.embedding_lookup(table, ids) for _ in range(2))
            loss = tf.reduce_sum(first)
        gradient = tape.gradient(loss, table)
        table.scatter_sub(tf.IndexedSlices(gradient.values * 0.25, gradient.indices))
        return tf.reduce_sum(second)

    made = step.get_concrete_function(tf.TensorSpec([None, 1], tf.int64))
    fused = wb.fuse_function(made)
    assert fused is not made
    fused(tf.constant([[0], [1]], tf.int64))
    np.testing.assert_array_equal(table.numpy(), np.full((2, 2), 0.75))


class TestGradientsThroughIt:
    @staticmethod
    def both() -> tuple[Any, Any, list[tf.Variable]]:
        variables = [tf.Variable(tf.ones([50, 16])), tf.Variable(tf.ones([16, 64]))]

        @tf.function(autograph=False)
        def rows(ids: tf.Tensor) -> tf.Tensor:
            return tf.nn.relu(tf.matmul(tf.gather(variables[0], ids), variables[1]))

        made = rows.get_concrete_function(tf.TensorSpec([None], tf.int64))
        return made, wb.fuse_function(made), variables

    def test_are_those_of_the_function(self) -> None:
        made, fused, variables = self.both()
        assert fused is not made
        assert len(fused.trainable_variables) == len(made.trainable_variables) == 2
        found = []
        for function in (made, fused):
            with tf.GradientTape() as tape:
                loss = tf.reduce_sum(function(tf.constant([1, 2, 3], tf.int64)))
            found.append([tf.convert_to_tensor(g) for g in tape.gradient(loss, variables)])
        for ours, stock in zip(*found, strict=True):
            np.testing.assert_array_equal(ours, stock)

    def test_are_not_asked_for_without_a_tape(self) -> None:
        made, fused, _ = self.both()
        ids = tf.constant([1, 2, 3], tf.int64)
        np.testing.assert_allclose(fused(ids), made(ids), rtol=1e-6)
        ops = {node.op for node in fused.graph.as_graph_def().node}
        assert any(op.startswith("Workbench") for op in ops)


def test_a_pack_of_one_lookup_twice_has_its_rows_and_no_others() -> None:
    # Of equal inputs TensorFlow's optimizer takes the op, whichever of its outputs they are.
    tables = [tf.Variable(np.full((9, 4), each, np.float32)) for each in (1.0, 2.0)]

    @tf.function
    def look_up(ids: tf.Tensor) -> list[tf.Tensor]:
        at = tf.where(ids >= 0)
        given = tf.SparseTensor(at, tf.gather_nd(ids, at), tf.shape(ids, tf.int64))
        found = [v1.nn.safe_embedding_lookup_sparse(table, given) for table in tables]
        return [tf.stack([x, x], 1) for x in found]

    fused = wb.fuse_function(look_up.get_concrete_function(tf.TensorSpec([8, 2], tf.int64)))
    for rows, each in zip(fused(tf.ones([8, 2], tf.int64)), (1.0, 2.0), strict=True):
        np.testing.assert_array_equal(rows, np.full((8, 2, 4), each))


@pytest.mark.parametrize("dense", [False, True])
def test_a_captured_table_without_rows_stays(dense: bool) -> None:
    """Its ids are rows of none; only the captured handle says so."""
    table = tf.Variable(tf.zeros([0, 4]))

    def look_up(ids: tf.SparseTensor) -> tf.Tensor:
        if dense:
            return tf.nn.embedding_lookup(table, ids.values)
        return tf.nn.safe_embedding_lookup_sparse(table, ids)

    spec = tf.SparseTensorSpec([None, None], tf.int64)
    plan = wb.plan_fusion(tf.function(look_up).get_concrete_function(spec))
    assert not plan.of("lookup")
    assert [each.reason for each in plan.refusals] == ["its table has no rows"]
