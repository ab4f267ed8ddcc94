"""A smart stage in the sessions of training: checkpoints, ends, errors, servers, devices."""

from __future__ import annotations

import contextlib
import subprocess
import sys
import threading
from collections.abc import Iterator

import numpy as np
import pytest
import tensorflow as tf

from tests.builders.smart_stages import counted, initialize, model, prepared
from tests.builders.stage_puts import put_beside
from workbench.core import smart_stage
from workbench.core.options import SmartStageOptions
from workbench.core.session.prefetch_hook import make_prefetch_hook, prefetching
from workbench.errors import NativeError, OptionError

v1 = tf.compat.v1


def run_monitored(built, config, steps, directory, hooks=(), **kwargs):
    """Losses of `steps` steps, with checkpoints and summaries."""
    v1.summary.scalar("size", built.size)
    v1.summary.histogram("features", built.features)
    losses = []
    with v1.train.MonitoredTrainingSession(
        config=config,
        checkpoint_dir=str(directory),
        save_checkpoint_steps=2,
        save_summaries_steps=1,
        log_step_count_steps=2,
        hooks=[make_prefetch_hook(), *hooks],
        **kwargs,
    ) as session:
        for _ in range(steps):
            losses.append(session.run([built.train, built.loss])[1])
        weights = session.run(v1.trainable_variables()[0])
    return losses, weights


@pytest.mark.slow
def test_checkpoints_are_interchangeable_with_the_plain_run(tmp_path):
    def go(smart, steps, directory):
        with tf.Graph().as_default():
            built = model()
            mean, update = v1.metrics.mean(built.loss)
            config = prepared(built)[0] if smart else None
            del mean
            hook = v1.train.LoggingTensorHook([update, built.size], every_n_iter=2)
            return run_monitored(built, config, steps, directory, [hook])

    plain = [go(False, 3, tmp_path / "a"), go(False, 3, tmp_path / "a")]
    mixed = [go(True, 3, tmp_path / "b"), go(False, 3, tmp_path / "b")]
    other = [go(False, 3, tmp_path / "c"), go(True, 3, tmp_path / "c")]
    for found in (mixed, other):
        for (losses, weights), (want, want_weights) in zip(found, plain, strict=True):
            assert losses == want
            np.testing.assert_array_equal(weights, want_weights)
    events = [p for p in (tmp_path / "b").iterdir() if "events" in p.name]
    values = [
        value.tag
        for path in events
        for event in v1.train.summary_iterator(str(path))
        for value in event.summary.value
    ]
    assert {"size_1", "features_1"} <= set(values)


def test_the_end_of_the_data_comes_after_the_last_batch_in_chained_stages(tmp_path):
    iterator, _ = counted(7)
    batch = tf.cast(iterator.get_next(), tf.float32)
    seen = v1.get_variable("seen", [], initializer=tf.zeros_initializer())
    update = v1.assign_add(seen, batch[0])
    v1.add_to_collection(v1.GraphKeys.TABLE_INITIALIZERS, iterator.initializer)
    config, plan = smart_stage.prepare_config(
        v1.get_default_graph(), options=SmartStageOptions(capacity=3), targets=[update]
    )
    assert len(plan.stages) == 2
    steps = 0
    with v1.train.MonitoredTrainingSession(config=config, hooks=[make_prefetch_hook()]) as session:
        while not session.should_stop():
            value = session.run(update)
            steps += 1
            if steps == 7:
                assert value == sum(range(7))
    assert steps == 7
    assert not [t for t in threading.enumerate() if t.name.startswith("smart_stage")]


def test_an_error_of_the_staged_side_arrives_with_its_type_and_words():
    lines = v1.data.make_one_shot_iterator(
        tf.data.Dataset.from_tensor_slices(["1", "2", "x"])
    ).get_next()
    total = v1.get_variable("total", [], initializer=tf.zeros_initializer())
    update = v1.assign_add(total, tf.strings.to_number(lines))
    config, _ = smart_stage.prepare_config(v1.get_default_graph(), targets=[update])
    values = []
    with (
        pytest.raises(tf.errors.InvalidArgumentError, match="could not correctly convert.*x"),
        v1.train.MonitoredTrainingSession(config=config, hooks=[make_prefetch_hook()]) as session,
    ):
        while True:
            values.append(float(session.run(update)))
    assert values in ([1.0, 3.0], [1.0], [])


def test_several_producers_lose_and_double_nothing():
    iterator, _ = counted(200)
    batch = tf.cast(iterator.get_next() * 2, tf.float32)
    update = v1.assign_add(v1.get_variable("seen", [2], initializer=tf.zeros_initializer()), batch)
    with pytest.raises(OptionError, match="num_threads=3 lets batches overtake.*reorder=True"):
        smart_stage.prepare_config(
            v1.get_default_graph(), None, SmartStageOptions(num_threads=3), targets=[update]
        )
    config, plan = smart_stage.prepare_config(
        v1.get_default_graph(),
        None,
        SmartStageOptions(num_threads=3, capacity=4, reorder=True),
        targets=[update],
    )
    assert [stage.options.num_threads for stage in plan.stages] == [1, 3]
    seen = []
    with v1.Session(config=config) as session:
        session.run([iterator.initializer, v1.global_variables_initializer()])
        with prefetching(session), pytest.raises(tf.errors.OutOfRangeError):
            while True:
                seen.append(float(session.run([update, batch])[1][0]) / 2)
    assert sorted(seen) == list(range(200))


@pytest.mark.parametrize("own", [False, True])
def test_a_session_on_a_server_runs_the_plan(own):
    server = v1.train.Server.create_local_server()
    built = model(own_stage=own)
    plain = []
    with v1.Session() as session:
        initialize(session)
        with prefetching(session):
            plain = [session.run([built.loss, built.train])[0] for _ in range(4)]
    config, _ = prepared(built)
    with v1.Session(server.target, config=config) as session:
        initialize(session)
        with prefetching(session):
            got = [session.run([built.loss, built.batch, built.train]) for _ in range(4)]
    assert [each[0] for each in got] == plain
    assert [each[1].tolist() for each in got] == [[0, 1], [1, 2], [2, 3], [3, 4]]


SERVER = """
import sys, tensorflow as tf
if "with" in sys.argv:
    import workbench
    workbench.load_library()
print(tf.compat.v1.train.Server.create_local_server().target, flush=True)
sys.stdin.read()
"""


@contextlib.contextmanager
def server_elsewhere(library: str) -> Iterator[str]:
    """Address of a server in a process of its own, "with" Workbench's library or "without"."""
    command = [sys.executable, "-c", SERVER, library]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as process:
        assert process.stdin and process.stdout
        try:
            yield process.stdout.readline().strip()
        finally:
            process.stdin.close()


@pytest.mark.slow
def test_a_server_in_another_process_has_to_load_the_library():
    data = tf.data.Dataset.range(20).batch(2)
    batch = v1.data.make_one_shot_iterator(data).get_next()
    total = v1.get_variable("total", [], tf.int64, initializer=v1.zeros_initializer())
    train = total.assign_add(tf.reduce_sum(tf.square(batch)))
    config, plan = smart_stage.prepare_config(
        v1.get_default_graph(), None, SmartStageOptions(), targets=[train]
    )
    assert plan.stages
    with server_elsewhere("with") as server, v1.Session(server, config=config) as session:
        initialize(session)
        with prefetching(session):
            got = [session.run([batch, train])[0].tolist() for _ in range(3)]
    assert got == [[0, 1], [2, 3], [4, 5]]
    said = (
        r"the server grpc://.* has no stage .*: its process has not loaded Workbench's library; "
        r"write wb.load_library\(\) in its program before tf.distribute.Server"
    )
    with server_elsewhere("without") as server, v1.Session(server, config=config) as session:
        initialize(session)
        with pytest.raises(NativeError, match=said), prefetching(session):
            pass


def test_a_session_that_is_created_again_goes_on():
    built = model()
    config, _ = prepared(built)
    failures = iter([True])

    class Fails(v1.train.SessionRunHook):
        def after_run(self, run_context, run_values):
            if next(failures, False):
                raise tf.errors.AbortedError(None, None, "the server was preempted")

    with v1.train.MonitoredTrainingSession(
        config=config, hooks=[make_prefetch_hook(), Fails()]
    ) as session:
        seen = [session.run([built.train, built.batch])[1].tolist() for _ in range(4)]
    assert seen == [[0, 1], [1, 2], [2, 3], [3, 4]]


def test_the_staged_side_runs_on_its_own_device_and_its_put_moves_what_crosses():
    config = v1.ConfigProto(device_count={"CPU": 2})
    with tf.device("/device:CPU:1"):
        built = model()
    config, plan = smart_stage.prepare_config(
        v1.get_default_graph(), config, SmartStageOptions(on_cpu=True), targets=built.targets
    )
    assert [stage.buffer_device for stage in plan.stages] == ["/device:CPU:0", "/device:CPU:1"]

    def nodes(run):
        """Every node of the partitions that a run had, with its device."""
        metadata = v1.RunMetadata()
        run(v1.RunOptions(output_partition_graphs=True), metadata)
        return {n.name: n for part in metadata.partition_graphs for n in part.node}

    with v1.Session(config=config) as session:
        initialize(session)
        with prefetching(session) as runs:
            step = nodes(lambda o, m: session.run(built.train, options=o, run_metadata=m))
            assert session.run(built.batch).tolist() == [1, 2]
            ahead = nodes(lambda o, m: put_beside(session, runs[1], built.train, o, m))
    assert not [name for name in step if name.startswith("smart_stage/")]
    assert step["w"].device.endswith("CPU:1")
    assert step["smart_stage_buffer/take"].device.endswith("CPU:1")
    assert not [n for n in step.values() if n.op in ("_Recv", "_HostRecv")]
    assert ahead["smart_stage/features"].device.endswith("CPU:0")
    assert ahead["smart_stage_buffer/put"].device.endswith("CPU:1")
    assert [n for n in ahead.values() if n.op in ("_Recv", "_HostRecv")]


def sparse_losses(smart):
    """Of a model whose only input is an iterator of SparseTensors."""
    with tf.Graph().as_default() as graph:
        rows = tf.data.Dataset.range(12).map(lambda i: tf.sparse.from_dense(tf.reshape(i, [1])))
        batch = v1.data.make_one_shot_iterator(rows.batch(2)).get_next()
        table = v1.get_variable("table", [12, 2], initializer=v1.ones_initializer())
        found = tf.nn.safe_embedding_lookup_sparse(table, batch)
        loss = tf.reduce_mean(tf.square(found - 3.0))
        train = v1.train.GradientDescentOptimizer(0.1).minimize(loss)
        config = smart_stage.prepare_config(graph, targets=[train])[0] if smart else None
        hooks = [make_prefetch_hook()]
        with v1.train.MonitoredTrainingSession(config=config, hooks=hooks) as session:
            return [float(session.run([train, loss])[1]) for _ in range(6)]


def test_an_input_of_sparse_tensors_is_left_in_the_step():
    assert sparse_losses(smart=True) == sparse_losses(smart=False)
