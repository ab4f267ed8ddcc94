"""Stock lookups of ids that have weights, fused in a finished graph: it trains as it did."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given
from hypothesis import strategies as st

import workbench as wb
from tests.builders.fused_graphs import EXAMPLES, OPTIMIZERS, fed, loss_of, ran, trained
from tests.builders.lookup_features import ROWS, made_tables
from tests.builders.sparse_ids import sparse

v1 = tf.compat.v1
# Those of which a lookup whose rows without ids are 0 stays stock's.
MOVED_BY_ZEROS = ("ftrl", "momentum", "shrinking")
STOCK = ("SegmentSum", "DivNoNan", "SparseFillEmptyRows", "Unique", "Where", "ResourceGather")
WEIGHTS = st.sampled_from((-1.0, 0.0, 0.5, 0.5, 1.0, 2.0, float("nan")))


@dataclasses.dataclass(frozen=True)
class Weighted:
    """A lookup of ids with weights.

    Attributes:
      at, ids, weights: where ids are in [5, 3], what they are, and what they weigh.
      combiner: of the ids of a row.
      is_safe: whether ids below 0 and weights that are not above 0 are dropped.
      default_id: the id of rows without ids, of a safe one.
      table: which one it is.
      is_known: whether the number of ids is part of the graph.
    """

    at: tuple[tuple[int, int], ...]
    ids: tuple[int, ...]
    weights: tuple[float, ...]
    combiner: str
    is_safe: bool
    default_id: int | None
    table: int
    is_known: bool

    def placed(self, values: Any, dtype: Any) -> tf.SparseTensor:
        found = sparse(self.at, values, (5, 3), dtype)
        return found if self.is_known else fed(found)


@st.composite
def weighted(draw: Any) -> Weighted:
    is_safe = draw(st.booleans())
    places = [(int(row), int(column)) for row, column in np.ndindex(5, 3)]
    at = [each for each in places if draw(st.integers(0, 2)) == 0]
    weights = [draw(WEIGHTS) for _ in at]
    return Weighted(
        at=tuple(at),
        ids=tuple(draw(st.integers(-1 if is_safe else 0, ROWS - 1)) for _ in at),
        # Stock's own results are no numbers where no safe mean drops them.
        weights=tuple(1.5 if np.isnan(each) and not is_safe else each for each in weights),
        combiner=draw(st.sampled_from(("sum", "mean", "sqrtn"))),
        is_safe=is_safe,
        default_id=draw(st.sampled_from((None, 0, 7))) if is_safe else None,
        table=draw(st.integers(0, 1)),
        is_known=draw(st.booleans()),
    )


def looked_up(drawn: Sequence[Weighted], tables: Sequence[Any], id_dtype: Any) -> list[tf.Tensor]:
    found = []
    for each in drawn:
        ids = each.placed(each.ids, id_dtype)
        # A sum keeps what is no number.
        numbers = [0.0 if np.isnan(w) and each.combiner == "sum" else w for w in each.weights]
        weights = each.placed(numbers, np.float32)
        if each.is_safe:
            found.append(
                v1.nn.safe_embedding_lookup_sparse(
                    tables[each.table], ids, weights, each.combiner, each.default_id
                )
            )
        else:
            found.append(
                v1.nn.embedding_lookup_sparse(
                    tables[each.table], ids, weights, combiner=each.combiner
                )
            )
    return found


def assert_trains_alike(graph: tf.Graph, fetches: Any, train_op: Any, plan: Any) -> None:
    expected = trained(graph, fetches, train_op, None)
    found = trained(graph, fetches, train_op, wb.apply(plan))
    for value, stock in zip(tf.nest.flatten(found), tf.nest.flatten(expected), strict=True):
        np.testing.assert_allclose(value, stock, rtol=3e-5, atol=3e-5)


@EXAMPLES
@given(
    drawn=st.lists(weighted(), min_size=1, max_size=4),
    id_dtype=st.sampled_from((np.int64, np.int32)),
    kind=st.sampled_from(("ref", "resource")),
    dims=st.tuples(*[st.sampled_from((1, 5, 16))] * 2),
    optimizer=st.sampled_from(sorted(OPTIMIZERS)),
    seed=st.integers(0, 99),
)
def test_sessions_train_as_stock_ones_do(
    drawn: list[Weighted], id_dtype: Any, kind: str, dims: Any, optimizer: str, seed: int
) -> None:
    with tf.Graph().as_default() as graph:
        tables = made_tables(kind, dims, tf.float32, seed)
        embeddings = looked_up(drawn, tables, id_dtype)
        loss = loss_of(embeddings)
        train_op = OPTIMIZERS[optimizer]().minimize(loss)
        tf.group(v1.global_variables_initializer(), name="begin")
    plan = wb.plan_fusion(graph)
    stay = [
        each.is_safe and each.default_id is None and optimizer in MOVED_BY_ZEROS for each in drawn
    ]
    assert len(plan.refusals) == sum(stay)
    assert len(plan.lookups) == len(drawn) - sum(stay)
    assert_trains_alike(graph, [loss, *embeddings], train_op, plan)


FULL = Weighted(
    at=((0, 0), (0, 1), (2, 0), (3, 1)),
    ids=(1, 1, 3, 4),
    weights=(0.5, 2.0, -1.0, 0.0),
    combiner="mean",
    is_safe=True,
    default_id=None,
    table=0,
    is_known=False,
)


def lookups(
    kind: str, optimizer: str, *drawn: Weighted
) -> tuple[tf.Graph, tf.Tensor, tf.Operation]:
    with tf.Graph().as_default() as graph:
        loss = loss_of(looked_up(drawn, made_tables(kind, (8, 16), tf.float32, 5), np.int64))
        train_op = OPTIMIZERS[optimizer]().minimize(loss)
        tf.group(v1.global_variables_initializer(), name="begin")
    return graph, loss, train_op


@pytest.mark.parametrize("optimizer", ["adagrad", "descent", "adam"])
@pytest.mark.parametrize("kind", ["ref", "resource"])
def test_one_op_looks_up_and_one_updates(kind: str, optimizer: str) -> None:
    others = {"combiner": "sqrtn", "table": 1}
    graph, loss, train_op = lookups(kind, optimizer, FULL, dataclasses.replace(FULL, **others))
    plan = wb.plan_fusion(graph)
    assert [each.updates for each in plan.lookups] == [True, True]
    ops = ran(graph, [loss, train_op], wb.apply(plan))
    assert sum(op.endswith("GroupedLookUp") for op in ops) == 1
    assert sum("GroupedApply" in op for op in ops) == 1
    # Nor is what stock makes of the weights' gradient, of which nothing is read.
    assert not [op for op in ops if op.startswith((*STOCK, "UnsortedSegmentSum"))]


@pytest.mark.parametrize("combiner", ["sum", "mean", "sqrtn"])
@pytest.mark.parametrize("default_id", [None, 7])
def test_batches_without_ids_and_without_weights_that_count(
    combiner: str, default_id: int | None
) -> None:
    given = {"combiner": combiner, "default_id": default_id}
    empty = dataclasses.replace(FULL, at=(), ids=(), weights=(), **given)
    none_counts = dataclasses.replace(FULL, weights=(0.0, -1.0, -0.5, 0.0), table=1, **given)
    graph, loss, train_op = lookups("resource", "adagrad", empty, none_counts)
    plan = wb.plan_fusion(graph)
    assert len(plan.lookups) == 2
    assert_trains_alike(graph, loss, train_op, plan)


def test_weighted_columns_of_an_input_layer() -> None:
    with tf.Graph().as_default() as graph:
        columns, features = [], {}
        for i, combiner in enumerate(("sum", "mean", "sqrtn")):
            name = f"ids_{i}"
            ids = tf.feature_column.categorical_column_with_identity(name, ROWS)
            column = tf.feature_column.weighted_categorical_column(ids, f"weight_{i}")
            columns.append(tf.feature_column.embedding_column(column, 4, combiner))
            features[name] = FULL.placed(FULL.ids, np.int64)
            features[f"weight_{i}"] = FULL.placed(FULL.weights, np.float32)
        found = v1.feature_column.input_layer(features, columns)
        loss = loss_of([found])
        train_op = OPTIMIZERS["adagrad"]().minimize(loss)
        tf.group(v1.global_variables_initializer(), name="begin")
        v1.set_random_seed(1)
    plan = wb.plan_fusion(graph)
    assert [each.updates for each in plan.lookups] == [True] * 3
    with v1.Session(graph=graph) as session:
        session.run(graph.get_operation_by_name("begin"))
        variables = graph.get_collection(v1.GraphKeys.GLOBAL_VARIABLES)
        values = session.run(variables)
    with graph.as_default():
        begin = [v1.assign(each, value) for each, value in zip(variables, values, strict=True)]
    results = []
    for config in (None, wb.apply(plan)):
        with v1.Session(graph=graph, config=config) as session:
            session.run(begin)
            losses = [session.run([loss, found, train_op])[:2] for _ in range(3)]
            results.append(tf.nest.flatten([losses, session.run(variables)]))
    for one, other in zip(*results, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6)


def refused(build: Callable[[tf.SparseTensor, tf.SparseTensor, Any], Any]) -> str:
    """Why the one lookup of a graph stays."""
    with tf.Graph().as_default() as graph:
        (table,) = made_tables("resource", (4,), tf.float32, 1)
        ids = FULL.placed(FULL.ids, np.int64)
        build(ids, FULL.placed(FULL.weights, np.float32), table)
    plan = wb.plan_fusion(graph)
    assert not plan.lookups
    (refusal,) = plan.refusals
    return refusal.reason


def of_halves(ids: tf.SparseTensor, weights: tf.SparseTensor, table: Any) -> Any:
    half = v1.get_variable("half", [ROWS, 4], tf.float16, use_resource=True)
    return v1.nn.embedding_lookup_sparse(half, ids, weights, combiner="mean")


def sharded(ids: tf.SparseTensor, weights: tf.SparseTensor, table: Any) -> Any:
    return v1.nn.safe_embedding_lookup_sparse([table, table], ids, weights)


def shortened(ids: tf.SparseTensor, weights: tf.SparseTensor, table: Any) -> Any:
    return v1.nn.safe_embedding_lookup_sparse(table, ids, weights, max_norm=1.0)


def filled_with_twos(ids: tf.SparseTensor, weights: tf.SparseTensor, table: Any) -> Any:
    all_ids, _ = tf.sparse.fill_empty_rows(ids, 0)
    all_weights, _ = tf.sparse.fill_empty_rows(weights, 2.0)
    return v1.nn.embedding_lookup_sparse(table, all_ids, all_weights, combiner="sum")


def weights_of_others(ids: tf.SparseTensor, weights: tf.SparseTensor, table: Any) -> Any:
    all_ids, _ = tf.sparse.fill_empty_rows(ids, 0)
    all_weights, _ = tf.sparse.fill_empty_rows(FULL.placed(FULL.weights, np.float32), 1.0)
    return v1.nn.embedding_lookup_sparse(table, all_ids, all_weights, combiner="sum")


def by_a_weight_for_each_column(ids: tf.SparseTensor, weights: tf.SparseTensor, table: Any) -> Any:
    unique, places = tf.unique(ids.values)
    rows = tf.gather(tf.nn.embedding_lookup(table, unique), places)
    each = tf.reshape(tf.tile(weights.values, [4]), [-1, 4])
    return tf.math.segment_sum(rows * each, ids.indices[:, 0])


def moved_by_zeros(ids: tf.SparseTensor, weights: tf.SparseTensor, table: Any) -> Any:
    found = v1.nn.safe_embedding_lookup_sparse(table, ids, weights)
    return OPTIMIZERS["momentum"]().minimize(loss_of([found]))


@pytest.mark.parametrize(
    ("build", "reason"),
    [
        (of_halves, "its table is not float32, and its ids have weights"),
        (sharded, "its table has several shards, or max_norm"),
        (shortened, "its table has several shards, or max_norm"),
        (filled_with_twos, "a row without ids does not get one of weight 1"),
        (weights_of_others, "its weights are dropped in a way that is not TensorFlow's own"),
        (by_a_weight_for_each_column, "its weights are not known to be one for each id"),
        (moved_by_zeros, "its optimizer moves id 0 by the gradients of 0 that weighted rows"),
    ],
)
def test_says_why_a_lookup_stays(build: Any, reason: str) -> None:
    assert reason in refused(build)
