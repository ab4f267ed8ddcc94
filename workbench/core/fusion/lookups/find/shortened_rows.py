"""Rows of a table that a lookup's `max_norm` shortens, as `tf.clip_by_norm` does it.

What TensorFlow builds is compared with what it builds for the same shape and norm, node by node.
"""

from __future__ import annotations

import dataclasses
import functools

import tensorflow as tf

from workbench.core.fusion.pattern.definition import Definition
from workbench.core.fusion.pattern.match import Match


@dataclasses.dataclass(frozen=True, kw_only=True)
class ShortenedRows:
    """Rows whose length is `max_norm` at most.

    Attributes:
      rows: the tensor of the rows as they were.
      max_norm: the length.
    """

    rows: str
    max_norm: float


@dataclasses.dataclass(frozen=True, kw_only=True)
class _Model:
    """A graph that shortens rows; tensors are named "node:output".

    Attributes:
      nodes: the graph.
      rows, shortened: the rows before and after.
      given, gradient: the gradients of the shortened rows and of the rows.
    """

    nodes: Definition
    rows: str
    shortened: str
    given: str
    gradient: str


def shortened_rows(graph: Definition, tensor: str) -> ShortenedRows | None:
    """The rows that a tensor has shortened; None where it is not made so."""
    quotient = graph.made_by(tensor, "RealDiv")
    product = graph.made_by(graph.inputs(quotient)[0], "Mul") if quotient is not None else None
    if quotient is None or product is None:
        return None
    rows, norm = graph.inputs(product)
    value, shape = graph.value(norm), graph.shape(rows)
    if value is None or value.shape or not value > 0 or shape is None or len(shape) != 2:
        return None
    model = _model(shape, value.dtype.name, float(value))
    rows = graph.same(rows)
    match = Match(model.nodes, graph, known={model.rows: rows}, waits=False)
    if not match.add(model.shortened, tensor):
        return None
    return ShortenedRows(rows=rows, max_norm=float(value))


def is_gradient_of(
    graph: Definition, shortened: ShortenedRows, gradient: str, given: str, dtype: int
) -> bool:
    """Whether a tensor is the gradient of rows, from that `given` of the shortened ones."""
    shape = graph.shape(shortened.rows)
    if shape is None:
        return False
    model = _model(shape, tf.as_dtype(dtype).name, shortened.max_norm)
    known = {model.rows: shortened.rows, model.given: given}
    return Match(model.nodes, graph, known=known, waits=False).add(model.gradient, gradient)


@functools.lru_cache(maxsize=64)
def _model(shape: tuple[int, ...], dtype: str, norm: float) -> _Model:
    with tf.Graph().as_default() as graph:
        sizes = [None if size < 0 else size for size in shape]
        rows, given = (tf.compat.v1.placeholder(dtype, sizes) for _ in range(2))
        shortened = tf.clip_by_norm(rows, norm, axes=[1])
        (gradient,) = tf.gradients(shortened, rows, given)
    return _Model(
        nodes=Definition(graph.as_graph_def(add_shapes=True).node),
        rows=rows.name,
        shortened=shortened.name,
        given=given.name,
        gradient=gradient.name,
    )
