"""A boundary view says of what runs on stale rows how stale they are."""

from __future__ import annotations

import dataclasses

from tests.builders.graphs import graph
from tests.builders.plans import predictions
from workbench.core.boundary.boundary import Boundary
from workbench.core.boundary.legality import boundary_of
from workbench.core.options import SmartStageOptions
from workbench.core.planning.planner import plan_stages
from workbench.core.planning.stage_plan import StagePlan
from workbench.viz.boundary.text import boundary_text
from workbench.viz.boundary.view import boundary_view

MODEL = """
it = IteratorV2
next = IteratorGetNext(it) string
hash = StringToHashBucketFast(next) int64
table = VarHandleOp
rows = ResourceGather(table, hash)
w = VarHandleOp
read = ReadVariableOp(w)
loss = MatMul(rows, read)
"""


def boundary(steps: int = 1) -> Boundary:
    return boundary_of(graph(MODEL), targets=["loss"], stale_lookups=steps)


def explanations(source: Boundary | StagePlan, name: str) -> list[str]:
    return [box.explanation for box in boundary_view(source).boxes if name in box.title]


def test_a_plan_shows_the_stage_of_stale_lookups_and_each_of_its_nodes_says_so():
    plan = plan_stages(boundary(), SmartStageOptions(stale_lookups=1))
    view = boundary_view(plan)
    assert [area.title for area in view.areas[:3]] == [
        "Stage “smart_stage_input”",
        "Stage “smart_stage”",
        "Stage “smart_stage_lookups”",
    ]
    assert view.areas[2].about == "1 thread, buffer of 1 item, lookups 1 step stale"
    assert "buffer of 1 item" in view.areas[1].about and "stale" not in view.areas[1].about
    (words,) = explanations(plan, "rows")
    assert words.startswith("Runs 1 step stale: stale_lookups=1.")
    read = boundary_view(StagePlan.from_json(plan.to_json()))
    assert "lookups 1 step stale" in read.areas[2].about
    assert "1 step stale" in boundary_text(view)


def test_what_is_predicted_takes_stale_lookups_for_exact_and_says_so():
    for steps, said in ((1, "Predicted with exact lookups: "), (0, "Predicted: ")):
        plan = plan_stages(boundary(steps), SmartStageOptions(stale_lookups=steps))
        view = boundary_view(dataclasses.replace(plan, predictions=predictions(12.0, 8.0)))
        sentence = "".join(text for text, _ in view.sentence)
        assert sentence.endswith(f" {said}1.50× as fast as un-staged.")
        assert view.flow.stale == bool(steps)


def test_a_boundary_alone_shows_what_might_run_stale_behind_what_runs_exactly():
    view = boundary_view(boundary(2))
    assert [area.title for area in view.areas[:2]] == [
        "May run ahead",
        "May run ahead, 2 steps stale",
    ]
    (words,) = explanations(boundary(2), "rows")
    assert words.startswith("May run 2 steps stale: stale_lookups=2.")


def test_without_the_option_nothing_is_stale():
    view = boundary_view(boundary(0))
    assert "stale" not in boundary_text(view)
