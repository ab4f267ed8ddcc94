"""Grouped lookups in EmbeddingVariables: one op trains what V1's lookups of each train."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.builders.fused_graphs import EXAMPLES
from tests.builders.lookup_features import Feature, features
from workbench import _native
from workbench.ops import (
    AdagradOptimizer,
    AdamOptimizer,
    GradientDescentOptimizer,
    fused_safe_embedding_lookup_sparse,
    fused_update,
    grouped_embedding_lookup,
)
from workbench.ops.embedding_variable.variable import (
    CounterFilter,
    EmbeddingVariableOption,
    GlobalStepEvict,
    InitializerOption,
    get_embedding_variable,
)

v1 = tf.compat.v1
GROUPED = "WorkbenchEmbeddingGroupedLookUp"
OPTIMIZERS = {
    "adagrad": lambda: AdagradOptimizer(0.1),
    "adam": lambda: AdamOptimizer(0.1),
    "descent": lambda: GradientDescentOptimizer(0.1),
    "fused": lambda: fused_update(AdagradOptimizer(0.1)),
}


def made_tables(scope: str, dims: tuple[int, ...], **options: Any) -> list[Any]:
    """Tables that begin with the same rows, whatever their scope."""
    option = EmbeddingVariableOption(
        init_option=InitializerOption(
            initializer=v1.random_normal_initializer(seed=3), default_value_dim=16
        ),
        **options,
    )
    with v1.variable_scope(scope):
        return [
            get_embedding_variable(f"table_{i}", dim, ev_option=option)
            for i, dim in enumerate(dims)
        ]


def ops_of(graph: tf.Graph) -> list[str]:
    return [op.type for op in graph.get_operations()]


@settings(EXAMPLES, max_examples=EXAMPLES.max_examples // 5)
@given(
    drawn=st.lists(features(), min_size=1, max_size=4),
    dims=st.tuples(*[st.sampled_from((1, 5, 16, 64))] * 3),
    optimizer=st.sampled_from(sorted(OPTIMIZERS)),
    filtered=st.booleans(),
)
def test_they_train_as_lookups_one_by_one(
    drawn: list[Feature], dims: Any, optimizer: str, filtered: bool
) -> None:
    options = {"filter_option": CounterFilter(filter_freq=3)} if filtered else {}
    results = []
    for grouped in (True, False):
        with tf.Graph().as_default() as graph:
            # The rows of both graphs begin alike.
            v1.set_random_seed(1)
            tables = made_tables("tables", dims, **options)
            given_to = [tables[each.table] for each in drawn]
            ids = [each.sparse_ids() for each in drawn]
            weights = [each.weights() for each in drawn]
            norms = [each.max_norm for each in drawn]
            combiners = [each.combiner for each in drawn]
            defaults = [each.default_id for each in drawn]
            if grouped:
                found = grouped_embedding_lookup(given_to, ids, weights, combiners, norms, defaults)
            else:
                found = [
                    fused_safe_embedding_lookup_sparse(
                        table,
                        ids[i],
                        weights[i],
                        combiners[i],
                        defaults[i],
                        max_norm=norms[i],
                        fusion_version="v1",
                    )
                    for i, table in enumerate(given_to)
                ]
            loss = tf.add_n([tf.reduce_sum(tf.square(each - 0.5)) for each in found])
            train_op = OPTIMIZERS[optimizer]().minimize(loss)
            fused = sum(not each.weighted and each.max_norm is None for each in drawn)
            assert ops_of(graph).count(GROUPED) == (grouped and fused > 0)
            with v1.Session() as session:
                session.run(v1.global_variables_initializer())
                steps = [session.run([found, train_op])[0] for _ in range(4)]
                frames = [table.to_pandas(session) for table in tables]
        results.append((steps, frames))
    (ours, tables), (expected, others) = results
    if filtered:
        # Which of two features of a table counts first is open; what it comes to is not.
        ours, expected = ours[:1], expected[:1]
    for one, other in zip(tf.nest.flatten(ours), tf.nest.flatten(expected), strict=True):
        np.testing.assert_allclose(one, other, rtol=2e-5, atol=2e-5)
    for one, other in zip(tables, others, strict=True):
        assert one["key"].tolist() == other["key"].tolist()


def lookup_of(tables: list[Any], ids: Any = ((1, 2), (7, -1)), **arguments: Any) -> list[tf.Tensor]:
    sparse = tf.sparse.from_dense(tf.constant(ids, tf.int64) + 100)
    shifted = tf.SparseTensor(sparse.indices, sparse.values - 100, sparse.dense_shape)
    return grouped_embedding_lookup(tables, [shifted] * len(tables), **arguments)


def test_one_op_forward_and_one_back_for_all_tables() -> None:
    with tf.Graph().as_default() as graph:
        found = lookup_of(made_tables("all", (4, 8, 16)), concatenate=True)
        assert found.shape.as_list() == [2, 28]
        AdagradOptimizer(0.1).minimize(tf.reduce_sum(found))
        ops = ops_of(graph)
    assert ops.count(GROUPED) == ops.count("WorkbenchGroupedLookUpGrad") == 1
    assert "WorkbenchEmbeddingGather" not in ops and "WorkbenchPreLookUp" not in ops


def test_ragged_and_unordered_ids() -> None:
    with tf.Graph().as_default():
        (table,) = made_tables("ragged", (3,))
        ragged = tf.ragged.constant([[5], [], [1, 2, 2]], dtype=tf.int64)
        places = tf.constant([[2, 0], [0, 0], [2, 1], [2, 2]], tf.int64)
        jumbled = tf.SparseTensor(places, tf.constant([1, 5, 2, 2], tf.int64), [3, 3])
        found = grouped_embedding_lookup([table, table], [ragged, jumbled], combiners="sum")
        with v1.Session() as session:
            session.run(v1.global_variables_initializer())
            one, other = session.run(found)
            rows = table.to_pandas(session)
    np.testing.assert_array_equal(one, other)
    assert rows["key"].tolist() == [1, 2, 5]
    np.testing.assert_array_equal(one[1], np.zeros(3))


def test_a_key_without_permission_reads_as_such_and_old_rows_are_evicted() -> None:
    with tf.Graph().as_default():
        option = EmbeddingVariableOption(
            filter_option=CounterFilter(filter_freq=2),
            init_option=InitializerOption(default_value_no_permission=0.25),
            evict_option=GlobalStepEvict(steps_to_live=5),
        )
        table = get_embedding_variable("kept", 4, ev_option=option)
        ids = v1.sparse_placeholder(tf.int64, [None, 1])
        (found,) = grouped_embedding_lookup([table], [ids], combiners="sum")
        step = v1.train.get_or_create_global_step()
        with v1.Session() as session:
            session.run(v1.global_variables_initializer())
            feed = {ids: v1.SparseTensorValue([[0, 0]], np.int64([3]), [1, 1])}
            np.testing.assert_array_equal(session.run(found, feed), [[0.25] * 4])
            assert not np.array_equal(session.run(found, feed), [[0.25] * 4])
            assert len(table.to_pandas(session)) == 1
            session.run(v1.assign(step, 100))
            other = {ids: v1.SparseTensorValue([[0, 0]], np.int64([4]), [1, 1])}
            session.run(found, other), session.run(found, other)
            versions = table.to_pandas(session).set_index("key")["version"].to_dict()
    assert versions[4] == 100 and versions[3] < 100


def test_what_is_not_trained_makes_no_rows() -> None:
    with tf.Graph().as_default():
        table = get_embedding_variable("still", 4, trainable=False)
        (found,) = lookup_of([table])
        with v1.Session() as session:
            session.run(v1.global_variables_initializer())
            assert session.run(found).shape == (2, 4)
            assert table.to_pandas(session).empty


def test_lookups_while_others_train_and_export() -> None:
    with tf.Graph().as_default() as graph:
        tables = made_tables("busy", (8, 8))
        random = tf.random.uniform([400, 3], 0, 500, tf.int64)
        sparse = tf.sparse.from_dense(random + 1)
        found = grouped_embedding_lookup(tables, [sparse, sparse], combiners="mean")
        train_op = AdagradOptimizer(0.1).minimize(tf.add_n([tf.reduce_sum(f) for f in found]))
        sizes = [table.sizes() for table in tables]
        with v1.Session(graph=graph) as session:
            session.run(v1.global_variables_initializer())
            failures: list[BaseException] = []

            def repeat(fetches: Any) -> None:
                try:
                    for _ in range(40):
                        session.run(fetches)
                except BaseException as error:
                    failures.append(error)

            threads = [
                threading.Thread(target=repeat, args=[each])
                for each in (found, train_op, train_op, sizes)
            ]
            for thread in threads:
                thread.start()
            for _ in range(5):
                tables[0].to_pandas(session)
            for thread in threads:
                thread.join(60)
                assert not thread.is_alive()
            assert not failures
            assert all(len(table.to_pandas(session)) > 300 for table in tables)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"dims": [5]}, "EmbeddingVariable 'raw' has dimension 4; expected 5"),
        ({"default_rows": [np.zeros([2, 3], "f4")]}, r"shape of default_rows is \[2,3\]"),
        ({"default_rows": [np.zeros([0, 4], "f4")]}, r"shape of default_rows is \[0,4\]"),
        ({"step": [[1, 2]]}, r"1 steps, the first of shape \[2\]; expected at most one scalar"),
        ({"prune_invalid_ids": [False]}, "feature 'f': a key, or the default id, is below 0"),
    ],
)
def test_what_does_not_fit_is_an_error(changed: dict[str, Any], message: str) -> None:
    with tf.Graph().as_default():
        table = get_embedding_variable("raw", 4)
        arguments = {
            "tables": [table.handle],
            "ids": [np.int64([1, -2])],
            "rows": [np.int64([[0, 0], [1, 0]])],
            "dense_shapes": [np.int64([2, 1])],
            "default_rows": [table.default_rows.value()],
            "step": [],
            "table_of": [0],
            "combiners": ["sum"],
            "prune_invalid_ids": [True],
            "fill_empty_rows": [False],
            "default_ids": [0],
            "dims": [4],
            "features": ["f"],
            "M": 1,
            "T": tf.float32,
        }
        found = _native.library().workbench_embedding_grouped_look_up(**{**arguments, **changed})
        with v1.Session() as session:
            session.run(v1.global_variables_initializer())
            with pytest.raises(tf.errors.InvalidArgumentError, match=message):
                session.run(found)
