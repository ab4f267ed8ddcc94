"""The path by which DeepRec's scripts import the modules of `tf.contrib.layers`."""

from workbench.compat.contrib.layers.python import layers

__all__ = ["layers"]
