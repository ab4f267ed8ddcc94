"""World: the graph of a Program while it is built, and what stands in it so far."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import tensorflow as tf

from tests.fuzz.data import IDS, as_sparse, needed_ids
from tests.fuzz.program import Ids, Part, Program

v1 = tf.compat.v1


@dataclasses.dataclass
class TableState:
    """A table: what wrote it last, and what has read it since."""

    name: str
    variable: Any
    dim: int
    writers: list[Any] = dataclasses.field(default_factory=list)
    readers: list[Any] = dataclasses.field(default_factory=list)


@dataclasses.dataclass
class Vector:
    """A vector for each example; open until something reads it."""

    tensor: tf.Tensor
    dim: int
    open: bool = True


class World:
    """What parts read and add to.

    Args:
      program: to build.
      inputs: tensors by name, as `data.given` names them; whole SparseTensors are fine too.
      variable: makes a variable of a name, a value and whether it is a resource.
      limit: a scalar; checks demand that it is above 5.
    """

    def __init__(
        self,
        program: Program,
        inputs: dict[str, Any],
        variable: Callable[[str, Any, bool], Any],
        limit: tf.Tensor,
    ) -> None:
        self.program = program
        self.inputs = inputs
        self.limit = limit
        self.variable = variable
        self.resource = program.tables[0].resource
        self.tables = [self._table(number) for number in range(len(program.tables))]
        self.dense: list[tf.Tensor] = []
        self.sparse: list[tf.SparseTensor] = []
        for number, ids in enumerate(needed_ids(program)):
            with tf.name_scope(f"in_{number}"):
                self._add_ids(f"ids_{number}", ids)
        self.features = inputs["features"]
        self.vectors: list[Vector] = []
        self.lookups: list[Callable[[], tf.Tensor]] = []
        self.losses: list[tf.Tensor] = []
        self.metrics: list[tf.Tensor] = []
        self.effects: list[Any] = []
        self._around: list[tuple[list[Any], int]] = []

    def random(self, name: str) -> Any:
        """Numbers that depend on the program's seed and a name alone."""
        return np.random.RandomState([self.program.seed, *name.encode()])

    def weights(self, name: str, shape: list[int], scale: float = 0.5) -> Any:
        """A trained variable of random numbers."""
        value = self.random(name).normal(size=shape) * scale
        return self.variable(name, value.astype(np.float32), self.resource)

    def _table(self, number: int) -> TableState:
        table, name = self.program.tables[number], f"table_{number}"
        value = self.random(name).normal(size=[table.rows, table.dim]) * 0.5
        made = self.variable(name, value.astype(table.dtype), table.resource)
        return TableState(name, made, table.dim)

    def _add_ids(self, name: str, ids: Ids) -> None:
        if ids.form == "parts" and name not in self.inputs:
            parts = [self.inputs[f"{name}/{each}"] for each in ("indices", "values", "shape")]
            found: Any = tf.SparseTensor(*parts)
        else:
            found = self.inputs[name]
        if ids.form == "matrix":
            found = as_sparse(found)
        if ids.form == "text":
            where = tf.where(tf.not_equal(found, ""))
            words = tf.gather_nd(found, where)
            hashed = tf.strings.to_hash_bucket_fast(words, IDS)
            found = tf.SparseTensor(where, hashed, tf.shape(found, out_type=tf.int64))
        values = found if ids.form == "dense" else found.values
        if ids.slow:
            values = values + tf.cast(self._slow_zero(), values.dtype)
        if ids.behind:
            values = tf.identity(values, name="behind")
        if ids.form == "dense":
            self.dense.append(values)
        else:
            self.sparse.append(tf.SparseTensor(found.indices, values, found.dense_shape))

    def _slow_zero(self) -> tf.Tensor:
        large = tf.fill([400, 400], tf.reduce_sum(self.inputs["features"]))
        return tf.reduce_sum(tf.sign(tf.square(tf.matmul(large, large)))) * 0.0

    def table(self, number: int) -> TableState:
        """One of the tables."""
        return self.tables[number % len(self.tables)]

    def dense_ids(self, number: int) -> tf.Tensor:
        """Dense ids, [batch] or [batch, depth]."""
        return self.dense[number % len(self.dense)]

    def sparse_ids(self, number: int) -> tf.SparseTensor:
        """Sparse ids, [batch, depth]."""
        return self.sparse[number % len(self.sparse)]

    def read(self, first: int, count: int = 1) -> list[Vector]:
        """Some vectors, which are open no more."""
        if not self.vectors:
            self.add(self.features, int(self.features.shape[-1]))
        found = [self.vectors[(first + k) % len(self.vectors)] for k in range(count)]
        for each in found:
            each.open = False
        return found

    def read_alike(self, first: int, count: int) -> list[Vector]:
        """Some vectors of one length."""
        (one,) = self.read(first)
        alike = [each for each in self.vectors if each.dim == one.dim]
        found = [alike[(first + k) % len(alike)] for k in range(count)]
        for each in found:
            each.open = False
        return found

    def add(self, tensor: tf.Tensor, dim: int, trained: bool = True) -> None:
        """Adds a vector; one that is not trained becomes a metric."""
        if trained:
            tensor.set_shape([self.program.batch if self.program.known_batch else None, dim])
            self.vectors.append(Vector(tensor, dim))
        else:
            self.add_metric(tf.reduce_mean(tensor))

    def add_metric(self, value: tf.Tensor) -> None:
        """Adds a number that training does not need."""
        self.metrics.append(value)

    @contextlib.contextmanager
    def part(self, part: Part) -> Iterator[None]:
        """Builds a part behind all that stands around it."""
        waits = [op for ops, _ in self._around for op in ops]
        self._around = [(ops, left - 1) for ops, left in self._around if left > 1]
        with tf.name_scope(part.name), tf.control_dependencies(waits):
            yield

    @contextlib.contextmanager
    def before(self, part: Part) -> Iterator[None]:
        """Builds what a part reads, in front of what stands around it where it wants that."""
        with tf.control_dependencies(None) if part["before"] else contextlib.nullcontext():
            yield

    def wrap(self, ops: list[Any], count: int) -> None:
        """Has the next `count` parts wait for some ops."""
        self._around.append((ops, count))

    @contextlib.contextmanager
    def reads(self, table: TableState) -> Iterator[Callable[[Any], None]]:
        """Reads a table behind what wrote it last; yields what to call with the reader."""
        with tf.control_dependencies(table.writers):
            yield table.readers.append

    def write(self, table: TableState, change: Callable[[Any], Any]) -> Any:
        """Changes a table behind all that has read it; returns the op."""
        with tf.control_dependencies([*table.writers, *table.readers]):
            op = change(table.variable)
        table.writers, table.readers = [op], []
        return op

    def count(self, name: str) -> Any:
        """An op that counts its runs in a variable of its own."""
        counter = self.variable(f"{name}/count", np.zeros([], np.int64), self.resource)
        return counter.assign_add(tf.constant(1, tf.int64), read_value=False)
