"""Graphs that the executor bench runs, and sessions that run them as they are."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np
import tensorflow as tf
from tensorflow.core.protobuf import config_pb2

v1 = tf.compat.v1

DEFAULT, SINGLE = "", "SINGLE_THREADED_EXECUTOR"
TABLES, ROWS, DIMENSION = 26, 100_000, 16


@dataclasses.dataclass(frozen=True, kw_only=True)
class Case:
    """A graph to time: `build` makes what is fed and what is fetched in the current graph."""

    name: str
    build: Callable[[], tuple[Any, Any]]
    value: Any
    ops: int
    optimized: bool = False


def session(executor: str, *, inter: int = 1, optimized: bool = False) -> v1.Session:
    """A session of the current graph on that executor, with one thread inside an op."""
    config = v1.ConfigProto(
        inter_op_parallelism_threads=inter,
        intra_op_parallelism_threads=1,
        use_per_session_threads=True,
    )
    config.experimental.executor_type = executor
    if not optimized:
        config.graph_options.rewrite_options.disable_meta_optimizer = True
        config.graph_options.optimizer_options.opt_level = v1.OptimizerOptions.L0
    return v1.Session(config=config)


def callable_of(sess: v1.Session, fed: Any, fetched: Any) -> Callable[..., Any]:
    """The cheapest way to call a session again and again."""
    options = config_pb2.CallableOptions()
    if fed is not None:
        options.feed.append(fed.name)
    if isinstance(fetched, tf.Operation):
        options.target.append(fetched.name)
    else:
        options.fetch.append(fetched.name)
    run: Callable[..., Any] = sess._make_callable_from_options(options)
    return run


def chain(ops: int = 1000) -> tuple[Any, Any]:
    """Scalar ops of which each waits for the one before."""
    fed = v1.placeholder(tf.float32, [])
    one = tf.constant(1.000001)
    x = fed
    for i in range(ops):
        x = x + one if i % 2 else x * one
    return fed, x


def wide(branches: int = 500) -> tuple[Any, Any]:
    """Branches of two scalar ops, and one op that packs them all."""
    fed = v1.placeholder(tf.float32, [])
    one = tf.constant(1.0)
    return fed, tf.stack([(fed + one) * one for _ in range(branches)])


def loop(turns: int = 20) -> tuple[Any, Any]:
    """A loop over scalar ops, of those that the executor itself runs."""
    fed = v1.placeholder(tf.float32, [])
    v1.disable_control_flow_v2()
    try:
        _, x = tf.while_loop(lambda i, x: i < turns, lambda i, x: (i + 1, x * 1.01), [0, fed])
    finally:
        v1.enable_control_flow_v2()
    return fed, x


def empty() -> tuple[Any, Any]:
    """Nothing but a fed value: what a call costs by itself."""
    return v1.placeholder(tf.float32, []), tf.no_op()


def dlrm_forward(*, references: bool) -> tuple[Any, Any]:
    """DLRM's forward pass on one row: 26 safe lookups, two networks, the dot interaction.

    `references`: variables as TensorFlow 1 had them; else resource variables.
    """
    start = v1.random_normal_initializer(0.0, 0.1, seed=1)

    def variable(name: str, shape: Any) -> Any:
        return v1.get_variable(name, shape, initializer=start, use_resource=not references)

    def network(x: Any, sizes: tuple[int, ...], name: str) -> Any:
        for i, units in enumerate(sizes):
            weights = variable(f"{name}{i}_weights", [x.shape[1], units])
            x = tf.nn.relu(tf.matmul(x, weights) + variable(f"{name}{i}_bias", [units]))
        return x

    fed = v1.placeholder(tf.int64, [TABLES, 1])
    looked_up = []
    for i in range(TABLES):
        where = tf.stack([tf.range(1, dtype=tf.int64), tf.zeros([1], tf.int64)], 1)
        ids = tf.SparseTensor(where, fed[i], [1, 1])
        table = variable(f"table{i}", [ROWS, DIMENSION])
        looked_up.append(v1.nn.safe_embedding_lookup_sparse(table, ids, combiner="mean"))
    numbers = tf.transpose(tf.cast(fed[:13], tf.float32)) * 1e-5
    bottom = network(numbers, (512, 256, DIMENSION), "bottom")
    vectors = tf.stack([bottom, *looked_up], 1)
    products = tf.matmul(vectors, vectors, transpose_b=True)
    row, column = np.tril_indices(TABLES + 1, -1)
    pairs = tf.gather(
        tf.reshape(products, [1, (TABLES + 1) ** 2]), row * (TABLES + 1) + column, axis=1
    )
    top = network(tf.concat([bottom, pairs], 1), (512, 256), "top")
    return fed, tf.sigmoid(network(top, (1,), "logit"))


@dataclasses.dataclass(frozen=True)
class Scheduled:
    """A graph of equal tasks whose best schedule on two workers is known.

    Attributes:
      after: of each task, those that it waits for.
      best: the length of that schedule, and of the longest chain, in tasks.
    """

    after: tuple[tuple[int, ...], ...]
    best: int


def scheduled(seed: int, length: int = 24) -> Scheduled:
    """One worker runs a chain, the other as many tasks that wait for little or nothing.

    Whoever begins with what happens to stand first lets the chain wait, and one worker idles at
    the end.
    """
    rng = np.random.default_rng(seed)
    # Tasks are numbered at random: the order in which a graph is built says nothing.
    number = rng.permutation(2 * length).tolist()
    waits: dict[int, tuple[int, ...]] = {}
    for i in range(length):
        waits[number[i]] = (number[i - 1],) if i else ()
    for slot in range(length):
        # The best schedule runs it in this slot, so a task of the chain before that may release it.
        by = int(rng.integers(0, slot + 1)) if slot and rng.random() < 0.2 else 0
        waits[number[length + slot]] = (number[by - 1],) if by else ()
    return Scheduled(tuple(waits[task] for task in range(2 * length)), length)


def build_scheduled(plan: Scheduled, size: int = 100_000) -> tuple[Any, Any]:
    """The graph of a plan: each task sums a vector up, one addition waiting for the last.

    Two hyperthreads of one core multiply matrices no faster than one; this they do.
    """
    fed = v1.placeholder_with_default(np.ones([size], np.float32), [size])
    made: dict[int, Any] = {}

    def make(task: int) -> Any:
        if task not in made:
            with tf.control_dependencies([make(each) for each in plan.after[task]]):
                made[task] = tf.cumsum(fed, name=f"task_{task}").op
        return made[task]

    for task in range(len(plan.after)):
        make(task)
    return None, tf.group(*made.values())
