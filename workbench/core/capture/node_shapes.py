"""The metadata of one run → the tensors that each of its nodes read and made, with their shapes.

A run that is asked for step stats and its graphs tells both: the stats have the outputs of every
node, and the graphs say which node read them.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping
from typing import Any

import tensorflow as tf
from tensorflow.python.framework import op_def_registry

from workbench.core.capture.step_stats import BOOKKEEPING
from workbench.core.graph.op_types import EMBEDDING_VARIABLE, READS_WHOLE, VARIABLES
from workbench.core.graph.tensor_shapes import TensorShape, shapes_text

# Node → what it read and what it made, as text.
NodeShapes = dict[str, tuple[str, str]]
_REF = "_ref"
# A chain of nodes that hand a variable on is short; a loop of them would never end.
_LONGEST_CHAIN = 16


def node_shapes(metadata: Any) -> NodeShapes:
    """The tensors of the nodes that a run executed.

    Args:
      metadata: a `RunMetadata` with step stats and partition graphs.
    """
    outputs_of = _outputs(metadata)
    shapes: NodeShapes = {}
    for graph in metadata.partition_graphs:
        nodes = {node.name: node for node in graph.node}
        for node in graph.node:
            if node.name not in outputs_of or node.name in BOOKKEEPING:
                continue
            read = _read(node, nodes, outputs_of)
            outputs = (tensor for _, tensor in sorted(outputs_of[node.name].items()))
            shapes[node.name] = shapes_text(read), shapes_text(outputs)
    return shapes


def _outputs(metadata: Any) -> dict[str, dict[int, TensorShape]]:
    """The outputs of each node that ran, by their number; of several runs those of the first."""
    outputs_of: dict[str, dict[int, TensorShape]] = {}
    for device in metadata.step_stats.dev_stats:
        for stats in device.node_stats:
            outputs = {}
            for output in stats.output:
                described = output.tensor_description
                outputs[output.slot] = _tensor(
                    described.dtype, [dim.size for dim in described.shape.dim]
                )
            outputs_of.setdefault(stats.node_name, outputs)
    return outputs_of


def _tensor(dtype: int, shape: list[int], *, argument: str = "") -> TensorShape:
    name = tf.dtypes.as_dtype(dtype).name if dtype else "unknown"
    return TensorShape(
        argument=argument,
        dtype=name.removesuffix(_REF),
        shape=tuple(max(0, size) for size in shape),
        is_variable=name.endswith(_REF),
    )


def _read(
    node: Any, nodes: Mapping[str, Any], outputs_of: Mapping[str, Mapping[int, TensorShape]]
) -> Iterator[TensorShape]:
    """What a node read, as far as it is known."""
    inputs = [_source(name) for name in node.input if not name.startswith("^")]
    arguments = _arguments(node, len(inputs))
    for (source, slot), (argument, is_ref) in zip(inputs, arguments, strict=True):
        tensor = outputs_of.get(source, {}).get(slot)
        # What a reference leads to is described as its value.
        is_handle = tensor is None or is_ref or tensor.dtype == "resource"
        variable = _variable(nodes.get(source), nodes) if is_handle else None
        known = variable or tensor
        if known is not None:
            yield TensorShape(
                argument=argument,
                dtype=known.dtype,
                shape=known.shape,
                is_variable=known.is_variable,
            )


def _source(name: str) -> tuple[str, int]:
    node, _, slot = name.partition(":")
    return node, int(slot or 0)


def _variable(node: Any, nodes: Mapping[str, Any]) -> TensorShape | None:
    """The variable that a node is, or hands on; None where it is none of known shape."""
    for _ in range(_LONGEST_CHAIN):
        if node is None:
            return None
        if node.op in VARIABLES and node.attr["shape"].shape.dim:
            dtype = tf.dtypes.as_dtype(node.attr["dtype"].type).name.removesuffix(_REF)
            shape = tuple(max(0, dim.size) for dim in node.attr["shape"].shape.dim)
            return TensorShape(dtype=dtype, shape=shape, is_variable=True)
        if node.op == EMBEDDING_VARIABLE:
            # It has as many rows as keys were seen.
            shape = (0, node.attr["dim"].i)
            return TensorShape(dtype="float32", shape=shape, is_variable=True)
        if node.op not in READS_WHOLE or not node.input:
            return None
        node = nodes.get(_source(node.input[0])[0])
    return None


def _arguments(node: Any, count: int) -> list[tuple[str, bool]]:
    """What the op calls each of a node's inputs, "" where unknown; and whether by reference."""
    named: list[tuple[str, bool]] = []
    for argument in _input_arguments(node.op):
        times = 1
        if argument.number_attr:
            times = node.attr[argument.number_attr].i
        elif argument.type_list_attr:
            times = len(node.attr[argument.type_list_attr].list.type)
        named += [(argument.name, argument.is_ref)] * times
    return named if len(named) == count else [("", False)] * count


@functools.lru_cache(maxsize=1024)
def _input_arguments(op: str) -> tuple[Any, ...]:
    definition = op_def_registry.get(op)
    return tuple(definition.input_arg) if definition is not None else ()
