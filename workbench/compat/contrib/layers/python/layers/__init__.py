"""The modules of `tf.contrib.layers` that DeepRec's scripts import."""

from workbench.compat.contrib.layers.python.layers import (
    embedding_ops,
    feature_column,
    feature_column_ops,
)

__all__ = ["embedding_ops", "feature_column", "feature_column_ops"]
