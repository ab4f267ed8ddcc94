"""Concrete function + nodes → one that is called, described and saved alike, of these nodes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import tensorflow as tf
from tensorflow.core.framework import attr_value_pb2, graph_pb2
from tensorflow.python.eager.polymorphic_function import atomic_function
from tensorflow.python.eager.polymorphic_function.concrete_function import ConcreteFunction
from tensorflow.python.framework import func_graph, ops
from tensorflow.python.ops import handle_data_util

from workbench.core.graph.graph_view import node_name
from workbench.core.tf_graph.argument_order import by_keyword
from workbench.core.tf_graph.concrete_function import arguments_of
from workbench.core.tf_graph.inlined_calls import CALLS, called_by, inlined

# Of functions that do the same, by which TensorFlow may take one for another.
_CHOSEN_BY = ("_implements", "api_implements", "api_preferred_device")
_NAME = "_user_specified_name"


def without_calls(function: Any) -> Any:
    """A concrete function with the nodes of the functions that it calls in place of the calls.

    Signatures of a saved model are such: one call of the function that was saved.

    Args:
      function: the concrete function; it is not changed, and is returned where it calls none.
    """
    if not any(op.type in CALLS for op in function.graph.get_operations()):
        return function
    flat = inlined(function.graph.as_graph_def())
    if flat is None:
        return function
    outputs = [flat.tensors.get(tensor.name, tensor.name) for tensor in function.outputs]
    effects = [
        name
        for op in function.graph.control_outputs
        for name in flat.effects.get(op.name, (op.name,))
    ]
    return rebuilt(function, flat.definition, outputs, effects)


def rebuilt(
    function: Any,
    definition: graph_pb2.GraphDef,
    outputs: Sequence[str],
    effects: Iterable[str],
    kind: type[ConcreteFunction] = ConcreteFunction,
    order: Sequence[int] | None = None,
) -> Any:
    """A function of other nodes, with the arguments, captures and results of a concrete function.

    Args:
      function: the concrete function.
      definition: the nodes, with the function's own placeholders.
      outputs: in place of the function's outputs the tensors that are returned.
      effects: names of the nodes for whose effects a call runs.
      kind: what is made of it.
      order: numbers of the function's arguments, which are then given by name alone; None keeps
        them.
    """
    old, arguments = function.graph, arguments_of(function)
    keywords, function_type = function._arg_keywords, function.function_type
    if order is not None:
        arguments, keywords = ([each[i] for i in order] for each in (arguments, keywords))
        function_type = by_keyword(function_type, order)
    effects = list(dict.fromkeys(effects))
    with tf.init_scope():
        new = func_graph.FuncGraph(old.name)
    with new.as_default():
        given = _placeholders(new, arguments, old.captures)
        part = needed_part(definition, {*map(node_name, outputs), *effects}, old.inputs)
        nested = _nested(old._functions.values())
        for name in _called(part).intersection(nested):
            new._add_function_recursive(nested[name])
        computed = [name for name in dict.fromkeys(outputs) if name not in given]
        built = tf.graph_util.import_graph_def(
            part, input_map=used(part, given), return_elements=[*computed, *effects], name=""
        )
        # What is returned is the function's own, also where it is an argument.
        given = {name: tf.identity(tensor) for name, tensor in given.items() if name in outputs}
    given |= dict(zip(computed, built, strict=False))
    new.outputs.extend(given[name] for name in outputs)
    new.control_outputs.extend(built[len(computed) :])
    _describe(new, old)
    attributes = {k: v for k, v in function._attrs.items() if k not in _CHOSEN_BY}
    name = f"__inference_{old.name}_{ops.uid()}"
    made = kind(atomic_function.from_func_graph(name, new, attributes, function_type))
    made._arg_keywords = keywords
    made._num_positional_args = function._num_positional_args
    return made


def needed_part(
    definition: graph_pb2.GraphDef, runs: Iterable[str], inputs: Iterable[tf.Tensor]
) -> graph_pb2.GraphDef:
    """The nodes that run and what they depend on, without the inputs.

    Args:
      definition: the nodes.
      runs: names of those that run.
      inputs: of the function that they are of.
    """
    nodes = {node.name: node for node in definition.node}
    left_out = {tensor.op.name for tensor in inputs}
    kept: set[str] = set()
    waiting = list(runs)
    while waiting:
        name = waiting.pop()
        if name not in kept and name not in left_out:
            kept.add(name)
            waiting += map(node_name, nodes[name].input)
    part = graph_pb2.GraphDef(versions=definition.versions)
    for node in definition.node:
        if node.name in kept:
            copy = part.node.add()
            copy.CopyFrom(node)
            # Colocation is a hint in a function, and its inputs are no longer there.
            copy.attr.pop("_class", None)
            # A wait for an input is none.
            waits = [text for text in copy.input if text[0] != "^" or text[1:] not in left_out]
            del copy.input[:]
            copy.input.extend(waits)
    return part


def built_in(
    function: Any,
    part: graph_pb2.GraphDef,
    batch: Sequence[tf.Tensor],
    wanted: Sequence[str],
) -> list[tf.Tensor]:
    """Builds nodes of a concrete function into the function that is being traced.

    Args:
      function: the concrete function; what it captures is captured here, too.
      part: the nodes, without the function's inputs.
      batch: its arguments, flat.
      wanted: names of tensors of the part or of its inputs.

    Returns:
      The wanted tensors.
    """
    graph = tf.compat.v1.get_default_graph()
    for nested in function.graph._functions.values():
        graph._add_function_recursive(nested)
    arguments = [tensor.name for tensor in arguments_of(function)]
    given = dict(zip(arguments, batch, strict=True))
    given |= {own.name: graph.capture(outer) for outer, own in function.graph.captures}
    computed = [name for name in dict.fromkeys(wanted) if name not in given]
    built = tf.graph_util.import_graph_def(
        part, input_map=used(part, given), return_elements=computed, name=""
    )
    given |= dict(zip(computed, built, strict=True))
    return [given[name] for name in wanted]


def function_of_tensors(function: Any, wanted: Sequence[str]) -> Any:
    """A function that computes tensors from the middle of a concrete function, and nothing else.

    It reads variables and tables as they are; what would only have been waited for does not run.

    Args:
      function: the concrete function, which is not changed.
      wanted: names of the tensors.

    Returns:
      A function of the concrete function's arguments, flat, that returns these tensors.
    """
    definition = graph_pb2.GraphDef()
    definition.CopyFrom(function.graph.as_graph_def())
    for node in definition.node:
        reads = [text for text in node.input if not text.startswith("^")]
        del node.input[:]
        node.input.extend(reads)
    part = needed_part(definition, map(node_name, wanted), function.inputs)

    @tf.function(
        autograph=False,
        input_signature=[tf.TensorSpec(each.shape, each.dtype) for each in arguments_of(function)],
    )
    def compute(*batch: tf.Tensor) -> list[tf.Tensor]:
        return built_in(function, part, batch, wanted)

    return compute


def used(part: graph_pb2.GraphDef, given: Mapping[str, tf.Tensor]) -> dict[str, tf.Tensor]:
    """What a part reads of what it is given; importing complains of more."""
    read = {text if ":" in text else f"{text}:0" for node in part.node for text in node.input}
    return {name: tensor for name, tensor in given.items() if name in read}


def _placeholders(
    new: func_graph.FuncGraph,
    arguments: Iterable[tf.Tensor],
    captures: Iterable[tuple[Any, tf.Tensor]],
) -> dict[str, tf.Tensor]:
    """Placeholders for a function's arguments and captures, by the names of its own."""
    given = {}
    for own in arguments:
        given[own.name] = placeholder = _placeholder(own, own)
        new.inputs.append(placeholder)
    for outside, own in captures:
        given[own.name] = placeholder = _placeholder(own, outside)
        new.add_capture(outside, placeholder)
    return given


def _placeholder(own: tf.Tensor, outside: Any) -> tf.Tensor:
    placeholder = tf.compat.v1.placeholder(own.dtype, own.shape, own.op.name)
    for source in (outside, own):
        if isinstance(source, tf.Tensor):
            handle_data_util.copy_handle_data(source, placeholder)
    try:
        name = own.op.get_attr(_NAME)
    except ValueError:
        return placeholder
    placeholder.op._set_attr(_NAME, attr_value_pb2.AttrValue(s=name))
    return placeholder


def _describe(new: Any, old: Any) -> None:
    """Gives a function's graph the structures and variables of another one."""
    outputs = iter(new.outputs)
    leaves = tf.nest.flatten(old.structured_outputs, expand_composites=True)
    results = [None if leaf is None else next(outputs) for leaf in leaves]
    new.structured_outputs = tf.nest.pack_sequence_as(
        old.structured_outputs, results, expand_composites=True
    )
    new.structured_input_signature = old.structured_input_signature
    new.variables = old.variables
    if not old.saveable:
        for error in old.saving_errors:
            new.mark_as_unsaveable(error)


def _called(part: graph_pb2.GraphDef) -> set[str]:
    """Names of the functions that nodes call."""
    return {name for node in part.node for name in (node.op, *called_by(node))}


def _nested(functions: Iterable[Any]) -> dict[str, Any]:
    """By name functions, and those that they call."""
    known: dict[str, Any] = {}
    waiting = list(functions)
    while waiting:
        function = waiting.pop()
        if (name := tf.compat.as_str(function.name)) not in known:
            known[name] = function
            waiting += getattr(function, "children", ())
    return known
