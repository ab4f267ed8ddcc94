"""How a tf.compat.v1.train.Saver saves and restores an EmbeddingVariable."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import tensorflow as tf
from tensorflow.python.training.saving import saveable_object

from workbench.ops.embedding_variable.slots import Slot, Slots
from workbench.ops.embedding_variable.table import EmbeddingVariable

_PARTS = ("keys", "values", "freqs", "versions", "keys_filtered", "freqs_filtered")


class EmbeddingSaveable(saveable_object.SaveableObject):
    """One EmbeddingVariable in a checkpoint, however many partitions it has.

    A checkpoint has `<name>-keys`, `-values`, `-freqs`, `-versions`, `-keys_filtered`,
    `-freqs_filtered`, and `<name>/<slot>-values` of each slot that there is when the Saver is
    built. The rows of all partitions stand together, so that another number may restore them;
    they are brought to the first partition's device for it. `-freqs_filtered` has the versions of
    those keys beside it where rows are evicted, and the counters of a Bloom filter.
    """

    def __init__(self, name: str, tables: Sequence[EmbeddingVariable], slots: Slots) -> None:
        """Makes a saveable.

        Args:
          name: of the variable, without a partition.
          tables: its partitions, in their order.
          slots: its slots, also those made later.
        """
        # The base's constructor would fix the specs, but slots are made later.
        self.op = tables[0].handle
        # A meta graph notes saveables by this name, and looks for an op of it.
        self.name = self.op.op.name
        self._variable = name
        self._tables = tuple(tables)
        self._slots = slots
        self._built: dict[tuple[Slot, ...], list[saveable_object.SaveSpec]] = {}

    @property
    def specs(self) -> list[saveable_object.SaveSpec]:
        """What to save, with the slots that there are now."""
        slots = self._slots.all()
        if slots not in self._built:
            self._built[slots] = self._specs(slots)
        return self._built[slots]

    def restore(self, restored_tensors: Sequence[tf.Tensor], restored_shapes: Any) -> tf.Operation:
        """Replaces the rows of each partition by those of the checkpoint that are its own."""
        del restored_shapes
        slots = self._slots.all()
        parts = len(self._tables)
        return tf.group(
            *(
                table.replace(restored_tensors, slots, part=part, parts=parts)
                for part, table in enumerate(self._tables)
            )
        )

    def _specs(self, slots: tuple[Slot, ...]) -> list[saveable_object.SaveSpec]:
        names = [f"{self._variable}-{part}" for part in _PARTS]
        names += [f"{self._variable}/{slot.name}-values" for slot in slots]
        exports = [table.export(slots, evict=True) for table in self._tables]
        columns = zip(*([*each[: len(_PARTS)], *each.slots] for each in exports), strict=True)
        device = self._tables[0].device
        with tf.compat.v1.device(device or None):
            tensors = [parts[0] if len(parts) == 1 else tf.concat(parts, 0) for parts in columns]
        return [
            saveable_object.SaveSpec(tensor, "", name, tensor.dtype, device)
            for tensor, name in zip(tensors, names, strict=True)
        ]
