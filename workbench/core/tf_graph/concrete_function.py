"""Facts of a `tf.types.experimental.ConcreteFunction`."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from workbench.errors import UnsupportedError


def arguments_of(function: Any) -> list[tf.Tensor]:
    """The function's inputs without those through which it reads what it captures."""
    captured = {id(tensor) for tensor in function.graph.internal_captures}
    return [tensor for tensor in function.inputs if id(tensor) not in captured]


def is_compiled(function: Any) -> bool:
    """Whether XLA compiles the function as one piece."""
    # To ask a definition for an attribute that it lacks gives it one without a value.
    attributes = function.function_def.attr
    return "_XlaMustCompile" in attributes and bool(attributes["_XlaMustCompile"].b)


def require_own_captures(function: Any) -> None:
    """Requires that a step's function captures the same values at each call.

    Raises:
      UnsupportedError: it looks some up anew.
    """
    if function.graph.deferred_external_captures:
        raise UnsupportedError(
            f"the step {function.graph.name!r} captures values that are looked up at each call, "
            "as under a distribution strategy; expected a step that runs on one device"
        )
