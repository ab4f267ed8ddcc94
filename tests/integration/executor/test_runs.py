"""Runs of every kind under every executor policy: saved, partial, from many threads, traced."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

import workbench as wb
from tests.builders.executors import (
    POLICIES,
    STEPS,
    bits,
    config_of,
    each_policy,
    plain,
    same,
    with_threads,
)
from workbench.core.session.prefetch_hook import prefetching
from workbench.core.smart_stage import prepare_config
from workbench.models.data.criteo import check_criteo, generate_criteo
from workbench.models.zoo import dlrm
from workbench.models.zoo.options import DlrmOptions
from workbench.models.zoo.programs import dlrm_program

v1 = tf.compat.v1
STAGES = ("off", "stage", "smart_stage")


@each_policy
@pytest.mark.parametrize("resource", [False, True])
def test_variables_are_saved_and_restored(policy, resource, tmp_path):
    x = v1.placeholder(tf.float32, [])
    values = [
        v1.get_variable(f"v{i}", [3], initializer=v1.zeros_initializer(), use_resource=resource)
        for i in range(4)
    ]
    with tf.control_dependencies([x]):
        change = tf.group(*[v.assign(tf.fill([3], x + i)) for i, v in enumerate(values)])
    saver = v1.train.Saver(max_to_keep=None)
    for each in ("stock", policy):
        with v1.Session(config=config_of(each)) as session:
            session.run(v1.global_variables_initializer())
            for i in range(STEPS):
                session.run(change, {x: float(i)})
                saver.save(session, str(tmp_path / f"{each}-{i}"), write_meta_graph=False)
    for i in range(STEPS):
        names = [name for name, _ in tf.train.list_variables(str(tmp_path / f"stock-{i}"))]
        readers = [tf.train.load_checkpoint(str(tmp_path / f"{e}-{i}")) for e in ("stock", policy)]
        for name in names:
            assert bits([readers[0].get_tensor(name)]) == bits([readers[1].get_tensor(name)])
    with v1.Session(config=config_of(policy)) as session:
        for i in range(STEPS):
            saver.restore(session, str(tmp_path / f"stock-{i}"))
            assert session.run(values)[2].tolist() == [float(i + 2)] * 3


@each_policy
def test_partial_runs(policy):
    a, b = v1.placeholder(tf.float32, []), v1.placeholder(tf.float32, [])
    first = a * 2.0 + 1.0
    second = tf.sqrt(first * b)
    found = {}
    for each in ("stock", policy):
        found[each] = []
        with v1.Session(config=config_of(each)) as session:
            for i in range(STEPS):
                handle = session.partial_run_setup([first, second], [a, b])
                early = session.partial_run(handle, first, {a: float(i)})
                late = session.partial_run(handle, second, {b: early + 1.0})
                found[each].append(bits([early, late]))
            unfinished = session.partial_run_setup([first, second], [a, b])
            session.partial_run(unfinished, first, {a: 1.0})
    assert found["stock"] == found[policy]


@each_policy
def test_runs_with_a_limit_of_time_that_is_kept(policy):
    x = v1.placeholder(tf.float32, [4])
    total = tf.reduce_sum(tf.exp(x))
    options = v1.RunOptions(timeout_in_ms=60_000)
    with v1.Session(config=config_of(policy)) as session:
        expected = session.run(total, {x: [1, 2, 3, 4]})
        for _ in range(STEPS):
            assert session.run(total, {x: [1, 2, 3, 4]}, options=options) == expected


@each_policy
def test_callables(policy):
    x = v1.placeholder(tf.float32, [3])
    y = tf.cumsum(x) * 2.0
    w = v1.get_variable("w", [3], initializer=v1.zeros_initializer(), use_resource=False)
    add = v1.assign_add(w, y)
    found = {}
    for each in ("stock", policy):
        with v1.Session(config=config_of(each)) as session:
            session.run(w.initializer)
            call = session.make_callable([y, tf.identity(add)], [x])
            found[each] = [bits(call(np.full(3, i, np.float32))) for i in range(STEPS)]
    assert found["stock"] == found[policy]


@each_policy
@pytest.mark.parametrize("threads", [-1, 1, 2, 8])
def test_any_number_of_threads(policy, threads):
    x = v1.placeholder(tf.float32, [32, 32])
    towers = [tf.reduce_sum(tf.matmul(x, tf.sin(x * float(i)))) for i in range(20)]
    queue = v1.FIFOQueue(100, [tf.float32], shapes=[[]])
    put = queue.enqueue(towers[0])
    with tf.control_dependencies([put]):
        taken = queue.dequeue()
    config = plain(inter_op_parallelism_threads=threads)
    same(policy, [*towers, taken], lambda i: {x: np.full((32, 32), i)}, config=config)


@each_policy
def test_pools_of_the_sessions_own(policy):
    config = plain()
    pool = config.session_inter_op_thread_pool.add()
    pool.num_threads = 2
    config.session_inter_op_thread_pool.add().num_threads = 1
    total = tf.add_n([tf.reduce_sum(tf.random.stateless_normal([64], [i, 2])) for i in range(9)])
    with v1.Session(config=config) as stock:
        expected = stock.run(total)
    with v1.Session(config=config_of(policy, config)) as session:
        for i in range(STEPS):
            options = v1.RunOptions(inter_op_thread_pool=i % 2)
            assert session.run(total, options=options) == expected


@each_policy
def test_sixteen_threads_with_fetches_of_their_own_on_one_session(policy):
    x = v1.placeholder(tf.float32, [8, 8])
    layers = [x]
    for i in range(16):
        layers.append(tf.tanh(tf.matmul(layers[-1], x) * 0.1) + layers[i // 2])
    loop = tf.while_loop(lambda i, a: i < 5, lambda i, a: (i + 1, a + layers[3]), [0, x])[1]
    fetches = [[layers[i], loop] if i % 3 == 0 else [layers[i], layers[-i]] for i in range(1, 17)]
    rng = np.random.default_rng(0)
    batches = rng.normal(size=(4, 8, 8)).astype(np.float32)
    with v1.Session(config=plain()) as stock:
        expected = [[bits(stock.run(f, {x: b})) for b in batches] for f in fetches]
    wrong: list[Any] = []
    with v1.Session(config=config_of(policy, plain())) as session:

        def client(number: int) -> None:
            try:
                for i in range(60):
                    which = (number + i // 20) % 16
                    found = bits(session.run(fetches[which], {x: batches[i % 4]}))
                    if found != expected[which][i % 4]:
                        wrong.append((number, i))
            except Exception as error:  # A thread's error would go unseen.
                wrong.append(error)

        threads = [threading.Thread(target=client, args=(n,)) for n in range(16)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert wrong == []


@each_policy
def test_a_step_within_a_step_of_the_same_session(policy):
    """A python function that runs the session again, on a thread that runs a step already."""
    sessions: list[v1.Session] = []
    x = v1.placeholder(tf.float32, [])
    inner = tf.sqrt(x)
    graph = v1.get_default_graph()

    def again(value):
        with graph.as_default():
            return sessions[0].run(inner, {x: value + 1.0})

    outer = v1.py_func(again, [x], tf.float32) * 2.0
    # A thread waits in the outer step: of the process's own, an earlier test may have left too few.
    with v1.Session(config=with_threads(config_of(policy), 4)) as session:
        sessions.append(session)
        for i in range(STEPS):
            assert session.run(outer, {x: float(i)}) == np.float32(np.sqrt(np.float32(i + 1))) * 2


def described(metadata: v1.RunMetadata) -> dict[tuple[str, str], list]:
    """What a run's metadata says of each node, but for times."""
    found: dict[tuple[str, str], list] = {}
    for device in metadata.step_stats.dev_stats:
        for node in device.node_stats:
            outputs = [
                (o.slot, o.tensor_description.dtype, str(o.tensor_description.shape))
                for o in node.output
            ]
            # Not the memory: whether a kernel writes to its input's differs from step to step.
            said = (node.timeline_label, outputs)
            found.setdefault((device.device, node.node_name), []).append(said)
            assert node.all_start_nanos > 0
            assert 0 <= node.op_start_rel_nanos <= node.op_end_rel_nanos <= node.all_end_rel_nanos
            assert node.scheduled_nanos > 0
    return found


def of_every_kind() -> list[tf.Tensor]:
    """Variables, constants, async kernels, no-ops, a loop, a branch and a second device."""
    x = tf.random.stateless_uniform([8], [1, 2], name="drawn")
    w = v1.get_variable("w", [8], initializer=v1.ones_initializer(), use_resource=False)
    queue = v1.FIFOQueue(10, [tf.float32], shapes=[[8]])
    y = tf.sin(x) * tf.constant(np.ones(8, np.float32), name="eight_ones") + w
    with tf.control_dependencies([queue.enqueue(y)]):
        taken = queue.dequeue()
    with tf.control_dependencies([taken]):
        nothing = tf.no_op()
    with tf.control_dependencies([nothing]):
        added = v1.assign_add(w, taken)
    # the old kind, so that the graph has no function
    v1.disable_control_flow_v2()
    try:
        loop = tf.while_loop(lambda i, a: i < 3, lambda i, a: (i + 1, tf.cos(a)), [0, y])[1]
        branch = tf.cond(y[0] > -100.0, lambda: y * 2.0, lambda: y * 3.0)
    finally:
        v1.enable_control_flow_v2()
    with tf.device("/cpu:1"):
        there = tf.exp(y, name="there")
    return [taken, loop, branch, there, tf.identity(added)]


@each_policy
@pytest.mark.parametrize("part", [slice(0, 1), slice(0, 5), slice(3, 5)])
def test_run_metadata_names_the_nodes_that_stock_names(policy, part):
    fetches = of_every_kind()[part]
    options = v1.RunOptions(trace_level=v1.RunOptions.FULL_TRACE)
    found: dict[str, list] = {}
    named: dict[str, dict] = {}
    for each in ("stock", policy):
        config = config_of(each, plain(device_count={"CPU": 2}))
        with v1.Session(config=config) as session:
            session.run(v1.global_variables_initializer())
            found[each] = []
            for _ in range(STEPS):
                metadata = v1.RunMetadata()
                values = bits(session.run(fetches, options=options, run_metadata=metadata))
                # nothing of the tracer is left in the next step
                again = bits(session.run(fetches))
                found[each].append((values, again))
                named[each] = described(metadata)
                assert named[each] == named["stock"]
    assert found["stock"] == found[policy]
    assert len(named["stock"]) > 10


@each_policy
def test_the_profiler_sees_all_ops_after_hundreds_of_runs(policy, tmp_path):
    from tensorflow.python.profiler import profiler_v2
    from tensorflow.tsl.profiler.protobuf import xplane_pb2

    fetches = of_every_kind()
    config = config_of(policy, plain(device_count={"CPU": 2}))
    with v1.Session(config=config) as session:
        session.run(v1.global_variables_initializer())
        for _ in range(200):
            session.run(fetches)
        profiler_v2.start(str(tmp_path))
        for _ in range(3):
            session.run(fetches)
        profiler_v2.stop()
    (written,) = tmp_path.glob("**/*.xplane.pb")
    space = xplane_pb2.XSpace.FromString(written.read_bytes())
    seen: dict[str, int] = {}
    for plane in space.planes:
        for line in plane.lines:
            for event in line.events:
                name = plane.event_metadata[event.metadata_id].name
                seen[name] = seen.get(name, 0) + 1
    for op, count in (
        *(("Sin:Sin", 3), ("there:Exp", 3), ("w:VariableV2", 3), ("AssignAdd:AssignAdd", 3)),
        *(("fifo_queue_Dequeue:QueueDequeueV2", 3), ("while/Cos:Cos", 9)),
        *(("while/Switch:Switch", 12), ("while/Exit_1:Exit", 3), ("cond/mul:Mul", 3)),
    ):
        assert seen.get(op) == count, (op, {k: v for k, v in seen.items() if ":" in k})
    assert "cond/mul_1:Mul" not in seen


@pytest.fixture(scope="module")
def clicks(tmp_path_factory):
    return check_criteo(generate_criteo(tmp_path_factory.mktemp("log") / "clicks.tsv", rows=2000))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("stage", "lookups"),
    [
        *(
            pytest.param(each, 26, marks=pytest.mark.slow)
            for each in ("off", "stage", "smart_stage")
        ),
        ("smart_stage", 3),
    ],
)
def test_dlrm_has_bit_equal_losses_under_every_policy(clicks, stage, lookups, monkeypatch):
    monkeypatch.setattr(dlrm, "CATEGORIES", dlrm.CATEGORIES[:lookups])
    made = {
        "off": wb.Optimizations(),
        "stage": wb.Optimizations(stage=wb.StageOptions()),
        "smart_stage": wb.Optimizations(smart_stage=wb.SmartStageOptions()),
    }[stage]
    program = dlrm_program(DlrmOptions(data=clicks, batch_size=64))
    losses = {}
    with tf.Graph().as_default() as graph:
        built = program.build(made)
        v1.train.get_or_create_global_step()
        initialize = v1.global_variables_initializer()
        graph.finalize()
        for policy in ("stock", *POLICIES):
            config = config_of(policy)
            if made.smart_stage is not None:
                targets = [built.train_op, built.loss]
                config, plan = prepare_config(graph, config, made.smart_stage, targets=targets)
                assert plan.stages
            with v1.Session(config=config) as session:
                session.run(initialize)
                session.run(graph.get_collection(v1.GraphKeys.TABLE_INITIALIZERS))
                with prefetching(session):
                    fetches = [built.train_op, built.loss]
                    losses[policy] = [session.run(fetches)[1] for _ in range(20)]
    assert losses["stock"][0] != losses["stock"][-1]
    expected = np.array(losses["stock"]).tobytes()
    assert [p for p in POLICIES if np.array(losses[p]).tobytes() != expected] == []
