"""What TensorFlow builds for a batch normalization, so that it is found in other graphs."""

from __future__ import annotations

import functools

import tensorflow as tf

from workbench.core.fusion.pattern.template import Template

KIND = "batch normalization"


class NormTemplate(Template):
    """The normalization of a matrix by the moments of its columns, with gamma and beta."""

    @property
    def kind(self) -> str:
        """One of it, in words."""
        return KIND

    @property
    def root(self) -> str:
        """What `x` is multiplied with; an input of the step has no gradient, but this has one."""
        return self.scale

    @property
    def any_number(self) -> frozenset[str]:
        """Epsilon, which is another one in each graph."""
        return frozenset({self.epsilon})

    @property
    def scale(self) -> str:
        """What `x` is multiplied with."""
        return self.graph.read_for(self.y, 0, 1)

    @property
    def inverse(self) -> str:
        """One by the standard deviation."""
        return self.graph.read_for(self.scale, 0)

    @property
    def epsilon(self) -> str:
        """What is added to the variance, a constant."""
        return self.graph.same(self.graph.read_for(self.inverse, 0, 1))

    @property
    def moments(self) -> tuple[str, str]:
        """Mean and variance, [columns]."""
        return self.graph.read_for(self.y, 1, 1, 0), self.graph.read_for(self.inverse, 0, 0)


@functools.lru_cache(maxsize=256)
def template(rows: int | None, columns: int) -> NormTemplate:
    """The template for a matrix of float32 whose static shape is [rows, columns]."""

    def normalize(x: tf.Tensor, gamma: tf.Tensor, beta: tf.Tensor) -> tf.Tensor:
        mean, variance = tf.nn.moments(x, axes=[0])
        return tf.nn.batch_normalization(x, mean, variance, beta, gamma, 0.5)

    return NormTemplate.built(normalize, [[rows, columns], [columns], [columns]])
