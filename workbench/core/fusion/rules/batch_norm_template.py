"""What TensorFlow builds for a batch normalization, so that it is found in other graphs."""

from __future__ import annotations

import dataclasses
import functools

import tensorflow as tf

from workbench.core.fusion.pattern.definition import Definition


@dataclasses.dataclass(frozen=True, kw_only=True)
class Template:
    """The normalization of a matrix by the moments of its columns, and its gradients.

    Attributes:
      graph: that it was built in.
      x, gamma, beta: what it reads, placeholders; `given`, one too, is the gradient of `y`.
      epsilon: a constant, which is another one in each graph.
      mean, variance: [columns].
      scale: what `x` is multiplied with.
      inverse: one by the standard deviation.
      x_terms: what is summed to the gradient of `x`; the first is `given` times the scale.
      gamma_gradient, beta_gradient: [columns].
      computed: all results of nodes, each behind what it reads; of some nothing needs them.
    """

    graph: Definition
    x: str
    gamma: str
    beta: str
    given: str
    epsilon: str
    y: str
    mean: str
    variance: str
    scale: str
    inverse: str
    x_terms: tuple[str, ...]
    gamma_gradient: str
    beta_gradient: str
    computed: tuple[str, ...]


@functools.lru_cache(maxsize=256)
def template(rows: int | None, columns: int) -> Template:
    """The template for a matrix of float32 whose static shape is [rows, columns]."""
    v1 = tf.compat.v1
    with tf.Graph().as_default() as built:
        x, given = (v1.placeholder(tf.float32, [rows, columns]) for _ in range(2))
        gamma, beta = (v1.placeholder(tf.float32, [columns]) for _ in range(2))
        mean, variance = tf.nn.moments(x, axes=[0])
        y = tf.nn.batch_normalization(x, mean, variance, beta, gamma, 0.5)
        of_x, of_gamma, of_beta = v1.gradients(y, [x, gamma, beta], grad_ys=given)
    graph = Definition(built.as_graph_def(add_shapes=True).node)
    product = graph.inputs(graph.source(y.name))[0]
    scale = graph.inputs(graph.source(product))[1]
    inverse = graph.inputs(graph.source(scale))[0]
    offset = graph.inputs(graph.source(graph.inputs(graph.source(inverse))[0]))
    terms = [graph.same(each) for each in graph.inputs(graph.source(graph.same(of_x.name)))]
    # Of all terms it alone reads the scale.
    terms.sort(key=lambda each: scale not in graph.inputs(graph.source(each)))
    return Template(
        graph=graph,
        x=x.name,
        gamma=gamma.name,
        beta=beta.name,
        given=given.name,
        epsilon=graph.same(offset[1]),
        y=y.name,
        mean=mean.name,
        variance=variance.name,
        scale=scale,
        inverse=inverse,
        x_terms=tuple(terms),
        gamma_gradient=graph.same(of_gamma.name),
        beta_gradient=graph.same(of_beta.name),
        computed=graph.computed,
    )
