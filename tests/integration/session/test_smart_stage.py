"""SmartStage in real sessions: what a user sees, and the hazards that a rewrite could fall into."""

from __future__ import annotations

import dataclasses
import threading
import time

import numpy as np
import pytest
import tensorflow as tf

from workbench.core import smart_stage
from workbench.core.options import SmartStageOptions, StageOptions
from workbench.core.planning.stage_plan import StagePlan
from workbench.core.session.prefetch_hook import make_prefetch_hook, prefetching
from workbench.core.session.rewrite import applied_in, remove
from workbench.core.session.staged import staged
from workbench.core.staging import buffer
from workbench.errors import OptionError, PlanError

v1 = tf.compat.v1


def counted(count: int = 1000) -> tuple[tf.data.Iterator, list[int]]:
    """An iterator of [i, i + 1] as int64, and the list of what was read so far."""
    read: list[int] = []

    def note(i):
        read.append(int(i))
        return np.asarray([i, i + 1], np.int64)

    data = tf.data.Dataset.range(count).map(
        lambda i: tf.ensure_shape(tf.numpy_function(note, [i], tf.int64), [None])
    )
    plain = tf.data.Options()
    plain.experimental_optimization.inject_prefetch = False
    plain.autotune.enabled = False
    return v1.data.make_initializable_iterator(data.with_options(plain)), read


@dataclasses.dataclass
class Model:
    initializer: tf.Operation
    batch: tf.Tensor
    features: tf.Tensor
    size: tf.Tensor
    loss: tf.Tensor
    train: tf.Operation
    read: list[int]

    @property
    def targets(self):
        return [self.train, self.loss]


def model(own_stage: bool = False, use_resource: bool = True, **options) -> Model:
    iterator, read = counted()
    batch = iterator.get_next()
    if own_stage:
        batch = staged(batch, StageOptions(**options))
    features = tf.cast(batch * 2, tf.float32, name="features")
    weights = v1.get_variable(
        "w", [2], initializer=tf.ones_initializer(), use_resource=use_resource
    )
    loss = tf.reduce_sum(weights * features, name="loss")
    step = v1.train.get_or_create_global_step()
    train = v1.train.GradientDescentOptimizer(0.01).minimize(loss, global_step=step)
    v1.add_to_collection(v1.GraphKeys.TABLE_INITIALIZERS, iterator.initializer)
    return Model(iterator.initializer, batch, features, tf.size(batch), loss, train, read)


def initialize(session) -> None:
    session.run([v1.global_variables_initializer(), v1.tables_initializer()])


def prepared(built: Model, options=None, **wishes):
    return smart_stage.prepare_config(
        v1.get_default_graph(), None, options or SmartStageOptions(**wishes), targets=built.targets
    )


# What a user does.


def test_find_plan_describe_apply_and_run(graph):
    built = model()
    boundary = smart_stage.find_boundary(graph, targets=built.targets)
    plan = smart_stage.plan(boundary)
    assert "new stage: widest in two chained stages" in plan.describe()
    assert "read in 'smart_stage_input'" in plan.describe()
    assert plan.explain("features") == (
        "'features' runs ahead in stage 'smart_stage'; its outputs travel."
    )
    assert "'w' is a variable" in plan.explain("loss")
    config = smart_stage.apply(plan, v1.ConfigProto())
    with v1.Session(config=config) as session:
        initialize(session)
        with prefetching(session) as runs:
            assert [run.runner.stage for run in runs] == ["smart_stage_input", "smart_stage"]
            seen = [session.run([built.loss, built.batch, built.train]) for _ in range(3)]
    assert [each[1].tolist() for each in seen] == [[0, 1], [1, 2], [2, 3]]
    assert seen[0][0] == 2.0


def test_the_users_graph_is_byte_identical_before_and_after(graph):
    built = model(own_stage=True)
    init = [v1.global_variables_initializer(), v1.tables_initializer()]
    before = graph.as_graph_def().SerializeToString(deterministic=True)
    config, _ = prepared(built)
    with v1.Session(config=config) as session:
        session.run(init)
        with prefetching(session):
            session.run(built.train)
    assert graph.as_graph_def().SerializeToString(deterministic=True) == before


def test_a_plan_goes_through_json_unchanged(graph):
    for own in (False, True):
        with tf.Graph().as_default():
            built = model(own_stage=own, closed_exception_types=(tf.errors.OutOfRangeError,))
            plan = smart_stage.plan(
                smart_stage.find_boundary(v1.get_default_graph(), built.targets)
            )
            again = StagePlan.from_json(plan.to_json())
            assert again == plan
            config = smart_stage.apply(again, graph=v1.get_default_graph())
            assert applied_in(config).plan == plan


def test_a_plan_for_another_graph_is_refused(graph):
    plan = smart_stage.plan(smart_stage.find_boundary(graph, model().targets))
    with tf.Graph().as_default() as other:
        built = model()
        built.loss.op._set_attr(
            "_note", tf.compat.v1.AttrValue(s=b"attributes are no part of a fingerprint")
        )
        smart_stage.apply(plan, graph=other)
    with tf.Graph().as_default() as other:
        model(use_resource=False)
        with pytest.raises(PlanError, match="this plan was made for another graph: its fingerpr"):
            smart_stage.apply(plan, graph=other)
        config = smart_stage.apply(plan)
        with (
            v1.Session(graph=other, config=config) as session,
            pytest.raises(PlanError, match="another graph"),
            prefetching(session),
        ):
            pass


def test_a_plan_whose_node_is_gone_fails_with_a_status_that_names_it(graph):
    plan = smart_stage.plan(smart_stage.find_boundary(graph, model().targets))
    config = smart_stage.apply(plan)
    with tf.Graph().as_default():
        iterator, _ = counted()
        batch = iterator.get_next()
        with v1.Session(config=config) as session, pytest.raises(tf.errors.OpError) as caught:
            session.run(batch)
        missing = [name for name in plan.stages[1].moved if name != "IteratorGetNext"]
        assert any(repr(name)[1:-1] in caught.value.message for name in missing)


def test_applying_again_replaces_and_remove_takes_it_out(graph):
    built = model()
    config, plan = prepared(built)
    token = applied_in(config).token
    smart_stage.apply(plan, config)
    assert len(config.graph_options.rewrite_options.custom_optimizers) == 1
    assert applied_in(config).token != token
    remove(config)
    assert applied_in(config) is None


def test_what_is_no_config_or_target_is_said():
    with pytest.raises(OptionError, match="config is 'x' of type str; expected a ConfigProto"):
        smart_stage.apply(StagePlan.from_json(smart_stage.plan(_boundary()).to_json()), "x")
    with pytest.raises(OptionError, match="3 of type int is no target; expected tensors"):
        smart_stage.find_boundary(v1.get_default_graph(), [3])
    with pytest.raises(PlanError, match="is no graph; expected a tf.Graph"):
        smart_stage.find_boundary("graph")


def _boundary():
    return smart_stage.find_boundary(v1.get_default_graph(), model().targets)


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


# Hazards.


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


def test_a_boundary_that_is_everything_is_said_and_runs_as_it_is():
    iterator, _ = counted()
    doubled = iterator.get_next() * 2
    config, plan = smart_stage.prepare_config(v1.get_default_graph())
    assert plan.stages == ()
    assert "name the step's targets, or mark them with mark_target_node" in plan.describe()
    with v1.Session(config=config) as session:
        session.run(iterator.initializer)
        assert session.run(doubled).tolist() == [0, 2]


def test_with_a_target_everything_before_it_moves():
    iterator, _ = counted()
    doubled = tf.identity(iterator.get_next() * 2)
    config, plan = smart_stage.prepare_config(v1.get_default_graph(), targets=[doubled])
    assert len(plan.stages) == 2
    with v1.Session(config=config) as session:
        session.run(iterator.initializer)
        with prefetching(session):
            assert [session.run(doubled)[0] for _ in range(3)] == [0, 2, 4]


def test_nodes_in_a_loop_stay_but_what_feeds_it_runs_ahead():
    iterator, _ = counted()
    batch = tf.cast(iterator.get_next(), tf.float32, name="before")
    v1.disable_control_flow_v2()
    try:
        looped = v1.while_loop(lambda i, x: i < 3, lambda i, x: (i + 1, x + batch), [0, batch])[1]
    finally:
        v1.enable_control_flow_v2()
    config, plan = smart_stage.prepare_config(v1.get_default_graph(), targets=[looped])
    assert "before" in plan.stages[-1].carried
    assert "inside control flow" in {refusal.reason.value for refusal in plan.boundary.refusals()}
    with v1.Session(config=config) as session:
        session.run(iterator.initializer)
        with prefetching(session):
            assert [session.run(looped).tolist() for _ in range(2)] == [[0, 4], [4, 8]]


def test_functional_control_flow_moves_after_a_look_inside():
    iterator, _ = counted()
    batch = tf.cast(iterator.get_next(), tf.float32)
    weights = v1.get_variable("w", [2], initializer=tf.ones_initializer(), use_resource=True)
    moving = tf.map_fn(lambda x: x * 2, batch, name="moving")
    staying = tf.cond(batch[0] > 1, lambda: batch * weights.read_value(), lambda: batch)
    loss = tf.reduce_sum(moving * weights + staying, name="loss")
    config, plan = smart_stage.prepare_config(v1.get_default_graph(), targets=[loss])
    ops = {op for stage in plan.stages for op in stage.moved_ops}
    assert ops & {"While", "StatelessWhile"} and not ops & {"If", "StatelessIf"}
    with v1.Session(config=config) as session:
        session.run([iterator.initializer, v1.global_variables_initializer()])
        with prefetching(session):
            assert [float(session.run(loss)) for _ in range(3)] == [3.0, 9.0, 15.0]


def test_a_vocabulary_in_a_variable_keeps_what_is_behind_it():
    iterator, _ = counted()
    vocabulary = v1.get_variable("vocabulary", initializer=tf.constant([5.0, 6.0, 7.0]))
    found = tf.gather(vocabulary, tf.math.mod(iterator.get_next(), 3), name="found")
    boundary = smart_stage.find_boundary(v1.get_default_graph(), [found])
    assert "'vocabulary' is a variable" in boundary.explain("found")


def test_a_fed_model_has_little_to_stage_and_is_told_why():
    fed = v1.placeholder(tf.float32, [2], name="fed")
    loss = tf.reduce_sum(fed * 2)
    with pytest.raises(PlanError, match="no stage and no input was found"):
        smart_stage.find_boundary(v1.get_default_graph(), [loss])
    iterator, _ = counted()
    with_fed = tf.cast(iterator.get_next(), tf.float32) * 2 + fed
    boundary = smart_stage.find_boundary(v1.get_default_graph(), [tf.reduce_sum(with_fed)])
    assert "'fed' is fed (Placeholder)" in boundary.explain(with_fed.op.name)


def test_a_tensor_that_travels_can_still_be_fed():
    built = model()
    config, _ = prepared(built)
    with v1.Session(config=config) as session:
        initialize(session)
        with prefetching(session):
            assert session.run(built.loss, {built.features: [1.0, 1.0]}) == 2.0
            assert session.run(built.size, {built.batch: [1, 2]}) == 2
            assert session.run(built.loss) == 2.0


def test_control_edges_across_the_boundary_keep_their_meaning():
    iterator, _ = counted()
    batch = iterator.get_next()
    checked = v1.Assert(tf.reduce_all(batch < 3), ["too large", batch])
    seen = v1.get_variable("seen", [], initializer=tf.zeros_initializer())
    with tf.control_dependencies([checked]):
        update = v1.assign_add(seen, tf.cast(batch[0], tf.float32) + 1)
    config, _ = smart_stage.prepare_config(v1.get_default_graph(), targets=[update])
    with v1.Session(config=config) as session:
        session.run([iterator.initializer, v1.global_variables_initializer()])
        with prefetching(session):
            assert [float(session.run(update)) for _ in range(2)] == [1.0, 3.0]
            with pytest.raises(tf.errors.InvalidArgumentError, match="too large"):
                session.run(update)


# Training as people run it.


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


def test_a_name_that_the_graph_has_already_is_avoided():
    tf.constant(1, name="smart_stage/x")
    built = model()
    _, plan = prepared(built)
    assert [stage.name for stage in plan.stages] == ["smart_stage_1_input", "smart_stage_1"]


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


def put_beside(session, run, train, options, metadata):
    """One more run of a stage's put, while steps make room for it."""
    put = buffer.prepared(
        session, feeds=[run.runner.owner], targets=[run.runner.puts[0]], options=options
    )
    thread = threading.Thread(
        target=lambda: put([run._token, 0], run_metadata=metadata), daemon=True
    )
    thread.start()
    while thread.is_alive():
        session.run(train)
