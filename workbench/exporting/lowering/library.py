"""The functions of a graph: which call which, and what shapes their tensors have."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import tensorflow as tf
from tensorflow.core.framework import function_pb2, graph_pb2
from tensorflow.python.framework import function_def_to_graph

from workbench import _native
from workbench.exporting.lowering.lower import PREFIX, Lowering, Shapes


class Library:
    """The functions of a graph by name.

    Attributes:
      functions: their definitions.
    """

    def __init__(self, functions: Iterable[function_pb2.FunctionDef]) -> None:
        """Copies nothing."""
        self.functions = {function.signature.name: function for function in functions}
        self._graph: tf.Graph | None = None

    def called_by(self, nodes: Iterable[Any]) -> set[str]:
        """Names of the functions that nodes call, and that these call in turn."""
        reached: set[str] = set()
        waiting = list(self._named_by(nodes))
        while waiting:
            name = waiting.pop()
            if name not in reached:
                reached.add(name)
                waiting += self._named_by(self.functions[name].node_def)
        return reached

    def with_own_ops(self) -> list[str]:
        """Names of the functions that have a node of Workbench's."""
        return [
            name
            for name, function in self.functions.items()
            if any(node.op.startswith(PREFIX) for node in function.node_def)
        ]

    def lowered(self, name: str, lowering: Lowering) -> function_pb2.FunctionDef:
        """A function whose nodes of Workbench's are replaced.

        Raises:
          UnsupportedError: no stock ops do what a node does.
        """
        function = self.functions[name]
        return lowering.function(function, _late(lambda: self._shapes(function)))

    def _named_by(self, nodes: Iterable[Any]) -> Iterator[str]:
        for node in nodes:
            if node.op in self.functions:
                yield node.op
            for attribute in node.attr.values():
                kind = attribute.WhichOneof("value")
                called = [attribute.func] if kind == "func" else []
                for function in called or (attribute.list.func if kind == "list" else ()):
                    if function.name in self.functions:
                        yield function.name

    def _shapes(self, function: function_pb2.FunctionDef) -> Shapes:
        """Infers the shapes of a function's tensors."""
        _native.library()
        if self._graph is None:
            self._graph = tf.Graph()
            library = function_pb2.FunctionDefLibrary(function=self.functions.values())
            with self._graph.as_default():
                tf.import_graph_def(graph_pb2.GraphDef(library=library), name="")
        with self._graph.as_default():
            nodes, names = function_def_to_graph.function_def_to_graph_def(function)
            scope = f"shapes_of_{function.signature.name.strip('_')}"
            tf.import_graph_def(nodes, name=scope)
        graph = self._graph
        return lambda text: graph.get_tensor_by_name(f"{scope}/{names[text]}").shape


def _late(make: Callable[[], Shapes]) -> Shapes:
    """Shapes that are inferred when one is first read."""
    inferred: list[Shapes] = []

    def shape(text: str) -> tf.TensorShape:
        if not inferred:
            inferred.append(make())
        return inferred[0](text)

    return shape
