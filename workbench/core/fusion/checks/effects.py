"""What ops do beside giving tensors: effects, batches that they take, variables that they use."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping
from typing import Any

import tensorflow as tf
from tensorflow.python.framework import op_def_registry

from workbench.core.fusion.pattern.definition import Definition, tensor_name
from workbench.core.graph.graph_view import node_name
from workbench.core.graph.op_families import UPDATE, family_of
from workbench.core.graph.op_types import INPUT_HANDLES, SAFE_STATEFUL, SOURCES, VARIABLES

_RESOURCE = tf.resource.as_datatype_enum
# They use a variable's handle, and neither its value nor its memory.
_NO_USE = frozenset(
    {
        *("Identity", "IdentityN", "RefIdentity", "Shape", "VarIsInitializedOp", "VariableShape"),
        *("IsVariableInitialized", "DestroyResourceOp"),
    }
)
_READS = frozenset({"ReadVariableOp", "ResourceGather", "ResourceGatherNd"})
# A run fails where they do, and nothing else of it need happen.
_CHECKS = frozenset({"Assert", "CheckNumerics", "CheckNumericsV2"})
_QUIET = (SAFE_STATEFUL - _CHECKS) | VARIABLES | INPUT_HANDLES | _READS | _NO_USE
_HANDLES = frozenset({"Placeholder", "_Arg"})


@functools.cache
def has_effect(op: str) -> bool:
    """Whether a run is another one without ops of this type: they change, check or take something.

    Random ops are among them: each run draws anew.
    """
    if op in _CHECKS or op in SOURCES or family_of(op) == UPDATE:
        return True
    definition = op_def_registry.get(op)
    return op not in _QUIET and (definition is None or bool(definition.is_stateful))


def effects_before(graph: Definition) -> dict[str, int]:
    """By the name of each node the effects on which it depends, a set as bits."""
    effects: dict[str, int] = {}
    bits: dict[str, int] = {}
    for node in graph.ordered:
        before = 0
        for text in node.input:
            name = node_name(text)
            before |= effects.get(name, 0) | bits.get(name, 0)
        effects[node.name] = before
        if has_effect(node.op):
            bits[node.name] = 1 << len(bits)
    return effects


def variables_used(nodes: Mapping[str, Any], node: Any) -> Iterator[tuple[Any, bool]]:
    """The variables that a node uses itself, each with whether it may change it.

    Args:
      nodes: of the graph, by name.
      node: of the graph.

    Yields:
      What tells a variable from others.
    """
    if node.op in _NO_USE:
        return
    reads = node.op in _READS or "LookUp" in node.op
    for text in node.input:
        if not text.startswith("^") and (found := _variable(nodes, tensor_name(text))) is not None:
            is_ref = found[0] not in ("VarHandleOp", *_HANDLES)
            yield found, family_of(node.op) == UPDATE or not (reads or is_ref)


def _variable(nodes: Mapping[str, Any], tensor: str) -> Any | None:
    """The variable that a tensor is, or is the handle of; Identities hand both on."""
    node = nodes[node_name(tensor)]
    while node.op in ("Identity", "RefIdentity") and node.input:
        node = nodes[node_name(node.input[0])]
    if node.op in VARIABLES:
        shared = node.attr["shared_name"].s.decode() if "shared_name" in node.attr else ""
        container = node.attr["container"].s.decode() if "container" in node.attr else ""
        return node.op, container, shared or node.name
    # To ask a node for an attribute that it lacks would give it one.
    types = [node.attr[name].type for name in ("dtype", "T") if name in node.attr]
    return (node.op, "", node.name) if node.op in _HANDLES and _RESOURCE in types else None
