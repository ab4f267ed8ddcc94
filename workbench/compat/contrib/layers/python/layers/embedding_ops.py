"""`tf.contrib.layers.python.layers.embedding_ops`: the safe lookup, plain and fused."""

from workbench.compat.absent import absent as _absent
from workbench.compat.nn import fused_safe_embedding_lookup_sparse, safe_embedding_lookup_sparse

__all__ = ["fused_safe_embedding_lookup_sparse", "safe_embedding_lookup_sparse"]
__getattr__ = _absent("tf.contrib.layers.embedding_ops", __all__)
