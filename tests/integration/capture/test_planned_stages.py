"""Traces of smart stages: each item has the step that took it, of whichever buffer it was."""

from __future__ import annotations

import pytest
import tensorflow as tf

import workbench as wb
from tests.builders.smart_stages import initialize, model, prepared
from workbench.core.analysis.path.executed_graph import executed_graph
from workbench.core.capture.session_capture import capture_steps
from workbench.core.session.prefetch_hook import prefetching

v1 = tf.compat.v1
STEPS = 5


def traced(built, target: str = "", **wishes):
    config, plan = prepared(built, **wishes)
    config = config if target else wb.executor_options("normal", config=config)
    with v1.Session(target, config=config) as session:
        initialize(session)
        with prefetching(session):
            session.run(built.train)
            return plan, capture_steps(session, built.train, STEPS, step_stats=bool(target))


@pytest.mark.executors
@pytest.mark.parametrize("own_stage", [False, True], ids=["a new buffer", "the user's, widened"])
def test_each_step_has_its_item_and_its_bytes(graph, own_stage) -> None:
    # Of a cut that is chosen by hand the user's stage is widened.
    wishes = {"include": ("features",)} if own_stage else {}
    plan, trace = traced(model(own_stage=own_stage), **wishes)
    last = plan.stages[-1]
    assert bool(last.widens) == own_stage
    name = last.own_name or last.name
    taken = trace.items[(trace.items["stage"] == name) & (trace.items["take_end_ns"] >= 0)]
    assert taken["take_step"].tolist() == trace.steps()["number"].tolist()
    assert (taken["bytes"] > 0).all()
    assert name in executed_graph(trace).takes_of.values()


def test_on_a_server_takes_and_edges_are_known(graph) -> None:
    server = tf.distribute.Server.create_local_server()
    plan, trace = traced(model(), server.target)
    taken = trace.items[
        (trace.items["stage"] == plan.stages[-1].name) & (trace.items["take_step"] >= 0)
    ]
    assert taken["take_step"].tolist() == trace.steps()["number"].tolist()
    path = wb.critical_path(trace)
    assert path.client == "" and path.df.loc[path.df["kind"] == "op", "op"].nunique() > 1
    seen = executed_graph(trace)
    ops = trace.nodes["op"].to_numpy()[seen.nodes]
    # Not of the path: which of these short ops it goes through is chance on a busy machine.
    _, consumers = seen.dependencies
    assert "ResourceApplyGradientDescent" in ops[consumers]
