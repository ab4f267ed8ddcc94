"""Outputs of an op of Workbench's, so that TensorFlow's optimizer keeps them apart."""

from __future__ import annotations

from collections.abc import Iterable

import tensorflow as tf
from tensorflow.python.framework import ops

from workbench import _native


def kept_apart(outputs: Iterable[tf.Tensor]) -> list[tf.Tensor]:
    """Hands each output of an op on by an op of its own, but for the first; eagerly none.

    Some rules of TensorFlow's graph optimizer take any output of an op for its first one: equal
    inputs of a Pack are tiled so. The ops that the rules were made for have one output each.
    """
    found = list(outputs)
    if tf.executing_eagerly():
        return found
    return [*found[:1], *(_native.library().workbench_hand_on(input=each) for each in found[1:])]


@ops.RegisterGradient("WorkbenchHandOn")
def _gradient(_: tf.Operation, gradient: tf.Tensor) -> tf.Tensor:
    return gradient
