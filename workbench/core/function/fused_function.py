"""Concrete function of a step → one whose lookups and more few ops do, at once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import tensorflow as tf
from tensorflow.python.eager import record
from tensorflow.python.eager.polymorphic_function.concrete_function import ConcreteFunction

from workbench.core.function.first_trace import warn_of_eager_functions
from workbench.core.fusion.fusion_plan import FusionPlan, fused_definition
from workbench.core.fusion.plan import plan_fusion
from workbench.core.tf_graph.argument_order import order_to_save
from workbench.core.tf_graph.concrete_function import (
    arguments_of,
    is_compiled,
    require_own_captures,
)
from workbench.core.tf_graph.rebuilt_function import (
    built_in,
    needed_part,
    rebuilt,
    without_calls,
)
from workbench.errors import OptionError, UnsupportedError


class FusedFunction(ConcreteFunction):
    """A concrete function of which few ops do what many did.

    Attributes:
      fused_from: the function as it was. What a tape records is a call of this one.
      order: numbers of that function's arguments in the order of this one's; None for the same.
    """

    # A variable is gone with the last function that holds it.
    fused_from: Any = None
    order: Sequence[int] | None = None

    def _call_impl(self, args: Any, kwargs: Any) -> Any:
        if self._arg_keywords is not None:
            if args and self.order is not None:
                bound = self.fused_from.function_type.bind(*args, **kwargs)
                args, kwargs = (), bound.arguments
            return super()._call_impl(args, kwargs)
        # One of tf.compat.v1.wrap_function, which has no names of arguments.
        if kwargs:
            raise TypeError(f"{self.graph.name!r} takes positional arguments alone; got {kwargs}")
        wanted = [tensor.dtype for tensor in arguments_of(self)]
        whole = len(args) == len(wanted)
        given = list(args) if whole else tf.nest.flatten(args, expand_composites=True)
        if len(given) != len(wanted):
            raise TypeError(f"{self.graph.name!r} takes {len(wanted)} tensors; got {len(given)}")
        tensors = [tf.convert_to_tensor(*each) for each in zip(given, wanted, strict=True)]
        return self._call_flat(tensors, self.captured_inputs)

    def _call_flat(self, tensor_inputs: Sequence[Any], captured_inputs: Sequence[Any]) -> Any:
        if record.could_possibly_record():
            stock, tensors = self.fused_from, list(tensor_inputs)
            for place, number in enumerate(self.order or ()):
                tensors[number] = tensor_inputs[place]
            return stock._call_flat(tensors, stock.captured_inputs)
        return super()._call_flat(tensor_inputs, captured_inputs)


def fuse_function(function: Any, plan: FusionPlan | None = None, *, verify: Any = None) -> Any:
    """A function that does what another one does, what `plan_fusion` finds fused.

    It is called as the other one, by positions or by names, and described alike. It has the same
    variables, and `tf.saved_model.save` saves it as a signature or in a module that has these
    variables. A process that loads the model needs `wb.load_library()` before, for its ops.

    The ops that few nodes became have no gradients. Under a gradient tape that records, calling the
    new function therefore calls the other one. Fuse a function that makes its gradients itself, as
    a training step does.

    Args:
      function: a `tf.types.experimental.ConcreteFunction`, such as a signature of a model that
        `tf.saved_model.load` gave. It is not changed, and what it captures is captured by the new
        one. Functions that it calls become a part of the new one.
      plan: as made by `plan_fusion`, for this function; None makes it.
      verify: a batch, the function's arguments in any structure. Both functions are compared on it
        before the new one is made, on copies of the variables. None compares nothing.

    Returns:
      A concrete function. Where nothing is to be fused, it is the function itself.

    Raises:
      UnsupportedError: XLA compiles the function as one piece, or it captures anew at each call.
      OptionError: it is no concrete function, or the batch does not fit it.
      PlanError: the plan was made for another function; or it does not do what the function does.
    """
    if not isinstance(function, tf.types.experimental.ConcreteFunction):
        raise OptionError(
            f"{function!r} of type {type(function).__name__} is no concrete function; expected "
            "what function.get_concrete_function(…) of a tf.function returns, or a signature of "
            "a loaded model, model.signatures[…]"
        )
    if isinstance(function, FusedFunction):
        return function
    plain = without_calls(function)
    plan = plan_fusion(plain) if plan is None else plan
    if not plan.count:
        return function
    require_fusible(function)
    warn_of_eager_functions()
    if verify is not None:
        plan.verify(plain, verify).require()
    fused = rebuilt(
        plain,
        fused_definition(plain.graph.as_graph_def(), plan),
        [tensor.name for tensor in plain.outputs],
        _effects(plain, plan),
        FusedFunction,
        order_to_save(function),
    )
    fused.fused_from, fused.order = function, order_to_save(function)
    return fused


def _effects(function: Any, plan: FusionPlan) -> list[str]:
    """The nodes for whose effects a fused function runs."""
    bypassed = set(plan.bypassed)
    return [op.name for op in function.graph.control_outputs if op.name not in bypassed]


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
    function = without_calls(function)
    definition = fused_definition(function.graph.as_graph_def(), plan)
    runs = {tensor.op.name for tensor in function.outputs}.union(_effects(function, plan))
    part = needed_part(definition, runs, function.inputs)
    wanted = [tensor.name for tensor in function.outputs]
    return function.function_type.pack_output(built_in(function, part, batch, wanted))


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
