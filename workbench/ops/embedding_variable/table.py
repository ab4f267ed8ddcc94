"""EmbeddingVariable: rows by key, in a native table that grows with the keys it sees."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from typing import Any

import pandas as pd
import tensorflow as tf
from tensorflow.python.ops import resource_variable_ops

from workbench import _native
from workbench.errors import UnsupportedError
from workbench.ops.embedding_variable.keys import int64_keys
from workbench.ops.embedding_variable.no_dense_value import without_dense_value
from workbench.ops.embedding_variable.options import EmbeddingVariableOption
from workbench.ops.embedding_variable.slots import Slot, Slots
from workbench.ops.embedding_variable.to_pandas import frame_of


@without_dense_value
class EmbeddingVariable(resource_variable_ops.BaseResourceVariable):
    """Rows of `dim` float32 values by int64 key; made by `get_embedding_variable`.

    A key that is looked up in training for the first time gets a row. All of TensorFlow's stock
    lookups read it, and so do Workbench's. It lies in the host's memory.

    Attributes:
      handle: the resource; gradients are IndexedSlices [keys] with respect to it.
      shape: [None, dim].
      default_rows: variable [n, dim]; key k starts as its row k mod n.
      slots: what optimizers keep beside the rows.
      option: what becomes of new, rare and old keys.
    """

    is_embedding_variable = True
    # Compared with another variable it is that one or not, also in a later version of TensorFlow.
    __hash__ = object.__hash__

    def __init__(
        self,
        *,
        name: str,
        dim: int,
        handle: tf.Tensor,
        default_rows: Any,
        trainable: bool,
        option: EmbeddingVariableOption,
        slots: Slots,
    ) -> None:
        """Wraps a handle.

        Args:
          name: in messages and checkpoints.
          dim: values of a row.
          handle: resource scalar, of WorkbenchEmbeddingVariable.
          default_rows: variable [n, dim]; key k starts as its row k mod n.
          trainable: whether lookups make rows.
          option: what becomes of new, rare and old keys.
          slots: where optimizers note theirs.
        """
        super().__init__(
            trainable=trainable,
            shape=[None, dim],
            dtype=tf.float32,
            handle=handle,
            handle_name=name,
            unique_id=name,
            in_graph_mode=True,
        )
        self.slots = slots
        self.option = option
        self.default_rows = default_rows
        self._global_step: Any = None
        if option.steps_to_live:
            self._global_step = tf.compat.v1.train.get_or_create_global_step()
        # Made now, because a session's graph may be final when they are wanted.
        self._contents = self.export(())

    def __eq__(self, other: object) -> bool:
        return self is other

    def __ne__(self, other: object) -> bool:
        return self is not other

    def __repr__(self) -> str:
        return f"<EmbeddingVariable {self._name()!r} shape={self.shape} dtype=float32>"

    def sparse_read(
        self,
        keys: Any,
        name: str | None = None,
        counts: Any = None,
        *,
        read_only: bool | None = None,
    ) -> tf.Tensor:
        """Reads the rows of keys, and makes those that are missing.

        Args:
          keys: int64 or int32 of any shape; any number is a key, duplicates are fine.
          name: name of the op.
          counts: int32 of that shape, how often each key came, for a filter; None means once each.
          read_only: make no rows and count nothing; a missing key still reads as the row that it
            would start with. None means so if the variable is not trainable.

        Returns:
          float32 [*shape of keys, dim]. The gradient with respect to `handle` is IndexedSlices.
          The op fails with FAILED_PRECONDITION before the variable is initialized or restored.
          Rows read in a `tf.cond` or a `tf.function` cannot be trained: read them before it.

        Raises:
          OptionError: keys of another dtype.
        """
        with self._beside(), tf.name_scope(name or "embedding_rows"):
            return _native.library().workbench_embedding_gather(
                handle=self.handle,
                keys=int64_keys(keys, self._name()),
                default_rows=self.default_rows.value(),
                counts=[] if counts is None else [tf.cast(counts, tf.int32)],
                step=self.step(),
                read_only=not self.trainable if read_only is None else read_only,
            )

    def scatter_sub(
        self, sparse_delta: tf.IndexedSlices, use_locking: bool = False, name: str | None = None
    ) -> tf.Operation:
        """Subtracts from the rows of keys; slices of one key are summed first.

        Args:
          sparse_delta: values [n, dim], and keys [n] as its indices. Keys without a row are left
            out.
          use_locking: without effect: each row changes under a lock.
          name: name of the op.
        """
        del use_locking
        with self._beside():
            return _native.library().workbench_embedding_apply_gradient_descent(
                handle=self.handle,
                learning_rate=1.0,
                grads=sparse_delta.values,
                keys=int64_keys(sparse_delta.indices, self._name()),
                name=name,
            )

    def sizes(self) -> tf.Tensor:
        """int64 [3]: rows, keys that wait in a CounterFilter, bytes of memory with slots."""
        with self._beside():
            return _native.library().workbench_embedding_sizes(handle=self.handle)

    def total_count(self, name: str | None = None) -> tf.Tensor:
        """How many keys have a row, int64 scalar."""
        return tf.identity(self.sizes()[0], name=name or "total_count")

    def to_pandas(self, session: Any) -> pd.DataFrame:
        """The rows as they are now.

        Args:
          session: a `tf.compat.v1.Session`, or a monitored one, of the variable's graph.

        Returns:
          One row per key, sorted by it. Columns: key; freq, if it has a filter: how often the key
          came; version, if it evicts: the global step in which it was last used, -1 if that is not
          known; v0, v1, ...: the values.
        """
        contents = session.run(self._contents._asdict())
        return frame_of(
            contents["keys"],
            contents["values"],
            freqs=contents["freqs"] if self.option.filter_freq else None,
            versions=contents["versions"] if self.option.steps_to_live else None,
        )

    def export(self, slots: Sequence[Slot], *, evict: bool = False) -> Any:
        """Builds an op that copies everything out.

        Args:
          slots: which slots' values to copy too.
          evict: first take out the rows that are too old.

        Returns:
          A named tuple of tensors: keys [rows], values [rows, dim], freqs and versions, [rows] or
          [0] where they are not kept, filtered_keys [waiting], filtered_freqs, [waiting], or
          [waiting, 2] with their versions, or a Bloom filter's counters, and slots, a list.
        """
        steps_to_live = self.option.steps_to_live if evict else 0
        with self._beside(), tf.name_scope("embedding_export"):
            return _native.library().workbench_embedding_export(
                handle=self.handle,
                step=self.step() if steps_to_live else [],
                dim=self.shape[1],
                steps_to_live=steps_to_live,
                num_slots=len(slots),
                slot_names=[slot.name for slot in slots],
                slot_initials=[slot.initial for slot in slots],
            )

    def replace(
        self, contents: Sequence[tf.Tensor], slots: Sequence[Slot], *, part: int, parts: int
    ) -> tf.Operation:
        """Builds an op that replaces everything by what `export` gave.

        Args:
          contents: keys, values, freqs, versions, filtered_keys, filtered_freqs, and each slot.
          slots: whose values those are; other slots start anew.
          part: which of the partitions this is; it takes only the keys that are its own.
          parts: number of partitions.

        Returns:
          The op. It fails with INVALID_ARGUMENT when the shapes do not fit this variable.
        """
        with self._beside():
            return _native.library().workbench_embedding_import(
                self.handle,
                *contents[:6],
                slots=list(contents[6:]),
                slot_names=[slot.name for slot in slots],
                slot_initials=[slot.initial for slot in slots],
                part=part,
                parts=parts,
            )

    def to_proto(self, export_scope: str | None = None) -> None:
        """None: a meta graph has the ops, but no variable of this kind."""
        del export_scope

    def _ref(self) -> tf.Tensor:
        return self.handle

    def _name(self) -> str:
        return self.name.removesuffix(":0")

    def step(self) -> list[tf.Tensor]:
        """The number of this step, an int64 scalar, where rows are to remember it; else nothing."""
        return [] if self._global_step is None else [tf.cast(self._global_step, tf.int64)]

    @contextlib.contextmanager
    def _beside(self) -> Iterator[None]:
        """Builds ops on the table's device."""
        graph = tf.compat.v1.get_default_graph()
        if graph is not self.graph:  # The body of a loop or branch: its ops follow the handle.
            yield
            return
        with graph.colocate_with(self.handle.op, ignore_existing=True):
            yield


@tf.RegisterGradient("WorkbenchEmbeddingGather")
def _gather_grad(op: tf.Operation, grad: tf.Tensor) -> list[Any]:
    dim = op.inputs[2].shape[1]
    with tf.control_dependencies([op] if is_plain(op) else []):
        # The rows must be there before they are trained, even if the loss needs no value of them.
        keys = tf.reshape(op.inputs[1], [-1])
    slices = tf.IndexedSlices(tf.reshape(grad, [-1, dim]), keys)
    return [slices, *[None] * (len(op.inputs) - 1)]


def is_plain(op: tf.Operation) -> bool:
    """Whether an op that reads rows stands in no loop or branch.

    Raises:
      UnsupportedError: it stands in a branch, or in a function: TensorFlow would add dense zeros.
    """
    context = op._get_control_flow_context()
    loop_only, outer = True, context
    while outer is not None:
        loop_only, outer = loop_only and not outer.IsCondContext(), outer.outer_context
    if loop_only and not hasattr(op.graph, "outer_graph"):
        return context is None
    raise UnsupportedError(
        f"{op.name!r} reads rows of an EmbeddingVariable in a tf.cond, or in a loop or function of "
        "its own graph, where they cannot be trained; call sparse_read before it, and use the rows "
        "in it"
    )


for _op in ("Variable", "Sizes", "Clear", "Export", "Import"):
    tf.no_gradient(f"WorkbenchEmbedding{_op}")
