"""Findings are weighed against the visible wait, and ranked."""

from __future__ import annotations

import pandas as pd
import pytest

from tests.builders.step_traces import US, chain, step_trace, waiting_steps
from tests.builders.traces import unstaged_trace
from workbench.core.analysis.findings.find import find
from workbench.core.trace.meta import UntracedSteps
from workbench.errors import TraceError


def test_a_cause_explains_four_fifths_of_the_wait_and_comes_first():
    findings = find(waiting_steps())
    first = next(iter(findings))
    assert first.key == "one_thread_stage" and first.is_cause and first.wait_share == 1.0
    assert findings.wait_ns == 40 * US and findings.not_explained_ns == 0
    assert len(findings) == len(findings.findings)


# 30 µs wait for the batch, 20 behind an op that could run later: 0.6 and 0.4 of the wait.
TWO = (
    ("next", "IteratorGetNext", 0, 0, 0, 30),
    ("dense", "MatMul", 0, 30, 30, 40),
    ("other", "Mul", 0, 0, 40, 60),
    ("late", "MatMul", 0, 40, 60, 100),
)


def test_two_halves_of_a_wait_are_no_cause():
    fed = [*chain("next", "dense", "late"), ("weight", "dense")]
    findings = find(step_trace(TWO, fed, step_us=100, also=[("weight", "VarHandleOp")]))
    assert [(each.key, round(each.wait_share, 3), each.is_cause) for each in findings] == [
        ("nothing_staged", 0.6, False),
        ("order_of_ops", 0.4, False),
    ]


def test_what_no_finding_explains_is_said():
    # 30 of 100 µs pass before an op that is ready, on a thread that runs nothing.
    ops = (("a", "MatMul", 0, 0, 0, 40), ("b", "MatMul", 0, 40, 70, 100))
    findings = find(step_trace(ops, chain("a", "b"), step_us=100))
    assert len(findings) == 0
    assert findings.wait_ns == findings.not_explained_ns == 30 * US
    assert repr(findings) == "Findings(none)"


def test_a_little_wait_has_no_cause():
    ops = (("a", "IteratorGetNext", 0, 0, 0, 4), ("b", "MatMul", 0, 4, 4, 100))
    fed = [("a", "b"), ("weight", "b")]
    findings = find(step_trace(ops, fed, step_us=100, also=[("weight", "VarHandleOp")]))
    assert [(each.wait_share, each.is_cause) for each in findings] == [(1.0, False)]


LONE = (("mean", "SparseSegmentMean", 0, 0, 0, 80), ("dense", "MatMul", 0, 80, 80, 100))


def test_the_cause_of_a_small_wait_comes_behind_what_costs_more():
    trace = step_trace(LONE, chain("mean", "dense"), step_us=100, steps=3, pause_us=30)
    first, second = find(trace)
    assert (first.key, second.key) == ("lone_op", "client_time") and second.is_cause


@pytest.mark.parametrize(("lone_us", "first"), [(80, "lone_op"), (9, "too_few_cores")])
def test_other_programs_come_behind_a_fault_of_the_step(lone_us: int, first: str):
    ops = (
        ("mean", "SparseSegmentMean", 0, 0, 0, lone_us),
        ("dense", "MatMul", 0, lone_us, lone_us, 100),
    )
    slow = UntracedSteps(steps=10, step_ns=100 * US, cpu_ns=10 * US, run_ns=100 * US)
    findings = find(step_trace(ops, chain("mean", "dense"), step_us=100, untraced=slow))
    assert {finding.key for finding in findings} == {"lone_op", "too_few_cores"}
    assert next(iter(findings)).key == first


def test_lines_of_the_users_code_belong_to_its_nodes():
    trace = step_trace(TWO, chain("next", "dense", "late"), step_us=100)
    trace.nodes["source"] = pd.array(["a.py:1 read", "b.py:2 f", "b.py:3 g", ""], dtype="str")
    sources = {each.key: each.sources for each in find(trace)}
    assert sources["order_of_ops"] == ("b.py:3 g",)


def test_its_table_has_a_row_for_each():
    table = find(waiting_steps()).df
    assert table["key"].tolist()[0] == "one_thread_stage" and table["cost_ns"][0] == 40 * US
    assert {"title", "evidence", "gain_ns", "mend", "toggle", "nodes"} <= set(table.columns)


def test_a_trace_without_edges_or_steps_is_refused():
    with pytest.raises(TraceError, match="does not know which op feeds which"):
        find(unstaged_trace())
    with pytest.raises(TraceError, match="has no step"):
        find(unstaged_trace(0))
