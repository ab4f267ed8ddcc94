"""A finished graph of one weight, as each of the values that TensorFlow has for one."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

v1 = tf.compat.v1


def finished(*, use_resource: bool = True, table: bool = False, fed: bool = False) -> tf.Graph:
    """Trains a weight, drawn without a seed, towards the sine of the number of the batch.

    Args:
      use_resource: whether its variables are resources.
      table: whether the batch goes through a table, and its iterator has an initializer.
      fed: whether a placeholder is added to the batch.
    """
    with tf.Graph().as_default() as graph:
        data = tf.data.Dataset.range(10**7)
        if table:
            iterator = v1.data.make_initializable_iterator(data.map(lambda i: i % 7))
            rows = tf.lookup.KeyValueTensorInitializer(
                tf.range(7, dtype=tf.int64), tf.range(7, dtype=tf.int64) * 1000
            )
            batch = tf.lookup.StaticHashTable(rows, 0).lookup(iterator.get_next())
        else:
            batch = v1.data.make_one_shot_iterator(data).get_next()
        wanted = tf.sin(tf.cast(batch, tf.float32) * 1e-3, name="wanted")
        if fed:
            wanted += v1.placeholder(tf.float32, [], name="bias")
        start = v1.random_normal_initializer()
        weight = v1.get_variable("w", [], initializer=start, use_resource=use_resource)
        loss = tf.square(wanted - weight, name="loss")
        step = v1.train.get_or_create_global_step()
        v1.train.GradientDescentOptimizer(0.1).minimize(loss, global_step=step, name="train")
        tf.identity(batch, name="which")
    return graph


def without_collections(graph: tf.Graph) -> Any:
    """Its GraphDef."""
    return graph.as_graph_def()


def with_collections(graph: tf.Graph) -> Any:
    """Its MetaGraphDef."""
    with graph.as_default():
        return v1.train.export_meta_graph(graph=graph)
