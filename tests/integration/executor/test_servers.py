"""Executor policies of sessions on servers: each task runs its part of a step by the policy."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from tensorflow.python.framework import op_def_registry

import workbench as wb
from tests.builders.executors import POLICIES, bits, config_of, each_policy, local_server, plain
from tests.builders.scripts import run_script
from tests.builders.servers import Servers, free_ports
from workbench.core.capture.server_partitions import policies, whole_partitions
from workbench.core.executor.policy import warn_of_servers

v1 = tf.compat.v1
pytestmark = pytest.mark.executors
TYPES = {
    "normal": "WORKBENCH_NORMAL",
    "inline": "WORKBENCH_INLINE",
    "cost_model": "WORKBENCH_COST_MODEL",
}


@pytest.fixture(scope="module")
def servers() -> Servers:
    return Servers({"ps": 1, "worker": 2})


def traced(session: Any, fetches: Any, feeds: Any = None) -> tuple[Any, v1.RunMetadata]:
    metadata = v1.RunMetadata()
    options = v1.RunOptions(trace_level=v1.RunOptions.FULL_TRACE, output_partition_graphs=True)
    return session.run(fetches, feeds, options=options, run_metadata=metadata), metadata


@pytest.mark.parametrize("policy", POLICIES)
def test_all_tasks_run_their_part_by_the_policy(policy, servers):
    with servers.placed():
        w = v1.get_variable("w", [3], initializer=v1.ones_initializer())
        train = v1.train.GradientDescentOptimizer(0.1).minimize(tf.reduce_sum(w * w))
    with v1.Session(servers.target, config=config_of(policy)) as session:
        session.run(v1.global_variables_initializer())
        _, metadata = traced(session, train)
        ran = policies([metadata])
        tasks = {device.split("/")[1] for device in ran}
        assert tasks == {"job:ps", "job:worker"}
        assert {name.partition("(")[0] for name in ran.values()} == {TYPES[policy]}
        np.testing.assert_allclose(session.run(w), [0.8] * 3)
    with v1.Session(servers.target) as session:
        session.run(v1.global_variables_initializer())
        assert policies([traced(session, train)[1]]) == {}


def test_the_graphs_of_a_run_can_be_looked_at():
    x = v1.placeholder(tf.float32, [2])
    y = tf.add(tf.square(x, name="square"), tf.constant(np.arange(1000.0, dtype="f"))[:2])
    found = {}
    for policy in ("stock", "inline"):
        with v1.Session(local_server().target, config=config_of(policy, plain())) as session:
            _, metadata = traced(session, y, {x: [1.0, 2.0]})
            graphs = list(whole_partitions(metadata.partition_graphs))
            found[policy] = sorted((n.op, n.name.split("_G")[0]) for g in graphs for n in g.node)
    assert found["stock"] == found["inline"]
    assert ("Square", "square") in found["inline"]


def test_the_trace_names_the_policy(servers):
    with servers.placed():
        w = v1.get_variable("w", [3], initializer=v1.ones_initializer())
        train = v1.train.GradientDescentOptimizer(0.1).minimize(tf.reduce_sum(w * w))
    hook = wb.CaptureHook()
    with v1.train.MonitoredTrainingSession(
        servers.target, config=wb.executor_options("inline"), hooks=[hook]
    ) as session:
        for _ in range(10):
            session.run(train)
        hook.start()
        for _ in range(4):
            session.run(train)
        trace = hook.stop()
    assert set(trace.meta.server_policies.values()) == {"WORKBENCH_INLINE"}
    assert "WorkbenchPartition" not in set(trace.nodes["op"])
    assert len(trace.edges)


@each_policy
@pytest.mark.parametrize("resource", [False, True])
def test_kernels_with_state_are_those_of_the_session(policy, resource):
    """Random ops, queues and variables go on from one run's fetches to another's."""
    w = v1.get_variable("w", [], initializer=v1.zeros_initializer(), use_resource=resource)
    drawn = tf.random.uniform([2], seed=3)
    queue = v1.FIFOQueue(4, [tf.float32])
    put, got = queue.enqueue(drawn[0]), queue.dequeue()
    count = v1.assign_add(w, 1.0)
    found = {}
    for each in ("stock", policy):
        with v1.Session(local_server().target, config=config_of(each)) as session:
            session.run([w.initializer])
            found[each] = bits(
                [
                    session.run(drawn),
                    session.run([drawn, count])[0],
                    session.run(put),
                    session.run([got, tf.identity(drawn)]),
                    session.run(count),
                    session.run(w),
                ]
            )
    assert found["stock"] == found[policy]


@each_policy
def test_a_failing_step_has_stocks_error_and_the_session_goes_on(policy, servers):
    with tf.device("/job:ps/task:0"):
        x = v1.placeholder(tf.float32, [])
        inverse = tf.linalg.inv(tf.reshape(x, [1, 1]), name="inverse")
    with tf.device("/job:worker/task:0"):
        y = inverse[0, 0] + 1.0
    errors = {}
    for each in ("stock", policy):
        with v1.Session(servers.target, config=config_of(each)) as session:
            assert session.run(y, {x: 1.0}) == 2.0
            with pytest.raises(tf.errors.InvalidArgumentError) as raised:
                session.run(y, {x: 0.0})
            errors[each] = raised.value
            assert session.run(y, {x: 2.0}) == 1.5
    assert type(errors["stock"]) is type(errors[policy])
    assert "Input is not invertible" in errors[policy].message
    assert errors["stock"].op.name == errors[policy].op.name == "inverse"


@each_policy
def test_a_step_that_waits_is_cancelled_as_the_session_closes(policy):
    queue = v1.FIFOQueue(1, [tf.float32])
    got = queue.dequeue()
    session = v1.Session(local_server().target, config=config_of(policy))
    ended = []

    def wait() -> None:
        try:
            session.run(got)
        except tf.errors.OpError as error:
            ended.append(type(error))

    waiting = threading.Thread(target=wait)
    waiting.start()
    waiting.join(0.5)
    assert waiting.is_alive()
    session.run(queue.close(cancel_pending_enqueues=True))
    waiting.join(60)
    session.close()
    assert ended == [tf.errors.OutOfRangeError]


@each_policy
def test_steps_of_many_clients(policy, servers):
    with servers.placed():
        w = v1.get_variable("w", [4], initializer=v1.zeros_initializer())
        x = v1.placeholder(tf.float32, [4])
        total = tf.reduce_sum(tf.tanh(x) + w)
    feeds = np.random.default_rng(1).normal(size=(8, 4)).astype(np.float32)
    with v1.Session(servers.target) as session:
        session.run(w.initializer)
        expected = [session.run(total, {x: each}) for each in feeds]
    with v1.Session(servers.target, config=config_of(policy)) as session:
        session.run(w.initializer)
        wrong: list[int] = []

        def client(number: int) -> None:
            for _ in range(30):
                if session.run(total, {x: feeds[number]}) != expected[number]:
                    wrong.append(number)

        threads = [threading.Thread(target=client, args=(i,)) for i in range(8)]
        for each in threads:
            each.start()
        for each in threads:
            each.join(120)
        assert not wrong and not any(each.is_alive() for each in threads)


@each_policy
@pytest.mark.parametrize("version", [1, 2])
def test_loops_over_two_tasks(policy, version, servers):
    (v1.enable_control_flow_v2 if version == 2 else v1.disable_control_flow_v2)()
    n = v1.placeholder(tf.int32, [])

    def body(i: Any, x: Any) -> Any:
        with tf.device("/job:ps/task:0"):
            x = x * 1.5
        with tf.device("/job:worker/task:1"):
            return i + 1, x - 0.25

    with tf.device("/job:worker/task:0"):
        result = tf.while_loop(lambda i, _: i < n, body, [0, tf.constant([1.0, 2.0])])
        branch = tf.cond(n > 2, lambda: result[1] * 2.0, lambda: result[1])
    found = {}
    for each in ("stock", policy):
        with v1.Session(servers.target, config=config_of(each, plain())) as session:
            found[each] = [bits(session.run([result, branch], {n: i})) for i in range(6)]
    v1.enable_control_flow_v2()
    assert found["stock"] == found[policy]


def test_partial_runs_and_callables(servers):
    with tf.device("/job:worker/task:1"):
        a, b = v1.placeholder(tf.float32, []), v1.placeholder(tf.float32, [])
        first = a + 1.0
        second = first * b
    with v1.Session(servers.target, config=config_of("inline")) as session:
        handle = session.partial_run_setup([first, second], [a, b])
        assert session.partial_run(handle, first, {a: 2.0}) == 3.0
        assert session.partial_run(handle, second, {b: 4.0}) == 12.0
        call = session.make_callable(second, [a, b])
        assert [call(1.0, 2.0), call(2.0, 3.0)] == [4.0, 9.0]


def test_a_session_that_builds_a_cost_model_stays_with_tensorflow(caplog):
    config = config_of("inline")
    config.graph_options.build_cost_model = 1
    wb.core.executor.policy.warn_of_servers(local_server().target, config)
    assert "build_cost_model" in caplog.text
    with v1.Session(local_server().target, config=config) as session:
        assert policies([traced(session, tf.square(v1.placeholder_with_default(2.0, [])))[1]]) == {}


def test_a_task_without_the_library_is_named_and_runs_as_stock(tmp_path):
    """One sentence at the session's start; the step is right."""
    done = run_script(
        """
        import subprocess, sys, logging
        logging.basicConfig(level=logging.WARNING)
        from tests.builders.servers import free_ports
        import workbench.compat.v1 as tf
        ps, worker = free_ports(2)
        cluster = {"ps": [f"localhost:{ps}"], "worker": [f"localhost:{worker}"]}
        serve = (
            "import sys, tensorflow as tf\\n"
            f"tf.distribute.Server({cluster!r}, job_name='ps', task_index=0)\\n"
            "print('serves', flush=True)\\nsys.stdin.read()"
        )
        plain = subprocess.Popen(
            [sys.executable, "-c", serve], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        plain.stdout.readline()
        server = tf.train.Server(cluster, job_name="worker", task_index=0)
        with tf.device("/job:ps/task:0"):
            w = tf.get_variable("w", [], initializer=tf.ones_initializer())
        with tf.device("/job:worker/task:0"):
            step = tf.assign_add(w, 2.0)
        config = tf.ConfigProto()
        config.executor_policy = tf.ExecutorPolicy.USE_INLINE_EXECUTOR
        for _ in range(2):
            with tf.Session(server.target, config=config) as session:
                session.run(tf.global_variables_initializer())
                print([float(session.run(step)) for _ in range(3)])
        plain.kill()
        """,
        tmp_path,
        fresh=True,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stdout.splitlines() == ["[3.0, 5.0, 7.0]"] * 2
    said = [line for line in done.stderr.splitlines() if "executor policy INLINE" in line]
    assert len(said) == 1
    assert "/job:ps/task:0 has not loaded Workbench's library" in said[0]


def test_servers_that_cannot_be_asked_are_left_to_the_session(caplog):
    """No error, and no wait beyond the session's own limit: that is the session's to say."""
    config = wb.executor_options("inline", config=v1.ConfigProto(operation_timeout_in_ms=100))
    for _ in range(2):
        warn_of_servers(f"grpc://localhost:{free_ports(1)[0]}", config)
    assert not caplog.records


def test_a_lost_task_is_an_error_that_sessions_recover_from():
    """An executor makes `UnavailableError` an internal error, except of what communicates."""
    wb.load_library()
    op = op_def_registry.get("WorkbenchPartition")
    assert op.is_distributed_communication


def test_a_cost_model_of_another_process_is_known(tmp_path):
    """Its type has the steps in it, and the worker's process has not registered that one."""
    done = run_script(
        """
        import subprocess, sys
        from tests.builders.servers import free_ports
        import tensorflow as tf, workbench as wb
        from workbench.core.capture.server_partitions import policies
        v1 = tf.compat.v1
        v1.disable_eager_execution()
        (port,) = free_ports(1)
        serve = (
            "import sys, tensorflow as tf, workbench as wb\\n"
            "wb.load_library()\\n"
            f"server = tf.distribute.Server({{'local': ['localhost:{port}']}})\\n"
            "print('serves', flush=True)\\nsys.stdin.read()"
        )
        far = subprocess.Popen(
            [sys.executable, "-c", serve], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        far.stdout.readline()
        x = v1.placeholder(tf.float32, [])
        config = wb.executor_options("cost_model", start_step=7, stop_step=9)
        with v1.Session(f"grpc://localhost:{port}", config=config) as session:
            metadata = v1.RunMetadata()
            options = v1.RunOptions(trace_level=v1.RunOptions.FULL_TRACE)
            for i in range(12):
                print(float(session.run(x * 2.0, {x: i}, options, metadata)))
            print(set(policies([metadata]).values()))
        far.kill()
        """,
        tmp_path,
        fresh=True,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    *values, ran = done.stdout.splitlines()
    assert values == [str(2.0 * i) for i in range(12)]
    assert ran == "{'WORKBENCH_COST_MODEL'}"
