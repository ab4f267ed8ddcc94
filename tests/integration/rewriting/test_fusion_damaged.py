"""Plans of fused lookups that are damaged, or for another graph, are errors and no crash."""

from __future__ import annotations

import contextlib
import os
from typing import Any

import hypothesis
import numpy as np
import pytest
import tensorflow as tf
from google.protobuf import message
from hypothesis import strategies as st
from tensorflow.core.framework import graph_pb2

import workbench as wb
from tests.builders.stage_plans import config_of, error_of, function

v1 = tf.compat.v1
# More of them under AddressSanitizer: make native-fuzz.
FUZZED = hypothesis.settings(
    max_examples=int(os.environ.get("WORKBENCH_FUZZ_EXAMPLES", "25")),
    deadline=None,
    suppress_health_check=[hypothesis.HealthCheck.too_slow],
)
TABLE = np.arange(24.0, dtype=np.float32).reshape(6, 4)


def build() -> tf.Operation:
    """Two lookups, one with weights, their gradients; "loss" is what a step gives."""
    table = v1.get_variable("table", initializer=TABLE, use_resource=False)
    indices = v1.placeholder_with_default(np.int64([[0, 0], [2, 0]]), [None, 2])
    values = v1.placeholder_with_default(np.int64([3, 5]), [None])
    ids = tf.SparseTensor(indices, values, v1.placeholder_with_default(np.int64([3, 1]), [2]))
    weights = ids.with_values(v1.placeholder_with_default(np.float32([0.5, 2.0]), [None]))
    found = [
        v1.nn.safe_embedding_lookup_sparse(table, ids, each, combiner="sum")
        for each in (None, weights)
    ]
    loss = tf.reduce_sum(tf.sin(found), name="loss")
    v1.train.AdagradOptimizer(0.1).minimize(loss, name="train")
    return tf.group(v1.global_variables_initializer(), name="begin")


NODES = ("added", "replaced", "region", "sources")


def fusion_of(graph: tf.Graph) -> dict[str, Any]:
    plan = wb.plan_fusion(graph)
    groups = [function(each.op, {"members": each.members}) for each in plan.groups]
    names = {name: list(getattr(plan, name)) for name in ("choices", "inside", "reads", "writers")}
    return {**{name: getattr(plan, name) for name in NODES}, **names, "groups": groups}


def edited(nodes: bytes, edit: Any) -> bytes:
    definition = graph_pb2.GraphDef.FromString(nodes)
    edit(definition.node)
    return definition.SerializeToString()


def error(graph: tf.Graph, **changes: Any) -> str:
    given = {k: v for k, v in {**fusion_of(graph), **changes}.items() if v is not None}
    return error_of(config_of(fusion=[function("fusion", given)]), "loss:0")


class TestMalformedFusions:
    @pytest.mark.parametrize("key", [*NODES, "choices", "inside", "reads", "writers", "groups"])
    def test_a_missing_parameter(self, graph: tf.Graph, key: str) -> None:
        build()
        assert f"stage plan, fusion: parameter '{key}' is missing" in error(graph, **{key: None})

    @pytest.mark.parametrize(
        ("changes", "said"),
        [
            ({"added": 3}, "parameter 'added' is an integer; expected a string"),
            ({"added": b"\xff\xff"}, "parameter 'added' (2 bytes) is no serialized GraphDef"),
            ({"groups": ["NoOp"]}, "parameter 'groups' is a list of strings; expected a list of"),
        ],
    )
    def test_another_kind_of_parameter(
        self, graph: tf.Graph, changes: dict[str, Any], said: str
    ) -> None:
        build()
        assert said in error(graph, **changes)

    def test_two_fusions(self, graph: tf.Graph) -> None:
        build()
        two = [function("fusion", fusion_of(graph))] * 2
        assert "'fusion' has more than one function" in error_of(config_of(fusion=two), "loss:0")

    def test_a_replaced_node_that_is_not_there(self, graph: tf.Graph) -> None:
        build()
        replaced = fusion_of(graph)["replaced"]

        def rename(nodes: Any) -> None:
            nodes[0].name = "gone"

        assert "replaced node 'gone' is not of the plan's region; make the plan from" in error(
            graph, replaced=edited(replaced, rename)
        )

    def test_a_node_that_is_replaced_twice(self, graph: tf.Graph) -> None:
        build()
        known = fusion_of(graph)
        twice = edited(known["replaced"], lambda nodes: nodes.add().CopyFrom(nodes[0]))
        assert "is replaced twice" in error(graph, replaced=twice)

    def test_a_choice_of_a_node_that_is_not_replaced(self, graph: tf.Graph) -> None:
        build()
        assert "choice 'loss' is not among the replaced nodes" in error(graph, choices=["loss"])

    def test_an_added_node_whose_name_is_taken(self, graph: tf.Graph) -> None:
        build()

        def rename(nodes: Any) -> None:
            nodes[0].name = "loss"

        added = edited(fusion_of(graph)["added"], rename)
        assert "node 'loss' cannot be added: the graph has one of that name" in error(
            graph, added=added
        )

    def test_an_op_that_waits_for_itself(self, graph: tf.Graph) -> None:
        build()

        def tie(nodes: Any) -> None:
            nodes[0].input.append("^loss")

        assert "cycle" in error(graph, added=edited(fusion_of(graph)["added"], tie))


class TestDamagedFusions:
    @FUZZED
    @hypothesis.given(data=st.data())
    def test_bytes_of_the_nodes(self, data: Any) -> None:
        with tf.Graph().as_default() as graph:
            begin = build()
            known = fusion_of(graph)
            key = data.draw(st.sampled_from(NODES))
            whole = bytearray(known[key])
            for _ in range(data.draw(st.integers(1, 3))):
                at = data.draw(st.integers(0, len(whole) - 1))
                whole[at] = data.draw(st.integers(0, 255))
            known[key] = bytes(whole)
            config = config_of(fusion=[function("fusion", known)])
            refused = contextlib.suppress(tf.errors.OpError, ValueError, message.DecodeError)
            with refused, v1.Session(config=config) as session:
                session.run(begin)
                assert np.isfinite(session.run("loss:0"))
                session.run("train")

    @FUZZED
    @hypothesis.given(data=st.data())
    def test_inputs_and_attributes_of_the_nodes(self, data: Any) -> None:
        with tf.Graph().as_default() as graph:
            begin = build()
            known = fusion_of(graph)
            names = [node.name for node in graph.as_graph_def().node]

            def damage(nodes: Any) -> None:
                node = data.draw(st.sampled_from(list(nodes)))
                if node.input and data.draw(st.booleans()):
                    place = data.draw(st.integers(0, len(node.input) - 1))
                    node.input[place] = data.draw(st.sampled_from([*names, "gone", "", "^loss"]))
                elif node.attr:
                    attribute = node.attr[data.draw(st.sampled_from(sorted(node.attr)))]
                    attribute.i = data.draw(st.integers(-2, 4) | st.just(2**62))

            known["added"] = edited(known["added"], damage)
            config = config_of(fusion=[function("fusion", known)])
            with contextlib.suppress(tf.errors.OpError), v1.Session(config=config) as session:
                session.run(begin)
                session.run("loss:0")
                session.run("train")
