"""Graphs and fetches in the forms that TensorFlow has them → what is planned for."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import tensorflow as tf
from tensorflow.core.protobuf import meta_graph_pb2

from workbench.core.graph.graph_view import node_name
from workbench.core.tf_graph.meta_graphs import imported
from workbench.core.tf_graph.rebuilt_function import without_calls
from workbench.errors import OptionError

# By what fetches names of nodes: one fetch may have several tensors.
Fetches = Sequence[frozenset[str]]


def readable(graph: Any) -> Any:
    """What of a graph the rules of fusion read.

    Args:
      graph: a MetaGraphDef, of which this is the `tf.Graph` that a session has of it. A concrete
        function, of which this is the one without calls. Or anything else, itself.
    """
    if isinstance(graph, tf.types.experimental.ConcreteFunction):
        return without_calls(graph)
    return imported(graph) if isinstance(graph, meta_graph_pb2.MetaGraphDef) else graph


def fetched(graph: Any, fetches: Any, signature: Any) -> Fetches:
    """The nodes of each of a graph's fetches.

    Args:
      graph: a `tf.Graph`, a GraphDef or a MetaGraphDef; for functions there is nothing to choose.
      fetches: in any structure tensors, ops, variables or names, as of `session.run`; None where
        there is a signature, or nothing is known.
      signature: a SignatureDef, or the name of one of a MetaGraphDef; None for none.

    Raises:
      OptionError: they are no fetches of this graph, or both are given.
    """
    if fetches is None and signature is None:
        return ()
    if fetches is not None and signature is not None:
        raise OptionError("fetches and signature are both given; give one of them")
    if isinstance(graph, tf.Graph) and getattr(graph, "building_function", False):
        raise OptionError(
            "fetches and signature are for graphs of sessions; a function always runs as a whole, "
            "so leave them out"
        )
    if signature is not None:
        name, outputs = _signature(graph, signature)
        return [_present(graph, each, f"signature {name}") for each in outputs]
    leaves = tf.nest.flatten(fetches)
    if not leaves:
        raise OptionError(f"fetches is {fetches!r}; expected what runs fetch, as of session.run")
    return [_present(graph, _names(graph, each), "fetches") for each in leaves]


def _names(graph: Any, fetch: Any) -> list[str]:
    """The names that a fetch is of."""
    parts = tf.nest.flatten(fetch, expand_composites=True)
    for part in parts:
        name = part if isinstance(part, str) else getattr(part, "name", None)
        if not isinstance(name, str):
            raise OptionError(
                f"fetches has {part!r} of type {type(part).__name__}; expected tensors, ops or "
                "names of them"
            )
        own = getattr(part, "graph", None)
        if isinstance(graph, tf.Graph) and own is not None and own is not graph:
            raise OptionError(f"fetches has {name!r} of another graph")
    return [part if isinstance(part, str) else part.name for part in parts]


def _signature(graph: Any, signature: Any) -> tuple[str, list[list[str]]]:
    """What a signature is called, and the names of each of its outputs."""
    called = "of the model"
    if isinstance(signature, str):
        called = repr(signature)
        if not isinstance(graph, meta_graph_pb2.MetaGraphDef):
            raise OptionError(
                f"signature is the name {signature!r}, and a {type(graph).__name__} has no "
                "signatures; expected as graph the MetaGraphDef that "
                "tf.compat.v1.saved_model.load returned, or a SignatureDef as signature"
            )
        if signature not in graph.signature_def:
            present = ", ".join(map(repr, sorted(graph.signature_def))) or "none"
            raise OptionError(f"the model has no signature {signature!r}; it has {present}")
        signature = graph.signature_def[signature]
    if not isinstance(signature, meta_graph_pb2.SignatureDef):
        raise OptionError(
            f"signature is {signature!r} of type {type(signature).__name__}; expected the name of "
            "a signature, or a SignatureDef"
        )
    outputs = [_tensors(signature.outputs[name]) for name in sorted(signature.outputs)]
    if not outputs:
        raise OptionError(f"signature {called} has no outputs, so no run fetches it")
    return called, outputs


def _tensors(info: Any) -> list[str]:
    """The names of the tensors of an input or output of a signature."""
    match info.WhichOneof("encoding"):
        case "coo_sparse":
            sparse = info.coo_sparse
            return [
                sparse.indices_tensor_name,
                sparse.values_tensor_name,
                sparse.dense_shape_tensor_name,
            ]
        case "composite_tensor":
            return [name for each in info.composite_tensor.components for name in _tensors(each)]
    return [info.name]


def _present(graph: Any, names: Iterable[str], whose: str) -> frozenset[str]:
    """The nodes of names that a graph has."""
    nodes = frozenset(map(node_name, names))
    if isinstance(graph, tf.Graph):
        present = {op.name for op in graph.get_operations()}
    else:
        present = {node.name for node in getattr(graph, "graph_def", graph).node}
    missing = sorted(nodes - present)
    if missing:
        raise OptionError(f"{whose} has {missing[0]!r}, which the graph does not have")
    return nodes
