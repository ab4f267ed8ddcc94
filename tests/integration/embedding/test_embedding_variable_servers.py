"""EmbeddingVariables on TensorFlow's servers: kept between sessions, spread over tasks."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

from tests.builders.servers import free_ports
from workbench.ops.embedding_variable import optimizers as optimizers
from workbench.ops.embedding_variable.variable import (
    CounterFilter,
    EmbeddingVariableOption,
    get_embedding_variable,
)

v1 = tf.compat.v1


def test_a_server_keeps_the_rows_between_sessions():
    server = v1.train.Server.create_local_server()
    table = get_embedding_variable("emb", 3, initializer=v1.ones_initializer())
    rows = table.sparse_read([1, 2, 1])
    step = optimizers.AdagradOptimizer(0.1).minimize(tf.reduce_sum(rows))
    with v1.Session(server.target) as session:
        session.run(v1.global_variables_initializer())
        session.run(step)
        trained = session.run(rows)
    with v1.Session(server.target) as session:
        np.testing.assert_array_equal(session.run(rows), trained)
        assert trained[0, 0] < trained[1, 0] < 1
        session.run(v1.global_variables_initializer())
        np.testing.assert_array_equal(session.run(rows), np.ones((3, 3)))


def test_another_graph_must_have_the_table_alike():
    server = v1.train.Server.create_local_server()

    def read(dim, filter_freq):
        with tf.Graph().as_default(), v1.Session(server.target) as session:
            option = EmbeddingVariableOption(filter_option=CounterFilter(filter_freq))
            table = get_embedding_variable("emb", dim, ev_option=option)
            session.run(table.default_rows.initializer)
            session.run(table.sparse_read([1]))

    read(3, 0)
    message = (
        "'emb' is there with dimension 3, filter_freq 0, .* but this graph has it with "
        "dimension {}, filter_freq {}, .* reset its container"
    )
    for dim, filter_freq in ((4, 0), (3, 2)):
        with pytest.raises(tf.errors.InvalidArgumentError, match=message.format(dim, filter_freq)):
            read(dim, filter_freq)


def test_partitions_lie_on_the_parameter_servers(tmp_path):
    ports = [f"localhost:{port}" for port in free_ports(3)]
    cluster = tf.train.ClusterSpec({"ps": ports[:2], "worker": ports[2:]})
    servers = [v1.train.Server(cluster, job, task) for job, task in (("ps", 0), ("ps", 1))]
    worker = v1.train.Server(cluster, "worker", 0)
    with v1.device(v1.train.replica_device_setter(cluster=cluster)):
        step = v1.train.get_or_create_global_step()
        table = get_embedding_variable("emb", 3, partitioner=v1.fixed_size_partitioner(2))
        keys = v1.placeholder(tf.int64, [None])
        rows = table.sparse_read(keys)
        loss = tf.reduce_sum(tf.square(rows))
        train = optimizers.AdamOptimizer(0.1).minimize(loss, global_step=step)
        saver = v1.train.Saver(sharded=True)
    tasks = {tf.DeviceSpec.from_string(part.device).task for part in table.partitions}
    assert tasks == {0, 1} and "/job:ps" in table.partitions[0].device
    with v1.Session(worker.target) as session:
        session.run(v1.global_variables_initializer())
        losses = [session.run([loss, train], {keys: range(30)})[0] for _ in range(5)]
        assert losses[-1] < losses[0]
        path = saver.save(session, str(tmp_path / "model"))
        expected = session.run(rows, {keys: range(30)})
        session.run(train, {keys: range(40)})
        saver.restore(session, path)
        np.testing.assert_array_equal(session.run(rows, {keys: range(30)}), expected)
    assert servers
