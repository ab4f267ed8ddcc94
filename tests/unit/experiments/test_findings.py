"""Findings of a comparison: its variants, the baseline first, and toggles that are on already."""

from __future__ import annotations

import dataclasses

import pytest

from tests.builders.comparisons import comparison, variant
from tests.builders.plans import towers
from tests.builders.step_traces import US, chain, step_trace, waiting_steps
from workbench.core.analysis.findings.finding import Findings
from workbench.core.planning.planner import plan_stages
from workbench.core.planning.stage_plan import Edit
from workbench.errors import DataError
from workbench.experiments.comparison.findings import findings
from workbench.experiments.program.toggles import TOGGLES

FRONT = (("next", "IteratorGetNext", 0, 0, 0, 30), ("hash", "FloorMod", 0, 30, 30, 80))


def front_trace():
    ops = (*FRONT, ("dense", "MatMul", 0, 80, 80, 100))
    edges = [*chain("next", "hash", "dense"), ("weight", "dense")]
    return step_trace(ops, edges, step_us=100, also=[("weight", "VarHandleOp")])


def test_a_trace_has_findings_of_its_own():
    assert isinstance(findings(front_trace()), Findings)


def test_the_baseline_comes_first_and_variants_without_a_trace_are_left_out():
    variants = (
        variant("stage", 70, 1, trace=waiting_steps()),
        variant("inline executor", 50, 1),
        variant("off", 40, 1, trace=front_trace()),
    )
    found = findings(comparison(variants=variants))
    assert [label for label, _ in found.variants] == ["off", "stage"]
    assert repr(found) == "ComparedFindings(off, stage)"
    assert [each.key for each in found.gone("stage")] == ["nothing_staged"]
    assert found.gone("off") == ()
    table = found.df
    assert table.columns[0] == "variant" and set(table["variant"]) == {"off", "stage"}
    with pytest.raises(KeyError, match=r"no variant 'x' has a trace; expected one of 'off'"):
        found["x"]


def test_a_toggle_that_is_on_is_not_asked_for_again():
    plan = dataclasses.replace(
        plan_stages(towers()),
        edits=(Edit(name="stage nothing", reason="nothing else is predicted to be faster"),),
    )
    variants = (
        variant("off", 40, 1, trace=front_trace()),
        variant("fused V2 + smart stage", 40, 1, trace=front_trace(), plan=plan),
        variant("smart stage", 40, 1, trace=front_trace()),
    )
    found = findings(comparison(variants=variants))
    of = {label: next(iter(each)) for label, each in found.variants}
    assert of["off"].toggle == "smart_stage"
    assert of["fused V2 + smart stage"].toggle is None
    assert of["fused V2 + smart stage"].mend == (
        "SmartStage is on and leaves it so: nothing else is predicted to be faster"
    )
    assert of["smart stage"].mend == (
        "smart_stage is on already, and this is left: Run them a step ahead: SmartStage finds "
        "which may"
    )
    assert of["off"].gain_ns == of["smart stage"].gain_ns == 65 * US


def test_every_toggle_that_is_named_can_be_measured():
    late = (("a", "MatMul", 0, 0, 0, 20), ("b", "Mul", 0, 0, 20, 60), ("c", "Mul", 0, 20, 60, 100))
    traces = [front_trace(), step_trace(late, chain("a", "c"), step_us=100)]
    named = {each.toggle for trace in traces for each in findings(trace)}
    assert named - {None} and named - {None} <= set(TOGGLES)


def test_a_comparison_without_traces_says_what_to_do():
    with pytest.raises(DataError, match="has a trace; compare again with trace_steps"):
        findings(comparison(variants=(variant("off", 40, 1),)))
