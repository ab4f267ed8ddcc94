"""What TensorFlow builds for a dot interaction, so that it is found in other graphs."""

from __future__ import annotations

import dataclasses
import functools

import numpy as np
import tensorflow as tf

from workbench.core.fusion.definition import Definition

PRODUCT = "BatchMatMulV2"


@dataclasses.dataclass(frozen=True, kw_only=True)
class Template:
    """Some dot products of an example's vectors with each other, and their gradient.

    Attributes:
      graph: that it was built in.
      vectors: of an example.
      pairs: places in a row of all dot products.
      x: what it reads, a placeholder; `given`, one too, is the gradient of `y`.
      flat_shape: a constant: the shape of all dot products of an example in one row.
      y: the dots.
      x_terms: what is summed to the gradient of `x`.
      x_product: of the products behind these, the first.
      computed: all results of nodes, each behind what it reads; of some nothing needs them.
    """

    graph: Definition
    vectors: int
    pairs: tuple[int, ...]
    x: str
    given: str
    flat_shape: str
    y: str
    x_terms: tuple[str, ...]
    x_product: str
    computed: tuple[str, ...]


def template(rows: int | None, vectors: int, dim: int, pairs: np.ndarray) -> Template:
    """The template for float32 vectors whose static shape is [rows, vectors, dim].

    Args:
      pairs: places in a row of all dot products.
    """
    return _template(rows, vectors, dim, pairs.dtype.str, pairs.tobytes())


@functools.lru_cache(maxsize=64)
def _template(rows: int | None, vectors: int, dim: int, dtype: str, pairs: bytes) -> Template:
    places = np.frombuffer(pairs, dtype)
    v1 = tf.compat.v1
    with tf.Graph().as_default() as built:
        x = v1.placeholder(tf.float32, [rows, vectors, dim])
        products = tf.reshape(tf.matmul(x, x, transpose_b=True), [-1, vectors * vectors])
        y = tf.gather(products, places, axis=1)
        given = v1.placeholder(tf.float32, y.shape)
        (of_x,) = v1.gradients(y, [x], grad_ys=given)
    graph = Definition(built.as_graph_def(add_shapes=True).node)
    terms = tuple(graph.same(each) for each in graph.inputs(graph.source(graph.same(of_x.name))))
    return Template(
        graph=graph,
        vectors=vectors,
        pairs=tuple(places.tolist()),
        x=x.name,
        given=given.name,
        flat_shape=graph.same(graph.inputs(graph.source(products.name))[1]),
        y=y.name,
        x_terms=terms,
        x_product=_product(graph, terms[0]),
        computed=graph.computed,
    )


def _product(graph: Definition, tensor: str) -> str:
    """The product that a term hands on, summed to the shape of what has a gradient."""
    while graph.source(tensor).op != PRODUCT:
        tensor = graph.same(graph.inputs(graph.source(tensor))[0])
    return tensor
