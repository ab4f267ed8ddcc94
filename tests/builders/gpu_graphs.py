"""Small models on a device, whose lookups and other layers are stock TensorFlow's."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from tests.builders.fused_graphs import OPTIMIZERS, loss_of
from tests.builders.lookup_features import ROWS, made_tables

v1 = tf.compat.v1


def batch(seed: int, examples: int = 40, rank: int = 2) -> tf.SparseTensor:
    """Ids in order, some of them below 0, some examples without any; nothing can fold them."""
    random = np.random.default_rng(seed)
    shape = [examples, *[1] * (rank - 2), 4]
    at = np.argwhere(random.random(shape) < 0.5).astype(np.int64)
    ids = random.integers(-1, ROWS, len(at))
    given = [(at, [None, rank]), (ids, [None]), (np.array(shape, np.int64), [rank])]
    return tf.SparseTensor(*(v1.placeholder_with_default(*each) for each in given))


def safe(table: Any, ids: tf.SparseTensor, **more: Any) -> tf.Tensor:
    return v1.nn.safe_embedding_lookup_sparse(table, ids, combiner="mean", **more)


def weighted(table: Any, ids: tf.SparseTensor) -> tf.Tensor:
    """With weights of which some drop their ids."""
    weights = tf.cast(ids.values, tf.float32) / 4.0 - 0.5
    return safe(table, ids, sparse_weights=tf.SparseTensor(ids.indices, weights, ids.dense_shape))


def weighted_by_variables(table: Any, ids: tf.SparseTensor) -> tf.Tensor:
    """With weights that are trained too."""
    drawn = np.random.default_rng(3).random(ROWS).astype(np.float32) + 0.1
    of_ids = v1.get_variable(f"weights_{table.shape[1]}", initializer=drawn, use_resource=True)
    weights = tf.gather(of_ids, tf.abs(ids.values))
    return safe(table, ids, sparse_weights=tf.SparseTensor(ids.indices, weights, ids.dense_shape))


def shortened(table: Any, ids: tf.SparseTensor) -> tf.Tensor:
    return safe(table, ids, max_norm=2.5, default_id=3)


def trained_on(
    device: str, look_up: Callable[[Any, tf.SparseTensor], tf.Tensor], optimizer: str = "adagrad"
) -> tuple[tf.Graph, Any, Any]:
    """A graph with two lookups, their loss and the train op.

    Args:
      device: of all of it.
      look_up: what gives the embeddings of a table's ids.
      optimizer: one of OPTIMIZERS.
    """
    with tf.Graph().as_default() as graph, tf.device(device):
        tables = made_tables("resource", (8, 16), tf.float32, 5)
        loss = loss_of([look_up(table, batch(seed)) for seed, table in enumerate(tables)])
        train_op = OPTIMIZERS[optimizer]().minimize(loss)
        tf.group(v1.global_variables_initializer(), name="begin")
    return graph, loss, train_op


def losses(
    graph: tf.Graph, fetches: Sequence[Any], config: Any, steps: int = 10
) -> tuple[list[float], list[np.ndarray]]:
    """The first fetch of each step, and the variables after them."""
    with v1.Session(graph=graph, config=config) as session:
        session.run(graph.get_operation_by_name("begin"))
        found = [float(session.run(fetches)[0]) for _ in range(steps)]
        return found, session.run(graph.get_collection(v1.GraphKeys.GLOBAL_VARIABLES))
