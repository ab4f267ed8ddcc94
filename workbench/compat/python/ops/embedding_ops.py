"""`tensorflow.python.ops.embedding_ops`: the lookups of `workbench.compat.nn`."""

from workbench.compat.nn import (
    embedding_lookup,
    embedding_lookup_sparse,
    fused_embedding_lookup_sparse,
    fused_embedding_lookup_sparse_v2,
    fused_safe_embedding_lookup_sparse,
    safe_embedding_lookup_sparse,
)

__all__ = [
    "embedding_lookup",
    "embedding_lookup_sparse",
    "fused_embedding_lookup_sparse",
    "fused_embedding_lookup_sparse_v2",
    "fused_safe_embedding_lookup_sparse",
    "safe_embedding_lookup_sparse",
]
