"""Traces a step as its first plain call does: the variables it makes then are there afterwards.

TensorFlow lifts the initial values of those variables out of the trace. Where one is made from
another that it cannot lift, a plain call initializes them while it runs its first batch, and
`get_concrete_function` fails. Here that part of the first call is run, without a batch.
"""

from __future__ import annotations

from typing import Any

import tensorflow as tf
from tensorflow.python.eager.lift_to_graph import UnliftableError, lift_to_graph

from workbench.errors import UnsupportedError
from workbench.ignored import warn_ignored


def trace(step: Any, *arguments: Any) -> Any:
    """The concrete function of a `tf.function` for arguments or their specs.

    Raises:
      UnsupportedError: the step makes a variable whose initial value depends on its arguments.
    """
    warn_of_eager_functions()
    try:
        return step.get_concrete_function(*arguments)
    except UnliftableError:
        _initialize(step)
        return step.get_concrete_function(*arguments)


def warn_of_eager_functions() -> None:
    """Says, the first time, that a step runs as a graph although functions are to run eagerly."""
    if tf.config.functions_run_eagerly():
        warn_ignored(
            "tf.config.run_functions_eagerly",
            True,
            "a step that is staged, fused or measured runs as a graph; to debug it line by line, "
            "run it without Workbench",
        )


def _initialize(step: Any) -> None:
    """Initializes what the first trace of a step has made, in the order of that trace."""
    graph = step._concrete_variable_creation_fn.graph
    variables = [variable for made in step._created_variables if (variable := made()) is not None]
    assigning = sorted(
        ((op, variable) for variable in variables if (op := _assigning(graph, variable))),
        key=lambda each: each[0]._id,
    )

    @tf.function(autograph=False)
    def initialize() -> None:
        into = tf.compat.v1.get_default_graph()
        for nested in graph._functions.values():
            into._add_function_recursive(nested)
        lifted: Any = None
        for op, variable in assigning:
            try:
                lifted = lift_to_graph(
                    [op.outputs[0]],
                    into,
                    sources=graph.internal_captures,
                    handle_captures=True,
                    op_map=lifted,
                )
            except UnliftableError as error:
                raise UnsupportedError(_depends(step, variable)) from error

    initialize()


def _assigning(graph: Any, variable: Any) -> tf.Operation | None:
    """The op of the first trace that assigns the initial value, unless the variable has one."""
    inside = next((inner for outer, inner in graph.captures if outer is variable.handle), None)
    asking = [] if inside is None else inside.consumers()
    for asked in asking:
        if asked.type == "VarIsInitializedOp":
            return next((op for op in asked.outputs[0].consumers() if op.type == "If"), None)
    return None


def _depends(step: Any, variable: Any) -> str:
    name = getattr(step, "__name__", type(step).__name__)
    return (
        f"the step {name!r} makes variable {variable.name!r} on its first call, with an initial "
        "value that depends on the batch; expected variables that are there before the step is "
        "staged: make a new step or model, call it once with a batch, and stage it then"
    )
