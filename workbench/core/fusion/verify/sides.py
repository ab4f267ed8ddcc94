"""Side: a private graph and session, with variables of their own, in which nodes run."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import tensorflow as tf
from tensorflow.core.framework import graph_pb2

from workbench.core.fusion.verify.inputs import Inputs

v1 = tf.compat.v1
_SCOPE = "workbench_verify"


class Side:
    """One of two private sessions that run the same nodes of a graph."""

    def __init__(self, definition: graph_pb2.GraphDef, inputs: Inputs) -> None:
        """Imports a graph, and puts values into its variables.

        Args:
          definition: the graph, as it is or as a plan makes it.
          inputs: what it runs on.
        """
        self._feeds = inputs.feeds
        self._values = inputs.variables
        self._graph = tf.Graph()
        with self._graph.as_default():
            own = _with_variables(definition, inputs.handles)
            tf.graph_util.import_graph_def(own, name="")
            with tf.name_scope(_SCOPE), tf.device(None):
                self._variables = {name: self._variable(name) for name in inputs.variables}
        self._session = v1.Session(graph=self._graph, config=inputs.config)
        self.load()

    @property
    def names(self) -> list[str]:
        """Names of the nodes of the variables that have values."""
        return list(self._variables)

    def close(self) -> None:
        """Ends the session."""
        self._session.close()

    def load(self, values: Mapping[str, Any] | None = None) -> None:
        """Puts values into the variables, the user's without any given."""
        values = self._values if values is None else values
        loads = [self._variables[name][1] for name in values]
        given = {self._variables[name][0]: value for name, value in values.items()}
        self._session.run(loads, given)

    def variables(self) -> dict[str, Any]:
        """The values of the variables."""
        read = {name: read for name, (_, _, read) in self._variables.items()}
        return dict(self._session.run(read))

    def outputs(self, name: str) -> list[str]:
        """The tensors of a node that can be fetched."""
        tensors = self._graph.get_operation_by_name(name).outputs
        return [t.name for t in tensors if t.dtype not in (tf.resource, tf.variant)]

    def run(
        self,
        tensors: Sequence[str],
        ops: Iterable[str] = (),
        feeds: Mapping[str, Any] | None = None,
    ) -> dict[str, Any]:
        """Runs ops, and gives the values of tensors."""
        known = self._feeds if feeds is None else feeds
        targets = [self._graph.get_operation_by_name(name) for name in ops]
        fetches = {"tensors": {name: name for name in tensors}, "ops": targets}
        return dict(self._session.run(fetches, known)["tensors"])

    def _variable(self, name: str) -> tuple[tf.Tensor, tf.Operation, tf.Tensor]:
        """A placeholder for a variable's value, the op that puts it there, and what reads it."""
        handle = self._graph.get_tensor_by_name(f"{name}:0")
        with tf.device(handle.device or None):
            if handle.dtype != tf.resource:
                value = v1.placeholder(handle.dtype.base_dtype)
                assign = tf.raw_ops.Assign(ref=handle, value=value, validate_shape=False)
                return value, assign.op, handle
            dtype = tf.as_dtype(handle.op.get_attr("dtype"))
            value = v1.placeholder(dtype)
            assign = tf.raw_ops.AssignVariableOp(resource=handle, value=value)
            return value, assign, tf.raw_ops.ReadVariableOp(resource=handle, dtype=dtype)


@contextlib.contextmanager
def sides(stock: Any, fused: Any, inputs: Inputs) -> Any:
    """Both sides, which are closed at the end of the block."""
    with contextlib.ExitStack() as stack:
        made = []
        for definition in (stock, fused):
            made.append(Side(definition, inputs))
            stack.callback(made[-1].close)
        yield tuple(made)


def _with_variables(
    definition: graph_pb2.GraphDef, handles: Mapping[str, Any]
) -> graph_pb2.GraphDef:
    """A graph of its own variables, where a function has placeholders for their handles.

    Nodes that a plan took may be named as those that others are placed with.
    """
    graph = graph_pb2.GraphDef()
    graph.CopyFrom(definition)
    names = {f"loc:@{node.name}".encode() for node in graph.node}
    for node in graph.node:
        if node.name in handles:
            node.op = "VarHandleOp"
            node.attr.clear()
            node.attr["dtype"].type = handles[node.name].dtype
            node.attr["shape"].shape.CopyFrom(handles[node.name].shape)
            node.attr["shared_name"].s = node.name.encode()
        if not names.issuperset(node.attr["_class"].list.s):
            del node.attr["_class"]
    return graph
