"""Ops of the user's model: fused lookups, EmbeddingVariable, its feature columns, interactions.

These are the public names; each is documented where it is defined.
"""

from workbench.ops.embedding_variable.filters import CBFFilter, CounterFilter
from workbench.ops.embedding_variable.optimizers import (
    AdagradOptimizer,
    AdamOptimizer,
    FtrlOptimizer,
    GradientDescentOptimizer,
)
from workbench.ops.embedding_variable.options import (
    EmbeddingVariableOption,
    GlobalStepEvict,
    InitializerOption,
    L2WeightEvict,
    StorageOption,
)
from workbench.ops.embedding_variable.partitioned import PartitionedEmbeddingVariable
from workbench.ops.embedding_variable.table import EmbeddingVariable
from workbench.ops.embedding_variable.to_pandas import read_embedding_variable
from workbench.ops.embedding_variable.variable import get_embedding_variable
from workbench.ops.feature_column.columns import (
    categorical_column_with_embedding,
    embedding_column,
    sequence_categorical_column_with_embedding,
    shared_embedding_columns,
)
from workbench.ops.interaction.dot_interaction import dot_interaction
from workbench.ops.interaction.fm_interaction import fm_interaction
from workbench.ops.lookup.fused import (
    fused_embedding_lookup_sparse,
    fused_embedding_lookup_sparse_v2,
    fused_safe_embedding_lookup_sparse,
)
from workbench.ops.lookup.fusion import (
    embedding_lookup_sparse,
    fused_embeddings,
    safe_embedding_lookup_sparse,
)
from workbench.ops.lookup.grouped import grouped_embedding_lookup
from workbench.ops.lookup.grouped_embedding import GroupedEmbedding
from workbench.ops.optimizer.fused_update import fused_update
from workbench.ops.optimizer.row_wise_adagrad import RowWiseAdagrad, RowWiseAdagradOptimizer

__all__ = [
    "AdagradOptimizer",
    "AdamOptimizer",
    "CBFFilter",
    "CounterFilter",
    "EmbeddingVariable",
    "EmbeddingVariableOption",
    "FtrlOptimizer",
    "GlobalStepEvict",
    "GradientDescentOptimizer",
    "GroupedEmbedding",
    "InitializerOption",
    "L2WeightEvict",
    "PartitionedEmbeddingVariable",
    "RowWiseAdagrad",
    "RowWiseAdagradOptimizer",
    "StorageOption",
    "categorical_column_with_embedding",
    "dot_interaction",
    "embedding_column",
    "embedding_lookup_sparse",
    "fm_interaction",
    "fused_embedding_lookup_sparse",
    "fused_embedding_lookup_sparse_v2",
    "fused_embeddings",
    "fused_safe_embedding_lookup_sparse",
    "fused_update",
    "get_embedding_variable",
    "grouped_embedding_lookup",
    "read_embedding_variable",
    "safe_embedding_lookup_sparse",
    "sequence_categorical_column_with_embedding",
    "shared_embedding_columns",
]
