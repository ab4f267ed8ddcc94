"""Grouped lookups in EmbeddingVariables: one op trains what V1's lookups of each train."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import example, given
from hypothesis import strategies as st

from tests.builders.examples import few
from tests.builders.intra_op_threads import require_same_bits
from tests.builders.lookup_features import Feature, features
from workbench.ops import (
    AdagradOptimizer,
    AdamOptimizer,
    CounterFilter,
    EmbeddingVariableOption,
    FtrlOptimizer,
    GlobalStepEvict,
    GradientDescentOptimizer,
    InitializerOption,
    fused_safe_embedding_lookup_sparse,
    fused_update,
    get_embedding_variable,
    grouped_embedding_lookup,
)

v1 = tf.compat.v1
GROUPED = "WorkbenchEmbeddingGroupedLookUp"
APPLY = "WorkbenchEmbeddingGroupedApply"
OPTIMIZERS = {
    "adagrad": lambda: AdagradOptimizer(0.1),
    "adam": lambda: AdamOptimizer(0.1),
    "descent": lambda: GradientDescentOptimizer(0.1),
    "ftrl": lambda: FtrlOptimizer(0.1, l1_regularization_strength=0.01),
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


def looked_up(grouped: bool, tables: Any, drawn: list[Feature]) -> list[tf.Tensor]:
    given_to = [tables[each.table] for each in drawn]
    ids = [each.sparse_ids() for each in drawn]
    weights = [each.weights() for each in drawn]
    norms = [each.max_norm for each in drawn]
    combiners = [each.combiner for each in drawn]
    defaults = [each.default_id for each in drawn]
    if grouped:
        return grouped_embedding_lookup(given_to, ids, weights, combiners, norms, defaults)
    return [
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


def weighted(shape: tuple[int, ...], at: Any, ids: tuple[int, ...]) -> Feature:
    return Feature(
        shape=shape,
        at=at,
        ids=ids,
        weighted=True,
        combiner="sum",
        max_norm=None,
        default_id=None,
        table=2,
        id_dtype=tf.int64,
    )


@few(5, 60)
@example(
    # One asks for nothing, of a table whose keys are made unique for both.
    drawn=[weighted((1, 1), (), ()), weighted((2, 2), ((0, 0), (0, 1), (1, 1)), (6, 2, 6))],
    dims=(64, 5, 64),
    optimizer="adagrad",
    evicting=False,
)
@given(
    drawn=st.lists(features(), min_size=1, max_size=4),
    # Not 1: of one value that is shortened the gradient is rounding, which Adam makes large.
    dims=st.tuples(*[st.sampled_from((2, 5, 16, 64))] * 3),
    optimizer=st.sampled_from(sorted(OPTIMIZERS)),
    evicting=st.booleans(),
)
def test_they_train_as_lookups_one_by_one(
    drawn: list[Feature], dims: Any, optimizer: str, evicting: bool
) -> None:
    options = {"evict_option": GlobalStepEvict(steps_to_live=9)} if evicting else {}
    results = []
    for grouped in (True, False):
        with tf.Graph().as_default() as graph:
            # The rows of both graphs begin alike.
            v1.set_random_seed(1)
            tables = made_tables("tables", dims, **options)
            found = looked_up(grouped, tables, drawn)
            loss = tf.add_n([tf.reduce_sum(tf.square(each - 0.5)) for each in found])
            step = v1.train.get_or_create_global_step()
            train_op = OPTIMIZERS[optimizer]().minimize(loss, global_step=step)
            plain = sum(not each.weighted and each.max_norm is None for each in drawn)
            assert ops_of(graph).count(GROUPED) == (grouped and plain > 0)
            with v1.Session() as session:
                session.run(v1.global_variables_initializer())
                steps = [session.run([found, train_op])[0] for _ in range(4)]
                frames = [table.to_pandas(session) for table in tables]
        results.append((steps, frames))
    (ours, tables), (expected, others) = results
    for one, other in zip(tf.nest.flatten(ours), tf.nest.flatten(expected), strict=True):
        np.testing.assert_allclose(one, other, rtol=2e-5, atol=2e-5)
    for one, other in zip(tables, others, strict=True):
        assert one["key"].tolist() == other["key"].tolist()
        if evicting:
            assert one["version"].tolist() == other["version"].tolist()
        np.testing.assert_allclose(one, other, rtol=2e-5, atol=2e-5)


def batch_of(random: np.random.Generator) -> v1.SparseTensorValue:
    """Ids that come again and again, in rows of any length."""
    lengths = random.integers(0, 6, 40)
    ids = np.minimum(random.zipf(1.3, lengths.sum()), 60).astype(np.int64) - 1
    at = np.stack([np.repeat(np.arange(40), lengths), np.arange(lengths.sum())], 1)
    return v1.SparseTensorValue(at, ids, [40, max(1, lengths.sum())])


@pytest.mark.parametrize("optimizer", sorted(OPTIMIZERS))
def test_a_hundred_steps_of_keys_that_repeat_are_those_of_v1_to_the_bit(optimizer: str) -> None:
    random = np.random.default_rng(5)
    batches = [batch_of(random) for _ in range(100)]
    contents = []
    for grouped in (True, False):
        with tf.Graph().as_default() as graph:
            v1.set_random_seed(1)
            tables = made_tables("tables", (8, 5, 1))
            ids = v1.sparse_placeholder(tf.int64, [None, None])
            if grouped:
                found = grouped_embedding_lookup(tables, [ids] * 3)
            else:
                found = [fused_safe_embedding_lookup_sparse(each, ids) for each in tables]
            loss = tf.add_n([tf.reduce_sum(tf.sin(each)) for each in found])
            train_op = OPTIMIZERS[optimizer]().minimize(loss)
            assert ops_of(graph).count(APPLY) == 3 * grouped
            with v1.Session() as session:
                session.run(v1.global_variables_initializer())
                for each in batches:
                    session.run(train_op, {ids: each})
                exported = [table.export(table.slots.all()) for table in tables]
                contents.append(session.run([(e.keys, e.values, e.slots) for e in exported]))
    for ours, others in zip(*contents, strict=True):
        order, as_others = np.argsort(ours[0]), np.argsort(others[0])
        np.testing.assert_array_equal(ours[0][order], others[0][as_others])
        np.testing.assert_array_equal(ours[1][order], others[1][as_others])
        for one, other in zip(ours[2], others[2], strict=True):
            np.testing.assert_array_equal(one[order], other[as_others])


def sparse_of(ids: Any) -> tf.SparseTensor:
    shifted = tf.sparse.from_dense(tf.constant(ids, tf.int64) + 100)
    return tf.SparseTensor(shifted.indices, shifted.values - 100, shifted.dense_shape)


def lookup_of(tables: list[Any], ids: Any = ((1, 2), (7, -1)), **arguments: Any) -> Any:
    return grouped_embedding_lookup(tables, [sparse_of(ids)] * len(tables), **arguments)


def test_one_op_forward_and_one_back_for_each_table() -> None:
    with tf.Graph().as_default() as graph:
        found = lookup_of(made_tables("all", (4, 8, 16)), concatenate=True)
        assert found.shape.as_list() == [2, 28]
        train_op = AdagradOptimizer(0.1).minimize(tf.reduce_sum(found))
        reached = tf.compat.v1.graph_util.extract_sub_graph(
            graph.as_graph_def(), [train_op.name]
        ).node
    ops = [node.op for node in reached]
    assert ops.count(GROUPED) == 1 and ops.count(APPLY) == 3
    assert not {"WorkbenchEmbeddingGather", "WorkbenchPreLookUp"} & set(ops)


def test_ragged_dense_and_unordered_ids() -> None:
    with tf.Graph().as_default():
        (table,) = made_tables("ragged", (3,))
        ragged = tf.ragged.constant([[5], [], [1, 2, 2]], dtype=tf.int64)
        places = tf.constant([[2, 0], [0, 0], [2, 1], [2, 2]], tf.int64)
        jumbled = tf.SparseTensor(places, tf.constant([1, 5, 2, 2], tf.int64), [3, 3])
        dense = tf.constant([5, -1, 2], tf.int64)
        given_ids = [ragged, jumbled, dense]
        found = grouped_embedding_lookup([table] * 3, given_ids, combiners="sum", default_id=9)
        train_op = GradientDescentOptimizer(1.0).minimize(tf.add_n(map(tf.reduce_sum, found)))
        with v1.Session() as session:
            session.run(v1.global_variables_initializer())
            one, other, third = session.run(found)
            before = table.to_pandas(session).set_index("key")
            session.run(train_op)
            moved = before - table.to_pandas(session).set_index("key")
    np.testing.assert_array_equal(one, other)
    assert before.index.tolist() == [1, 2, 5, 9]
    np.testing.assert_array_equal(third[1], one[1])
    np.testing.assert_array_equal(one[1], before.loc[9])
    np.testing.assert_allclose(moved["v0"], [2, 5, 3, 3], atol=1e-5)


@pytest.mark.parametrize("between", ["nothing", "cleared", "evicted", "restored"])
def test_rows_that_move_before_the_update_are_found_again(between: str, tmp_path: Any) -> None:
    """The update runs in a later run of the session, on what the lookup's run found."""
    with tf.Graph().as_default() as graph:
        evict = GlobalStepEvict(steps_to_live=5)
        (table,) = made_tables("moving", (4,), evict_option=evict)
        step = v1.train.get_or_create_global_step()
        lookup_of([table], ((1, 2), (3, 4)), combiners="sum")
        (op,) = [each for each in graph.get_operations() if each.type == GROUPED]
        other = lookup_of([table], ((11, 12), (13, 14)))
        vectors = op.outputs[0]
        (gradient,) = tf.gradients(vectors, [table])
        GradientDescentOptimizer(1.0).apply_gradients([(gradient, table)])
        (apply,) = [each for each in graph.get_operations() if each.type == APPLY]
        held = [v1.placeholder(each.dtype, each.shape) for each in op.outputs[1:]]
        for number, each in enumerate(held):
            at = list(apply.inputs).index(op.outputs[1 + number])
            apply._update_input(at, each)
        saver = v1.train.Saver()
        with v1.Session() as session:
            session.run(v1.global_variables_initializer())
            session.run(other)
            found = session.run(op.outputs[1:])
            path = saver.save(session, str(tmp_path / "model"))
            before = table.to_pandas(session).set_index("key")
            if between == "cleared":
                session.run(table.default_rows.initializer)
            elif between == "evicted":
                session.run(v1.assign(step, 100))
                session.run(vectors)  # Used again, so that the others go.
                session.run(table.export((), evict=True))
            elif between == "restored":
                session.run(vectors)
                saver.restore(session, path)
            session.run(apply, dict(zip(held, found, strict=True)))
            after = table.to_pandas(session).set_index("key")
    if between == "cleared":
        assert after.empty
        return
    assert after.index.tolist() == ([1, 2, 3, 4] if between == "evicted" else before.index.tolist())
    moved = (before.loc[after.index] - after)["v0"]
    for key in after.index:
        assert moved[key] == pytest.approx(1.0 if key < 10 else 0.0, abs=1e-5)


def test_features_that_it_does_not_take_go_beside_it() -> None:
    with tf.Graph().as_default() as graph:
        (plain,) = made_tables("plain", (4,))
        (counted,) = made_tables("counted", (4,), filter_option=CounterFilter(filter_freq=2))
        grouped_embedding_lookup([counted], [sparse_of(((1, 2),))])
        grouped_embedding_lookup([plain], [sparse_of(((1, 2),))], max_norm=1.0)
        grouped_embedding_lookup([plain], [sparse_of(((1, 2),))], default_id=-3)
        grouped_embedding_lookup([plain], [sparse_of(((1, 2),))], prune=False)
        weights = tf.constant([1.0, 2.0])
        grouped_embedding_lookup([plain], [sparse_of(((1, 2),))], [weights])
        assert GROUPED not in ops_of(graph)
        grouped_embedding_lookup([plain], [sparse_of(((1, 2),))])
        assert ops_of(graph).count(GROUPED) == 1


def test_a_gradient_that_was_changed_is_applied_key_by_key() -> None:
    with tf.Graph().as_default() as graph:
        (table,) = made_tables("clipped", (4,))
        (found,) = lookup_of([table], ((1, 1), (2, -1)), combiners="sum")
        optimizer = GradientDescentOptimizer(1.0)
        ((gradient, variable),) = optimizer.compute_gradients(tf.reduce_sum(found), [table])
        halved = tf.IndexedSlices(gradient.values / 2, gradient.indices)
        train_op = optimizer.apply_gradients([(halved, variable)])
        assert APPLY not in ops_of(graph)
        with v1.Session() as session:
            session.run(v1.global_variables_initializer())
            session.run(found)
            before = table.to_pandas(session).set_index("key")
            session.run(train_op)
            moved = before - table.to_pandas(session).set_index("key")
    np.testing.assert_allclose(moved["v0"], [1.0, 0.5], atol=1e-6)


def test_what_is_not_trained_makes_no_rows() -> None:
    with tf.Graph().as_default():
        table = get_embedding_variable("still", 4, trainable=False)
        (found,) = lookup_of([table], combiners="sum")
        with v1.Session() as session:
            session.run(v1.global_variables_initializer())
            defaults = session.run(table.default_rows)
            vectors = session.run(found)
            assert table.to_pandas(session).empty
    np.testing.assert_array_equal(vectors[1], defaults[7 % len(defaults)])


def test_results_do_not_depend_on_threads() -> None:
    require_same_bits(trained_contents)


def trained_contents() -> list[np.ndarray]:
    with tf.Graph().as_default():
        v1.set_random_seed(1)
        tables = made_tables("threads", (16, 16))
        ids = tf.random.stateless_uniform([3000, 4], (1, 2), 0, 900, tf.int64)
        found = grouped_embedding_lookup(
            [*tables, tables[0]], [tf.sparse.from_dense(ids + each) for each in (1, 2, 3)]
        )
        train_op = AdagradOptimizer(0.1).minimize(tf.add_n(map(tf.reduce_sum, found)))
        with v1.Session() as session:
            session.run(v1.global_variables_initializer())
            for _ in range(3):
                session.run(train_op)
            exported = [table.export(table.slots.all()) for table in tables]
            return tf.nest.flatten(session.run([(e.keys, e.values, e.slots) for e in exported]))


def test_lookups_while_others_train_and_export() -> None:
    with tf.Graph().as_default() as graph:
        tables = made_tables("busy", (8, 8))
        random = tf.random.uniform([400, 3], 0, 500, tf.int64)
        sparse = tf.sparse.from_dense(random + 1)
        found = grouped_embedding_lookup(tables, [sparse, sparse], combiners="mean")
        one_by_one = fused_safe_embedding_lookup_sparse(tables[0], sparse)
        optimizer = AdagradOptimizer(0.1)
        train_op = optimizer.minimize(tf.add_n([tf.reduce_sum(f) for f in found]))
        by_key = optimizer.minimize(tf.reduce_sum(one_by_one), var_list=[tables[0]])
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
                for each in (found, train_op, train_op, by_key, sizes)
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


def test_a_checkpoint_goes_from_one_to_the_other(tmp_path: Any) -> None:
    results = []
    for first, then in ((True, False), (False, True), (False, False)):
        path = None
        for grouped in (first, then):
            with tf.Graph().as_default():
                v1.set_random_seed(1)
                (table,) = made_tables("saved", (4,))
                ids = sparse_of(((1, 2), (2, -1)))
                if grouped:
                    (found,) = grouped_embedding_lookup([table], [ids])
                else:
                    found = fused_safe_embedding_lookup_sparse(table, ids)
                train_op = AdamOptimizer(0.1).minimize(tf.reduce_sum(tf.square(found)))
                saver = v1.train.Saver()
                with v1.Session() as session:
                    session.run(v1.global_variables_initializer())
                    if path:
                        saver.restore(session, path)
                    for _ in range(3):
                        session.run(train_op)
                    path = saver.save(session, str(tmp_path / f"{first}{then}{grouped}"))
                    frame = table.to_pandas(session)
        results.append(frame)
    assert results[0].equals(results[2]) and results[1].equals(results[2])


@pytest.mark.parametrize("default_id", [None, 3])
def test_many_blocks_of_ids_of_which_some_are_dropped_and_filled_in(default_id: int | None) -> None:
    """More ids than are read at a time; each part says which rows it found."""
    random = np.random.default_rng(2)
    ids = random.integers(-3, 400, [4000, 3])
    ids[::7] = -1
    contents = []
    for grouped in (True, False):
        with tf.Graph().as_default():
            v1.set_random_seed(1)
            (table,) = made_tables("blocks", (4,))
            sparse = sparse_of(ids)
            if grouped:
                (found,) = grouped_embedding_lookup([table], [sparse], default_id=default_id)
            else:
                found = fused_safe_embedding_lookup_sparse(table, sparse, default_id=default_id)
            train_op = AdagradOptimizer(0.1).minimize(tf.reduce_sum(tf.sin(found)))
            with v1.Session() as session:
                session.run(v1.global_variables_initializer())
                vectors = [session.run([found, train_op])[0] for _ in range(3)]
                contents.append((vectors, table.to_pandas(session)))
    (ours, rows), (others, expected) = contents
    np.testing.assert_array_equal(ours, others)
    assert rows.equals(expected)
