"""Lookups that read an EmbeddingVariable without fusion give what they give of a dense table."""

from __future__ import annotations

import numpy as np
import tensorflow as tf

import workbench as wb
from tests.builders.grids import every_pair
from workbench.ops.embedding_variable import optimizers as optimizers
from workbench.ops.embedding_variable.variable import (
    EmbeddingVariableOption,
    InitializerOption,
    get_embedding_variable,
)

v1 = tf.compat.v1

KEYS, DIM = 8, 3


def table_of(partitions=None):
    return get_embedding_variable(
        "emb",
        DIM,
        partitioner=partitions and v1.fixed_size_partitioner(partitions),
        ev_option=EmbeddingVariableOption(init_option=InitializerOption(default_value_dim=KEYS)),
    )


def sparse(rows, width=3):
    """Rows of ids as a SparseTensor's value, of int64 and width columns."""
    places = [(row, column) for row, ids in enumerate(rows) for column in range(len(ids))]
    values = [key for ids in rows for key in ids]
    return v1.SparseTensorValue(
        np.array(places, np.int64).reshape(-1, 2), np.array(values, np.int64), [len(rows), width]
    )


BATCHES = [
    [[1, 2, 2], [7]],
    [[-1]],
    [[-1, -1], [-5]],
    [[], []],
    [],
    [[], [3], [-1]],
]


@every_pair(
    partitions=[None, 2],
    weighted=[False, True],
    options=[("mean", None, None), ("sum", None, 0.5), ("sqrtn", 5, None), ("mean", 0, 0.5)],
)
def test_any_batch_trains_as_with_a_dense_table(options, weighted, partitions):
    combiner, default_id, max_norm = options
    table, dense = table_of(partitions), v1.get_variable("dense", [KEYS, DIM])
    ids = v1.sparse_placeholder(tf.int64, [None, None])
    weights = v1.sparse_placeholder(tf.float32, [None, None]) if weighted else None

    def loss_of(look_up, params):
        rows = look_up(
            params, ids, weights, combiner=combiner, default_id=default_id, max_norm=max_norm
        )
        return rows, tf.reduce_sum(tf.square(rows - 0.5))

    rows, loss = loss_of(wb.safe_embedding_lookup_sparse, table)
    wanted, dense_loss = loss_of(v1.nn.safe_embedding_lookup_sparse, dense)
    step = optimizers.AdagradOptimizer(0.1).minimize(loss)
    dense_step = v1.train.AdagradOptimizer(0.1).minimize(dense_loss)
    (defaults,) = [v for v in v1.global_variables() if v.op.name == "emb/default_rows"]
    with v1.Session() as session:
        session.run(v1.global_variables_initializer())
        dense.load(session.run(defaults), session)
        for batch in BATCHES:
            feed = {ids: sparse(batch)}
            if weighted:
                ones = feed[ids]
                feed[weights] = ones._replace(values=np.full(len(ones.values), 0.75, np.float32))
            got, expected = session.run([rows, wanted], feed)
            np.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-6, err_msg=str(batch))
            session.run([step, dense_step], feed)
