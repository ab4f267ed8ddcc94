"""Graphs with batch normalizations as TensorFlow builds them."""

from __future__ import annotations

import contextlib
from typing import Any

import numpy as np
import tensorflow as tf

v1 = tf.compat.v1


def variables(width: int, name: str, kind: str = "ref") -> tuple[Any, Any]:
    with v1.variable_scope(name, use_resource=kind == "resource"):
        drawn = np.random.default_rng(width).normal(1.0, 0.3, [2, width]).astype(np.float32)
        return tuple(v1.get_variable(each, initializer=drawn[i]) for i, each in enumerate("gb"))


def normal(x: Any, name: str, kind: str = "ref") -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
    """A normalized matrix, and its moments."""
    gamma, beta = variables(x.shape[1], name, kind)
    with v1.name_scope(f"normal_{name}"):
        mean, variance = tf.nn.moments(x, axes=[0])
        normed = tf.nn.batch_normalization(x, mean, variance, beta, gamma, 1e-3)
        return normed, mean, variance


def matrix(rows: int, columns: int, *, known: bool = False, seed: int = 0) -> tf.Tensor:
    """One that nothing can fold into a constant."""
    drawn = np.random.default_rng(seed).normal(0.5, 2.0, [rows, columns]).astype(np.float32)
    return v1.placeholder_with_default(drawn, [rows if known else None, columns])


def layer(x: Any, units: int, name: str) -> tf.Tensor:
    drawn = np.random.default_rng(units).normal(0, 0.5, [x.shape[1], units]).astype(np.float32)
    return tf.matmul(x, v1.get_variable(f"{name}_kernel", initializer=drawn))


def loss_of(normed: tf.Tensor) -> tf.Tensor:
    target = np.random.default_rng(9).normal(size=[normed.shape[1]]).astype(np.float32)
    return tf.reduce_mean(tf.square(normed - target) + tf.sin(normed))


@contextlib.contextmanager
def built() -> Any:
    with tf.Graph().as_default() as graph:
        yield graph
        tf.group(v1.global_variables_initializer(), name="begin")
