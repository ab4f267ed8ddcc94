"""Ids that count from the end of a table, of which one op prepares those of all features."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given
from hypothesis import strategies as st
from tensorflow.python.eager import context

import workbench as wb
from tests.builders.examples import few
from tests.builders.fused_graphs import fetched, ran, require_same, require_trains_alike
from tests.builders.fused_parts import names_of
from tests.builders.id_columns import COLUMNS, drawn, from_end, matrix
from workbench import _native

v1 = tf.compat.v1
OP = "WorkbenchIdColumns"
KIND = "id column"
DTYPES = (tf.int32, tf.int64)
# Of [rows, COLUMNS], what each feature looks up.
SLICES: dict[str, Callable[[tf.Tensor], tf.Tensor]] = {
    "first": lambda ids: ids[:, 0],
    "last": lambda ids: ids[:, -1],
    "one wide": lambda ids: ids[:, 2:3],
    "some": lambda ids: ids[:, 1:-1],
    "from": lambda ids: ids[:, 3:],
    "until": lambda ids: ids[:, :2],
    "beyond": lambda ids: ids[:, 3:99],
    "all": lambda ids: ids,
    "none of the columns": lambda ids: ids[:, 4:2],
    "every second": lambda ids: ids[:, ::2],
    "backwards": lambda ids: ids[:, ::-1],
    "some rows": lambda ids: ids[1:, 1],
    "rows alone": lambda ids: ids[:2],
    "one row": lambda ids: ids[0],
    "an axis more": lambda ids: ids[:, tf.newaxis, 1],
    "the end of the axes": lambda ids: ids[..., 1],
}


@few(15)
@given(
    rows=st.integers(2, 200),
    dtype=st.sampled_from(DTYPES),
    seed=st.integers(0, 2**32 - 1),
    features=st.lists(
        st.tuples(st.sampled_from(sorted(SLICES)), st.sampled_from((0, 1, 7, 2**31 - 1))),
        min_size=1,
        max_size=6,
    ),
)
def test_gives_what_the_stock_graph_does(
    rows: int, dtype: tf.DType, seed: int, features: list[tuple[str, int]]
) -> None:
    with tf.Graph().as_default() as graph:
        batch = matrix(dtype)
        found = []
        for name, table_rows in features:
            ids = SLICES[name](batch)
            found.append(tf.where(ids < 0, ids + table_rows, ids))
    plan = require_same(graph, found, {batch: drawn(dtype, rows, seed)})
    assert len(names_of(plan, KIND)) == len(features)


@pytest.mark.parametrize("rows", [0, 1])
def test_of_few_rows(rows: int) -> None:
    with tf.Graph().as_default() as graph:
        batch = matrix()
        found = [from_end(batch[:, i]) for i in range(COLUMNS)] + [from_end(batch[:, 1:3])]
    require_same(graph, found, {batch: np.full([rows, COLUMNS], -2, np.int32)})


@pytest.mark.parametrize("dtype", DTYPES)
def test_one_op_prepares_all_columns(dtype: tf.DType) -> None:
    with tf.Graph().as_default() as graph:
        batch = matrix(dtype)
        ids = [from_end(batch[:, i], 7 + i) for i in range(COLUMNS)]
        ids += [from_end(batch), from_end(ids[0])]
        total = tf.add_n([tf.reduce_sum(each) for each in ids])
    plan = require_same(graph, total, {batch: drawn(dtype, 9)})
    assert len(names_of(plan, KIND)) == COLUMNS + 2
    # The last ids are those of the first column once more.
    assert len({each.op for each in plan.of(KIND)}) == 2
    assert plan.describe().splitlines()[0] == f"ids of {COLUMNS + 2} features prepared together"


@pytest.mark.parametrize("to", DTYPES)
@pytest.mark.parametrize("dtype", [*DTYPES, tf.float32])
def test_numbers_become_ids_as_a_cast_has_them(dtype: tf.DType, to: tf.DType) -> None:
    with tf.Graph().as_default() as graph:
        batch = matrix(dtype)
        ids = [from_end(tf.cast(batch[:, i], to)) for i in range(COLUMNS)]
        ids.append(from_end(tf.cast(batch, to)))
    numbers = np.random.default_rng(0).normal(0, 5, [200, COLUMNS]).astype(dtype.as_numpy_dtype)
    numbers[:2, 0] = dtype.min, dtype.max
    if dtype.is_floating:
        numbers[2:6, 0] = np.nan, np.inf, -np.inf, -0.5
        numbers[:6, 1] = 2.0**31, -(2.0**31), 2.0**63, -(2.0**63), 2.0**31 - 128, 2.0**62
    plan = require_same(graph, ids, {batch: numbers})
    (node,) = (each for each in v1.GraphDef.FromString(plan.added).node if each.op == OP)
    assert node.attr["T"].type == dtype.as_datatype_enum
    assert sorted(node.attr["columns"].list.i) == [-1, *range(COLUMNS)]


@pytest.mark.parametrize("dtype", [tf.float64, tf.int16])
def test_other_numbers_are_cast_before(dtype: tf.DType) -> None:
    with tf.Graph().as_default() as graph:
        batch = matrix(dtype)
        ids = from_end(tf.cast(batch[:, 1], tf.int32))
    plan = require_same(graph, ids, {batch: drawn(tf.int32, 6).astype(dtype.as_numpy_dtype)})
    (node,) = (each for each in v1.GraphDef.FromString(plan.added).node if each.op == OP)
    assert node.attr["T"].type == tf.int32.as_datatype_enum


def test_a_column_that_two_features_ask_for_is_prepared_once() -> None:
    with tf.Graph().as_default() as graph:
        batch = matrix()
        ids = [from_end(batch[:, 1]), from_end(batch[:, 1]), from_end(batch[:, 1], 9)]
        # What else reads the column still does.
        ids.append(batch[:, 1] + 1)
    plan = require_same(graph, ids, {batch: drawn(tf.int32, 4)})
    assert len(names_of(plan, KIND)) == 3
    (node,) = (each for each in v1.GraphDef.FromString(plan.added).node if each.op == OP)
    assert list(node.attr["table_rows"].list.i) == [7, 9]


def test_columns_that_are_fed_apart_are_prepared_apart() -> None:
    with tf.Graph().as_default() as graph:
        one, other = matrix(), matrix()
        first, second = from_end(one[:, 1]), from_end(other[:, 2])
    plan = wb.plan_fusion(graph)
    assert len(names_of(plan, KIND)) == 2
    # Each run is fed its own ids alone.
    fetched(graph, first, {one: drawn(tf.int32, 4)}, plan)
    fetched(graph, second, {other: drawn(tf.int32, 4)}, plan)


def test_lookups_of_several_types_stay_fused_where_ids_are_fed_apart() -> None:
    """An op for all ids would have the lookups of each type ask for the other ids."""
    with tf.Graph().as_default() as graph:
        found = []
        for dtype in (tf.float32, tf.bfloat16):
            table = v1.get_variable(dtype.name, [7, 4], dtype, use_resource=True)
            vectors = tf.gather(table, from_end(matrix()[:, 1]))
            found.append(tf.cast(tf.reduce_sum(vectors), tf.float32))
        total = tf.add_n(found)
    plan = wb.plan_fusion(graph, fetches=total)
    assert len(plan.of("lookup")) == len(names_of(plan, KIND)) == 2 and not plan.refusals


def test_what_is_fed_within_is_read() -> None:
    with tf.Graph().as_default() as graph:
        batch = matrix()
        column = batch[:, 1]
        ids = [from_end(column), from_end(batch[:, 2])]
    require_same(graph, ids, {batch: drawn(tf.int32, 2), column: [-1, 2]})


def _table(name: str) -> Any:
    return v1.get_variable(name, [7, 4], use_resource=True)


def test_before_lookups_that_train() -> None:
    with tf.Graph().as_default() as graph:
        v1.set_random_seed(1)
        ids = tf.random.uniform([6, COLUMNS], -7, 7, tf.int32, seed=1)
        found = [tf.gather(_table(f"t{i}"), from_end(ids[:, i])) for i in range(COLUMNS)]
        loss = tf.reduce_sum(tf.square(tf.concat(found, 1)))
        train_op = v1.train.GradientDescentOptimizer(0.1).minimize(loss)
        tf.group(v1.global_variables_initializer(), name="begin")
    plan = wb.plan_fusion(graph)
    assert len(names_of(plan, KIND)) == len(plan.of("lookup")) == COLUMNS
    ops = ran(graph, train_op, wb.apply(plan))
    assert ops.count(OP) == ops.count("WorkbenchResourceGroupedLookUp") == 1
    assert "SelectV2" not in ops
    require_trains_alike(graph, plan, found, train_op, rtol=1e-6, atol=1e-6)


def test_ids_that_a_lookup_gives_are_prepared_behind_it() -> None:
    """One op for ids before a lookup and behind it would wait for itself, and so would lookups."""
    with tf.Graph().as_default() as graph:
        v1.set_random_seed(1)
        batch = tf.random.uniform([6, 3], -7, 7, tf.int32, seed=1)
        plain = tf.gather(_table("plain"), tf.abs(batch[:, 0]) % 7)
        first = tf.gather(_table("first"), from_end(batch[:, 1]))
        last = from_end(tf.cast(plain[:, 0] * 5, tf.int32))
        found = [plain, first, tf.gather(_table("last"), last)]
        tf.group(v1.global_variables_initializer(), name="begin")
    plan = wb.plan_fusion(graph)
    assert len(plan.of("lookup")) == 3 and not plan.refusals
    assert len({each.op for each in plan.of("lookup")}) == 2
    assert len({each.op for each in plan.of(KIND)}) == 2
    require_trains_alike(graph, plan, found, found, rtol=0, atol=0)


@pytest.mark.parametrize("shape", [None, [None, None], [None, COLUMNS, 2]])
def test_columns_of_another_shape_are_read_as_they_are(shape: list[int | None] | None) -> None:
    with tf.Graph().as_default() as graph:
        batch = v1.placeholder(tf.int32, shape)
        ids = from_end(batch[:, 1])
    feed = np.arange(-20, 20, dtype=np.int32).reshape([4, COLUMNS, 2])
    feed = feed if shape and len(shape) == 3 else feed[..., 0]
    plan = require_same(graph, ids, {batch: feed})
    (node,) = (each for each in v1.GraphDef.FromString(plan.added).node if each.op == OP)
    assert list(node.attr["columns"].list.i) == [-1]


def test_of_a_function() -> None:
    with context.eager_mode():
        step = tf.function(
            lambda ids: [from_end(ids[:, i]) for i in range(COLUMNS)],
            input_signature=[tf.TensorSpec([None, COLUMNS], tf.int64)],
        )
        concrete = step.get_concrete_function()
        fused = wb.fuse_function(concrete)
        batch = tf.constant(drawn(tf.int64, 70))
        for one, other in zip(fused(batch), concrete(batch), strict=True):
            np.testing.assert_array_equal(one, other)
        ops = [node.op for node in fused.graph.as_graph_def().node]
        assert ops.count(OP) == 1 and "StridedSlice" not in ops


@few(60)
@given(
    columns=st.lists(st.integers(-2, 3), max_size=3),
    widths=st.lists(st.integers(-1, 4), max_size=3),
    table_rows=st.lists(st.sampled_from((-1, 0, 7, 2**31)), max_size=3),
    shape=st.lists(st.integers(0, 3), max_size=3),
    count=st.integers(1, 3),
)
def test_the_op_refuses_what_does_not_fit(
    columns: list[int], widths: list[int], table_rows: list[int], shape: list[int], count: int
) -> None:
    fits = len(columns) == len(widths) == len(table_rows) == count
    fits = fits and min(widths) >= 0 and 0 <= min(table_rows) <= max(table_rows) < 2**31
    inside = (
        each < 0 or (len(shape) == 2 and each + max(1, width) <= shape[1])
        for each, width in zip(columns, widths, strict=False)
    )
    fits = fits and all(inside)
    with context.eager_mode():
        try:
            counted = _native.library().workbench_id_columns(
                ids=[tf.fill(shape, -1)] * count,
                columns=columns,
                widths=widths,
                table_rows=table_rows,
                Tid=tf.int32,
            )
        except (tf.errors.InvalidArgumentError, ValueError):
            assert not fits
        else:
            assert fits
            for ids, column, width, rows in zip(counted, columns, widths, table_rows, strict=True):
                whole = list(shape) if column < 0 else [shape[0], *[width] * bool(width)]
                np.testing.assert_array_equal(ids, np.full(whole, rows - 1))
