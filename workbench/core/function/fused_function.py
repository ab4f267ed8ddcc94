"""Concrete function of a step → one whose lookups and more few ops do, at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import tensorflow as tf
from tensorflow.core.framework import graph_pb2
from tensorflow.python.eager import record

from workbench.core.function.first_trace import warn_of_eager_functions
from workbench.core.fusion.fusion_plan import FusionPlan, fused_definition
from workbench.core.fusion.pattern.definition import tensor_name
from workbench.core.fusion.plan import plan_fusion
from workbench.core.graph.graph_view import node_name
from workbench.core.tf_graph.concrete_function import (
    arguments_of,
    is_compiled,
    require_own_captures,
)
from workbench.errors import UnsupportedError


def fuse_function(function: Any, plan: FusionPlan | None = None, *, verify: Any = None) -> Any:
    """A function that does what another one does, what `plan_fusion` finds fused.

    The ops that few nodes became have no gradients. Under a gradient tape that records, calling the
    new function therefore calls the other one. Fuse a function that makes its gradients itself, as
    a training step does.

    Args:
      function: a `tf.types.experimental.ConcreteFunction`; it is not changed, and what it captures
        is captured by the new one.
      plan: as made by `plan_fusion`, for this function; None makes it.
      verify: a batch, the function's arguments in any structure. Both functions are compared on it
        before the new one is made, on copies of the variables. None compares nothing.

    Returns:
      A concrete function of the flat tensors of the other one's arguments. It returns what that one
      does and has its variables. Where nothing is to be fused, it is the function itself.

    Raises:
      UnsupportedError: XLA compiles the function as one piece, or it captures anew at each call.
      PlanError: the plan was made for another function; or it does not do what the function does.
      OptionError: the batch does not fit the function.
    """
    plan = plan_fusion(function) if plan is None else plan
    if not plan.count:
        return function
    require_fusible(function)
    warn_of_eager_functions()
    if verify is not None:
        plan.verify(function, verify).require()

    def step(*batch: tf.Tensor) -> Any:
        return build_fused(function, plan, batch)

    specs = [tf.TensorSpec(tensor.shape, tensor.dtype) for tensor in arguments_of(function)]
    fused = tf.function(step, autograph=False).get_concrete_function(*specs)
    # A variable is gone with the last function that holds it.
    fused.fused_from = function
    fused.graph.variables = function.graph.variables
    _differentiate_by(fused, function)
    return fused


def _differentiate_by(fused: Any, function: Any) -> None:
    """Has calls that a tape records go to the function that was fused."""
    call = fused._call_flat

    def call_flat(tensors: Sequence[Any], captured: Sequence[Any]) -> Any:
        if record.could_possibly_record():
            return function._call_flat(tensors, function.captured_inputs)
        return call(tensors, captured)

    fused._call_flat = call_flat


def build_fused(function: Any, plan: FusionPlan, batch: Sequence[tf.Tensor]) -> Any:
    """Builds a function as a plan makes it into the function that is being traced.

    Args:
      function: the concrete function that the plan was made for.
      plan: what is fused.
      batch: its arguments, flat.

    Returns:
      What the function returns, in its structure.

    Raises:
      PlanError: the plan was made for another function.
    """
    definition = fused_definition(function.graph.as_graph_def(), plan)
    runs = {tensor.op.name for tensor in function.outputs}
    runs |= {op.name for op in function.graph.control_outputs} - set(plan.bypassed)
    part = _needed(definition, runs, {tensor.op.name for tensor in function.inputs})
    arguments = [tensor.name for tensor in arguments_of(function)]
    wanted = [tensor.name for tensor in function.outputs]
    graph = tf.compat.v1.get_default_graph()
    for nested in function.graph._functions.values():
        graph._add_function_recursive(nested)
    given = dict(zip(arguments, batch, strict=True))
    given |= {own.name: graph.capture(outer) for outer, own in function.graph.captures}
    computed = [name for name in dict.fromkeys(wanted) if name not in given]
    built = tf.graph_util.import_graph_def(
        part, input_map=_used(part, given), return_elements=computed, name=""
    )
    given |= dict(zip(computed, built, strict=True))
    return function.function_type.pack_output([given[name] for name in wanted])


def _used(part: graph_pb2.GraphDef, given: Mapping[str, tf.Tensor]) -> dict[str, tf.Tensor]:
    """What a part reads of what it is given; importing complains of more."""
    read = {tensor_name(text) for node in part.node for text in node.input}
    return {name: tensor for name, tensor in given.items() if name in read}


def require_fusible(function: Any) -> None:
    """Requires a function that can be built anew.

    Raises:
      UnsupportedError: XLA compiles it as one piece, or it captures anew at each call.
    """
    if is_compiled(function):
        raise UnsupportedError(
            f"XLA compiles {function.graph.name!r} as one piece (jit_compile=True), and has no "
            "fused lookups; compile it without"
        )
    require_own_captures(function)


def _needed(definition: graph_pb2.GraphDef, runs: set[str], inputs: set[str]) -> graph_pb2.GraphDef:
    """The nodes that run and what they depend on, without the inputs."""
    nodes = {node.name: node for node in definition.node}
    kept: set[str] = set()
    waiting = list(runs)
    while waiting:
        name = waiting.pop()
        if name not in kept and name not in inputs:
            kept.add(name)
            waiting += map(node_name, nodes[name].input)
    part = graph_pb2.GraphDef(versions=definition.versions)
    for node in definition.node:
        if node.name in kept:
            copy = part.node.add()
            copy.CopyFrom(node)
            # Colocation is a hint in a function, and its inputs are no longer there.
            copy.attr.pop("_class", None)
    return part
