"""What a user does with a smart stage: find, plan, apply, replace and remove."""

from __future__ import annotations

import pytest
import tensorflow as tf

from tests.builders.smart_stages import counted, initialize, model, prepared
from workbench.core import smart_stage
from workbench.core.fusion.plan import plan_fusion
from workbench.core.planning.stage_plan import StagePlan
from workbench.core.session.prefetch_hook import prefetching
from workbench.core.session.rewrite import applied_in, apply, remove
from workbench.errors import OptionError, PlanError

v1 = tf.compat.v1


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


def test_a_plan_of_the_graph_before_its_fusion_says_what_to_do(graph):
    iterator, _ = counted()
    ids = tf.sparse.from_dense(tf.cast(iterator.get_next()[:, tf.newaxis], tf.int64))
    table = v1.get_variable("table", [9, 4], use_resource=False)
    found = v1.nn.safe_embedding_lookup_sparse(table, ids)
    fusion = plan_fusion(graph)
    assert fusion.count
    plan = smart_stage.plan(smart_stage.find_boundary(graph, [found]))
    config = smart_stage.apply(plan, apply(fusion))
    with (
        v1.Session(config=config) as session,
        pytest.raises(PlanError, match=r"before its parts were fused; find its .*, fusion="),
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


def test_a_name_that_the_graph_has_already_is_avoided():
    tf.constant(1, name="smart_stage/x")
    built = model()
    _, plan = prepared(built)
    assert [stage.name for stage in plan.stages] == ["smart_stage_1_input", "smart_stage_1"]
