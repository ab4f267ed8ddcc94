"""What every fused graph keeps: each gradient once, what waits for what, the order of uses."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from tensorflow.core.protobuf.rewriter_config_pb2 import RewriterConfig

import workbench as wb
from workbench.errors import PlanError

v1 = tf.compat.v1
KINDS = pytest.mark.parametrize("resource", [False, True], ids=["ref", "resource"])


@pytest.fixture(autouse=True)
def graph() -> Iterator[tf.Graph]:
    with tf.Graph().as_default() as made:
        yield made


def variable(name: str, value: Any, resource: bool) -> Any:
    return v1.get_variable(name, initializer=np.float32(value), use_resource=resource)


def sparse(ids: tf.Tensor) -> tf.SparseTensor:
    at = tf.stack([tf.range(tf.size(ids, tf.int64)), tf.zeros_like(ids)], 1)
    return tf.SparseTensor(at, ids, [4, 1])


def both(graph: tf.Graph, *runs: Any, feeds: Any = None) -> list[list[Any]]:
    """What runs give, one after another, and all variables in the end: stock, and fused."""
    results = []
    begin = v1.global_variables_initializer()
    plain, fused = v1.ConfigProto(), v1.ConfigProto()
    for config in (plain, fused):
        # Both lose what constants wait for, in stock TensorFlow too.
        config.graph_options.rewrite_options.constant_folding = RewriterConfig.OFF
        config.graph_options.rewrite_options.arithmetic_optimization = RewriterConfig.OFF
    for config in (plain, wb.apply(wb.plan_fusion(graph), fused)):
        with v1.Session(config=config) as session:
            session.run(begin)
            values = [session.run(run, feeds) for run in runs]
            results.append([*values, session.run(v1.global_variables())])
    return results


class TestGradients:
    @KINDS
    @pytest.mark.parametrize("trained", [0, 1])
    def test_belong_to_one_lookup_of_the_same_ids(
        self, graph: tf.Graph, resource: bool, trained: int
    ) -> None:
        ids = v1.placeholder_with_default([[0], [1]], [None, 1])
        table = variable("table", np.ones((2, 2)), resource)
        lookups = [tf.nn.embedding_lookup(table, ids) for _ in range(2)]
        optimizer = v1.train.GradientDescentOptimizer(0.25)
        train_op = optimizer.minimize(tf.reduce_sum(lookups[trained]))
        plan = wb.plan_fusion(graph)
        assert [each.updates for each in plan.of("lookup")].count(True) == 1, plan.describe()
        assert "as before" not in plan.describe()
        stock, fused = both(graph, train_op)
        np.testing.assert_array_equal(stock[1][0], np.full((2, 2), 0.75))
        np.testing.assert_array_equal(fused[1][0], stock[1][0])

    def test_of_both_lookups_of_the_same_ids(self, graph: tf.Graph) -> None:
        ids = v1.placeholder_with_default([[0], [1]], [None, 1])
        table = variable("table", np.ones((2, 2)), True)
        first, second = (tf.nn.embedding_lookup(table, ids) for _ in range(2))
        loss = tf.reduce_sum(first) + tf.reduce_sum(second * 2.0)
        train_op = v1.train.GradientDescentOptimizer(0.25).minimize(loss)
        stock, fused = both(graph, train_op)
        np.testing.assert_array_equal(fused[1][0], stock[1][0])


class TestWaits:
    @KINDS
    @pytest.mark.parametrize("kind", ["dense", "plain", "safe", "weighted"])
    def test_of_a_lookup_for_an_assignment(
        self, graph: tf.Graph, kind: str, resource: bool
    ) -> None:
        ids = v1.placeholder(tf.int64, [None])
        table = variable("table", np.zeros((9, 2)), resource)
        given = sparse(ids)
        weights = given.with_values(tf.ones_like(ids, tf.float32))
        with tf.control_dependencies([table.assign(tf.fill([9, 2], 7.0))]):
            if kind == "dense":
                rows = tf.nn.embedding_lookup(table, ids)
            elif kind == "plain":
                rows = v1.nn.embedding_lookup_sparse(table, given, None, combiner="sum")
            else:
                of_ids = weights if kind == "weighted" else None
                rows = v1.nn.safe_embedding_lookup_sparse(table, given, of_ids, combiner="sum")
        for values in both(graph, rows, feeds={ids: [1, 2, 3, 0]}):
            np.testing.assert_array_equal(values[0], np.full((4, 2), 7.0))
            np.testing.assert_array_equal(values[1][0], np.full((9, 2), 7.0))

    def test_of_a_lookup_for_a_count(self, graph: tf.Graph) -> None:
        ids = v1.placeholder_with_default(np.int64([1, 2, 3, 0]), [None])
        table, count = variable("table", np.ones((9, 2)), True), variable("count", 0, True)
        with tf.control_dependencies([count.assign_add(1.0)]):
            rows = v1.nn.safe_embedding_lookup_sparse(table, sparse(ids))
        for values in both(graph, rows, rows):
            assert values[-1][1] == 2

    def test_a_lookup_alone_does_not_run_the_count_of_another_one(self, graph: tf.Graph) -> None:
        ids = v1.placeholder_with_default(np.int64([1, 2, 3, 0]), [None])
        table, count = variable("table", np.ones((9, 2)), True), variable("count", 0, True)
        alone = v1.nn.safe_embedding_lookup_sparse(table, sparse(ids))
        with tf.control_dependencies([count.assign_add(1.0)]):
            counted = v1.nn.safe_embedding_lookup_sparse(table, sparse(tf.identity(ids)))
        v1.train.GradientDescentOptimizer(0.1).minimize(tf.reduce_sum(alone * counted))
        assert wb.plan_fusion(graph).count
        for values in both(graph, alone):
            assert values[-1][1] == 0

    @pytest.mark.parametrize("kind", ["lookup", "joined", "dots", "norm", "layer", "gradient"])
    def test_for_a_check(self, graph: tf.Graph, kind: str) -> None:
        limit = v1.placeholder_with_default(np.int64(9), [])
        ids = v1.placeholder_with_default(np.int64([1, 2, 3, 0]), [None])
        tables = [variable(f"table{i}", np.eye(9, 40), True) for i in range(2)]
        wide = v1.placeholder_with_default(np.ones((40, 40), np.float32), [None, 40])
        cube = v1.placeholder_with_default(np.ones([6, 3, 4], np.float32), [None, 3, 4])
        found = [tf.nn.embedding_lookup(table, ids) for table in tables]
        gamma = variable("gamma", np.ones(40), True)
        loss = tf.reduce_sum(tf.sin(found[0]))
        with tf.control_dependencies([v1.assert_less(np.int64(5), limit)]):
            if kind == "lookup":
                fetched = tf.nn.embedding_lookup(tables[0], ids)
            elif kind == "joined":
                fetched = tf.concat(found, 1)
            elif kind == "dots":
                products = tf.reshape(tf.matmul(cube, cube, transpose_b=True), [-1, 9])
                fetched = tf.gather(products, [1, 2, 5], axis=1)
            elif kind == "norm":
                moments = tf.nn.moments(wide, [0])
                fetched = tf.nn.batch_normalization(wide, *moments, None, None, 1e-3) * gamma
            elif kind == "layer":
                fetched = tf.nn.relu(tf.matmul(wide, wide, transpose_b=True))
            else:
                fetched = v1.train.GradientDescentOptimizer(0.5).minimize(loss)
        begin = v1.global_variables_initializer()
        for config in (None, wb.apply(wb.plan_fusion(graph))):
            with v1.Session(config=config) as session:
                session.run(begin)
                session.run(fetched)
                with pytest.raises(tf.errors.InvalidArgumentError):
                    session.run(fetched, {limit: 3})


class TestUsesOfAVariable:
    def test_a_read_comes_before_an_assignment_that_waits_for_it(self, graph: tf.Graph) -> None:
        table = variable("table", np.ones((50, 16)), True)
        old = table.read_value()
        slow = tf.matmul(tf.ones([300, 300]), tf.ones([300, 300]))
        ids = tf.cast(tf.reduce_sum(slow) * 0, tf.int64) + tf.constant([1, 2], tf.int64)
        found = tf.gather(old, ids)
        with tf.control_dependencies([old]):
            assigned = table.assign(tf.fill([50, 16], 7.0)).op
        begin = v1.global_variables_initializer()
        config = wb.apply(wb.plan_fusion(graph))
        for _ in range(10):
            with v1.Session(config=config) as session:
                session.run(begin)
                assert session.run([found, assigned])[0].sum() == 32

    def test_a_lookup_comes_before_an_assignment_that_waits_for_its_rows(
        self, graph: tf.Graph
    ) -> None:
        ids = v1.placeholder_with_default(np.int64([1, 2]), [None])
        table = variable("table", np.ones((9, 4)), True)
        found = [tf.nn.embedding_lookup(table, ids) for _ in range(2)]
        with tf.control_dependencies([found[0]]):
            assigned = table.assign(tf.fill([9, 4], 7.0))
        with tf.control_dependencies([assigned]):
            after = tf.nn.embedding_lookup(table, ids) + 0.0
        for values in both(graph, [found[0], after]):
            assert (values[0][0].sum(), values[0][1].sum()) == (8, 56)

    @pytest.mark.parametrize("changed", ["the table", "another"])
    def test_tensorflow_drops_a_wait_for_a_change_of_a_table(
        self, graph: tf.Graph, changed: str
    ) -> None:
        """Its arithmetic optimizer reads the table of combined rows by a node of its own."""
        table = variable("table", np.ones((4, 2)), resource=True)
        other = variable("other", np.ones((4, 2)), resource=True)
        ids = v1.placeholder_with_default(np.int64([0, 1, 1, 3]), [4])
        rows = tf.gather(table, ids)
        change = (table if changed == "the table" else other).assign_add(tf.ones([4, 2]))
        with tf.control_dependencies([rows, change]):
            combined = tf.nn.embedding_lookup_sparse(table, sparse(ids), None, combiner="sum")
        plan = wb.plan_fusion(graph)
        reasons = {refusal.name: refusal.reason for refusal in plan.refusals}
        if changed == "the table":
            assert all("drops that wait" in reason for reason in reasons.values())
            assert set(reasons) == {rows.op.name, "embedding_lookup_sparse"}
        else:
            assert not reasons and len(plan.of("lookup")) == 2
        stock, fused = both(graph, [rows, combined])
        np.testing.assert_array_equal(stock[0][1], fused[0][1])

    @KINDS
    @pytest.mark.parametrize(
        "optimizer",
        [
            v1.train.GradientDescentOptimizer,
            v1.train.AdagradOptimizer,
            functools.partial(v1.train.MomentumOptimizer, momentum=0.9),
        ],
        ids=["descent", "Adagrad", "momentum"],
    )
    def test_a_lookup_comes_before_an_update_that_needs_no_value_of_it(
        self, graph: tf.Graph, optimizer: Any, resource: bool
    ) -> None:
        """The gradient of a sum depends on the shape of what it sums alone."""
        ids = v1.placeholder_with_default(np.int64([0, 1, 1, 3]), [None])
        tables = [variable(name, np.ones((4, 2)), resource) for name in "ab"]
        lookup = v1.nn.safe_embedding_lookup_sparse
        found = [lookup(table, sparse(ids), combiner="sum") for table in tables]
        loss = tf.add_n([tf.reduce_sum(each) for each in found])
        train_op = optimizer(0.5).minimize(loss)
        plan = wb.plan_fusion(graph)
        assert len(plan.of("lookup")) == len(tables) and not plan.refusals, plan.describe()
        stock, fused = both(graph, *[[train_op, found]] * 3)
        for one, other in zip(tf.nest.flatten(stock), tf.nest.flatten(fused), strict=True):
            if one is not None:
                np.testing.assert_allclose(other, one, rtol=1e-6)


class TestPlansOfOtherGraphs:
    """A notebook's cell is edited, and run again with the config of before."""

    @staticmethod
    def model(
        combiner: str = "mean",
        default_id: int | None = None,
        max_norm: float | None = None,
        swapped: bool = False,
        columns: int = 64,
    ) -> tuple[tf.Graph, tf.Tensor, tf.Operation]:
        with tf.Graph().as_default() as graph:
            table = v1.get_variable("t", initializer=np.eye(50, columns, dtype=np.float32))
            ids = [
                tf.SparseTensor([[0, 0], [0, 1], [2, 0]], tf.constant(each, tf.int64), [40, 5])
                for each in ([1, 2, 3], [7, 8, 9])
            ]
            lookup = v1.nn.safe_embedding_lookup_sparse
            first, second = ids[::-1] if swapped else ids
            one = lookup(
                table, first, combiner=combiner, default_id=default_id, max_norm=max_norm, name="a"
            )
            result = tf.sin(one) + lookup(table, second, name="b")
            return graph, result, v1.global_variables_initializer()

    @pytest.mark.parametrize(
        "change",
        [
            {"combiner": "sum"},
            {"default_id": 4},
            {"max_norm": 0.1},
            {"swapped": True},
            {"columns": 32},
        ],
        ids=str,
    )
    def test_are_errors(self, change: dict[str, Any]) -> None:
        plan = wb.plan_fusion(self.model()[0])
        graph, result, begin = self.model(**change)
        with pytest.raises(PlanError, match="plan again, for this graph"):
            wb.apply(plan, graph=graph)
        refused = pytest.raises(
            tf.errors.InvalidArgumentError, match="make the plan from the graph"
        )
        with v1.Session(graph=graph, config=wb.apply(plan)) as session, refused:
            session.run(begin)
            session.run(result)

    def test_run_the_same_graph_built_again(self) -> None:
        plan = wb.plan_fusion(self.model()[0])
        graph, result, begin = self.model()
        values = []
        for config in (None, wb.apply(plan, graph=graph)):
            with v1.Session(graph=graph, config=config) as session:
                session.run(begin)
                values.append(session.run(result))
        np.testing.assert_allclose(*values, rtol=1e-5)

    def test_run_a_graph_that_has_more(self) -> None:
        graph, result, _ = self.model()
        plan = wb.plan_fusion(graph)
        with graph.as_default():
            more = tf.reduce_sum(result)
            begin = v1.global_variables_initializer()
        with v1.Session(graph=graph, config=wb.apply(plan)) as session:
            session.run(begin)
            assert np.isfinite(session.run(more))

    @KINDS
    def test_run_a_graph_that_has_a_saver_and_more_initializers(
        self, graph: tf.Graph, resource: bool
    ) -> None:
        ids = v1.placeholder_with_default(np.int64([1, 2]), [None])
        table = variable("table", np.ones((9, 4)), resource)
        loss = tf.reduce_sum(tf.nn.embedding_lookup(table, ids))
        train_op = v1.train.AdamOptimizer(0.5).minimize(loss)
        plan = wb.plan_fusion(graph)
        v1.train.Saver()
        begin = v1.global_variables_initializer()
        with v1.Session(config=wb.apply(plan, graph=graph)) as session:
            session.run(begin)
            session.run(train_op)

    def test_in_which_something_new_changes_the_table_are_errors(self, graph: tf.Graph) -> None:
        ids = v1.placeholder_with_default(np.int64([1, 2]), [None])
        table = variable("table", np.ones((9, 4)), True)
        found = tf.nn.embedding_lookup(table, ids)
        v1.train.GradientDescentOptimizer(0.5).minimize(tf.reduce_sum(tf.sin(found)))
        plan = wb.plan_fusion(graph)
        with tf.control_dependencies([found]):
            table.assign_add(tf.ones([9, 4]))
        with pytest.raises(PlanError, match="changes a variable behind what the plan replaces"):
            wb.apply(plan, graph=graph)
        refused = pytest.raises(tf.errors.InvalidArgumentError, match="changes a variable behind")
        with v1.Session(config=wb.apply(plan)) as session, refused:
            session.run(found)

    def test_of_an_older_format_are_errors(self) -> None:
        graph, _, begin = self.model()
        config = wb.apply(wb.plan_fusion(graph))
        (entry,) = config.graph_options.rewrite_options.custom_optimizers
        entry.parameter_map["format"].i = 2
        refused = pytest.raises(tf.errors.InvalidArgumentError, match="format 2.*plan again")
        with v1.Session(graph=graph, config=config) as session, refused:
            session.run(begin)
