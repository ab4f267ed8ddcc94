"""Which nodes the user marked as targets: what must stay on the compute side of a stage."""

from __future__ import annotations

import weakref
from typing import Any

import tensorflow as tf

from workbench.errors import OptionError

_MARKED: weakref.WeakKeyDictionary[tf.Graph, dict[str, None]] = weakref.WeakKeyDictionary()


def mark_target_node(targets: Any) -> None:
    """Marks tensors or operations, one or a nest of them, as targets of their own graph.

    DeepRec keeps one list for the whole process; here a mark belongs to the graph of its node.

    Raises:
      OptionError: an entry is no tensor, variable or operation of a graph.
    """
    for target in tf.nest.flatten(targets, expand_composites=True):
        op = getattr(target, "op", target)
        if not isinstance(op, tf.Operation):
            raise OptionError(
                f"mark_target_node was given {target!r} of type {type(target).__name__}; "
                "expected tensors, variables or operations of a graph"
            )
        _MARKED.setdefault(op.graph, {})[op.name] = None


def target_nodes(graph: tf.Graph) -> tuple[str, ...]:
    """Names of the marked operations of `graph`, in the order of marking."""
    return tuple(_MARKED.get(graph, ()))
