"""A finished graph in real child processes: its toggles are measured, and train the same."""

from __future__ import annotations

import pytest

import workbench as wb
from tests.builders.finished_graphs import finished, without_collections
from workbench.core.optimizations import Optimizations


@pytest.mark.slow
def test_a_graph_def_is_compared_and_trains_the_same():
    graph = without_collections(finished(table=True))
    program = wb.graph_program(graph, loss="loss", fingerprint="which")
    session = wb.Session(program, budget_s=0.5, trace_steps=5)
    # Up to the table's values: which stage is best of a step of microseconds is chance.
    upto = Optimizations(smart_stage=wb.SmartStageOptions(include=("wanted",)))
    run = session.run(upto, progress=False)
    assert "wanted" in run.measured.plan.stages[-1].moved
    assert [check.passed for check in run.checks] == [True, True]
    assert session.no_use(Optimizations(fused_embeddings="v2"))
    stage = Optimizations(stage=wb.StageOptions())
    assert "stage" in session.no_use(stage)


def test_a_panel_opens_on_a_graph():
    panel = wb.Workbench(finished(), budget_s=0.5, trace_steps=0)
    panel.stage = "smart"
    panel.run(wait=True)
    assert [each["name"] for each in panel.run_list] == ["All off", "SmartStage"]
