"""Has tests that build TensorFlow's safe lookup build it inside `wb.fused_embeddings`."""

from __future__ import annotations

from typing import Any

from tests.peer.product_counts import ProductCounts


def build_fused(version: str, counts: ProductCounts) -> None:
    """Replaces TensorFlow's safe lookups, as its tests and feature columns call them.

    Args:
      version: of `wb.fused_embeddings`.
      counts: where lookups are counted.
    """
    import tensorflow as tf
    from tensorflow.python.ops import embedding_ops

    import workbench as wb
    from workbench.ops.lookup import stock

    # TensorFlow loads its public modules late; this one must keep the function that it has now.
    plain = tf.compat.v1.nn.safe_embedding_lookup_sparse
    assert plain is embedding_ops.safe_embedding_lookup_sparse
    own_stock = stock.safe_embedding_lookup_sparse

    def stays_stock(*arguments: Any, **named: Any) -> Any:
        counts.stayed_stock += 1
        return own_stock(*arguments, **named)

    def safe_lookup(
        embedding_weights: Any,
        sparse_ids: Any,
        sparse_weights: Any = None,
        combiner: str | None = "mean",
        default_id: int | None = None,
        name: str | None = None,
        partition_strategy: str = "div",
        max_norm: float | None = None,
        allow_fast_lookup: bool = False,
    ) -> Any:
        before = counts.stayed_stock
        with wb.fused_embeddings(version):
            found = wb.safe_embedding_lookup_sparse(
                embedding_weights,
                sparse_ids,
                sparse_weights,
                combiner=combiner or "mean",
                default_id=default_id,
                name=name,
                partition_strategy=partition_strategy,
                max_norm=max_norm,
            )
        counts.parts += counts.stayed_stock == before
        return found

    def safe_lookup_v2(
        embedding_weights: Any,
        sparse_ids: Any,
        sparse_weights: Any = None,
        combiner: str | None = "mean",
        default_id: int | None = None,
        max_norm: float | None = None,
        name: str | None = None,
        allow_fast_lookup: bool = False,
    ) -> Any:
        return safe_lookup(
            embedding_weights,
            sparse_ids,
            sparse_weights,
            combiner=combiner,
            default_id=default_id,
            name=name,
            max_norm=max_norm,
        )

    stock.safe_embedding_lookup_sparse = stays_stock
    embedding_ops.safe_embedding_lookup_sparse = safe_lookup
    embedding_ops.safe_embedding_lookup_sparse_v2 = safe_lookup_v2
