"""Models whose tables tell how stale the rows of a step were, and steps that wait for the reads."""

from __future__ import annotations

import dataclasses
import threading
from collections.abc import Callable

import numpy as np
import tensorflow as tf

from workbench import ops
from workbench.core.session.staged import staged

v1 = tf.compat.v1
# What is read is noted in this node, which has to be named in SmartStageOptions(move=…).
NOTE = "note"
_PATIENCE_S = 30.0


class Reads:
    """What was read of a table so far; a step may wait until as many reads are done.

    Args:
      batches: of the data: no more reads than that ever come.
    """

    def __init__(self, batches: int) -> None:
        self.values: list[np.ndarray] = []
        self._batches = batches
        self._changed = threading.Condition()

    def note(self, rows: np.ndarray) -> np.float32:
        """Notes a read of the staged side."""
        with self._changed:
            self.values.append(np.array(rows))
            self._changed.notify_all()
        return np.float32(0)

    def noted(self, rows: np.ndarray) -> np.ndarray:
        """Notes a read, and gives its rows on."""
        self.note(rows)
        return rows

    def wait_for(self, count: int) -> None:
        """Waits until so many batches' rows have been read, or those of all batches."""
        with self._changed:
            reached = self._changed.wait_for(
                lambda: len(self.values) >= min(count, self._batches), _PATIENCE_S
            )
        assert reached, f"{len(self.values)} batches were read; expected {count}"


@dataclasses.dataclass
class StaleModel:
    """A model to be run by a session.

    Attributes:
      reads: of its table.
      rows: what a step looks up.
      train: the step.
      loss: of the step.
      initializer: of the input.
    """

    reads: Reads
    rows: tf.Tensor
    train: tf.Operation
    loss: tf.Tensor
    initializer: tf.Operation

    def initialize(self, session) -> None:
        session.run([v1.global_variables_initializer(), self.initializer])


def counter(
    batches: int,
    before_update: Callable[[int, Reads], None],
    *,
    own: bool = False,
    wide: bool = False,
) -> StaleModel:
    """A table of one number, which is how many steps have updated it.

    Args:
      batches: of the data.
      before_update: called on the compute side with the number of the step, and the reads.
      own: the input is in a stage of the user's own.
      wide: something between the input and the lookup may run ahead as well.
    """
    data = tf.data.Dataset.from_tensors(np.zeros([1], np.int64)).repeat(batches)
    ids, initializer = _input(data)
    ids = staged(ids) if own else ids
    ids = tf.abs(ids) if wide else ids
    table = v1.get_variable("table", [1, 1], initializer=tf.zeros_initializer())
    rows = tf.nn.embedding_lookup(table, ids, name="rows")
    reads, waited = _waits(rows, batches, before_update)
    value = [[1 + waited]]
    with tf.device(table.device):
        train = table.assign_add(value, read_value=False)
    return StaleModel(reads, rows, train, waited, initializer)


def regression(
    ids: np.ndarray, look_up: Callable[[tf.Tensor], tf.Tensor], steps: int, optimizer
) -> StaleModel:
    """Rows that are trained to be 1; each step waits until its stage has read as far as it may.

    Args:
      ids: int64 [batches, examples].
      look_up: vectors [examples, dim] of the ids of a batch, from a table that it makes.
      steps: how stale lookups may be.
      optimizer: of the table.
    """
    batch, initializer = _input(tf.data.Dataset.from_tensor_slices(ids))
    rows = look_up(batch)
    reads, waited = _waits(rows, len(ids), lambda step, reads: reads.wait_for(step + steps + 1))
    loss = tf.reduce_sum(tf.square(rows - (1 - waited))) / 2
    return StaleModel(reads, rows, optimizer.minimize(loss), loss, initializer)


def delayed_losses(ids: np.ndarray, table: np.ndarray, steps: int, rate: float) -> list[float]:
    """The losses of `regression` by gradient descent on rows that are so many steps old."""
    tables, losses = [table.astype(np.float64)], []
    for step, batch in enumerate(ids):
        gradient = tables[max(0, step - steps)][batch] - 1
        losses.append(float(np.square(gradient).sum() / 2))
        updated = tables[-1].copy()
        np.subtract.at(updated, batch, rate * gradient)
        tables.append(updated)
    return losses


def _waits(
    rows: tf.Tensor, batches: int, before_update: Callable[[int, Reads], None]
) -> tuple[Reads, tf.Tensor]:
    """Notes each read; and 0, once `before_update` has returned on the compute side."""
    reads, step = Reads(batches), iter(range(1 << 30))

    def wait(noted, rows):
        del rows  # They travel, so that a fetch gives those that the step used.
        before_update(next(step), reads)
        return noted

    noted = tf.numpy_function(reads.note, [rows], tf.float32, name=NOTE)
    return reads, tf.ensure_shape(tf.numpy_function(wait, [noted, rows], tf.float32), [])


def _input(data: tf.data.Dataset) -> tuple[tf.Tensor, tf.Operation]:
    plain = tf.data.Options()
    plain.experimental_optimization.inject_prefetch = False
    iterator = v1.data.make_initializable_iterator(data.with_options(plain))
    return iterator.get_next(), iterator.initializer


TABLE = np.arange(12).reshape(6, 2) / 10


def _table(resource: bool = True) -> tf.Variable:
    return shard(TABLE, "table", resource)


def shard(rows: np.ndarray, name: str, resource: bool = True) -> tf.Variable:
    """A variable of these rows; a ref variable where it is no resource."""
    initial = tf.constant_initializer(rows)
    return v1.get_variable(name, rows.shape, initializer=initial, use_resource=resource)


def _sparse(ids: tf.Tensor) -> tf.SparseTensor:
    count = tf.size(ids, out_type=tf.int64)
    places = tf.stack([tf.range(count), tf.zeros([count], tf.int64)], axis=1)
    return tf.SparseTensor(places, ids, tf.stack([count, tf.constant(1, tf.int64)]))


def _safe(table: tf.Variable, ids: tf.Tensor) -> tf.Tensor:
    return v1.nn.safe_embedding_lookup_sparse(table, _sparse(ids), combiner="sum")


def _fused(table: tf.Variable, ids: tf.Tensor, version: str) -> tf.Tensor:
    return ops.fused_safe_embedding_lookup_sparse(
        table, _sparse(ids), combiner="sum", fusion_version=version
    )


# Each makes its table, of TABLE, and looks ids up in it.
LOOKUPS = {
    "stock": lambda ids: tf.nn.embedding_lookup(_table(), ids),
    "stock of a ref variable": lambda ids: tf.nn.embedding_lookup(_table(False), ids),
    "stock of two shards": lambda ids: v1.nn.embedding_lookup(
        [shard(TABLE[:3], "low"), shard(TABLE[3:], "high")], ids, partition_strategy="div"
    ),
    "stock, sparse and safe": lambda ids: _safe(_table(), ids),
    "stock, sparse, of a ref variable": lambda ids: _safe(_table(False), ids),
    "gather of a whole read": lambda ids: tf.gather(_table().read_value(), ids),
    "v1": lambda ids: _fused(_table(), ids, "v1"),
    "v2": lambda ids: _fused(_table(), ids, "v2"),
    "v2 of a ref variable": lambda ids: _fused(_table(False), ids, "v2"),
    "grouped": lambda ids: ops.grouped_embedding_lookup(
        [_table()], [_sparse(ids)], combiners="sum"
    )[0],
    "grouped, of a ref variable": lambda ids: ops.grouped_embedding_lookup(
        [_table(False)], [_sparse(ids)], combiners="sum"
    )[0],
}
