"""Generated graphs: every executor policy gives, bit for bit, what stock TensorFlow gives.

A graph is drawn from a seed: data edges and control edges between dense ops, constants, feeds,
variables of both kinds, asynchronous ops, python functions, calls, branches and loops of both
kinds, on one device or two. Updates and reads of a variable follow each other by control edges, so
what a graph gives does not depend on its schedule. `WORKBENCH_RANDOM_EXECUTORS` sets the number of
graphs.
"""

from __future__ import annotations

import os

import numpy as np
import pytest
import tensorflow as tf
from tensorflow.python.ops import data_flow_ops

from tests.builders.executors import (
    POLICIES,
    STEPS,
    all_optimized,
    config_of,
    control_flow,
    outcomes,
    plain,
    with_threads,
)
from tests.builders.grids import rest_slow

v1 = tf.compat.v1
GRAPHS = int(os.environ.get("WORKBENCH_RANDOM_EXECUTORS", "12"))
PURE = (
    "add",
    "multiply",
    "tanh",
    "sort",
    "matmul",
    "split",
    "gather",
    "constant",
    "text",
    "unique",
)
OTHER = (
    *("feed", "random", "read", "update", "scatter", "queue", "barrier", "staging", "python"),
    *("call", "branch", "loop", "array", "switch", "after", "group", "map"),
)


class Variable:
    """A variable, and what the next update of it must wait for."""

    def __init__(self, name: str, resource: bool) -> None:
        self.made = v1.get_variable(
            name, [4], initializer=v1.ones_initializer(), use_resource=resource
        )
        self.last: list[tf.Operation] = []  # The last update.
        self.since: list[tf.Operation] = []  # Who has used what was read since.

    def read(self) -> tf.Tensor:
        with tf.control_dependencies(self.last):
            # A product is no longer the variable's own memory.
            used = self.made.read_value() * 1.25
        self.since.append(used.op)
        return used

    def update(self, value: tf.Tensor, make) -> tf.Tensor:
        # By data too: Grappler drops some control edges that lead through constants.
        with tf.control_dependencies([*self.last, *self.since]):
            # An assigned value becomes the variable's memory: it must be nobody else's.
            value = tf.tanh(value) * 1.5
        updated = make(self.made, value)
        self.last, self.since = [updated.op if tf.is_tensor(updated) else updated], []
        return self.read()


class Drawn:
    """A graph that a seed draws; `tensors` are float32 [4]."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        self.graph = tf.Graph()
        self.before: list[tf.Operation] = []
        with self.graph.as_default():
            v1.set_random_seed(seed)
            self.x = v1.placeholder(tf.float32, [4], name="x")
            self.on = v1.placeholder(tf.bool, [], name="on")
            self.variables = [Variable(f"v{i}", resource=i % 2 == 1) for i in range(4)]
            self.tensors = [self.x, tf.constant([1.0, -2.0, 0.5, 3.0])]
            self.operations: list[tf.Operation] = []
            self.puts: list[tf.Operation] = []  # Something takes what they put.
            for _ in range(int(self.rng.integers(3, 40))):
                self.draw()
            self.before.append(v1.global_variables_initializer())
            count = int(self.rng.integers(1, 6))
            self.fetches = [self.pick() * 2.0 for _ in range(count)]
            self.fetches += [variable.read() for variable in self.variables]
            with tf.control_dependencies(self.puts):
                self.fetches.append(self.pick() * 3.0)
            if self.chance(0.5):
                with tf.control_dependencies(self.operations):
                    # Not add_n: in which order it adds hangs on what memory it may reuse.
                    self.fetches.append(tf.reduce_sum(tf.stack(self.tensors), axis=0))

    def chance(self, share: float) -> bool:
        return self.rng.random() < share

    def pick(self) -> tf.Tensor:
        near = self.chance(0.4)
        return self.tensors[-1 if near else int(self.rng.integers(len(self.tensors)))]

    def draw(self) -> None:
        kind = str(self.rng.choice(PURE if self.chance(0.5) else OTHER))
        waits = [self.operations[int(i)] for i in self._some(self.operations)]
        device = f"/cpu:{int(self.chance(0.3))}"
        with tf.control_dependencies(waits), tf.device(device):
            made = getattr(self, f"_{kind}")()
        for each in made if isinstance(made, list) else [made]:
            if tf.is_tensor(each):
                self.tensors.append(each)
                each = each.op
            if self.chance(0.5):
                self.operations.append(each)

    def _some(self, of: list) -> np.ndarray:
        if not of or self.chance(0.6):
            return np.array([], int)
        return self.rng.integers(len(of), size=int(self.rng.integers(1, 4)))

    def _add(self):
        return self.pick() + self.pick()

    def _multiply(self):
        return tf.sin(self.pick() * self.pick())

    def _tanh(self):
        return tf.tanh(self.pick())

    def _sort(self):
        return tf.sort(self.pick())

    def _matmul(self):
        square = tf.tensordot(tf.tanh(self.pick()), self.pick(), axes=0)
        return tf.tanh(tf.linalg.matvec(square, self.pick()))

    def _split(self):
        return [tf.tile(part, [2]) for part in tf.split(self.pick(), 2)]

    def _gather(self):
        ids = tf.cast(tf.abs(tf.round(tf.tanh(self.pick()) * 3.0)), tf.int32)
        return tf.gather(self.pick(), ids)

    def _constant(self):
        return tf.constant(self.rng.normal(size=4).astype(np.float32))

    def _text(self):
        texts = tf.strings.as_string(tf.round(tf.tanh(self.pick()) * 100.0))
        return tf.strings.to_number(tf.strings.join([texts, "5"]))

    def _unique(self):
        values, ids = tf.unique(tf.round(self.pick()))
        return tf.gather(values, ids)

    def _feed(self):
        return tf.where(self.on, self.x, self.pick())

    def _random(self):
        seed = int(self.rng.integers(1, 100))
        return (
            tf.random.uniform([4], seed=seed)
            if self.chance(0.5)
            else tf.nn.dropout(self.pick(), rate=0.5, seed=seed)
        )

    def _variable(self) -> Variable:
        return self.variables[int(self.rng.integers(len(self.variables)))]

    def _read(self):
        return self._variable().read()

    def _update(self):
        change = (v1.assign_add, v1.assign_sub, v1.assign)[int(self.rng.integers(3))]
        return self._variable().update(self.pick(), change)

    def _scatter(self):
        # Two ids: in which order two updates of one row are added differs in stock.
        ids = [int(self.rng.integers(3)), 3]
        return self._variable().update(
            self.pick()[:2], lambda v, value: v1.scatter_add(v, ids, value)
        )

    def _put(self, operation: tf.Operation) -> tf.Operation:
        self.puts.append(operation)
        return operation

    def _queue(self):
        queue = v1.FIFOQueue(50, [tf.float32], [[4]])
        # The same run takes and puts; which of both is built first is drawn.
        if self.chance(0.5):
            taken = queue.dequeue() * 1.5
            return [taken, self._put(queue.enqueue(self.pick()))]
        put = self._put(queue.enqueue_many([tf.stack([self.pick(), self.pick()])]))
        return [tf.reduce_sum(queue.dequeue_many(2), axis=0), put]

    def _barrier(self):
        left, right = (v1.FIFOQueue(50, [tf.float32], [[4]]) for _ in range(2))
        first = self._put(left.enqueue(self.pick()))
        there = self._put(right.enqueue(left.dequeue() + 1.0))
        return [right.dequeue() * 0.5, first, there]

    def _staging(self):
        area = data_flow_ops.StagingArea([tf.float32], shapes=[[4]])
        with tf.device(None):
            taken = area.get()[0] + 1.0
            return [taken, self._put(area.put([self.pick()]))]

    def _python(self):
        made = v1.py_func(lambda v: np.cos(v) + np.float32(1), [self.pick()], tf.float32)
        return tf.ensure_shape(made, [4])

    def _call(self):
        inlined = None if self.chance(0.5) else {"_noinline": True}

        @tf.function(experimental_attributes=inlined)
        def called(a, b):
            if tf.reduce_sum(a) > 0.0:
                return tf.sin(a) * b, a - b
            return tf.cos(b), a + b

        return list(called(self.pick(), self.pick()))

    def _branch(self):
        a, b, on = self.pick(), self.pick(), self.on
        if self.chance(0.5):
            on = tf.reduce_sum(self.pick()) > 0.0
        with control_flow(1 + int(self.chance(0.5))):
            inner = lambda: tf.cond(a[0] > b[0], lambda: tf.exp(tf.tanh(a)), lambda: b - 1.0)  # noqa: E731
            return tf.cond(on, inner, lambda: a * b)

    def _loop(self):
        a, b = tf.tanh(self.pick()), tf.tanh(self.pick())
        count, parallel = int(self.rng.integers(0, 5)), int(self.rng.choice([1, 10]))
        nested = self.chance(0.4)

        def body(i, c):
            if nested:
                c = tf.while_loop(lambda j, d: j < i, lambda j, d: (j + 1, tf.sin(d) + b), [0, c])[
                    1
                ]
            return i + 1, tf.cond(tf.equal(i % 2, 0), lambda: c + b, lambda: tf.tanh(c * a))

        with control_flow(1 + int(self.chance(0.5))):
            return tf.while_loop(
                lambda i, c: i < count, body, [0, a], parallel_iterations=parallel
            )[1]

    def _array(self):
        array = tf.TensorArray(tf.float32, 3, clear_after_read=False)
        for i in range(3):
            array = array.write(i, self.pick())
        return tf.reduce_sum(array.stack(), axis=0) + array.read(1)

    def _switch(self):
        off_side, on_side = v1.raw_ops.Switch(data=self.pick(), pred=self.on)
        return v1.raw_ops.Merge(inputs=[tf.sin(off_side), on_side * 2.0]).output

    def _after(self):
        with tf.control_dependencies([self.pick().op, *self.operations[-2:]]):
            return tf.identity(self.pick()) - 1.0

    def _group(self):
        return tf.group(self.pick().op, *self.operations[:3])

    def _map(self):
        rows = tf.stack([self.pick(), self.pick()])
        return tf.reduce_sum(tf.map_fn(lambda row: tf.cumsum(row), rows), axis=0)


@pytest.mark.parametrize("seed", rest_slow(range(GRAPHS), *range(min(GRAPHS, 2))))
def test_a_generated_graph_gives_what_stock_gives(seed):
    drawn = Drawn(seed)
    batches = np.random.default_rng(seed).normal(size=(STEPS, 4)).astype(np.float32)
    made = plain if seed % 2 else all_optimized
    found = {}
    for policy in ("stock", *POLICIES):
        config = with_threads(made(), 6)
        config.device_count["CPU"] = 2
        with v1.Session(graph=drawn.graph, config=config_of(policy, config)) as session:
            found[policy] = outcomes(
                session,
                drawn.fetches,
                lambda i: {drawn.x: batches[i], drawn.on: i % 3 != 1},
                before=drawn.before,
            )
    for policy in POLICIES:
        assert found[policy] == found["stock"], policy
