"""An EmbeddingVariable in partitions, each a table of its own, perhaps on its own device."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pandas as pd
import tensorflow as tf
from tensorflow.python.ops import resource_variable_ops

from workbench.ops.embedding_variable.keys import int64_keys, partition_of
from workbench.ops.embedding_variable.no_dense_value import without_dense_value
from workbench.ops.embedding_variable.table import EmbeddingVariable


@without_dense_value
class PartitionedEmbeddingVariable(resource_variable_ops.BaseResourceVariable):
    """An EmbeddingVariable whose key k lies in partition (k mod 1000) mod n, as the same key.

    It gives what one table gives: new keys start with the same rows. Optimizers train the
    partitions, which are what the collection of trainable variables has.

    Attributes:
      partitions: the EmbeddingVariables, in their order.
      shape: [None, dim].
      option: what becomes of new, rare and old keys.
    """

    is_embedding_variable = True
    __hash__ = object.__hash__

    def __init__(self, name: str, partitions: Sequence[EmbeddingVariable]) -> None:
        """Makes one variable of several.

        Args:
          name: of the whole.
          partitions: in their order.
        """
        first = partitions[0]
        super().__init__(
            trainable=first.trainable,
            shape=first.shape,
            dtype=first.dtype,
            handle=first.handle,
            handle_name=name,
            unique_id=name,
            in_graph_mode=True,
        )
        self.partitions = list(partitions)
        self.option = first.option

    def __eq__(self, other: object) -> bool:
        return self is other

    def __ne__(self, other: object) -> bool:
        return self is not other

    def __repr__(self) -> str:
        return (
            f"<PartitionedEmbeddingVariable {self.name.removesuffix(':0')!r} shape={self.shape} "
            f"partitions={len(self.partitions)}>"
        )

    def __len__(self) -> int:
        return len(self.partitions)

    def __iter__(self) -> Iterator[EmbeddingVariable]:
        return iter(self.partitions)

    def sparse_read(
        self,
        keys: Any,
        name: str | None = None,
        counts: Any = None,
        *,
        read_only: bool | None = None,
    ) -> tf.Tensor:
        """Reads the rows of keys from their partitions; see `EmbeddingVariable.sparse_read`."""
        with tf.name_scope(name or "embedding_rows"):
            keys = int64_keys(keys, self.name.removesuffix(":0"))
            flat = tf.reshape(keys, [-1])
            count = len(self.partitions)
            part = partition_of(flat, count)
            places = tf.dynamic_partition(tf.range(tf.size(flat)), part, count)
            own = tf.dynamic_partition(flat, part, count)
            times: list[Any] = [None] * count
            if counts is not None:
                times = tf.dynamic_partition(tf.reshape(counts, [-1]), part, count)
            rows = [
                table.sparse_read(own[p], counts=times[p], read_only=read_only)
                for p, table in enumerate(self.partitions)
            ]
            stitched = tf.dynamic_stitch(places, rows)
            stitched = tf.reshape(stitched, tf.concat([tf.shape(keys), [self.shape[1]]], 0))
            stitched.set_shape(keys.shape.concatenate([self.shape[1]]))
            return stitched

    def sizes(self) -> tf.Tensor:
        """int64 [3]: rows, keys that wait in a CounterFilter, bytes of memory with slots."""
        return tf.add_n([table.sizes() for table in self.partitions])

    def total_count(self, name: str | None = None) -> tf.Tensor:
        """How many keys have a row, int64 scalar."""
        return tf.identity(self.sizes()[0], name=name or "total_count")

    def to_pandas(self, session: Any) -> pd.DataFrame:
        """The rows of all partitions; see `EmbeddingVariable.to_pandas`."""
        frames = [table.to_pandas(session) for table in self.partitions]
        return pd.concat(frames).sort_values("key", ignore_index=True)

    def to_proto(self, export_scope: str | None = None) -> None:
        """None: a meta graph has the ops, but no variable of this kind."""
        del export_scope
