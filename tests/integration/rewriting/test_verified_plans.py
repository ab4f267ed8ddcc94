"""Plans of fused graphs are compared with the graph's own nodes, on copies of what it has."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

import workbench as wb
from tests.builders.damaged_plans import applied_twice, edited, without_waits
from workbench.core.fusion import plan as planning
from workbench.core.fusion.lookups import rule
from workbench.core.fusion.verify import verifier
from workbench.errors import OptionError, PlanError

v1 = tf.compat.v1
OPTIMIZERS: dict[str, Callable[[], Any]] = {
    "adagrad": lambda: v1.train.AdagradOptimizer(0.1),
    "momentum": lambda: v1.train.MomentumOptimizer(0.1, 0.9),
    "adam": lambda: v1.train.AdamOptimizer(0.01),
}


@dataclasses.dataclass(frozen=True)
class Model:
    """A graph that trains, and what its sessions run."""

    graph: tf.Graph
    begin: tf.Operation
    batch: tf.Tensor
    train: tf.Operation
    loss: tf.Tensor


def built(optimizer: str = "adagrad", resource: bool = True) -> Model:
    """Lookups of two tables, dropout and a batch normalization; the iterator is initialized."""
    with tf.Graph().as_default() as graph:
        v1.set_random_seed(7)
        rows = tf.data.Dataset.range(90).map(
            lambda i: i + tf.constant([[0, 1, 2], [5, 0, 1], [3, 3, 0], [0, 0, 9]], tf.int64)
        )
        iterator = v1.data.make_initializable_iterator(rows)
        batch = iterator.get_next()
        ids = tf.sparse.from_dense(batch)
        tables = [v1.get_variable(f"table_{i}", [100, 8], use_resource=resource) for i in range(2)]
        found = [v1.nn.safe_embedding_lookup_sparse(t, ids, combiner="mean") for t in tables]
        found.append(tf.nn.embedding_lookup(tables[1], batch[:, 0]))
        x = tf.nn.dropout(tf.concat(found, axis=1), rate=0.2)
        mean, variance = tf.nn.moments(x, [0])
        scale, offset = (v1.get_variable(name, [24]) for name in ("scale", "offset"))
        y = tf.nn.batch_normalization(x, mean, variance, offset, scale, 1e-3)
        loss = tf.reduce_sum(tf.square(y - 0.5))
        step = v1.train.get_or_create_global_step()
        train = OPTIMIZERS[optimizer]().minimize(loss, global_step=step)
        begin = tf.group(v1.global_variables_initializer(), iterator.initializer)
    return Model(graph=graph, begin=begin, batch=batch, train=train, loss=loss)


def verified(plan: wb.FusionPlan, feed_dict: Any = None) -> wb.Verification:
    """What a session of the default graph says of a plan."""
    with v1.Session() as session:
        session.run(v1.global_variables_initializer())
        return plan.verify(session, feed_dict)


class TestSessions:
    @pytest.mark.parametrize(
        ("optimizer", "resource"),
        [
            ("adagrad", True),
            ("adam", False),
            *(
                pytest.param(optimizer, resource, marks=pytest.mark.slow)
                for optimizer, resource in (("adagrad", False), ("momentum", True), ("adam", True))
            ),
        ],
    )
    def test_a_right_plan_is_right(self, optimizer: str, resource: bool) -> None:
        model = built(optimizer, resource)
        plan = wb.plan_fusion(model.graph)
        model.graph.finalize()
        with v1.Session(graph=model.graph, config=wb.apply(plan)) as session:
            session.run(model.begin)
            verification = plan.verify(session)
        assert verification.right and bool(verification), verification.describe()
        assert len(verification.parts) == plan.count
        assert not verification.of("not verified"), verification.describe()
        assert verification.require() is verification
        kinds = [part.kind for part in verification.parts]
        assert kinds.count("lookup") == 3 and kinds.count("batch normalization") == 1
        (norm,) = (part for part in verification.parts if part.kind == "batch normalization")
        assert norm.verdict == "same bits" or 0 < norm.relative < 1e-5

    def test_the_session_goes_on_as_it_would_have(self) -> None:
        model = built("adam")
        plan = wb.plan_fusion(model.graph)
        results = []
        for verifies in (False, True):
            with v1.Session(graph=model.graph, config=wb.apply(plan)) as session:
                session.run(model.begin)
                fetched = []
                for _ in range(3):
                    fetched += session.run([model.batch, model.loss, model.train])[:2]
                    if verifies:
                        plan.verify(session).require()
                variables = model.graph.get_collection(v1.GraphKeys.GLOBAL_VARIABLES)
                results.append([*fetched, *session.run(variables)])
        for one, other in zip(*results, strict=True):
            assert np.asarray(one).tobytes() == np.asarray(other).tobytes()

    def test_a_monitored_session_is_verified_without_its_hooks(self) -> None:
        with tf.Graph().as_default() as graph:
            ids = tf.sparse.from_dense(v1.placeholder_with_default(np.int64([[1], [2]]), [None, 1]))
            table = v1.get_variable("table", [9, 4])
            found = v1.nn.safe_embedding_lookup_sparse(table, ids, combiner="sum")
            train = v1.train.AdagradOptimizer(0.1).minimize(tf.reduce_sum(found))
            plan = wb.plan_fusion(graph)
            runs: list[int] = []

            class Counted(v1.train.SessionRunHook):
                def before_run(self, run_context: Any) -> None:
                    runs.append(1)

            with v1.train.MonitoredTrainingSession(
                config=wb.apply(plan), hooks=[Counted()]
            ) as session:
                assert plan.verify(session).right
                assert not runs
                session.run(train)

    def test_a_table_of_words_is_filled_anew(self, graph: tf.Graph) -> None:
        words = v1.placeholder_with_default([["a"], ["b"]], [None, 1])
        keys = tf.lookup.KeyValueTensorInitializer(["a", "b"], np.int64([1, 2]))
        ids = tf.sparse.from_dense(tf.lookup.StaticHashTable(keys, 0).lookup(words))
        found = v1.nn.safe_embedding_lookup_sparse(v1.get_variable("table", [9, 4]), ids)
        plan = wb.plan_fusion(graph)
        assert plan.count == 1 and found.shape[1] == 4
        (part,) = verified(plan).parts
        assert part.verdict == "same bits"

    def test_a_plan_of_another_graph(self) -> None:
        plan = wb.plan_fusion(built().graph)
        other = built("momentum")
        with v1.Session(graph=other.graph) as session, pytest.raises(PlanError) as error:
            plan.verify(session)
        assert "the plan was made for another graph; plan again" in str(error.value)

    def test_what_is_no_session(self) -> None:
        plan = wb.plan_fusion(tf.Graph())
        with pytest.raises(OptionError, match="cannot be verified; expected a"):
            plan.verify("session")
        with v1.Session(graph=tf.Graph()) as session:
            assert plan.verify(session).describe() == "nothing is fused, nothing to verify"

    def test_a_feed_of_another_graph(self) -> None:
        model, other = built(), tf.constant(1)
        plan = wb.plan_fusion(model.graph)
        with v1.Session(graph=model.graph) as session:
            session.run(model.begin)
            with pytest.raises(OptionError, match="expected a tensor of the session's graph"):
                plan.verify(session, {other: 1})


class TestFaults:
    def test_an_update_that_is_applied_twice(self, graph: tf.Graph) -> None:
        ids = v1.placeholder_with_default([[0], [1]], [None, 1])
        table = v1.get_variable("table", [2, 2], initializer=v1.ones_initializer())
        first, second = (tf.nn.embedding_lookup(table, ids) for _ in range(2))
        v1.train.GradientDescentOptimizer(0.25).minimize(tf.reduce_sum(first + 0 * second))
        plan = wb.plan_fusion(graph)
        assert verified(plan).right
        wrong = verified(applied_twice(plan))
        assert not wrong.right and not wrong
        part = wrong.of("differs")[0]
        assert (part.where, part.difference) == ("table", 0.25)
        assert "lookup 'embedding_lookup" in wrong.describe()
        with pytest.raises(
            PlanError, match=r"does not do what the graph does: lookup .*'table' by"
        ):
            wrong.require()

    def test_a_gradient_that_counts_for_two_lookups(
        self, graph: tf.Graph, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        ids = v1.placeholder_with_default([[0], [1]], [None, 1])
        table = v1.get_variable("table", [2, 2], initializer=v1.ones_initializer())
        first, _ = (tf.nn.embedding_lookup(table, ids) for _ in range(2))
        v1.train.GradientDescentOptimizer(0.25).minimize(tf.reduce_sum(first))
        # As if each lookup took what it finds behind its ids.
        monkeypatch.setattr(rule, "_credited", lambda _, lookups: list(lookups))
        monkeypatch.setattr(planning, "violations", lambda *_: {})
        part = verified(wb.plan_fusion(graph)).of("differs")[0]
        assert (part.where, part.difference) == ("table", 0.25)

    @pytest.mark.parametrize("by_values", [False, True])
    def test_a_lookup_that_reads_before_an_assignment(
        self, graph: tf.Graph, monkeypatch: pytest.MonkeyPatch, by_values: bool
    ) -> None:
        ids = tf.sparse.from_dense(v1.placeholder_with_default(np.int64([[1], [2]]), [None, 1]))
        table = v1.get_variable("table", [9, 2], initializer=v1.zeros_initializer())
        with tf.control_dependencies([table.assign(tf.fill([9, 2], 7.0))]):
            v1.nn.embedding_lookup_sparse(table, ids, None, combiner="sum", name="found")
        # As if the planner did not check what its nodes wait for.
        monkeypatch.setattr(planning, "violations", lambda *_: {})
        monkeypatch.setattr(rule, "lost_waits", lambda _: {})
        plan = wb.plan_fusion(graph)
        if by_values:
            monkeypatch.setattr(verifier, "violations", lambda *_: {})
        (part,) = verified(plan).parts
        assert part.verdict == "differs"
        if by_values:
            assert (part.where, part.difference, part.relative) == ("found:0", 7.0, 1.0)
        else:
            assert "'found' waits for AssignVariableOp" in part.reason

    def test_a_check_that_is_not_waited_for(self, graph: tf.Graph) -> None:
        limit = v1.placeholder_with_default(np.int64(9), [])
        cube = v1.placeholder_with_default(np.ones([6, 3, 4], np.float32), [None, 3, 4])
        with tf.control_dependencies([v1.assert_less(np.int64(5), limit)]):
            flat = tf.reshape(tf.matmul(cube, cube, transpose_b=True), [-1, 9])
            tf.gather(flat, [1, 2, 5], axis=1)
        plan = wb.plan_fusion(graph)
        assert plan.count == 1 and verified(plan).right
        (part,) = verified(without_waits(plan)).parts
        assert part.verdict == "differs"
        assert part.reason.startswith("'GatherV2' waits for ")
        assert part.reason.endswith("and an op in its place would not")

    def test_a_fetch_that_changes_a_variable(self, graph: tf.Graph) -> None:
        count = v1.get_variable("count", [], initializer=v1.zeros_initializer())
        tf.raw_ops.AssignAddVariableOp(resource=count.handle, value=1.0, name="counted")
        ids = v1.placeholder_with_default([1, 2], [None])
        tf.nn.embedding_lookup(v1.get_variable("table", [9, 4]), ids, name="found")
        plan = wb.plan_fusion(graph)

        def wait(nodes: Any) -> None:
            for node in nodes:
                node.input.append("^counted")

        wrong = dataclasses.replace(plan, replaced=edited(plan.replaced, wait))
        (part,) = verified(wrong).parts
        assert part.verdict == "differs"
        reason = "a run that fetches 'found' alone runs AssignAddVariableOp 'counted', too"
        assert part.reason == reason

    def test_another_combiner(self) -> None:
        model = built()
        plan = wb.plan_fusion(model.graph)

        def change(nodes: Any) -> None:
            for node in nodes:
                if "combiners" in node.attr:
                    combiners = node.attr["combiners"].list.s
                    combiners[0] = b"sum" if combiners[0] == b"mean" else b"mean"

        wrong = dataclasses.replace(plan, added=edited(plan.added, change))
        assert wrong.added != plan.added
        with v1.Session(graph=model.graph) as session:
            session.run(model.begin)
            verification = wrong.verify(session)
        # What is computed from it differs, too.
        first = verification.of("differs")[0]
        assert not verification
        assert (first.kind, first.name) == ("lookup", "embedding_lookup")


class TestNotVerified:
    def reason(self, feed_dict: Any = None) -> str:
        plan = wb.plan_fusion(v1.get_default_graph())
        verification = verified(plan, feed_dict)
        assert verification.right
        (part,) = verification.parts
        assert part.verdict == "not verified"
        assert f"lookup {part.name!r}: not verified: {part.reason}" in verification.describe()
        return part.reason

    def look_up(self, ids: tf.Tensor) -> None:
        table = v1.get_variable("table", [9, 4])
        tf.nn.embedding_lookup(table, ids)

    def test_random_numbers_of_a_loop(self, graph: tf.Graph) -> None:
        def drawn(i: tf.Tensor, _: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
            return i + 1, tf.random.uniform([64], maxval=9, dtype=tf.int64)

        zeros = tf.zeros([64], tf.int64)
        self.look_up(tf.while_loop(lambda i, _: i < 2, drawn, (0, zeros))[1])
        assert self.reason() == "TensorFlow's own result varies from run to run"

    def test_a_function_of_python(self, graph: tf.Graph) -> None:
        called: list[int] = []
        ids = v1.py_func(lambda: called.append(1) or np.int64([1, 2]), [], tf.int64)
        self.look_up(tf.ensure_shape(ids, [2]))
        assert self.reason() == "PyFunc 'PyFunc' acts outside the session"
        assert not called

    def test_python_in_the_input(self, graph: tf.Graph) -> None:
        def rows() -> Any:
            yield np.int64([1, 2])

        data = tf.data.Dataset.from_generator(rows, tf.int64, [2])
        self.look_up(v1.data.make_one_shot_iterator(data).get_next())
        assert "which acts outside the session" in self.reason()

    def test_a_queue(self, graph: tf.Graph) -> None:
        queue = tf.queue.FIFOQueue(9, tf.int64, [2])
        ids = queue.dequeue(name="ids")
        self.look_up(ids)
        reason = self.reason()
        assert reason == "QueueDequeueV2 'ids' takes its batch from outside; feed its tensors"
        plan = wb.plan_fusion(graph)
        assert verified(plan, {ids: [1, 2]}).parts[0].verdict == "same bits"

    def test_a_placeholder(self, graph: tf.Graph) -> None:
        ids = v1.placeholder(tf.int64, [None], name="ids")
        self.look_up(ids)
        assert self.reason() == "placeholder 'ids' has no value; feed it"
        plan = wb.plan_fusion(graph)
        assert verified(plan, {"ids:0": [1, 2]}).parts[0].verdict == "same bits"

    def test_variables_without_values(self, graph: tf.Graph) -> None:
        self.look_up(v1.placeholder_with_default([1, 2], [None]))
        with v1.Session() as session:
            (part,) = wb.plan_fusion(graph).verify(session).parts
        assert part.verdict == "not verified"
        assert "the graph's own run fails" in part.reason

    def test_a_session_of_a_cluster(self, graph: tf.Graph) -> None:
        self.look_up(v1.placeholder_with_default([1, 2], [None]))
        plan = wb.plan_fusion(graph)
        server = v1.train.Server.create_local_server()
        with v1.Session(server.target) as session:
            assert plan.verify(session).parts[0].reason == "the session is one of a cluster"


class TestBeforeASession:
    def test_a_graph_is_verified_on_fresh_variables(self) -> None:
        model = built()
        operations = len(model.graph.get_operations())
        plan = wb.plan_fusion(model.graph)
        verification = plan.verify(model.graph)
        assert verification.right and not verification.of("not verified"), verification.describe()
        config = wb.apply(plan, graph=model.graph, verify={})
        assert config.graph_options.rewrite_options.custom_optimizers
        assert len(model.graph.get_operations()) == operations

    def test_a_plan_that_does_something_else_is_not_applied(
        self,
    ) -> None:
        model = built()
        plan = applied_twice(wb.plan_fusion(model.graph))
        config = v1.ConfigProto()
        with pytest.raises(PlanError, match="does not do what the graph does"):
            wb.apply(plan, config, graph=model.graph, verify={})
        assert not config.graph_options.rewrite_options.custom_optimizers

    def test_what_cannot_be_initialized_is_said(self) -> None:
        with tf.Graph().as_default() as graph:
            start = v1.placeholder(tf.float32, [9, 4], name="start")
            table = v1.get_variable("table", initializer=start, validate_shape=False)
            tf.nn.embedding_lookup(table, v1.placeholder_with_default([1], [None]))
        with pytest.raises(OptionError, match="cannot be initialized by themselves.*'start'"):
            wb.plan_fusion(graph).verify(graph)

    def test_without_a_graph_it_is_refused(self) -> None:
        with pytest.raises(OptionError, match="give graph="):
            wb.apply(wb.plan_fusion(built().graph), verify={})
