"""The runner of a stage that a plan adds: the hook knows its ops from the plan alone."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
import tensorflow as tf
from tensorflow.core.framework import graph_pb2

from tests.builders.plans import towers
from workbench.core.options import SmartStageOptions
from workbench.core.planning.planner import plan_stages
from workbench.core.session.prefetch_runner import build_runner, runner_in
from workbench.core.session.rewrite import applied_in, apply, runners_with
from workbench.core.staging.buffer import Buffer

v1 = tf.compat.v1


@pytest.mark.parametrize("threads", [1, 3])
def test_the_hook_derives_the_runner_that_building_the_ops_gives(graph: Any, threads: int):
    options = dataclasses.replace(
        SmartStageOptions(), num_threads=threads, reorder=True, ignored_exception_types=(15,)
    )
    applied = applied_in(apply(plan_stages(towers(), options)))
    assert applied is not None
    for stage, runner in zip(applied.plan.stages, runners_with(applied, []), strict=True):
        with v1.name_scope(f"{stage.name}_buffer/"):
            at = Buffer(shared_name="x", capacity=1, stage=stage.name)
            built = build_runner(at, [[tf.constant(1)]], (), stage.options)
        assert runner == built and len(runner.puts) == stage.options.num_threads


def test_what_the_runner_names_is_what_the_config_adds():
    config = apply(plan_stages(towers()))
    entry = config.graph_options.rewrite_options.custom_optimizers[0]
    added = set()
    for spec in entry.parameter_map["stages"].list.func:
        nodes = graph_pb2.GraphDef.FromString(spec.attr["nodes"].s).node
        added |= {node.name for node in nodes}
        assert spec.attr["take"].s.decode() in added
    applied = applied_in(config)
    assert applied is not None
    runners = runners_with(applied, [])
    assert [runner.stage for runner in runners] == ["smart_stage_input", "smart_stage"]
    for runner in runners:
        own = runner_in(f"{runner.stage}_buffer", runner.stage, runner.options)
        names = [name for name in vars(own).values() if isinstance(name, str)]
        used = {name.partition(":")[0] for name in (*names, *own.puts)} - {runner.stage}
        assert len(used) == 11 and used <= added
    with tf.Graph().as_default() as untouched:
        runners_with(applied, [])
        assert not untouched.get_operations()


def test_reading_a_plan_builds_no_graph(monkeypatch: pytest.MonkeyPatch):
    applied = applied_in(apply(plan_stages(towers())))
    assert applied is not None

    def refuse(*arguments: Any, **keywords: Any) -> None:
        raise AssertionError("a graph was built")

    monkeypatch.setattr(tf, "Graph", refuse)
    assert len(runners_with(applied, [])) == 2
