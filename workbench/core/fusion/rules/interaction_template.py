"""What TensorFlow builds for an interaction of vectors, so that it is found in other graphs."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import tensorflow as tf

from workbench.core.fusion.pattern.definition import Definition

# Of dot interactions, and of those of a factorization machine.
DOT, FM = "dot", "FM"


@dataclasses.dataclass(frozen=True, kw_only=True)
class Template:
    """An interaction of an example's vectors, and its gradient.

    Attributes:
      kind: DOT or FM.
      attributes: of the op that does it; `gradient_attributes`, of its gradient's.
      graph: that it was built in.
      x: what it reads, a placeholder; `given`, one too, is the gradient of `y`.
      any_number: constants that may be any, since what they give is known.
      y: the result.
      x_terms: what is summed to the gradient of `x`.
      x_reader: a tensor on the way to a term, made by a node that reads `x`.
      steps_to_sum: from that node to the one that sums the terms.
      computed: all results of nodes, each behind what it reads; of some nothing needs them.
    """

    kind: str
    attributes: Mapping[str, Any]
    gradient_attributes: Mapping[str, Any]
    graph: Definition
    x: str
    given: str
    any_number: frozenset[str]
    y: str
    x_terms: tuple[str, ...]
    x_reader: str
    steps_to_sum: int
    computed: tuple[str, ...]


@functools.lru_cache(maxsize=64)
def dot_template(rows: int | None, vectors: int, dim: int, dtype: str, pairs: bytes) -> Template:
    """Some dot products of float32 vectors whose static shape is [rows, vectors, dim].

    Args:
      dtype, pairs: an array of places in a row of all dot products.
    """
    places = np.frombuffer(pairs, dtype)

    def interact(x: tf.Tensor) -> tf.Tensor:
        products = tf.reshape(tf.matmul(x, x, transpose_b=True), [-1, vectors * vectors])
        return tf.gather(products, places, axis=1)

    attributes = {"vectors": vectors, "pairs": places.tolist()}
    made = _template(DOT, attributes, attributes, (rows, vectors, dim), interact)
    flat = made.graph.inputs(made.graph.source(made.y))[0]
    shape = made.graph.same(made.graph.inputs(made.graph.source(flat))[1])
    return dataclasses.replace(made, any_number=frozenset({shape}))


SQUARES: Mapping[str, Callable[[tf.Tensor], tf.Tensor]] = {
    "Square": tf.square,
    "Pow": lambda x: tf.pow(x, 2),
    "Mul": lambda x: x * x,
}


@functools.lru_cache(maxsize=64)
def fm_template(
    rows: int | None, vectors: int, dim: int, square: str, axis: bytes, flat: bool, keep_dims: bool
) -> Template:
    """The square of the sum of vectors, less the sum of their squares; shapes as above.

    Args:
      square: how they are squared, of SQUARES.
      axis: int32, that of the vectors.
      flat: whether it is a number, not a list of one.
      keep_dims: whether it stays.
    """
    (number,) = np.frombuffer(axis, np.int32).tolist()
    over, squared = number if flat else [number], SQUARES[square]

    def interact(x: tf.Tensor) -> tf.Tensor:
        total = tf.reduce_sum(x, over, keepdims=keep_dims)
        return squared(total) - tf.reduce_sum(squared(x), over, keepdims=keep_dims)

    return _template(FM, {"keep_dims": keep_dims}, {}, (rows, vectors, dim), interact)


def _template(
    kind: str,
    attributes: Mapping[str, Any],
    gradient_attributes: Mapping[str, Any],
    shape: tuple[int | None, int, int],
    interact: Callable[[tf.Tensor], tf.Tensor],
) -> Template:
    v1 = tf.compat.v1
    with tf.Graph().as_default() as built:
        x = v1.placeholder(tf.float32, shape)
        y = interact(x)
        given = v1.placeholder(tf.float32, y.shape)
        forward = len(built.get_operations())
        (of_x,) = v1.gradients(y, [x], grad_ys=given)
        backward = {op.name for op in built.get_operations()[forward:]}
    graph = Definition(built.as_graph_def(add_shapes=True).node)
    total = graph.source(graph.same(of_x.name))
    readers = [node for node in graph.readers(x.name) if node.name in backward]
    # Much else reads a shape.
    readers = [node for node in readers if node.op != "Shape"]
    steps, reader = min(
        (steps, node.name) for node in readers if (steps := _steps(graph, node, total)) is not None
    )
    return Template(
        kind=kind,
        attributes=attributes,
        gradient_attributes=gradient_attributes,
        graph=graph,
        x=x.name,
        given=given.name,
        any_number=frozenset(),
        y=y.name,
        x_terms=tuple(map(graph.same, graph.inputs(total))),
        x_reader=f"{reader}:0",
        steps_to_sum=steps,
        computed=graph.computed,
    )


def _steps(graph: Definition, first: Any, last: Any) -> int | None:
    """How many readers it is from one node to another; None where no way leads there."""
    steps, nodes = 0, {first.name: first}
    while nodes and last.name not in nodes:
        found = [each for name in nodes for each in graph.readers(f"{name}:0")]
        steps, nodes = steps + 1, {each.name: each for each in found}
    return steps if nodes else None
