"""Functions of stock ops for nodes of Workbench's, each built once for all nodes that are alike."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import tensorflow as tf
from tensorflow.core.framework import function_pb2
from tensorflow.python.framework import graph_to_function_def

from workbench.exporting.lowering.call import (
    Call,
    KeyedTable,
    attributes_of,
    by_name,
    flat_dtypes,
    tensors_of,
)
from workbench.exporting.lowering.templates import Template


class StockFunctions:
    """Makes and keeps the functions."""

    def __init__(self, taken: Sequence[str] = ()) -> None:
        """Starts with none; `taken` are names that others have."""
        self._taken = set(taken)
        self._by_key: dict[Any, function_pb2.FunctionDef] = {}

    def all(self) -> list[function_pb2.FunctionDef]:
        """The functions that were made."""
        return list(self._by_key.values())

    def of(
        self,
        template: Template,
        node: Any,
        op_def: Any,
        shapes: Sequence[tf.TensorShape],
        keyed: tuple[KeyedTable, ...] = (),
    ) -> function_pb2.FunctionDef:
        """The function of a node.

        Args:
          template: of its op.
          node: the NodeDef.
          op_def: of its op.
          shapes: static shapes of its inputs, one after the other.
          keyed: of the EmbeddingVariables that it reads, in their order.

        Returns:
          The function. Its arguments are the node's inputs. Where EmbeddingVariables are read, the
          handles of their hash tables and then of their matrices come first.
        """
        own = {name: node.attr[name].SerializeToString() for name in sorted(node.attr)}
        attributes = tuple(item for item in own.items() if not item[0].startswith("_"))
        key = node.op, attributes, tuple(map(str, shapes)), keyed
        if key not in self._by_key:
            function = _built(template, node, op_def, shapes, keyed)
            function.signature.name = self._free_name(node.op)
            self._by_key[key] = function
        return self._by_key[key]

    def _free_name(self, op: str) -> str:
        number = len(self._by_key)
        while (name := f"stock_{op.removeprefix('Workbench')}_{number}") in self._taken:
            number += 1
        self._taken.add(name)
        return name


def _built(
    template: Template,
    node: Any,
    op_def: Any,
    shapes: Sequence[tf.TensorShape],
    keyed: tuple[KeyedTable, ...],
) -> function_pb2.FunctionDef:
    attributes = attributes_of(node, op_def)
    pairs = tensors_of(op_def.input_arg, attributes)
    dtypes = flat_dtypes(pairs)
    with tf.Graph().as_default() as graph:
        handles = [_argument(tf.resource, [], f"handle_{i}") for i in range(2 * len(keyed))]
        tensors = [
            _argument(dtype, shape, f"input_{i}")
            for i, (dtype, shape) in enumerate(zip(dtypes, shapes, strict=True))
        ]
        inputs = by_name(pairs, tensors)
        for name, shape in template.shapes.items():
            if name in inputs:
                _set_shape(inputs[name], shape)
        arguments = tensors
        if keyed:
            inputs[template.keyed] = handles[: len(keyed)]
            inputs["matrix"] = handles[len(keyed) :]
            read = [tensor for name in template.reads for tensor in _listed(inputs[name])]
            arguments = [*handles, *read]
        results = template.build(Call(attributes=attributes, inputs=inputs, keyed=keyed))
        wanted = flat_dtypes(tensors_of(op_def.output_arg, attributes))
        outputs = [
            tf.identity(tf.cast(result, dtype), name=f"output_{i}")
            for i, (result, dtype) in enumerate(zip(results, wanted, strict=True))
        ]
        unused = {tensor.op.name for tensor in (*handles, *tensors)}
        operations = [op for op in graph.get_operations() if op.name not in unused]
        names = [f"output_{i}" for i in range(len(outputs))]
        return graph_to_function_def.graph_to_function_def(
            graph, operations, arguments, outputs, names
        )


def _argument(dtype: tf.DType, shape: Any, name: str) -> tf.Tensor:
    return tf.compat.v1.placeholder(dtype.base_dtype, shape, name=name)


def _set_shape(tensors: Any, shape: Any) -> None:
    for tensor in _listed(tensors):
        if tensor.dtype != tf.resource:
            tensor.set_shape(shape)


def _listed(tensors: Any) -> list[tf.Tensor]:
    return tensors if isinstance(tensors, list) else [tensors]
