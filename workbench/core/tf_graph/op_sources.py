"""An op of a graph → the line of the user's code that made it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from workbench.own_code import is_of_a_model, is_own


def op_sources(graph: Any, names: Iterable[str]) -> list[str]:
    """Where each op was made, as "file:line function"; "" where the graph has none of that name.

    Of its traceback the innermost line of the user's own counts; of a model that comes with this
    package, the model's. TensorFlow adds ops of its own before a run: those have no line.

    Args:
      graph: a `tf.Graph`.
      names: of ops.
    """
    return [_source(graph, name) for name in names]


def _source(graph: Any, name: str) -> str:
    try:
        op = graph.get_operation_by_name(name)
    except (KeyError, ValueError):
        return ""
    for frame in reversed(list(op.traceback or ())):
        if is_own(frame.filename) or is_of_a_model(frame.filename):
            return f"{frame.filename}:{frame.lineno} {frame.name}"
    return ""
