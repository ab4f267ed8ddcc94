"""Fused lookups against stock tf.nn.safe_embedding_lookup_sparse: values, gradients, refusals."""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
import os
import time
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st
from tensorflow.python.eager import context

from workbench.errors import OptionError, UnsupportedError
from workbench.ops.embedding_variable import optimizers
from workbench.ops.lookup.fused import (
    fused_embedding_lookup_sparse,
    fused_embedding_lookup_sparse_v2,
    fused_safe_embedding_lookup_sparse,
)

v1 = tf.compat.v1
ROWS, DIM = 12, 5
VERSIONS = ("v1", "v2")
# More of them under AddressSanitizer: make native-fuzz.
EXAMPLES = 120 if "WORKBENCH_FUZZ_EXAMPLES" in os.environ else 40
# Reference 4.4: W[i] = (2i + 1, 2i + 2), ids {1, 1}, {-1}, {3}, {4}, {}.
GOLDEN_TABLE = [[2.0 * i + 1, 2.0 * i + 2] for i in range(10)]
GOLDEN_AT = [[0, 0], [0, 1], [1, 0], [2, 0], [3, 0]]
GOLDEN_IDS = [1, 1, -1, 3, 4]
GOLDEN_WEIGHTS = [1.0, 3.0, 1.0, -2.0, 0.5]


def run(fetches: Any, feed: Any = None) -> Any:
    with v1.Session() as session:
        session.run([v1.global_variables_initializer(), v1.tables_initializer()])
        return session.run(fetches, feed)


def sparse(at: Any, values: Any, shape: Any, dtype: Any = np.int64) -> tf.SparseTensor:
    at = np.asarray(at, np.int64).reshape(-1, len(shape))
    return tf.SparseTensor(at, tf.constant(np.asarray(values, dtype)), shape)


def golden(weighted: bool = False) -> tuple[tf.SparseTensor, tf.SparseTensor | None]:
    ids = sparse(GOLDEN_AT, GOLDEN_IDS, [5, 2])
    return ids, sparse(GOLDEN_AT, GOLDEN_WEIGHTS, [5, 2], np.float32) if weighted else None


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
    @settings(max_examples=EXAMPLES, deadline=None)
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
    @pytest.mark.parametrize("partitions", [1, 2])
    def test_threads_change_no_bit(self, version: str, partitions: int) -> None:
        random = np.random.default_rng(1)
        rows = np.sort(random.integers(0, 3000, 40_000))
        at = np.stack([rows, np.arange(rows.size)], 1)
        ids = sparse(at, random.integers(0, 500, rows.size), [3000, rows.size])
        table = tf.constant(random.normal(size=(500, 33)).astype(np.float32))
        shards = [table] if partitions == 1 else [table[:100], table[100:]]
        found = fused_safe_embedding_lookup_sparse(shards, ids, fusion_version=version)
        (slices,) = tf.gradients(found * found, [shards[0]])
        got = []
        for threads in (1, 8):
            config = v1.ConfigProto(intra_op_parallelism_threads=threads)
            with v1.Session(config=config) as session:
                got.append(session.run([found, slices.values]))
        for one, many in zip(*got, strict=True):
            np.testing.assert_array_equal(one, many)

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
