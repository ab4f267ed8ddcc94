"""The inputs that a smart stage finds, the stages that it meets, and the batches that steps see."""

from __future__ import annotations

import time

import pytest
import tensorflow as tf

from tests.builders.smart_stages import counted, initialize, model, prepared
from workbench.core import smart_stage
from workbench.core.options import SmartStageOptions
from workbench.core.session.prefetch_hook import prefetching
from workbench.core.session.rewrite import applied_in
from workbench.core.session.staged import staged

v1 = tf.compat.v1


@pytest.mark.parametrize("own", [False, True])
@pytest.mark.parametrize("source", ["iterator", "queue", "reader"])
def test_every_kind_of_input_is_found_by_itself(own, source, tmp_path):
    path = tmp_path / "lines.txt"
    path.write_text("".join(f"{i}\n" for i in range(50)))
    if source == "iterator":
        batch = v1.data.make_one_shot_iterator(
            tf.data.TextLineDataset(str(path)).batch(2)
        ).get_next()
    else:
        files = v1.train.string_input_producer([str(path)], num_epochs=1, shuffle=False)
        batch = v1.TextLineReader().read(files)[1]
        batch = v1.train.batch([batch], 2) if source == "queue" else tf.stack([batch, batch])
    if own:
        batch = staged(batch)
    number = tf.strings.to_number(batch)
    total = v1.get_variable("total", [], initializer=tf.zeros_initializer())
    train = v1.assign_add(total, tf.reduce_sum(number))
    config, plan = smart_stage.prepare_config(v1.get_default_graph(), targets=[train])
    assert len(plan.stages) == (1 if own else 2)
    with v1.Session(config=config) as session:
        session.run(
            [
                v1.global_variables_initializer(),
                v1.local_variables_initializer(),
                v1.tables_initializer(),
            ]
        )
        coord = tf.train.Coordinator()
        threads = v1.train.start_queue_runners(session, coord)
        with prefetching(session):
            seen = [float(session.run([train, number])[1][0]) for _ in range(6)]
            with pytest.raises(tf.errors.OutOfRangeError):
                for _ in range(60):
                    session.run(train)
            assert session.run(total) == sum(range(50)) * (2 if source == "reader" else 1)
        coord.request_stop()
        coord.join(threads, stop_grace_period_secs=5)
    assert seen == ([0, 1, 2, 3, 4, 5] if source == "reader" else [0, 2, 4, 6, 8, 10])


def test_each_of_two_user_stages_is_widened_or_followed():
    first, second = counted()[0], counted()[0]
    a, b = staged(first.get_next(), name="a"), staged(second.get_next(), name="b")
    weights = v1.get_variable("w", [2], initializer=tf.ones_initializer())
    x, y = tf.cast(a * 2, tf.float32), tf.cast(b * 3, tf.float32)
    loss = tf.reduce_sum(weights * x) + tf.reduce_sum(weights * y)
    config, plan = smart_stage.prepare_config(v1.get_default_graph(), targets=[loss])
    assert [stage.name for stage in plan.stages] == ["smart_stage", "smart_stage_1"]
    with v1.Session(config=config) as session:
        session.run([first.initializer, second.initializer, v1.global_variables_initializer()])
        with prefetching(session):
            assert [float(session.run(loss)) for _ in range(3)] == [5.0, 15.0, 25.0]
            # The one is taken from without the other.
            assert session.run(x).tolist() == [6.0, 8.0]
            assert float(session.run(loss)) == 2 * 4 + 2 * 5 + 3 * 3 + 3 * 4


@pytest.mark.parametrize("own", [False, True])
def test_what_is_taken_has_the_static_shapes_that_it_had(graph, own):
    """Grappler fuses what it knows the shapes of: behind a stage it must not know less."""
    batch = v1.data.make_one_shot_iterator(tf.data.Dataset.range(9).batch(3)).get_next()
    batch = staged(batch) if own else batch
    numbers = tf.cast(batch, tf.float32, name="numbers")
    square = tf.reshape(tf.tile(numbers, [4])[:4], [2, 2], name="square")
    any_rank = tf.ones(tf.tile(batch[:1] * 0 + 2, batch[:1] + 1), name="any_rank")
    weight = v1.get_variable("w", [], initializer=v1.ones_initializer())
    loss = tf.add_n([tf.reduce_sum(weight * each) for each in (numbers, square, any_rank)])
    config, plan = smart_stage.prepare_config(graph, targets=[loss])
    carried = plan.stages[-1].carried
    assert {"numbers", "square", "any_rank"} <= set(carried)
    known = [t.shape for name in carried for t in graph.get_operation_by_name(name).outputs]
    metadata = v1.RunMetadata()
    with v1.Session(config=config) as session:
        session.run(v1.global_variables_initializer())
        with prefetching(session):
            wished = v1.RunOptions(output_partition_graphs=True)
            assert session.run(loss, options=wished, run_metadata=metadata) == 3 + 3 + 2
    takes = {
        node.name: [tf.TensorShape(shape).as_proto() for shape in node.attr["shapes"].list.shape]
        for partition in metadata.partition_graphs
        for node in partition.node
        if node.op == "WorkbenchBufferTake"
    }
    assert takes["smart_stage_buffer/take"] == [shape.as_proto() for shape in known]


@pytest.mark.parametrize("own", [False, True])
def test_a_fetch_of_the_staged_side_gives_the_steps_own_batch_and_consumes_no_other(own):
    built = model(own_stage=own)
    config, plan = prepared(built)
    assert built.size.op.name not in {name for stage in plan.stages for name in stage.moved}
    with v1.Session(config=config) as session:
        initialize(session)
        with prefetching(session):
            for i in range(4):
                got = session.run(
                    [built.batch, built.features, built.size, built.loss, built.train]
                )
                assert got[0].tolist() == [i, i + 1]
                assert got[1].tolist() == [2.0 * i, 2.0 * i + 2]
                assert got[2] == 2
            # Alone each of them consumes one batch, as it does without a stage.
            assert session.run(built.batch).tolist() == [4, 5]
            assert session.run(built.features).tolist() == [10.0, 12.0]
            assert session.run(built.size) == 2
            assert session.run(built.batch).tolist() == [7, 8]


def test_a_source_that_feeds_both_sides_runs_once_for_each_step():
    built = model()
    # The raw batch goes into the variable's update directly, beside the staged features.
    both = v1.assign_add(
        v1.get_variable("seen", [2], tf.int64, initializer=tf.zeros_initializer()), built.batch
    )
    config, _ = smart_stage.prepare_config(
        v1.get_default_graph(), targets=[built.train, both], options=SmartStageOptions(capacity=1)
    )
    with v1.Session(config=config) as session:
        initialize(session)
        with prefetching(session):
            for i in range(5):
                got = session.run([both, built.features, built.train])
                assert got[1].tolist() == [2.0 * i, 2.0 * i + 2]
            assert got[0].tolist() == [10, 15]
            time.sleep(0.2)
            # In two buffers of one, and in the hands of two producers.
            assert built.read == list(range(len(built.read))) and len(built.read) <= 5 + 4


def test_a_stage_whose_tensors_nobody_uses_any_more_is_left_alone():
    iterator, _ = counted()
    staged(iterator.get_next())
    weights = v1.get_variable("w", [2], initializer=tf.ones_initializer())
    loss = tf.reduce_sum(weights)
    config, plan = smart_stage.prepare_config(v1.get_default_graph())
    assert plan.stages == ()
    assert "no node on the compute side needs 'prefetch/take'" in plan.describe() or (
        "name the step's targets" in plan.describe()
    )
    assert applied_in(config) is None
    with v1.Session(config=config) as session:
        session.run([iterator.initializer, v1.global_variables_initializer()])
        with prefetching(session):
            assert session.run(loss) == 2.0
