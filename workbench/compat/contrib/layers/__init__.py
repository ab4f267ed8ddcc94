"""The parts of `tf.contrib.layers` that feature columns need; the rest is refused by name."""

from workbench.compat.absent import absent as _absent
from workbench.compat.contrib.layers import python
from workbench.compat.contrib.layers.python.layers import (
    embedding_ops,
    feature_column,
    feature_column_ops,
)
from workbench.compat.contrib.layers.python.layers.embedding_ops import (
    safe_embedding_lookup_sparse,
)
from workbench.compat.contrib.layers.python.layers.feature_column import (
    embedding_column,
    real_valued_column,
    sparse_column_with_embedding,
    sparse_column_with_hash_bucket,
    sparse_column_with_integerized_feature,
    weighted_sparse_column,
)
from workbench.compat.contrib.layers.python.layers.feature_column_ops import (
    input_from_feature_columns,
)

__all__ = [
    "embedding_column",
    "embedding_ops",
    "feature_column",
    "feature_column_ops",
    "input_from_feature_columns",
    "python",
    "real_valued_column",
    "safe_embedding_lookup_sparse",
    "sparse_column_with_embedding",
    "sparse_column_with_hash_bucket",
    "sparse_column_with_integerized_feature",
    "weighted_sparse_column",
]
__getattr__ = _absent("tf.contrib.layers", __all__)
