"""Fused lookups against stock tf.nn.safe_embedding_lookup_sparse: values, gradients, shapes."""

from __future__ import annotations

import dataclasses
import itertools
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given
from hypothesis import strategies as st

from tests.builders.examples import few
from tests.builders.sparse_ids import GOLDEN_TABLE, VERSIONS, golden, run, sparse
from workbench.ops.lookup.fused import (
    fused_safe_embedding_lookup_sparse,
)

v1 = tf.compat.v1
ROWS, DIM = 12, 5


@dataclasses.dataclass(frozen=True)
class Case:
    """One lookup, drawn."""

    shape: tuple[int, ...]
    at: tuple[tuple[int, ...], ...]
    ids: tuple[int, ...]
    weights: tuple[float, ...] | None
    combiner: str
    max_norm: float | None
    default_id: int | None
    cuts: tuple[int, ...]
    strategy: str
    dtype: tf.DType
    id_dtype: tf.DType

    def sparse_ids(self) -> tf.SparseTensor:
        return sparse(self.at, self.ids, self.shape, self.id_dtype.as_numpy_dtype)

    def sparse_weights(self) -> tf.SparseTensor | None:
        if self.weights is None:
            return None
        return sparse(self.at, self.weights, self.shape, np.float32)

    def shards(self, table: tf.Tensor) -> list[tf.Tensor]:
        if self.strategy == "mod":
            count = len(self.cuts) + 1
            return [table[part::count] for part in range(count)]
        edges = [0, *sorted(self.cuts), ROWS]
        return [table[begin:end] for begin, end in itertools.pairwise(edges)]


@st.composite
def cases(draw: Any) -> Case:
    rank = draw(st.sampled_from((2, 2, 3)))
    shape = tuple(draw(st.integers(1, 4)) for _ in range(rank))
    every = [tuple(int(i) for i in at) for at in np.ndindex(shape)]
    at = [each for each in every if draw(st.integers(0, 2))]
    invalid = draw(st.sampled_from((False, False, True)))
    ids = [-1 if invalid else draw(st.integers(-1, ROWS - 1)) for _ in at]
    # In quarters, so that what stock multiplies and we divide rounds alike.
    weight = st.integers(-4, 12).map(lambda quarters: quarters / 4)
    strategy = draw(st.sampled_from(("div", "mod")))
    return Case(
        shape=shape,
        at=tuple(at),
        ids=tuple(ids),
        weights=tuple(draw(weight) for _ in at) if draw(st.booleans()) else None,
        combiner=draw(st.sampled_from(("sum", "mean", "sqrtn"))),
        max_norm=draw(st.sampled_from((None, None, 0.3, 1.2, 100.0))),
        default_id=draw(st.sampled_from((None, 0, 7))),
        cuts=tuple(draw(st.lists(st.integers(0, ROWS), max_size=2))),
        strategy=strategy,
        dtype=draw(st.sampled_from((tf.float32, tf.float32, tf.float16, tf.bfloat16))),
        id_dtype=draw(st.sampled_from((tf.int64, tf.int32))),
    )


class TestEqualsStock:
    @few(8)
    @given(case=cases(), version=st.sampled_from(VERSIONS), seed=st.integers(0, 99))
    def test_in_values_and_gradients(self, case: Case, version: str, seed: int) -> None:
        random = np.random.default_rng(seed)
        numbers = random.normal(size=(ROWS, DIM))
        upstream = random.normal(size=(*case.shape[:-1], DIM))
        # A distance from max_norm: at it the derivative jumps.
        lengths = np.linalg.norm(numbers, axis=1, keepdims=True)
        near = np.abs(lengths - (case.max_norm or 0)) < 0.05
        numbers = np.where(near, numbers * 1.2, numbers)
        with tf.Graph().as_default():
            table = tf.constant(numbers, case.dtype)
            weights = case.sparse_weights()
            ours = fused_safe_embedding_lookup_sparse(
                case.shards(table),
                case.sparse_ids(),
                weights,
                case.combiner,
                case.default_id,
                partition_strategy=case.strategy,
                max_norm=case.max_norm,
                fusion_version=version,
            )
            wide = tf.cast(table, tf.float32)
            # In float32 whatever the table is: stock sums 16-bit floats in 16 bits.
            stock = v1.nn.safe_embedding_lookup_sparse(
                wide,
                case.sparse_ids(),
                weights,
                case.combiner,
                case.default_id,
                max_norm=case.max_norm,
            )
            given = [table] + ([weights.values] if weights is not None else [])
            made = [
                tf.gradients(each, given, tf.constant(upstream, each.dtype))
                for each in (ours, stock)
            ]
            dense = [
                [tf.cast(tf.convert_to_tensor(g), tf.float32) for g in grads if g is not None]
                for grads in made
            ]
            found, expected, grads, stock_grads = run([ours, stock, *dense])
        assert found.shape == expected.shape
        rough = {tf.float32: 3e-5, tf.float16: 4e-3, tf.bfloat16: 3e-2}[case.dtype]
        np.testing.assert_allclose(found.astype(np.float32), expected, rtol=rough, atol=rough * 3)
        for mine, theirs in zip(grads, stock_grads, strict=True):
            np.testing.assert_allclose(mine, theirs, rtol=3 * rough, atol=rough * 20)

    @pytest.mark.parametrize("version", VERSIONS)
    @pytest.mark.parametrize("combiner", ["sum", "mean", "sqrtn"])
    def test_bit_for_bit_with_one_id_a_row(self, version: str, combiner: str) -> None:
        random = np.random.default_rng(0)
        table = tf.constant(random.normal(size=(50, 16)).astype(np.float32))
        at = [[row, 0] for row in range(40)]
        ids = sparse(at, random.integers(0, 50, 40), [40, 1])
        ours = fused_safe_embedding_lookup_sparse(
            table, ids, combiner=combiner, fusion_version=version
        )
        stock = v1.nn.safe_embedding_lookup_sparse(table, ids, combiner=combiner)
        found, expected = run([ours, stock])
        np.testing.assert_array_equal(found, expected)

    @pytest.mark.parametrize("version", VERSIONS)
    @pytest.mark.parametrize("kind", ["ref", "resource", "partitioned", "partitioned resource"])
    def test_training_variables(self, version: str, kind: str) -> None:
        def build(name: str) -> tuple[tf.Tensor, tf.Operation, Any]:
            with v1.variable_scope(name):
                table = v1.get_variable(
                    "table",
                    [11, 3],
                    initializer=v1.random_normal_initializer(seed=3),
                    use_resource="resource" in kind,
                    partitioner=v1.fixed_size_partitioner(3) if "part" in kind else None,
                )
            ids = sparse([[0, 0], [0, 1], [1, 0], [3, 0]], [5, 5, -1, 10], [5, 2])
            if name == "stock":
                out = v1.nn.safe_embedding_lookup_sparse(table, ids, default_id=2)
            else:
                out = fused_safe_embedding_lookup_sparse(
                    table, ids, default_id=2, fusion_version=version
                )
            loss = tf.reduce_sum(out * out)
            train = v1.train.AdagradOptimizer(0.3).minimize(
                loss, var_list=v1.trainable_variables(name)
            )
            return loss, train, tf.convert_to_tensor(table)

        built = [build("stock"), build("fused")]
        with v1.Session() as session:
            session.run(v1.global_variables_initializer())
            for _ in range(4):
                stock, fused = session.run([built[0][0], built[1][0]])
                assert fused == pytest.approx(stock, rel=1e-6)
                session.run([built[0][1], built[1][1]])
            tables = session.run([built[0][2], built[1][2]])
        np.testing.assert_allclose(*tables, rtol=1e-6)

    @pytest.mark.parametrize("version", VERSIONS)
    def test_the_references_golden_values(self, version: str) -> None:
        table = tf.constant(GOLDEN_TABLE)

        def found(weighted: bool, combiner: str, default_id: int | None = None) -> Any:
            ids, weights = golden(weighted)
            return fused_safe_embedding_lookup_sparse(
                table, ids, weights, combiner, default_id, fusion_version=version
            )

        plain, weighted, mean, sqrtn, filled = run(
            [
                found(False, "sum"),
                found(True, "sum"),
                found(True, "mean"),
                found(True, "sqrtn"),
                found(False, "sum", 2),
            ]
        )
        np.testing.assert_allclose(plain, [[6, 8], [0, 0], [7, 8], [9, 10], [0, 0]])
        np.testing.assert_allclose(weighted[[0, 2]], [[12, 16], [-14, -16]])
        np.testing.assert_allclose(mean[[0, 2]], [[3, 4], [0, 0]])
        np.testing.assert_allclose(sqrtn[0], [3.7947, 5.0596], rtol=1e-4)
        np.testing.assert_allclose(filled[[1, 4]], [[5, 6], [5, 6]])


class TestShapes:
    @pytest.mark.parametrize("version", VERSIONS)
    def test_known_where_the_inputs_are(self, version: str) -> None:
        table = tf.zeros([4, 3])
        ids = sparse([[0, 0, 0]], [1], [2, 5, 2])
        found = fused_safe_embedding_lookup_sparse(table, ids, fusion_version=version)
        assert found.shape.as_list() == [2, 5, 3]

    @pytest.mark.parametrize("version", VERSIONS)
    def test_of_a_table_whose_rows_are_not_known(self, version: str) -> None:
        table = v1.placeholder(tf.float32, [None, 2])
        ids = sparse([[0, 0], [1, 0]], [0, 3], [2, 1])
        found = fused_safe_embedding_lookup_sparse(
            [table, table], ids, combiner="sum", fusion_version=version
        )
        rows = run(found, {table: [[1, 1], [2, 2]]})
        np.testing.assert_array_equal(rows, [[1, 1], [2, 2]])

    @pytest.mark.parametrize("version", VERSIONS)
    @pytest.mark.parametrize("shape", [[0, 3], [3, 0], [0, 2, 2]])
    def test_of_empty_batches(self, version: str, shape: list[int]) -> None:
        table = tf.ones([4, 3])
        found = fused_safe_embedding_lookup_sparse(
            table, sparse([], [], shape), default_id=1, fusion_version=version
        )
        (of_table,) = tf.gradients(found, table)
        value, gradient = run([found, tf.convert_to_tensor(of_table)])
        assert value.shape == (*shape[:-1], 3)
        assert gradient.sum() == value.size

    @pytest.mark.parametrize("version", VERSIONS)
    @pytest.mark.parametrize("max_norm", [None, 0.5])
    @pytest.mark.parametrize("partitions", [1, 2])
    def test_of_a_table_without_rows(
        self, version: str, max_norm: float | None, partitions: int
    ) -> None:
        # TensorFlow's own reads row 0 for an empty row, and fails.
        tables = [v1.get_variable(f"table_{part}", [0, 3]) for part in range(partitions)]
        found = fused_safe_embedding_lookup_sparse(
            tables, sparse([[1, 0]], [-1], [2, 1]), max_norm=max_norm, fusion_version=version
        )
        gradients = [tf.convert_to_tensor(each) for each in tf.gradients(found, tables)]
        value, *of_tables = run([found, *gradients])
        np.testing.assert_array_equal(value, np.zeros((2, 3)))
        assert [each.shape for each in of_tables] == [(0, 3)] * partitions

    @pytest.mark.parametrize("version", VERSIONS)
    def test_a_ragged_tensor_is_a_sparse_one(self, version: str) -> None:
        ragged = tf.ragged.constant([[1, 2], [], [3]], dtype=tf.int64)
        found = fused_safe_embedding_lookup_sparse(
            tf.constant(GOLDEN_TABLE), ragged, combiner="sum", fusion_version=version
        )
        np.testing.assert_array_equal(run(found), [[8, 10], [0, 0], [7, 8]])
