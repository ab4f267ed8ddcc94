"""A cluster of one machine: its servers answer there, and at no address that others reach."""

from __future__ import annotations

import socket

import pytest
import tensorflow as tf

from workbench.core.optimizations import Optimizations
from workbench.experiments.cluster.local_cluster import local_tasks
from workbench.experiments.cluster.own_machine import on_loopback, reached_by_others
from workbench.experiments.cluster.run_task import _reached, _server
from workbench.experiments.cluster.task import PS, Task

v1 = tf.compat.v1


def outer_address():
    """An address of this machine that is not a loopback one; asking for it sends nothing."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asking:
        try:
            asking.connect(("192.0.2.1", 9))
        except OSError:
            pytest.skip("this machine has no address that others reach")
        return asking.getsockname()[0]


def is_reached(host, port):
    with socket.socket() as asking:
        asking.settimeout(5)
        return asking.connect_ex((host, port)) == 0


def port_of(task):
    return int(task.address.rpartition(":")[2])


def test_a_task_on_localhost_is_reached_from_its_own_machine_alone():
    task = local_tasks(1, 1)[0]
    server = _server(task, Optimizations())
    assert is_reached("localhost", port_of(task))
    assert not is_reached(outer_address(), port_of(task))
    assert _reached(task) == "only this machine reaches it"
    alone = v1.ConfigProto(device_filters=["/job:ps"])
    with tf.Graph().as_default(), v1.Session(f"grpc://{task.address}", config=alone) as session:
        assert session.run(tf.constant(3)) == 3
    del server


def test_a_task_listens_at_the_loopback_address_that_others_know():
    local = local_tasks(1, 1)[0]
    addresses = {
        job: tuple(each.replace("localhost", "127.0.0.2") for each in held)
        for job, held in local.cluster.items()
    }
    task = Task(job=PS, index=0, cluster=addresses)
    server = _server(task, Optimizations())
    assert is_reached("127.0.0.2", port_of(task))
    assert not is_reached(outer_address(), port_of(task))
    del server


def test_a_task_of_several_hosts_is_reached_and_says_by_whom():
    local = local_tasks(1, 1)[0]
    # TensorFlow looks at its own address's port alone.
    cluster = {**local.cluster, "worker": ("host2.invalid:2222",)}
    task = Task(job=PS, index=0, cluster=cluster)
    server = _server(task, Optimizations())
    assert is_reached(outer_address(), port_of(task))
    assert _reached(task) == (
        f"any machine that reaches port {port_of(task)} can run code in it and use its files: "
        "TensorFlow's servers have no password"
    )
    del server


def test_servers_that_start_later_listen_as_before():
    with on_loopback():
        inside = tf.distribute.Server.create_local_server()
    after = tf.distribute.Server.create_local_server()
    ports = [int(server.target.rpartition(":")[2]) for server in (inside, after)]
    assert [reached_by_others(port) for port in ports] == [False, True]
