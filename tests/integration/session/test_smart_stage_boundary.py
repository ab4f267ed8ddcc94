"""Where a smart stage cuts a real graph: what runs ahead, and what stays in the step."""

from __future__ import annotations

import pytest
import tensorflow as tf

from tests.builders.smart_stages import counted, initialize, model, prepared
from workbench.core import smart_stage
from workbench.core.options import StageOptions
from workbench.core.session.prefetch_hook import prefetching
from workbench.errors import OptionError, PlanError

v1 = tf.compat.v1


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


def test_a_plan_of_something_else_says_what_finds_a_boundary(graph):
    with pytest.raises(OptionError, match=r"got a Graph; expected a Boundary; wb\.find_boundary"):
        smart_stage.plan(graph)
    iterator, _ = counted()
    found = smart_stage.find_boundary(graph, [iterator.get_next() * 2])
    with pytest.raises(OptionError, match="got a StageOptions; expected a SmartStageOptions"):
        smart_stage.plan(found, StageOptions())
