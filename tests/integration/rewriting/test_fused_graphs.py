"""Stock lookups that are fused in a finished graph: its sessions train as they did."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import assume, given
from hypothesis import strategies as st

import workbench as wb
from tests.builders.fused_graphs import (
    EXAMPLES,
    OPTIMIZERS,
    each_optimizer,
    fed,
    loss_of,
    ran,
    trained,
)
from tests.builders.lookup_features import ROWS, Feature, features, made_tables
from workbench.errors import PlanError

v1 = tf.compat.v1
STOCK = ("SparseSegmentMean", "SparseSegmentSum", "SparseSegmentSqrtN", "SparseFillEmptyRows")


def looked_up(drawn: Sequence[Feature], tables: Sequence[Any]) -> list[tf.Tensor]:
    return [
        v1.nn.safe_embedding_lookup_sparse(
            tables[each.table],
            fed(each.sparse_ids()),
            each.weights() if each.weighted else None,
            each.combiner,
            each.default_id,
            max_norm=each.max_norm,
        )
        for each in drawn
    ]


def is_fused(feature: Feature) -> bool:
    return not feature.weighted or feature.max_norm is None


class TestSessions:
    @EXAMPLES
    @given(
        drawn=st.lists(features(), min_size=1, max_size=5),
        kind=st.sampled_from(("ref", "resource")),
        dims=st.tuples(*[st.sampled_from((1, 5, 16, 64))] * 3),
        optimizer=st.sampled_from(sorted(OPTIMIZERS)),
        seed=st.integers(0, 99),
    )
    def test_train_as_stock_ones_do(
        self, drawn: list[Feature], kind: str, dims: Any, optimizer: str, seed: int
    ) -> None:
        # A shortened row of one column has no gradient but what is rounded, which Adam magnifies.
        short = any(each.max_norm is not None and dims[each.table] == 1 for each in drawn)
        assume(not (short and optimizer == "adam"))
        with tf.Graph().as_default() as graph:
            tables = made_tables(kind, dims, tf.float32, seed)
            embeddings = looked_up(drawn, tables)
            loss = loss_of(embeddings)
            train_op = OPTIMIZERS[optimizer]().minimize(loss)
            tf.group(v1.global_variables_initializer(), name="begin")
        before = graph.as_graph_def().SerializeToString(deterministic=True)
        plan = wb.plan_fusion(graph)
        assert len(plan.of("lookup")) == sum(is_fused(each) for each in drawn)
        assert len(plan.refusals) == len(drawn) - len(plan.of("lookup"))
        fetches = [loss, *embeddings]
        expected, variables = trained(graph, fetches, train_op, None)
        found, ours = trained(graph, fetches, train_op, wb.apply(plan))
        assert graph.as_graph_def().SerializeToString(deterministic=True) == before
        for one, other in zip(found, expected, strict=True):
            for value, stock in zip(one, other, strict=True):
                np.testing.assert_allclose(value, stock, rtol=3e-5, atol=3e-5)
        for value, stock in zip(ours, variables, strict=True):
            np.testing.assert_allclose(value, stock, rtol=3e-5, atol=3e-5)

    @each_optimizer("adagrad", "descent", "adam")
    def test_run_one_op_forward_and_one_back(self, kind: str, optimizer: str) -> None:
        graph, loss, train_op = two_tables(kind, optimizer)
        ops = ran(graph, [loss, train_op], wb.apply(wb.plan_fusion(graph)))
        assert sum(op.endswith("GroupedLookUp") for op in ops) == 1
        (apply,) = (op for op in ops if "GroupedApply" in op)
        assert apply.startswith("WorkbenchResource") is (kind == "resource")
        assert apply.endswith("All") is (optimizer == "adam")
        stock = [op for op in ops if op.startswith(STOCK) or op in ("Unique", "Where")]
        assert not stock
        plain = ran(graph, [loss, train_op], None)
        assert len(ops) < 0.55 * len(plain)

    def test_gradients_that_another_optimizer_reads_are_made_together(self) -> None:
        graph, loss, train_op = two_tables("resource", "halved")
        plan = wb.plan_fusion(graph)
        assert [each.gradients for each in plan.of("lookup")] == [1, 1]
        assert not any(each.updates for each in plan.of("lookup"))
        ops = ran(graph, [loss, train_op], wb.apply(plan))
        assert ops.count("WorkbenchGroupedLookUpGrad") == 1
        # Nor are rows looked for that have two gradients.
        assert not [op for op in ops if op.startswith((*STOCK, "Unique", "UnsortedSegment"))]

    @each_optimizer("momentum", "shrinking")
    def test_rows_without_ids_have_gradients_that_some_optimizers_take(
        self, kind: str, optimizer: str
    ) -> None:
        """Stock looks them up at id 0, of which these optimizers then change row and slots."""
        with tf.Graph().as_default() as graph:
            (table,) = made_tables(kind, (4,), tf.float32, 1)
            step = v1.train.get_or_create_global_step()
            # At first id 0 has a gradient, then no more, but there is a row without ids.
            ids = tf.where(tf.equal(step, 0), [0, 3], [3, 4])
            asked = tf.SparseTensor([[0, 0], [2, 0]], tf.cast(ids, tf.int64), [3, 1])
            loss = loss_of([v1.nn.safe_embedding_lookup_sparse(table, asked, combiner="sum")])
            train_op = OPTIMIZERS[optimizer]().minimize(loss, global_step=step)
            tf.group(v1.global_variables_initializer(), name="begin")
        plan = wb.plan_fusion(graph)
        assert [each.gradients for each in plan.of("lookup")] == [1]
        updates = {"momentum": "SparseApplyMomentum", "shrinking": "SparseApplyFtrlV2"}
        assert plan.of("lookup")[0].note.removeprefix("Resource") == updates[optimizer]
        found, ours = trained(graph, loss, train_op, wb.apply(plan))
        expected, variables = trained(graph, loss, train_op, None)
        np.testing.assert_allclose(found, expected, rtol=1e-5)
        for one, other in zip(ours, variables, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6)

    @pytest.mark.parametrize("weighted", [False, True])
    @pytest.mark.parametrize("kind", ["ref", "resource"])
    def test_what_reads_a_gradient_finds_the_rows_of_rows_without_ids(
        self, kind: str, weighted: bool
    ) -> None:
        """Such as an optimizer of the user's own, whose momentum fades in each row that it has."""
        with tf.Graph().as_default() as graph:
            (table,) = made_tables(kind, (4,), tf.float32, 1)
            ids = tf.SparseTensor(
                [[0, 0], [0, 1], [2, 0]], tf.constant([3, 5, 3], tf.int64), [4, 2]
            )
            weights = tf.SparseTensor(ids.indices, tf.constant([1.0, 0.5, 2.0]), [4, 2])
            found = v1.nn.safe_embedding_lookup_sparse(table, ids, weights if weighted else None)
            gradient = tf.gradients(loss_of([found]), [table])[0]
            momentum = v1.get_variable("momentum", initializer=np.ones((ROWS, 4), np.float32))
            rows, at = tf.unique(gradient.indices)
            of_rows = tf.math.unsorted_segment_sum(gradient.values, at, tf.size(rows))
            fades = tf.gather(momentum, rows) * 0.5 + of_rows
            train_op = v1.scatter_update(momentum, rows, fades)
            mean = tf.reduce_mean(gradient.values)
            tf.group(v1.global_variables_initializer(), name="begin")
        plan = wb.plan_fusion(graph)
        assert [each.gradients for each in plan.of("lookup")] == [1], plan.describe()
        found_here, ours = trained(graph, mean, train_op, wb.apply(plan))
        expected, variables = trained(graph, mean, train_op, None)
        np.testing.assert_allclose(found_here, expected, rtol=1e-5)
        for one, other in zip(ours, variables, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6)

    def test_of_a_server_as_well(self) -> None:
        graph, loss, train_op = two_tables("resource", "adagrad")
        target = v1.train.Server.create_local_server().target
        with v1.Session(target, graph=graph, config=wb.apply(wb.plan_fusion(graph))) as session:
            session.run(graph.get_operation_by_name("begin"))
            found = [session.run([loss, train_op])[0] for _ in range(3)]
        expected, _ = trained(graph, loss, train_op, None)
        np.testing.assert_allclose(found, expected, rtol=1e-5)

    def test_lookups_that_depend_on_one_another_are_no_one_op(self) -> None:
        with tf.Graph().as_default() as graph:
            (table,) = made_tables("resource", (4,), tf.float32, 1)
            first = Feature((3, 2), ((0, 0), (1, 0)), (1, 2), "sum", None, None, False, 0, tf.int64)
            (above,) = looked_up([first], [table])
            ids = tf.cast(tf.abs(above[:, :2]) * 3, tf.int64) % ROWS
            behind = v1.nn.safe_embedding_lookup_sparse(
                table, tf.sparse.from_dense(ids), combiner="sum"
            )
            loss = tf.reduce_sum(behind) + tf.reduce_sum(above)
            train_op = OPTIMIZERS["descent"]().minimize(loss)
            tf.group(v1.global_variables_initializer(), name="begin")
        plan = wb.plan_fusion(graph)
        assert len({each.op for each in plan.of("lookup")}) == 2
        found, ours = trained(graph, loss, train_op, wb.apply(plan))
        expected, variables = trained(graph, loss, train_op, None)
        np.testing.assert_allclose(found, expected, rtol=1e-5)
        np.testing.assert_allclose(ours[0], variables[0], rtol=1e-5, atol=1e-6)

    def test_with_a_smart_stage_of_the_fused_graph(self) -> None:
        graph, loss, train_op = fed_by_data()
        losses = {}
        for fused in (False, True):
            config = wb.apply(wb.plan_fusion(graph)) if fused else None
            config, plan = wb.prepare_config(graph, config, targets=[train_op])
            assert plan.stages
            hooks = [wb.make_prefetch_hook()]
            with (
                graph.as_default(),
                v1.train.MonitoredTrainingSession(config=config, hooks=hooks) as session,
            ):
                losses[fused] = [session.run([loss, train_op])[0] for _ in range(20)]
            # Of a fused lookup the ids travel as they come.
            moved = [op for stage in plan.stages for op in stage.moved_ops]
            assert ("SparseFillEmptyRows" in moved) is not fused
        np.testing.assert_allclose(losses[True], losses[False], rtol=1e-5)


def fed_by_data() -> tuple[tf.Graph, tf.Tensor, tf.Operation]:
    with tf.Graph().as_default() as graph:
        dataset = tf.data.Dataset.range(200).map(lambda i: tf.stack([i % ROWS, 3 * i % ROWS]))
        numbers = v1.data.make_one_shot_iterator(dataset.batch(4)).get_next()
        tables = made_tables("resource", (8, 8), tf.float32, 2)
        embeddings = [
            v1.nn.safe_embedding_lookup_sparse(
                table, tf.sparse.from_dense(numbers[:, i : i + 1] + 1 - 1), combiner="mean"
            )
            for i, table in enumerate(tables)
        ]
        loss = loss_of(embeddings)
        train_op = OPTIMIZERS["adagrad"]().minimize(loss)
        tf.group(v1.global_variables_initializer(), name="begin")
    return graph, loss, train_op


def two_tables(kind: str, optimizer: str) -> tuple[tf.Graph, tf.Tensor, tf.Operation]:
    at = ((0, 0), (0, 1), (2, 0), (3, 1))
    drawn = [
        Feature((4, 2), at, (1, 1, 3, -1), combiner, None, None, False, i, tf.int64)
        for i, combiner in enumerate(("mean", "sum"))
    ]
    with tf.Graph().as_default() as graph:
        loss = loss_of(looked_up(drawn, made_tables(kind, (8, 16), tf.float32, 5)))
        train_op = OPTIMIZERS[optimizer]().minimize(loss)
        tf.group(v1.global_variables_initializer(), name="begin")
    return graph, loss, train_op


class TestRuns:
    def test_each_input_is_taken_by_its_own_steps_alone(self) -> None:
        with tf.Graph().as_default() as graph:
            (table,) = made_tables("resource", (4,), tf.float32, 1)
            losses = []
            for _ in range(2):
                numbers = tf.data.Dataset.range(9).map(lambda i: tf.stack([i % ROWS, 3])).batch(2)
                batch = v1.data.make_one_shot_iterator(numbers).get_next()
                found = v1.nn.safe_embedding_lookup_sparse(
                    table, tf.sparse.from_dense(batch), combiner="sum"
                )
                losses.append(tf.reduce_sum(found))
            tf.group(v1.global_variables_initializer(), name="begin")
        plan = wb.plan_fusion(graph)
        assert len({each.op for each in plan.of("lookup")}) == 2
        with v1.Session(graph=graph, config=wb.apply(plan)) as session:
            session.run(graph.get_operation_by_name("begin"))
            for _ in range(4):
                session.run(losses[0])
            # The other one is at its first batch still.
            assert [session.run(losses[1]) for _ in range(4)]

    def test_each_train_op_updates_its_own_tables(self) -> None:
        with tf.Graph().as_default() as graph:
            tables = made_tables("resource", (4, 4), tf.float32, 1)
            ids = fed(tf.sparse.from_dense([[1, 2], [0, 3]]))
            found = [v1.nn.safe_embedding_lookup_sparse(each, ids) for each in tables]
            loss = loss_of(found)
            train = [OPTIMIZERS["adagrad"]().minimize(loss, var_list=[table]) for table in tables]
            tf.group(v1.global_variables_initializer(), name="begin")
        plan = wb.plan_fusion(graph)
        assert all(each.updates for each in plan.of("lookup"))
        with v1.Session(graph=graph, config=wb.apply(plan)) as session:
            session.run(graph.get_operation_by_name("begin"))
            before = session.run(tables)
            session.run(train[0])
            after = session.run(tables)
        assert not np.array_equal(before[0], after[0])
        np.testing.assert_array_equal(before[1], after[1])

    def test_lookups_of_what_is_fed_apart_are_apart(self) -> None:
        with tf.Graph().as_default() as graph:
            (table,) = made_tables("resource", (4,), tf.float32, 1)
            given = [v1.sparse_placeholder(tf.int64, [None, 2]) for _ in range(2)]
            found = [v1.nn.safe_embedding_lookup_sparse(table, ids) for ids in given]
            tf.group(v1.global_variables_initializer(), name="begin")
        with v1.Session(graph=graph, config=wb.apply(wb.plan_fusion(graph))) as session:
            session.run(graph.get_operation_by_name("begin"))
            value = v1.SparseTensorValue([[0, 0]], np.int64([3]), [1, 2])
            assert session.run(found[1], {given[1]: value}).shape == (1, 4)


def refused(build: Callable[[tf.SparseTensor, Any], Any]) -> str:
    """Why the one lookup of a graph stays."""
    with tf.Graph().as_default() as graph:
        (table,) = made_tables("resource", (4,), tf.float32, 1)
        build(fed(tf.sparse.from_dense([[1, 2], [0, 3]])), table)
    plan = wb.plan_fusion(graph)
    assert not plan.of("lookup")
    (refusal,) = plan.refusals
    assert plan.describe() == f"{refusal.name} stays: {refusal.reason}"
    return refusal.reason


def in_a_branch(ids: tf.SparseTensor, table: Any) -> Any:
    v1.disable_control_flow_v2()
    try:
        is_on = v1.placeholder_with_default(True, [])
        return tf.cond(
            is_on,
            lambda: v1.nn.safe_embedding_lookup_sparse(table, ids, combiner="sum"),
            lambda: tf.zeros([2, 4]),
        )
    finally:
        v1.enable_control_flow_v2()


def sharded(ids: tf.SparseTensor, table: Any) -> Any:
    return v1.nn.safe_embedding_lookup_sparse([table, table], ids, combiner="sum")


def of_doubles(ids: tf.SparseTensor, table: Any) -> Any:
    return v1.nn.safe_embedding_lookup_sparse(tf.cast(table, tf.float64), ids, combiner="sum")


def on_another_device(ids: tf.SparseTensor, table: Any) -> Any:
    with tf.device("/device:CPU:1"):
        other = v1.get_variable("other", [9, 4], use_resource=True)
    return v1.nn.safe_embedding_lookup_sparse(other, ids, combiner="sum")


def of_a_computed_default(ids: tf.SparseTensor, table: Any) -> Any:
    default = tf.cast(v1.placeholder_with_default(1, []), ids.dtype)
    filled, _ = tf.sparse.fill_empty_rows(ids, default)
    return v1.nn.embedding_lookup_sparse(table, filled, None, combiner="sum")


def of_a_cube(ids: tf.SparseTensor, table: Any) -> Any:
    cube = tf.sparse.reshape(ids, [2, 2, 1])
    return v1.nn.embedding_lookup_sparse(table, cube, None, combiner="sum")


def of_other_rows(ids: tf.SparseTensor, table: Any) -> Any:
    unique, places = tf.unique(ids.values)
    vectors = tf.nn.embedding_lookup(table, unique)
    return tf.sparse.segment_sum(vectors, places, ids.indices[:, 1])


def of_a_table_without_rows(ids: tf.SparseTensor, table: Any) -> Any:
    empty = v1.get_variable("empty", [0, 4], use_resource=True)
    return v1.nn.safe_embedding_lookup_sparse(empty, ids, combiner="sum")


def of_a_reference_without_rows(ids: tf.SparseTensor, table: Any) -> Any:
    empty = v1.get_variable("empty", [0, 4], use_resource=False)
    return v1.nn.safe_embedding_lookup_sparse(empty, ids, combiner="sum")


class TestRefusals:
    @pytest.mark.parametrize(
        ("build", "reason"),
        [
            (in_a_branch, "it is in a branch or a loop"),
            (sharded, "its table has several shards, or a max_norm that is not TensorFlow's own"),
            (of_doubles, "its table is neither float32, half nor bfloat16"),
            (on_another_device, "its table is on another device than the ids"),
            (of_a_computed_default, "the id that empty rows get is computed by the graph"),
            (of_a_cube, "its ids are not known to be a matrix"),
            (of_other_rows, "its rows are not the first column of indices"),
            (of_a_table_without_rows, "its table has no rows"),
            (of_a_reference_without_rows, "its table has no rows"),
        ],
    )
    def test_says_why_a_lookup_stays(self, build: Any, reason: str) -> None:
        assert reason in refused(build)

    def test_several_gradients_of_one_lookup_are_made_apart(self) -> None:
        with tf.Graph().as_default() as graph:
            (table,) = made_tables("resource", (4,), tf.float32, 1)
            found = v1.nn.safe_embedding_lookup_sparse(
                table, fed(tf.sparse.from_dense([[1, 2], [0, 3]])), combiner="sum"
            )
            gradients = [
                tf.convert_to_tensor(tf.gradients(scale * tf.sin(found), table)[0])
                for scale in (1.0, 2.0)
            ]
            tf.group(v1.global_variables_initializer(), name="begin")
        plan = wb.plan_fusion(graph)
        assert [each.gradients for each in plan.of("lookup")] == [2]
        begin = graph.get_operation_by_name("begin")
        found, _ = trained(graph, gradients, begin, wb.apply(plan), steps=1)
        expected, _ = trained(graph, gradients, begin, None, steps=1)
        np.testing.assert_allclose(found, expected, rtol=1e-6)

    def test_what_is_no_graph(self) -> None:
        with pytest.raises(PlanError, match="7 of type int is no graph; expected a tf.Graph"):
            wb.plan_fusion(7)

    def test_a_graph_without_lookups_has_an_empty_plan(self) -> None:
        plan = wb.plan_fusion(tf.Graph())
        assert plan.describe() == (
            "the graph has no stock lookup, batch normalization or interaction of vectors"
        )
        assert not wb.apply(plan).graph_options.rewrite_options.custom_optimizers

    def test_a_plan_for_another_graph_is_refused_when_it_is_applied(self) -> None:
        graph, _, _ = two_tables("resource", "adagrad")
        plan = wb.plan_fusion(graph)
        with pytest.raises(PlanError, match="node .* is missing: the plan was made for another"):
            wb.apply(plan, graph=tf.Graph())

    def test_one_over_stages_is_refused(self) -> None:
        graph, _, train_op = fed_by_data()
        config, plan = wb.prepare_config(graph, targets=[train_op])
        assert plan.stages
        with pytest.raises(PlanError, match="apply the FusionPlan first, then a StagePlan"):
            wb.apply(wb.plan_fusion(graph), config)
