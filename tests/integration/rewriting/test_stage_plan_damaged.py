"""A session is handed damaged stage plans: an error or the right values, never a crash."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable
from typing import Any

import hypothesis
import numpy as np
import pytest
import tensorflow as tf
from google.protobuf import message
from hypothesis import strategies as st
from tensorflow.core.framework import graph_pb2
from tensorflow.core.protobuf import config_pb2

from tests.builders import stage_plans as plans
from workbench import _native

v1 = tf.compat.v1

# More of them under AddressSanitizer: make native-fuzz.
FUZZED = hypothesis.settings(
    max_examples=int(os.environ.get("WORKBENCH_FUZZ_EXAMPLES", "40")),
    deadline=None,
    suppress_health_check=[hypothesis.HealthCheck.too_slow],
)
NODES = ("batch", "double", "square", "sum")
FETCHES = ("batch:0", "double:0", "square:0", "sum:0", "end:0")
STEPS = 3


@pytest.fixture(autouse=True)
def library():
    return _native.library()


def build() -> None:
    """batch -> double, square -> sum -> end."""
    batch = plans.numbers()
    double = tf.multiply(batch, tf.constant(2, tf.int64, name="two"), name="double")
    total = tf.add(double, tf.square(batch, name="square"), name="sum")
    tf.identity(total, name="end")


def expected(step: int) -> list[int]:
    return [step, 2 * step, step**2, 2 * step + step**2, 2 * step + step**2]


def require_error_or_values(stages: list[plans.Stage], config: config_pb2.ConfigProto) -> None:
    """Runs the default graph with a plan; what its stages' own ops do may fail as well."""
    config.operation_timeout_in_ms = 5_000
    refused = contextlib.suppress(tf.errors.OpError, ValueError)
    with refused, v1.Session(config=config) as session:
        session.run("two:0")
        with plans.producing(session, *stages):
            for step in range(STEPS):
                np.testing.assert_array_equal(session.run(list(FETCHES)), expected(step))


def damage_bytes(data: Any, whole: bytes, *, same_length: bool = False) -> bytes:
    """`whole` with a few bytes changed or, without `same_length`, left out or there twice."""
    damaged = bytearray(whole)
    for _ in range(data.draw(st.integers(1, 3), label="edits")):
        if not damaged:
            break
        start = data.draw(st.integers(0, len(damaged) - 1), label="at")
        end = min(len(damaged), start + data.draw(st.integers(1, 8), label="bytes"))
        others = st.binary(min_size=end - start, max_size=end - start)
        if not same_length:
            others |= st.sampled_from((b"", bytes(damaged[start:end]) * 2)) | st.binary(max_size=8)
        damaged[start:end] = data.draw(others, label="become")
    return bytes(damaged)


def names_near(nodes: Any) -> st.SearchStrategy[str]:
    """Names of nodes and tensors, right ones, wrong ones, and none."""
    known = ["batch", "double", "square", "sum", "two", "end", "gone", "", "^", ":0", "_SOURCE"]
    known += [node.name for node in nodes] + [f"auto/ahead/{node}" for node in NODES]
    tensor = st.builds(
        "{}{}{}".format,
        st.sampled_from(("", "^")),
        st.sampled_from(known),
        st.sampled_from(("", ":0", ":1", ":-1", ":4294967295", ":4294967296", ":x")),
    )
    return st.sampled_from(known) | tensor


def damage_list(data: Any, values: Any, value: Callable[[], Any]) -> None:
    """Drops, repeats, replaces, adds or swaps elements of a repeated field or list, in place."""
    size = len(values)
    place = data.draw(st.integers(0, max(0, size - 1)), label="place")
    edit = data.draw(st.sampled_from(("drop", "repeat", "replace", "add", "swap")), label="edit")
    listed = list(values)
    if edit == "add" or not listed:
        listed.append(value())
    elif edit == "drop":
        del listed[place]
    elif edit == "repeat":
        listed.insert(data.draw(st.integers(0, size), label="also at"), listed[place])
    elif edit == "replace":
        listed[place] = value()
    else:
        other = data.draw(st.integers(0, size - 1), label="with")
        listed[place], listed[other] = listed[other], listed[place]
    values[:] = listed


def damage_attribute(data: Any, node: Any) -> None:
    """Gives an attribute of a node another value, of its own kind or not, or takes it away."""
    key = data.draw(st.sampled_from(sorted(node.attr)), label="attribute")
    value = node.attr[key]
    number = st.integers(-(2**63), 2**63 - 1) | st.integers(-2, 4)
    edit = data.draw(st.sampled_from(("none", "number", "text", "types", "shape")), label="kind")
    if edit == "none":
        del node.attr[key]
    elif edit == "number":
        value.i = data.draw(number)
    elif edit == "text":
        value.s = data.draw(st.binary(max_size=4))
    elif edit == "types":
        damage_list(data, value.list.type, lambda: data.draw(st.integers(0, 30)))
    else:
        shape = value.list.shape.add()
        for _ in range(data.draw(st.integers(1, 3))):
            shape.dim.add(size=data.draw(number))


def damage_nodes(data: Any, stage: plans.Stage) -> plans.Stage:
    """The stage with one of its own nodes damaged, there twice, or gone."""

    def edit(nodes: Any) -> None:
        names = names_near(nodes)
        node = data.draw(st.sampled_from(list(nodes)), label="node")
        kind = data.draw(
            st.sampled_from(("name", "op", "device", "input", "attr", "repeat", "drop", "user's")),
            label="of it",
        )
        if kind == "name":
            node.name = data.draw(names)
        elif kind == "op":
            node.op = data.draw(st.sampled_from([other.op for other in nodes] + ["Add", ""]))
        elif kind == "device":
            node.device = data.draw(st.sampled_from(("/device:CPU:0", "/device:GPU:9", "/x", "//")))
        elif kind == "input":
            damage_list(data, node.input, lambda: data.draw(names))
        elif kind == "attr" and node.attr:
            damage_attribute(data, node)
        elif kind == "repeat":
            nodes.add().CopyFrom(node)
        elif kind == "drop":
            nodes.remove(node)
        else:
            of_user = data.draw(st.sampled_from(NODES), label="user's")
            graph = v1.get_default_graph()
            nodes.add().CopyFrom(graph.get_operation_by_name(of_user).node_def)

    return plans.with_nodes(stage, edit)


def damage_parameter(data: Any, stage: plans.Stage) -> plans.Stage:
    """The stage with one of its parameters damaged."""
    nodes = graph_pb2.GraphDef.FromString(stage.parameters["nodes"]).node
    names = names_near(nodes)
    key = data.draw(
        st.sampled_from(("moved", "moved_ops", "carried", "take", "device", "copies")), label="key"
    )
    if key in ("take", "device"):
        return stage.but(**{key: data.draw(names)})
    if key == "copies":
        pairs = data.draw(st.dictionaries(names, names, max_size=2), label="substitutes")
        prefix = data.draw(names | st.just("auto/ahead"), label="prefix")
        extra = data.draw(st.booleans(), label="beside the right one")
        copies = stage.parameters["copies"] if extra else []
        return stage.but(copies=[*copies, plans.copy_set(prefix, pairs)])
    values = list(stage.parameters[key])
    damage_list(data, values, lambda: data.draw(names))
    if key == "moved" and data.draw(st.booleans(), label="ops fit"):
        ops = {op.name: op.type for op in v1.get_default_graph().get_operations()}
        return stage.but(moved=values, moved_ops=[ops.get(name, "NoOp") for name in values])
    return stage.but(**{key: values})


# Without its cancel op a stage's producers end with the session, whose error nobody waits for.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
class TestDamagedPlans:
    @FUZZED
    @hypothesis.given(data=st.data())
    def test_structure(self, data: Any) -> None:
        with tf.Graph().as_default() as graph:
            build()
            carried = data.draw(st.sampled_from((NODES, ("batch", "sum"))), label="carried")
            stages = [plans.plan_stage(graph, NODES, carried)]
            if data.draw(st.booleans(), label="two stages"):
                stages.append(plans.plan_stage(graph, NODES[:3], NODES[:3], name="next"))
            damaged = list(stages)
            for _ in range(data.draw(st.integers(1, 2), label="damages")):
                place = data.draw(st.integers(0, len(stages) - 1), label="stage")
                damage = data.draw(st.sampled_from((damage_nodes, damage_parameter)), label="how")
                damaged[place] = damage(data, damaged[place])
            require_error_or_values(stages, plans.config_of(*damaged))

    @FUZZED
    @hypothesis.given(data=st.data())
    def test_bytes_of_the_own_nodes(self, data: Any) -> None:
        with tf.Graph().as_default() as graph:
            build()
            stage = plans.plan_stage(graph, NODES, NODES)
            same_length = data.draw(st.booleans(), label="same length")
            nodes = damage_bytes(data, stage.parameters["nodes"], same_length=same_length)
            require_error_or_values([stage], plans.config_of(stage.but(nodes=nodes)))

    @FUZZED
    @hypothesis.given(data=st.data())
    def test_bytes_of_the_plan(self, data: Any) -> None:
        with tf.Graph().as_default() as graph:
            build()
            stage = plans.plan_stage(graph, NODES, NODES)
            config = plans.config_of(stage)
            (optimizer,) = config.graph_options.rewrite_options.custom_optimizers
            whole = optimizer.SerializeToString(deterministic=True)
            # Other lengths leave next to nothing that parses, and so reaches a session.
            damaged = damage_bytes(data, whole, same_length=True)
            with contextlib.suppress(message.DecodeError):
                optimizer.ParseFromString(damaged)
                require_error_or_values([stage], config)
