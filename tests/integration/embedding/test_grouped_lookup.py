"""Grouped lookups against stock tf.nn.safe_embedding_lookup_sparse, feature by feature."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given
from hypothesis import strategies as st
from tensorflow.python.eager import context

from tests.builders.examples import few
from tests.builders.grids import every_value
from tests.builders.lookup_features import ROWS, Feature, features, made_tables
from tests.builders.sparse_ids import GOLDEN_TABLE, golden, run, sparse
from workbench import ops
from workbench.errors import OptionError
from workbench.ops.lookup.grouped import grouped_embedding_lookup

v1 = tf.compat.v1


class TestEqualsStock:
    @few(8)
    @given(
        drawn=st.lists(features(), min_size=1, max_size=5),
        kind=st.sampled_from(("tensor", "ref", "resource")),
        dims=st.tuples(*[st.sampled_from((1, 5, 16, 40, 64, 131))] * 3),
        dtype=st.sampled_from((tf.float32, tf.float32, tf.float16, tf.bfloat16)),
        seed=st.integers(0, 99),
    )
    def test_in_values_and_gradients(
        self, drawn: list[Feature], kind: str, dims: Any, dtype: tf.DType, seed: int
    ) -> None:
        random = np.random.default_rng(seed)
        with tf.Graph().as_default():
            tables = made_tables(kind, dims, dtype, seed)
            wide = [tf.cast(table, tf.float32) for table in tables]
            weights = [each.weights() for each in drawn]
            ours = grouped_embedding_lookup(
                [tables[each.table] for each in drawn],
                [each.sparse_ids() for each in drawn],
                weights,
                [each.combiner for each in drawn],
                [each.max_norm for each in drawn],
                [each.default_id for each in drawn],
            )
            stock = [
                v1.nn.safe_embedding_lookup_sparse(
                    wide[each.table],
                    each.sparse_ids(),
                    own,
                    each.combiner,
                    each.default_id,
                    max_norm=each.max_norm,
                )
                for each, own in zip(drawn, weights, strict=True)
            ]
            upstream = [random.normal(size=(*f.shape[:-1], dims[f.table])) for f in drawn]
            values = [each.values for each in weights if each is not None]
            grads = tf.gradients(
                ours,
                [*tables, *values],
                [tf.constant(g, dtype) for g in upstream],
                unconnected_gradients="zero",
            )
            stock_grads = tf.gradients(
                stock,
                [*(tables if kind == "tensor" else wide), *values],
                [tf.constant(g, tf.float32) for g in upstream],
                unconnected_gradients="zero",
            )
            dense = [tf.cast(tf.convert_to_tensor(g), tf.float32) for g in grads]
            expected_dense = [tf.cast(tf.convert_to_tensor(g), tf.float32) for g in stock_grads]
            found, expected, mine, theirs = run([ours, stock, dense, expected_dense])
        rough = {tf.float32: 3e-5, tf.float16: 4e-3, tf.bfloat16: 3e-2}[dtype]
        for one, other in zip(found, expected, strict=True):
            assert one.shape == other.shape
            np.testing.assert_allclose(one.astype(np.float32), other, rtol=rough, atol=rough * 9)
        for one, other in zip(mine, theirs, strict=True):
            np.testing.assert_allclose(one, other, rtol=3 * rough, atol=rough * 40)

    def test_with_weights_of_no_ids(self) -> None:
        ids = sparse((), (), (3, 4))
        weights = sparse((), (), (3, 4), np.float32)
        table = tf.constant(GOLDEN_TABLE)
        (ours,) = grouped_embedding_lookup(table, [ids], [weights], default_id=2)
        found, of_table, of_weights = run(
            [ours, *map(tf.convert_to_tensor, tf.gradients(ours, [table, weights.values]))]
        )
        np.testing.assert_array_equal(found, [GOLDEN_TABLE[2]] * 3)
        np.testing.assert_array_equal(of_table[2], [3, 3])
        assert of_weights.shape == (0,)

    @pytest.mark.parametrize("combiner", ["sum", "mean", "sqrtn"])
    def test_with_weights_in_many_blocks(self, combiner: str) -> None:
        random = np.random.default_rng(4)
        lengths = random.integers(0, 9, 2000)
        rows = np.repeat(np.arange(2000), lengths)
        at = np.stack([rows, np.arange(len(rows))], 1)
        shape = [2000, len(rows)]
        shuffled = random.permutation(len(rows))
        weights = tf.constant(random.normal(size=len(rows)) + 1, tf.float32)
        ids = [
            sparse(order, random.integers(-1, ROWS, len(rows)), shape)
            for order in (at, at[shuffled])
        ]
        tables = made_tables("resource", (16, 33), tf.float32, 3)
        given = [tf.SparseTensor(each.indices, weights, each.dense_shape) for each in ids]
        ours = grouped_embedding_lookup(tables, ids, given, combiner, default_id=[3, None])
        stock = [
            v1.nn.safe_embedding_lookup_sparse(table, each, own, combiner, default)
            for table, each, own, default in zip(tables, ids, given, (3, None), strict=True)
        ]
        upstream = [tf.random.stateless_normal(each.shape, (1, 2)) for each in ours]
        mine, theirs = (
            [tf.convert_to_tensor(g) for g in tf.gradients(each, [*tables, weights], upstream)]
            for each in (ours, stock)
        )
        found, expected = run([[*ours, *mine], [*stock, *theirs]])
        for one, other in zip(found, expected, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-3)

    @every_value(kind=["ref", "resource"], combiner=["sum", "mean", "sqrtn"])
    def test_with_many_blocks_on_all_threads_and_every_time_to_the_bit(
        self, kind: str, combiner: str
    ) -> None:
        random = np.random.default_rng(3)
        ids = []
        for longest in (1, 9, 60):
            lengths = random.integers(0, longest + 1, 3000)
            rows = np.repeat(np.arange(3000), lengths)
            at = np.stack([rows, np.arange(len(rows))], 1)
            ids.append(sparse(at, random.integers(-1, ROWS, len(rows)), [3000, len(rows)]))
        tables = made_tables(kind, (8, 64, 33), tf.float32, 3)
        ours = grouped_embedding_lookup(tables, ids, combiners=combiner)
        stock = [
            v1.nn.safe_embedding_lookup_sparse(table, each, combiner=combiner)
            for table, each in zip(tables, ids, strict=True)
        ]
        upstream = [tf.random.stateless_normal(each.shape, (1, 2)) for each in ours]
        mine, theirs = (
            [tf.convert_to_tensor(g) for g in tf.gradients(each, tables, upstream)]
            for each in (ours, stock)
        )
        with v1.Session() as session:
            session.run(v1.global_variables_initializer())
            found, expected, gradients, stock_gradients = session.run([ours, stock, mine, theirs])
            for _ in range(5):
                again, gradients_again = session.run([ours, mine])
                for one, other in zip(found + gradients, again + gradients_again, strict=True):
                    np.testing.assert_array_equal(one, other)
        for one, other in zip(found, expected, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-5)
        for one, other in zip(gradients, stock_gradients, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-3)

    def test_of_ragged_ids(self) -> None:
        ids = tf.RaggedTensor.from_row_splits(
            tf.constant([1, 1, -1, 3, 4], tf.int64), tf.constant([0, 2, 3, 4, 5, 5])
        )
        table = tf.constant(GOLDEN_TABLE)
        ours = grouped_embedding_lookup([table, table], [ids, golden()[0]], default_id=2)
        found = run(ours)
        np.testing.assert_array_equal(found[0], found[1])
        np.testing.assert_array_equal(found[0][[0, 1, 4]], [[3, 4], [5, 6], [5, 6]])

    def test_as_one_tensor(self) -> None:
        tables = made_tables("resource", (3, 16, 3), tf.float32, 1)
        ids = [golden()[0]] * 3
        apart = grouped_embedding_lookup(tables, ids)
        together = grouped_embedding_lookup(tables, ids, concatenate=True)
        assert together.shape[1] == 22
        factors = tf.constant(np.arange(22.0), tf.float32)
        gradients = [
            tf.gradients(each * factors, tables) for each in (tf.concat(apart, 1), together)
        ]
        found, expected, (mine, theirs) = run([together, tf.concat(apart, 1), gradients])
        np.testing.assert_array_equal(found, expected)
        for one, other in zip(mine, theirs, strict=True):
            np.testing.assert_array_equal(one.values, other.values)
            np.testing.assert_array_equal(one.indices, other.indices)

    @pytest.mark.parametrize("compiled", [False, True])
    def test_eagerly_and_in_functions(self, compiled: bool) -> None:
        with context.eager_mode():
            table = tf.Variable(GOLDEN_TABLE)

            def step() -> tuple[tf.Tensor, tf.IndexedSlices]:
                with tf.GradientTape() as tape:
                    (found,) = grouped_embedding_lookup([table], [golden()[0]])
                return found, tape.gradient(found, table)

            found, slices = (tf.function(step) if compiled else step)()
            np.testing.assert_array_equal(found, [[3, 4], [0, 0], [7, 8], [9, 10], [0, 0]])
            np.testing.assert_array_equal(slices.indices, [1, 3, 4])
            np.testing.assert_array_equal(slices.values, np.ones([3, 2]))


class TestTraining:
    @every_value(
        kind=["ref", "resource"], optimizer=["GradientDescentOptimizer", "AdagradOptimizer"]
    )
    def test_equals_stock_after_100_steps_of_ids_that_repeat(
        self, kind: str, optimizer: str
    ) -> None:
        random = np.random.default_rng(5)
        drawn = random.zipf(1.5, size=(100, 3, 64)) % ROWS
        step = v1.placeholder(tf.int32, [])
        at = np.stack([np.arange(64) // 4, np.arange(64) % 4], 1)
        ids = [
            tf.SparseTensor(at, tf.gather(tf.constant(drawn[:, f], tf.int64), step), [16, 4])
            for f in range(3)
        ]
        trained = []
        for name, home in (("ours", ops), ("stock", v1.train)):
            with v1.variable_scope(name):
                tables = made_tables(kind, (16, 40), tf.float32, 5)
            read = [tables[0], tables[1], tables[0]]
            if name == "ours":
                found = grouped_embedding_lookup(read, ids)
            else:
                found = [
                    v1.nn.safe_embedding_lookup_sparse(table, each, combiner="mean")
                    for table, each in zip(read, ids, strict=True)
                ]
            loss = tf.add_n([tf.reduce_sum(tf.square(each - 1.0)) for each in found])
            trained.append((getattr(home, optimizer)(0.02).minimize(loss), tables))
        with v1.Session() as session:
            session.run(v1.global_variables_initializer())
            for number in range(100):
                session.run([train_op for train_op, _ in trained], {step: number})
            (ours, stock) = session.run([tables for _, tables in trained])
        for one, other in zip(ours, stock, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-5, atol=2e-6)


class TestOneOp:
    def test_reads_all_features_and_makes_all_gradients(self) -> None:
        with tf.Graph().as_default() as graph:
            tables = made_tables("ref", (4, 4, 8), tf.float32, 0)
            found = grouped_embedding_lookup([*tables, tables[0]], [golden()[0]] * 4)
            tf.gradients(found, tables)
            kinds = [op.type for op in graph.get_operations()]
        assert kinds.count("WorkbenchGroupedLookUp") == 1
        assert kinds.count("WorkbenchGroupedLookUpGrad") == 1
        assert "WorkbenchGroupedLookUpWeightGrad" not in kinds
        assert not {"Unique", "GatherV2", "SparseSegmentMean"} & set(kinds)

    def test_takes_weights_and_max_norm(self) -> None:
        with tf.Graph().as_default() as graph:
            (table,) = made_tables("resource", (4,), tf.float32, 0)
            ids, weights = golden(weighted=True)
            grouped_embedding_lookup(
                table, [ids] * 3, [weights, None, None], max_norm=[None, None, 1.0]
            )
            ops = graph.get_operations()
        (op,) = (op for op in ops if "GroupedLookUp" in op.type)
        assert op.get_attr("weights_of") == [0]
        # What is shortened has gradients of its own.
        assert op.get_attr("table_of") == [0, 0, 1]

    def test_sends_each_id_once_to_a_table_on_another_task(self) -> None:
        with tf.Graph().as_default() as graph:
            with tf.device("/job:ps/task:0"):
                (table,) = made_tables("resource", (4,), tf.float32, 0)
            with tf.device("/job:worker/task:0"):
                grouped_embedding_lookup([table], [golden()[0]])
            kinds = [op.type for op in graph.get_operations()]
        assert "WorkbenchUniqueWithCounts" in kinds
        assert "WorkbenchResourceGroupedLookUp" not in kinds

    @pytest.mark.parametrize("kind", ["tensor", "ref", "resource"])
    def test_features_that_share_a_table_on_another_device_send_their_ids_together(
        self, kind: str
    ) -> None:
        with tf.device("/device:CPU:0"):
            sparse, weights = golden(weighted=True)
            ragged = tf.RaggedTensor.from_row_splits(tf.constant([4, 4, 3], tf.int64), [0, 1, 1, 3])
            ids = [sparse, tf.cast(sparse, tf.int32), tf.constant([1, 0]), ragged]
        given = {"weights": [None, weights, None, None], "combiners": ["sum", "mean", "sum", None]}
        given["max_norm"] = [None, None, 0.5, None]
        with v1.Session(config=v1.ConfigProto(device_count={"CPU": 2})) as session:
            found = []
            for place in ("/device:CPU:0", "/device:CPU:1"):
                with tf.device(place), v1.variable_scope(f"at_{place[-1]}"):
                    (table,) = made_tables(kind, (4,), tf.float32, 0)
                with tf.device("/device:CPU:0"):
                    vectors = grouped_embedding_lookup([table] * 4, ids, **given)
                    (slope,) = tf.gradients([tf.square(each) for each in vectors], [table])
                found.append([*vectors, tf.convert_to_tensor(slope)])
            session.run(v1.global_variables_initializer())
            here, there = session.run(found)
        for one, other in zip(here, there, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6)
        kinds = [op.type for op in v1.get_default_graph().get_operations()]
        assert kinds.count("WorkbenchUniqueWithCounts") == 1
        assert kinds.count("WorkbenchPostLookUpV2") == 4


class TestErrors:
    def test_weights_that_are_not_as_many(self) -> None:
        ids, _ = golden()
        table, weights = tf.constant(GOLDEN_TABLE), tf.constant([1.0, 2.0])
        said = r"feature 'clicks': 2 weights for \d+ ids; expected one each"
        with pytest.raises(OptionError, match=said):
            grouped_embedding_lookup([table], [ids], [weights], names=["clicks"])
        # How many there are may be known only when the graph runs.
        later = v1.placeholder_with_default(weights, [None])
        (found,) = grouped_embedding_lookup([table], [ids], [later], names=["clicks"])
        with pytest.raises(tf.errors.InvalidArgumentError, match=said):
            run(found)

    @pytest.mark.parametrize("kind", ["ref", "resource", "tensor"])
    def test_name_feature_row_id_and_size(self, kind: str) -> None:
        tables = made_tables(kind, (4, 4), tf.float32, 0)
        right, wrong = sparse([[0, 0]], [0], [3, 2]), sparse([[0, 0], [2, 1]], [0, ROWS], [3, 2])
        (_, found) = grouped_embedding_lookup(
            tables, [right, wrong], combiners="sum", names=["clicks", "orders"]
        )
        said = f"feature 'orders': row 2: id {ROWS} is not in \\[0, {ROWS}\\)"
        with pytest.raises(tf.errors.InvalidArgumentError, match=said):
            run(found)

    def test_an_id_below_0_without_pruning(self) -> None:
        (found,) = grouped_embedding_lookup([tf.constant(GOLDEN_TABLE)], [golden()[0]], prune=False)
        with pytest.raises(tf.errors.InvalidArgumentError, match="row 1: id -1"):
            run(found)

    def test_an_index_outside_the_shape(self) -> None:
        ids = sparse([[0, 0], [7, 0]], [1, 2], [3, 2])
        (found,) = grouped_embedding_lookup([tf.constant(GOLDEN_TABLE)], [ids], names=["clicks"])
        with pytest.raises(tf.errors.InvalidArgumentError, match="'clicks'.*outside dense_shape"):
            run(found)

    def test_a_table_without_values(self) -> None:
        table = v1.get_variable("table", [4, 4], use_resource=True)
        (found,) = grouped_embedding_lookup([table], [golden()[0]])
        with (
            v1.Session() as session,
            pytest.raises(tf.errors.FailedPreconditionError, match="initializer"),
        ):
            session.run(found)

    def test_rows_that_are_not_as_many(self) -> None:
        table = tf.constant(GOLDEN_TABLE)
        shape = v1.placeholder(tf.int64, [2])
        other = tf.SparseTensor([[0, 0]], tf.constant([1], tf.int64), shape)
        found = grouped_embedding_lookup([table, table], [golden()[0], other], concatenate=True)
        with pytest.raises(tf.errors.InvalidArgumentError, match="4 rows.*has 5; expected as many"):
            run(found, {shape: [4, 1]})

    @pytest.mark.parametrize(
        ("arguments", "said"),
        [
            ({"combiners": ["sum"]}, "combiners has 1 values for 2 features"),
            ({"combiners": "max"}, "combiner is 'max'"),
            ({"default_id": "0"}, "default_id is '0'"),
            ({"weights": [None]}, "weights has 1 values"),
        ],
    )
    def test_wrong_arguments(self, arguments: dict[str, Any], said: str) -> None:
        with pytest.raises(OptionError, match=said):
            grouped_embedding_lookup(tf.constant(GOLDEN_TABLE), [golden()[0]] * 2, **arguments)

    def test_no_feature(self) -> None:
        with pytest.raises(OptionError, match="ids is empty"):
            grouped_embedding_lookup(tf.constant(GOLDEN_TABLE), [])


def one_a_row(ids: np.ndarray) -> tf.SparseTensor:
    """The same ids, sparse."""
    wide = ids[..., np.newaxis]
    return sparse(list(np.ndindex(wide.shape)), wide.ravel(), wide.shape, ids.dtype.type)


def dense_ids() -> Iterator[Any]:
    """Tables, ids and shapes; slow but for each shape once, and each kind of table and of ids."""
    for kind, dtype in itertools.product(("tensor", "ref", "resource"), (np.int32, np.int64)):
        for shape in ((7,), (2, 3), (0,), (2, 1, 2)):
            usual = (kind, dtype) == ("resource", np.int64)
            quick = usual or (shape == (2, 3) and dtype == np.int32)
            yield pytest.param(kind, shape, dtype, marks=() if quick else pytest.mark.slow)


class TestDenseIds:
    @pytest.mark.parametrize(("kind", "shape", "dtype"), dense_ids())
    def test_are_each_a_row(self, kind: str, shape: tuple[int, ...], dtype: Any) -> None:
        ids = np.random.default_rng(3).integers(-1, ROWS, shape).astype(dtype)
        with tf.Graph().as_default():
            tables = made_tables(kind, (4, 16), tf.float32, 1)
            given = [*tables, *tables]
            options: Any = {"default_id": [None, 3, None, None], "max_norm": [None] * 3 + [0.5]}
            ours = grouped_embedding_lookup(given, [ids] * 4, **options)
            stock = grouped_embedding_lookup(given, [one_a_row(ids)] * 4, **options)
            assert [each.shape.as_list() for each in ours] == [
                [*shape, table.shape[1]] for table in given
            ]
            gradients = [
                tf.gradients([tf.sin(each) for each in found], tables) for found in (ours, stock)
            ]
            dense = [[tf.convert_to_tensor(each) for each in every] for every in gradients]
            found = run([ours, dense[0]])
            expected = run([stock, dense[1]])
        for one, other in zip(tf.nest.flatten(found), tf.nest.flatten(expected), strict=True):
            np.testing.assert_array_equal(one, other)

    def test_take_no_op_beside_the_lookup(self) -> None:
        with tf.Graph().as_default() as graph:
            tables = made_tables("resource", (4, 16), tf.float32, 1)
            ids = v1.placeholder(tf.int64, [None])
            before = len(graph.get_operations())
            grouped_embedding_lookup(tables, [ids, ids], concatenate=True)
            added = {op.type for op in graph.get_operations()[before:]}
        assert added == {"Const", "WorkbenchResourceGroupedLookUp"}

    def test_need_a_dimension_and_integers(self) -> None:
        table = tf.constant(GOLDEN_TABLE)
        with pytest.raises(OptionError, match=r"dense ids have shape \(\); expected at least one"):
            grouped_embedding_lookup(table, [tf.constant(3)])
        with pytest.raises(OptionError, match="ids have dtype float32; expected int32 or int64"):
            grouped_embedding_lookup(table, [tf.constant([3.0])])
