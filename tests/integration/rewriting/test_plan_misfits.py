"""A stage plan that does not fit the graph is refused with an error that names the node."""

from __future__ import annotations

from typing import Any

import pytest
import tensorflow as tf

from tests.builders.stage_plans import (
    Stage,
    build_model,
    config_of,
    copy_set,
    error_of,
    model_stage,
    numbers,
    plan_stage,
    with_nodes,
)

v1 = tf.compat.v1


class TestPlansThatDoNotFit:
    """Each names the stage and the node; the graph is batch -> double, square."""

    NODES = ("batch", "double", "square")

    def build(self) -> None:
        batch = numbers()
        tf.multiply(batch, tf.constant(2, tf.int64, name="two"), name="double")
        tf.identity(tf.square(batch, name="square"), name="end")
        tf.no_op(name="none")

    def error(self, *stages: Stage, target: str = "") -> str:
        return error_of(config_of(*stages))

    @pytest.mark.parametrize(
        ("parameters", "message"),
        [
            (
                {"moved": ["batch", "gone", "square"], "carried": ["batch", "square"]},
                "moved node 'gone' is not in the session's graph; make the plan from the graph",
            ),
            (
                {"moved_ops": ["IteratorGetNext", "Add", "Square"]},
                "moved node 'double' is a Mul in the session's graph; the plan was made for a Add",
            ),
            (
                {"moved": ["double", "batch"], "moved_ops": ["Mul", "IteratorGetNext"]}
                | {"carried": ["double", "batch"]},
                "moved node 'double' reads 'batch', which is moved too; expected the source first",
            ),
            (
                {
                    "moved": ["batch", "none"],
                    "moved_ops": ["IteratorGetNext", "NoOp"],
                    "carried": ["batch", "none"],
                },
                "carried node 'none' (NoOp) has no output that a record could hold",
            ),
            (
                {"copies": [copy_set("c", {"gone:0": "two:0"})]},
                "tensor 'gone:0' names no node of the graph",
            ),
            (
                {"copies": [copy_set("c", {"batch:0": "two:1"})]},
                "tensor 'two:1' does not exist: node 'two' has 1 outputs",
            ),
            (
                {"copies": [copy_set("c", {"batch:4294967296": "two:0"})]},
                "tensor 'batch:4294967296' does not exist: node 'batch' has 1 outputs",
            ),
            (
                {"copies": [copy_set("c", {"^batch": "two:0"})]},
                "tensor '^batch' does not exist: node 'batch' has 1 outputs",
            ),
            (
                {"copies": [copy_set("c", {"two:0": "batch:0"})]},
                "copy 'c' substitutes 'two:0', which is no output of a moved node",
            ),
            (
                {"copies": [copy_set("c", {"batch": "two", "batch:0": "two"})]},
                "copy 'c' substitutes 'batch:0' twice",
            ),
        ],
    )
    def test_it_says_so(self, graph, parameters, message):
        self.build()
        stage = plan_stage(graph, self.NODES, self.NODES).but(**parameters)
        found = self.error(stage)
        assert message in found
        assert "stage plan, stage 'auto': " in found

    @pytest.mark.parametrize(
        ("fields", "message"),
        [
            (
                {"name": "strange", "op": "WorkbenchBufferStrange"},
                "node 'strange' has op 'WorkbenchBufferStrange', which this process does not know",
            ),
            ({"name": "bad", "op": "WorkbenchBufferTake"}, "node 'bad' is malformed: "),
            ({"name": "bad", "op": "WorkbenchBufferSize"}, "own node 'bad' is malformed: "),
            (
                {"name": "lost", "op": "WorkbenchBufferSize", "input": ["^gone"]},
                "node 'lost' waits for '^gone', which is not in the session's graph",
            ),
            (
                {"name": "lost", "op": "WorkbenchBufferDrain", "input": ["gone:1"]},
                "node 'lost' reads what it cannot: tensor 'gone:1' names no node of the graph",
            ),
            (
                {"name": "lost", "op": "WorkbenchBufferDrain", "input": ["two:3"]},
                "tensor 'two:3' does not exist: node 'two' has 1 outputs",
            ),
            (
                {"name": "lost", "op": "WorkbenchBufferDrain", "input": ["two:4294967295"]},
                "tensor 'two:4294967295' does not exist: node 'two' has 1 outputs",
            ),
            (
                {"name": "full", "op": "WorkbenchBufferSize", "input": ["two"]},
                "node 'full' is given 1 inputs; its op WorkbenchBufferSize has 0",
            ),
            (
                {"name": "odd", "op": "WorkbenchBufferDrain", "input": ["two"]},
                "input 0 of node 'odd' is 'two:0' of type int64; expected type bool",
            ),
            (
                {"name": "self", "op": "WorkbenchBufferSize", "input": ["^self"]},
                "node 'self' would wait for itself",
            ),
            (
                {"name": "self", "op": "WorkbenchBufferDrain", "input": ["self"]},
                "input 0 of node 'self' is its own output",
            ),
            (
                {"name": "two", "op": "Placeholder"},
                "own node 'two', a Placeholder, has the name of a Const of the session's graph",
            ),
            (
                {"name": "auto/ahead/batch", "op": "WorkbenchBufferSize"},
                "own node 'auto/ahead/batch' has the name of a copy",
            ),
        ],
    )
    def test_of_an_own_node(self, graph, fields, message):
        self.build()
        stage = plan_stage(graph, self.NODES, self.NODES)
        found = self.error(with_nodes(stage, lambda nodes: nodes.add(**fields)))
        assert message in found
        assert "stage plan, stage 'auto': " in found

    @pytest.mark.parametrize(
        ("own", "change", "message"),
        [
            (
                "auto/take",
                lambda node: node.attr["dtypes"].list.type.pop(),
                "take 'auto/take' delivers [int64, int64]; the outputs of the carried nodes are",
            ),
            (
                "auto/put",
                lambda node: node.input.__setitem__(2, "auto/ahead/square:0"),
                "put 'auto/put' puts 'auto/ahead/square:0' as tensor 1 of its record; expected "
                "'auto/ahead/double:0'",
            ),
            (
                "auto/put",
                lambda node: node.attr["capacity"].__setattr__("i", 7),
                "'auto/put' has capacity 7, take 'auto/take' 1; the ops of one buffer agree",
            ),
            (
                "auto/cancel",
                lambda node: node.attr["shared_name"].__setattr__("s", b"other"),
                "'auto/cancel' has shared_name \"other\", take 'auto/take' \"auto",
            ),
            (
                "auto/put",
                lambda node: node.attr["container"].__setattr__("s", b"other"),
                "'auto/put' has container \"other\", take 'auto/take' \"\"",
            ),
            (
                "auto/flush",
                lambda node: node.attr["capacity"].__setattr__("i", 0),
                "own node 'auto/flush' is malformed: Value for attr 'capacity' of 0 must be at",
            ),
            (
                "auto/flush",
                lambda node: node.attr["stage"].__setattr__("i", 3),
                "own node 'auto/flush' is malformed: AttrValue had value with type 'int' when",
            ),
        ],
    )
    def test_of_a_buffer(self, graph, own, change, message):
        def edit(nodes: Any) -> None:
            (node,) = (node for node in nodes if node.name == own)
            change(node)

        self.build()
        stage = plan_stage(graph, self.NODES, self.NODES)
        found = self.error(with_nodes(stage, edit))
        assert message in found
        assert "stage plan, stage 'auto': " in found

    def test_a_put_that_fits_none_of_several_copies(self, graph):
        self.build()
        stage = plan_stage(graph, self.NODES, self.NODES)
        copies = [copy_set("auto/ahead"), copy_set("other")]

        def edit(nodes: Any) -> None:
            (put,) = (node for node in nodes if node.name == "auto/put")
            put.input[1] = "other/batch:0"
            nodes.add().CopyFrom(put)
            nodes[-1].name = "put"

        assert (
            "put 'auto/put' puts 3 tensors, which are not what any of the 2 copies makes of the "
            "carried nodes"
        ) in self.error(with_nodes(stage.but(copies=copies), edit))

    def test_what_an_earlier_stage_added_does_not_move(self, graph):
        self.build()
        first = plan_stage(graph, self.NODES, self.NODES)
        second = plan_stage(graph, self.NODES, self.NODES, name="second").but(
            moved=["batch", "double", "square", "auto/ahead/double"], moved_ops=["a"] * 4
        )
        assert (
            "stage plan, stage 'second': moved node 'auto/ahead/double' was added by an earlier"
        ) in self.error(first, second)

    def test_a_copy_with_the_name_of_another_node(self, graph):
        self.build()
        tf.constant(1, name="auto/ahead/double")
        assert "node 'auto/ahead/double' cannot be added: the graph has one of that name" in (
            self.error(plan_stage(graph, self.NODES, self.NODES))
        )

    def test_a_substitute_of_another_type(self, graph):
        self.build()
        tf.constant("text", name="text")
        stage = plan_stage(graph, self.NODES, self.NODES)
        copies = [copy_set("c", {"batch:0": "text:0"})]
        assert "is 'text:0' of type string; expected type int64" in self.error(
            stage.but(copies=copies)
        )

    def test_a_source_that_is_substituted_in_part(self, graph):
        build_model()
        copies = [copy_set("c", {"batch:0": "batch:0"})]
        assert (
            "copy 'c' substitutes 'batch', but not 'batch:1', which moved node 'parse' reads"
            in self.error(model_stage(graph).but(copies=copies))
        )

    def test_a_carried_ref(self, graph):
        batch = numbers()
        with tf.control_dependencies([batch]):
            v1.get_variable("ref", initializer=[1.0], use_resource=False)
            ref = v1.assign_add(graph.get_tensor_by_name("ref:0"), [1.0], name="add")
        assert ref.dtype._is_ref_dtype
        stage = plan_stage(graph, ["batch"], ["batch"]).but(
            moved=["batch", "add"],
            moved_ops=["IteratorGetNext", "AssignAdd"],
            carried=["batch", "add"],
        )
        assert "carried node 'add' (AssignAdd) has output 0 of type float_ref; a record" in (
            self.error(stage)
        )

    def test_a_carried_resource(self, graph):
        with tf.control_dependencies([numbers()]):
            handle = tf.raw_ops.StackV2(max_size=1, elem_type=tf.int32, name="stack")
        del handle
        stage = plan_stage(graph, ["batch", "stack"], ["batch", "stack"])
        assert "carried node 'stack' (StackV2) has output 0 of type resource" in self.error(stage)

    def test_a_carried_variant(self, graph):
        tf.raw_ops.TensorListFromTensor(
            tensor=tf.fill([2], numbers()), element_shape=tf.constant([], tf.int32), name="list"
        )
        stage = plan_stage(graph, ["batch", "list"], ["batch", "list"])
        assert "carried node 'list' (TensorListFromTensor) has output 0 of type variant" in (
            self.error(stage)
        )

    def test_a_put_that_would_wait_for_its_own_take(self, graph):
        batch = numbers()
        not_moved = tf.add(batch, 1, name="not_moved")
        tf.multiply(batch, not_moved, name="double")
        stage = plan_stage(graph, ["batch", "double"], ["batch", "double"])
        assert (
            "stage plan, stage 'auto': put 'auto/put' would wait for take 'auto/take', which waits "
            "for the put: 'auto/take' -> 'batch' -> 'not_moved' -> 'auto/ahead/double' -> "
            "'auto/put' -> 'auto/take'; whatever a moved node reads must be moved too"
        ) in self.error(stage)

    def test_the_same_through_a_control_edge(self, graph):
        batch = numbers()
        two = tf.constant(2, tf.int64)
        with tf.control_dependencies([tf.add(batch, 1, name="not_moved")]):
            tf.multiply(batch, two, name="double")
        stage = plan_stage(graph, ["batch", "double"], ["batch", "double"])
        assert "'not_moved' -> 'auto/ahead/double'" in self.error(stage)

    def test_two_stages_that_would_wait_for_each_other(self, graph):
        left, right = numbers(name="left"), numbers(name="right")
        tf.add(left, right, name="a")
        tf.multiply(left, right, name="b")
        stages = (
            plan_stage(graph, ["left", "a"], ["left", "a"], name="l"),
            plan_stage(graph, ["right", "b"], ["right", "b"], name="r"),
        )
        found = error_of(config_of(*stages), "left:0")
        assert "put 'l/put' would wait for take 'l/take'" in found
        assert "'r/put' -> 'r/take'" in found

    def test_a_cycle_without_a_put(self, graph):
        self.build()
        stage = plan_stage(graph, self.NODES, self.NODES)

        def edit(nodes: Any) -> None:
            (take,) = (node for node in nodes if node.name == "auto/take")
            take.input.append("^end")

        found = self.error(with_nodes(stage, edit))
        assert "stage plan: the graph would have a cycle: " in found
        assert "'square' -> 'end'" in found

    def test_a_long_cycle_is_not_listed_whole(self, graph):
        value = batch = numbers()
        for i in range(100):
            value = tf.negative(value, name=f"not_moved_{i}")
        tf.multiply(batch, value, name="double")
        stage = plan_stage(graph, ["batch", "double"], ["batch", "double"])
        found = self.error(stage)
        assert "'not_moved_9' -> … (92 more) -> 'auto/put' -> 'auto/take'" in found
