"""The modules of `tensorflow.python.ops` that DeepRec's scripts import."""

from workbench.compat.python.ops import embedding_ops

__all__ = ["embedding_ops"]
