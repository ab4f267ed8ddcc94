"""What runs of a fused graph feed and fetch means what it means in the graph itself."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

import workbench as wb

v1 = tf.compat.v1
ROWS = np.arange(50 * 16, dtype=np.float32).reshape(50, 16) / 100
Built = tuple[Any, dict[Any, Any]]


@pytest.fixture(autouse=True)
def graph() -> Iterator[tf.Graph]:
    with tf.Graph().as_default() as made:
        yield made


def table(name: str = "table") -> Any:
    return v1.get_variable(name, initializer=ROWS)


def batch() -> tf.Tensor:
    numbers = tf.data.Dataset.from_tensors(np.arange(8, dtype=np.int64)).repeat()
    iterator = v1.data.make_initializable_iterator(numbers)
    v1.add_to_collection("begin", iterator.initializer)
    return iterator.get_next()


def begun(config: Any = None, target: str = "") -> Any:
    session = v1.Session(target, config=config)
    session.run([v1.get_collection("begin"), v1.global_variables_initializer()])
    return session


def dense_ids() -> Built:
    ids = tf.identity(batch(), name="ids")
    return tf.nn.embedding_lookup(table(), ids), {"ids:0": np.full(8, 7)}


def ids_behind_two_names() -> Built:
    first = tf.identity(batch(), name="first")
    return tf.nn.embedding_lookup(table(), tf.identity(first)), {first: np.full(8, 7)}


def sparse_ids() -> Built:
    ids = tf.identity(batch(), name="ids")
    at = tf.stack([tf.range(8, dtype=tf.int64), tf.zeros(8, tf.int64)], 1)
    found = v1.nn.safe_embedding_lookup_sparse(table(), tf.SparseTensor(at, ids, [8, 1]))
    return found, {"ids:0": np.full(8, 7)}


def unique_ids() -> Built:
    found, _ = sparse_ids()
    unique = next(op for op in found.graph.get_operations() if op.type == "Unique")
    return found, {unique.outputs[0]: [7, 8], unique.outputs[1]: [0, 1, 1, 1, 0, 0, 0, 0]}


def an_embedding_that_is_stacked() -> Built:
    ids = batch()
    one, other = (tf.nn.embedding_lookup(table(name), ids) for name in ("one", "other"))
    return tf.stack([one, other], 1), {one: np.ones((8, 16))}


def products_of_vectors() -> Built:
    vectors = tf.reshape(tf.nn.embedding_lookup(table(), batch()), [2, 4, 16])
    products = tf.matmul(vectors, vectors, transpose_b=True)
    pairs = tf.gather(tf.reshape(products, [2, 16]), [1, 2, 3, 6, 7, 11], axis=1)
    return pairs, {products: np.ones((2, 4, 4))}


def a_sum_of_vectors() -> Built:
    vectors = tf.reshape(tf.nn.embedding_lookup(table(), batch()), [2, 4, 16])
    total = tf.reduce_sum(vectors, 1)
    return tf.square(total) - tf.reduce_sum(tf.square(vectors), 1), {total: np.ones((2, 16))}


def moments() -> Built:
    rows = tf.nn.embedding_lookup(table(), batch())
    mean, variance = tf.nn.moments(rows, [0])
    gamma, beta = (v1.get_variable(name, initializer=np.ones(16, np.float32)) for name in "gb")
    normed = tf.nn.batch_normalization(rows, mean, variance, beta, gamma, 1e-3)
    return normed, {variance: np.ones(16)}


def another_table() -> Built:
    held = tf.identity(table(), name="held")
    return tf.nn.embedding_lookup(held, batch()), {held: np.ones((50, 16))}


def a_gradient() -> Built:
    rows = table()
    found = tf.nn.embedding_lookup(rows, batch())
    loss = tf.reduce_sum(tf.sin(found), name="loss")
    train_op = v1.train.GradientDescentOptimizer(0.5).minimize(loss)
    values = loss.graph.get_operation_by_name("gradients/embedding_lookup_grad/Reshape")
    with tf.control_dependencies([train_op]):
        after = tf.identity(rows.read_value() if hasattr(rows, "read_value") else rows)
    return after, {values.outputs[0]: np.ones((8, 16))}


CASES = (
    dense_ids,
    ids_behind_two_names,
    sparse_ids,
    unique_ids,
    an_embedding_that_is_stacked,
    products_of_vectors,
    a_sum_of_vectors,
    moments,
    another_table,
    a_gradient,
)


@pytest.mark.parametrize("case", CASES)
def test_a_feed_reaches_what_is_computed_of_it(case: Callable[[], Built]) -> None:
    fetched, feeds = case()
    plan = wb.plan_fusion(fetched.graph)
    assert plan.count, plan.describe()
    wanted, found = ([], [])
    for values, config in ((wanted, None), (found, wb.apply(plan))):
        with begun(config) as session:
            # First unfed, so that a session has both graphs.
            values += [session.run(fetched), session.run(fetched, feeds), session.run(fetched)]
    for ours, stock in zip(found, wanted, strict=True):
        np.testing.assert_allclose(ours, stock, rtol=1e-5, atol=1e-5)
    assert not np.allclose(wanted[0], wanted[1])


def test_a_callable_is_fed(graph: tf.Graph) -> None:
    fetched, feeds = an_embedding_that_is_stacked()
    ((fed, value),) = feeds.items()
    with begun(wb.apply(wb.plan_fusion(graph))) as session:
        np.testing.assert_array_equal(session.make_callable(fetched, [fed])(value)[:, 0], value)


def test_a_partial_run_is_fed(graph: tf.Graph) -> None:
    fetched, feeds = an_embedding_that_is_stacked()
    ((fed, value),) = feeds.items()
    with begun(wb.apply(wb.plan_fusion(graph))) as session:
        handle = session.partial_run_setup([fetched], [fed])
        np.testing.assert_array_equal(session.partial_run(handle, fetched, feeds)[:, 0], value)


def test_a_run_on_a_server_is_fed(graph: tf.Graph) -> None:
    fetched, feeds = an_embedding_that_is_stacked()
    target = v1.train.Server.create_local_server().target
    with begun(wb.apply(wb.plan_fusion(graph)), target) as session:
        unfed = session.run(fetched)
        (value,) = feeds.values()
        np.testing.assert_array_equal(session.run(fetched, feeds)[:, 0], value)
        np.testing.assert_array_equal(session.run(fetched), unfed)


def test_an_interactive_session_says_why_it_cannot(graph: tf.Graph) -> None:
    fetched, _ = dense_ids()
    session = v1.InteractiveSession(config=wb.apply(wb.plan_fusion(graph)))
    try:
        with pytest.raises(tf.errors.InvalidArgumentError, match="unset place_pruned_graph"):
            session.run(fetched)
    finally:
        session.close()


def test_ops_of_runs_that_feed_nothing_within_are_fused(graph: tf.Graph) -> None:
    fetched, feeds = dense_ids()

    def ops(session: Any, feeds: Any = None) -> set[str]:
        options = v1.RunOptions(output_partition_graphs=True)
        metadata = v1.RunMetadata()
        session.run(fetched, feeds, options=options, run_metadata=metadata)
        return {node.op for part in metadata.partition_graphs for node in part.node}

    an_embedding_that_is_stacked()
    with begun(wb.apply(wb.plan_fusion(graph))) as session:
        for fed in (None, feeds):
            found = ops(session, fed)
            assert "WorkbenchResourceGroupedLookUp" in found or "WorkbenchGroupedLookUp" in found
            assert not any("Choice" in op for op in found)


def test_rows_fetched_with_the_update_are_those_before_it(graph: tf.Graph) -> None:
    ids = v1.placeholder(tf.int64, [None])
    rows = v1.get_variable("rows", initializer=ROWS, use_resource=True)
    at = tf.stack([tf.range(tf.size(ids, tf.int64)), tf.zeros_like(ids)], 1)
    sparse = tf.SparseTensor(at, ids, [8, 1])
    found = v1.nn.safe_embedding_lookup_sparse(rows, sparse, combiner="sum")
    train_op = v1.train.GradientDescentOptimizer(0.5).minimize(tf.reduce_sum(found * found))
    (gather,) = [op for op in graph.get_operations() if op.type == "ResourceGather"]
    plan = wb.plan_fusion(graph)
    assert any(each.updates for each in plan.of("lookup"))
    asked = np.arange(8)
    for config in (None, wb.apply(plan)):
        with begun(config) as session:
            held = np.array(ROWS)
            for _ in range(20):
                fetched, _ = session.run([gather.outputs[0], train_op], {ids: asked})
                np.testing.assert_allclose(fetched, held[:8], rtol=1e-6)
                held = session.run(rows)


def test_one_update_of_a_group_leaves_the_others_alone(graph: tf.Graph) -> None:
    ids = batch()
    found = [tf.nn.embedding_lookup(table(name), ids) for name in ("one", "other")]
    train_op = v1.train.AdagradOptimizer(0.5).minimize(tf.add_n([tf.reduce_sum(f) for f in found]))
    plan = wb.plan_fusion(graph)
    (group,) = plan.groups
    first = graph.get_operation_by_name(group.members[0])
    results = []
    for config in (None, wb.apply(plan)):
        with begun(config) as session:
            session.run(first)
            alone = session.run(v1.global_variables())
            session.run(train_op)
            results.append([*alone, *session.run(v1.global_variables())])
    for ours, stock in zip(*results, strict=True):
        np.testing.assert_allclose(ours, stock, rtol=1e-5)


def test_a_part_of_a_gradient_asks_for_no_more_than_it_needs(graph: tf.Graph) -> None:
    ids, factor = v1.placeholder(tf.int64, [8]), v1.placeholder(tf.float32, [])
    at = tf.constant([[row, 0] for row in range(8)], tf.int64)
    rows, given = table(), tf.SparseTensor(at, ids, [8, 1])
    found = v1.nn.embedding_lookup_sparse(rows, given, None, combiner="mean")
    (gradient,) = tf.gradients(tf.reduce_sum(found) * factor, [rows])
    # What reads the gradient is no update.
    used = tf.reduce_sum(gradient.values) + tf.reduce_sum(tf.cast(gradient.indices, tf.float32))
    plan = wb.plan_fusion(graph)
    assert not plan.of("update"), plan.describe()
    for config in (None, wb.apply(plan)):
        with begun(config) as session:
            indices = session.run(gradient.indices, {ids: range(8)})
            np.testing.assert_array_equal(indices, range(8))
            assert session.run(used, {ids: range(8), factor: 2.0}) == 8 * 16 * 2 + 28


def test_the_rows_of_a_gradient_draw_no_random_numbers(graph: tf.Graph) -> None:
    v1.set_random_seed(3)
    ids = tf.sparse.from_dense(tf.reshape(batch() + 1, [8, 1]))
    found = v1.nn.safe_embedding_lookup_sparse(table(), ids, combiner="mean")
    drawn = tf.nn.dropout(found, rate=0.5)
    train = v1.train.MomentumOptimizer(0.1, 0.9).minimize(tf.reduce_sum(tf.square(drawn)))
    update = next(op for op in graph.get_operations() if op.type == "ResourceSparseApplyMomentum")
    plan = wb.plan_fusion(graph)
    assert plan.count == 1, plan.describe()
    results = []
    for config in (None, wb.apply(plan)):
        with begun(config) as session:
            # Of the gradient these are the rows alone, so that the next dropout is the first one.
            rows = [session.run(update.inputs[4]) for _ in range(3)]
            session.run(train)
            results.append([*rows, session.run(drawn), *session.run(v1.global_variables())])
    for ours, stock in zip(*results, strict=True):
        np.testing.assert_allclose(ours, stock, rtol=1e-5)
