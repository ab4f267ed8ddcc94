"""`tf.nn` with DeepRec's fused lookups, and with lookups that take EmbeddingVariables.

`safe_embedding_lookup_sparse` and `embedding_lookup_sparse` are fused inside `fused_embeddings`.
"""

from __future__ import annotations

from workbench.ops.lookup.fused import (
    fused_embedding_lookup_sparse,
    fused_embedding_lookup_sparse_v2,
    fused_safe_embedding_lookup_sparse,
)
from workbench.ops.lookup.fusion import embedding_lookup_sparse, safe_embedding_lookup_sparse
from workbench.ops.lookup.stock import embedding_lookup

__all__ = [
    "embedding_lookup",
    "embedding_lookup_sparse",
    "fused_embedding_lookup_sparse",
    "fused_embedding_lookup_sparse_v2",
    "fused_safe_embedding_lookup_sparse",
    "safe_embedding_lookup_sparse",
]
