"""A stage's stream: where its staged side is placed, on logical CPU devices, and what it gives."""

from __future__ import annotations

import threading

import pytest
import tensorflow as tf
from tensorflow.core.protobuf.rewriter_config_pb2 import RewriterConfig

import workbench as wb
from workbench.compat.config import ConfigProto
from workbench.core import smart_stage
from workbench.core.staging import buffer

v1 = tf.compat.v1
STREAM = wb.StageOptions(stage_subgraph_stream_id=1)


def config_of(cpus: int, *, by_deeprecs_switches: bool = False):
    config = v1.ConfigProto(device_count={"CPU": cpus})
    if by_deeprecs_switches:
        config = switched(config, cpus).to_stock()
    # It would give nodes other names.
    config.graph_options.rewrite_options.disable_meta_optimizer = True
    return config


def switched(config, streams: int) -> ConfigProto:
    asking = ConfigProto()
    asking.CopyFrom(config)
    asking.graph_options.rewrite_options.use_multi_stream = RewriterConfig.ON
    asking.graph_options.rewrite_options.multi_stream_opts.multi_stream_num = streams
    asking.graph_options.optimizer_options.stage_multi_stream = True
    return asking


def numbers():
    dataset = tf.data.Dataset.counter()
    iterator = v1.data.make_initializable_iterator(dataset)
    v1.add_to_collection("initializers", iterator.initializer)
    return tf.cast(iterator.get_next(), tf.float32, name="numbers")


def initialized(config, target=""):
    session = v1.Session(target, config=config)
    session.run([v1.get_collection("initializers"), v1.global_variables_initializer()])
    return session


def devices_of(run) -> dict[str, str]:
    """The number of the device of each node of the partitions that a run had."""
    metadata = v1.RunMetadata()
    run(v1.RunOptions(output_partition_graphs=True), metadata)
    parts = metadata.partition_graphs
    assert len({node.device for part in parts for node in part.node}) == len(parts)
    return {node.name: node.device[-5:] for part in parts for node in part.node}


def placed(session, run, step) -> tuple[dict[str, str], dict[str, str]]:
    """The devices of the nodes of a step, and of those of a put."""

    def ahead(options, metadata):
        """One more run of the stage's put, while steps make room for it."""
        put, owner, given = run.runner.puts[0], run.runner.owner, [run._token, 0]

        def call():
            if session.sess_str:  # A server returns graphs for a run alone.
                session.run(put, {owner: given}, options, metadata)
            else:
                prepared = buffer.prepared(session, feeds=[owner], targets=[put], options=options)
                prepared(given, run_metadata=metadata)

        thread = threading.Thread(target=call, daemon=True)
        thread.start()
        while thread.is_alive():
            session.run(step)

    taken = devices_of(lambda o, m: session.run(step, options=o, run_metadata=m))
    return taken, devices_of(ahead)


@pytest.mark.parametrize("by_switches", [False, True], ids=["stock", "DeepRec's switches"])
def test_the_staged_side_runs_on_the_device_of_its_stream_and_the_step_takes_on_its_own(
    by_switches: bool, caplog: pytest.LogCaptureFixture
):
    weight = v1.get_variable("weight", [], initializer=v1.ones_initializer())
    scaled = tf.multiply(numbers(), 2.0, name="scaled")
    back = wb.staged(scaled, STREAM, name="input")
    step = tf.multiply(back, weight, name="step")
    config = config_of(2, by_deeprecs_switches=by_switches)
    assert not caplog.records
    with initialized(config) as session, wb.prefetching(session) as runs:
        assert [session.run(step) for _ in range(5)] == [0, 2, 4, 6, 8]
        taken, ahead = placed(session, runs[0], step)
    assert taken["input/take"] == taken["step"] == "CPU:0"
    assert ahead["scaled"] == ahead["numbers"] == "CPU:1"
    # State is where it is, and so is the buffer.
    assert ahead["IteratorGetNext"] == ahead["input/put"] == "CPU:0"
    assert "scaled" not in taken and "step" not in ahead


def test_what_the_step_needs_too_stays():
    both = tf.add(numbers(), 1.0, name="both")
    alone = tf.multiply(both, 2.0, name="alone")
    back = wb.staged(alone, STREAM, name="input")
    step = tf.identity(back, name="step")
    tf.abs(both, name="seen")
    with initialized(config_of(2)) as session, wb.prefetching(session) as runs:
        assert [session.run(step) for _ in range(3)] == [2, 4, 6]
        _, ahead = placed(session, runs[0], step)
    assert (ahead["numbers"], ahead["both"], ahead["alone"]) == ("CPU:0", "CPU:0", "CPU:1")


def test_what_the_user_put_on_another_device_stays_there():
    with tf.device("/device:CPU:2"):
        there = tf.add(numbers(), 1.0, name="there")
    back = wb.staged(tf.multiply(there, 2.0, name="here"), STREAM, name="input")
    with initialized(config_of(3)) as session, wb.prefetching(session) as runs:
        assert [session.run(back) for _ in range(3)] == [2, 4, 6]
        _, ahead = placed(session, runs[0], back)
    assert (ahead["there"], ahead["here"]) == ("CPU:2", "CPU:1")


def test_two_stages_have_streams_of_their_own_and_one_without_has_none():
    takes = [
        wb.staged(
            tf.add(numbers(), float(k), name=f"side_{k}"),
            wb.StageOptions(stage_subgraph_stream_id=k),
            name=f"stage_{k}",
        )
        for k in range(3)
    ]
    with initialized(config_of(3)) as session, wb.prefetching(session) as runs:
        session.run(takes)
        found = {}
        for k, run in enumerate(runs):
            _, ahead = placed(session, run, takes[k])
            found |= {name: ahead[name] for name in ahead if name.startswith("side_")}
    assert {name: found[name] for name in ("side_0", "side_1", "side_2")} == {
        "side_0": "CPU:0",
        "side_1": "CPU:1",
        "side_2": "CPU:2",
    }


def test_a_loop_moves_as_a_whole():
    looped = tf.while_loop(lambda n: n < 100, lambda n: n + 7, [numbers()], name="loop")
    looped = tf.identity(looped[0] if isinstance(looped, (list, tuple)) else looped, name="looped")
    plain = wb.staged(looped, STREAM, name="input")
    with initialized(config_of(2)) as session, wb.prefetching(session) as runs:
        assert [session.run(plain) for _ in range(4)] == [105, 106, 100, 101]
        _, ahead = placed(session, runs[0], plain)
    assert {ahead[name] for name in ahead if name.startswith("loop/")} == {"CPU:1"}


def test_a_smart_stage_runs_on_the_device_of_its_stream():
    weight = v1.get_variable("weight", [], initializer=v1.ones_initializer())
    scaled = tf.multiply(numbers(), 2.0, name="scaled")
    step = tf.multiply(scaled, weight, name="step")
    config, plan = smart_stage.prepare_config(
        v1.get_default_graph(),
        config_of(2),
        wb.SmartStageOptions(stage_subgraph_stream_id=1),
        targets=[step],
    )
    assert {stage.options.stage_subgraph_stream_id for stage in plan.stages} == {1}
    with initialized(config) as session, wb.prefetching(session) as runs:
        assert [session.run(step) for _ in range(4)] == [0, 2, 4, 6]
        taken, ahead = placed(session, runs[-1], step)
    assert ahead["smart_stage/scaled"] == "CPU:1"
    assert ahead["smart_stage_buffer/put"] == taken["smart_stage_buffer/take"] == "CPU:0"
    assert taken["scaled"] == taken["step"] == "CPU:0"


def test_with_a_stream_do_smart_stage_gpu_leaves_the_staged_side_its_devices():
    """On the device of the compute side is what a stage computes; the raw input is on CPU:0."""
    weight = v1.get_variable("weight", [], initializer=v1.ones_initializer())
    source = numbers()
    with tf.device("/device:CPU:2"):
        scaled = tf.multiply(source, 2.0, name="scaled")
        shifted = tf.add(source, 1.0, name="shifted")
        step = tf.multiply(tf.add(scaled, shifted, name="both"), weight, name="step")
    config, plan = smart_stage.prepare_config(
        v1.get_default_graph(),
        config_of(3),
        wb.SmartStageOptions(on_cpu=True, stage_subgraph_stream_id=1),
        targets=[step],
    )
    assert {stage.device for stage in plan.stages} == {""}
    assert plan.stages[-1].buffer_device == "/device:CPU:2"
    with initialized(config) as session, wb.prefetching(session) as runs:
        assert [session.run(step) for _ in range(4)] == [1, 4, 7, 10]
        taken, ahead = placed(session, runs[-1], step)
    # The user's own devices are kept; what travels is where the step reads it.
    assert ahead["smart_stage/both"] == "CPU:2"
    assert ahead["smart_stage_buffer/put"] == taken["smart_stage_buffer/take"] == "CPU:2"
    assert taken["step"] == "CPU:2" and "scaled" not in taken


def test_a_session_with_one_cpu_alone_has_no_streams():
    back = wb.staged(numbers(), wb.StageOptions(stage_subgraph_stream_id=3))
    with initialized(config_of(1)) as session, wb.prefetching(session):
        assert [session.run(back) for _ in range(3)] == [0, 1, 2]


def test_a_stream_that_is_missing_says_how_to_make_it():
    wb.staged(numbers(), wb.StageOptions(stage_subgraph_stream_id=2), name="input")
    with (
        pytest.raises(tf.errors.InvalidArgumentError) as failed,
        initialized(config_of(2)),
    ):
        pass
    said = failed.value.message
    assert "stage 'input' has stage_subgraph_stream_id=2" in said
    assert "is to run on CPU:2, which does not exist (there are " in said
    assert "CPU:0" in said and "CPU:1" in said
    assert "config.gpu_options.experimental.virtual_devices.add(memory_limit_mb=[...])" in said


def test_a_session_of_a_server_places_it_too():
    cluster = v1.train.Server.create_local_server(config=config_of(2))
    back = wb.staged(tf.multiply(numbers(), 2.0, name="scaled"), STREAM, name="input")
    with initialized(config_of(2), cluster.target) as session, wb.prefetching(session) as runs:
        assert [session.run(back) for _ in range(3)] == [0, 2, 4]
        _, ahead = placed(session, runs[0], back)
    assert (ahead["scaled"], ahead["input/put"]) == ("CPU:1", "CPU:0")
