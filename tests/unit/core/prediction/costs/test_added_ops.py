"""Ops that TensorFlow's optimizer added: their places in the user's graph, and when they run."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from tests.builders.graphs import graph
from tests.builders.traces import make_trace, timed_trace
from workbench.core.boundary.boundary import Boundary
from workbench.core.boundary.candidates import Candidate, CandidateStage
from workbench.core.boundary.legality import boundary_of
from workbench.core.prediction.costs.added_ops import AddedOp
from workbench.core.prediction.costs.node_costs import Costs
from workbench.core.prediction.predict import node_costs, predict
from workbench.core.trace.meta import UntracedSteps
from workbench.core.what_if.costs.graph_costs import costs_in
from workbench.core.what_if.faster import Faster, faster_costs

# A lookup as the user built it: different ids, their rows, and their sums.
LOOKUP = """
it = IteratorV2
next = IteratorGetNext(it) int64
unique = Unique(next) int64 int64
table = VarHandleOp
rows = ResourceGather(table, unique)
sums = SparseSegmentSum(rows, unique:1)
w = VarHandleOp
train = AssignVariableOp(w, sums)
"""
# TensorFlow reads the table as a whole instead, and sums what it has read.
READ = "lookup/SimplifyEmbeddingLookupStage_ReadVar"
STEP = [
    ("next", "IteratorGetNext", 4.0),
    ("unique", "Unique", 1.0),
    (READ, "ReadVariableOp", 10.0),
    ("sums", "SparseSegmentSum", 2.0),
    ("train", "AssignVariableOp", 3.0),
    ("table", "VarHandleOp", 0.0),
]
EDGES = [(0, 1, 0), (5, 2, 0), (2, 3, 0), (0, 3, 0), (3, 4, 0)]


def boundary(text: str = LOOKUP) -> Boundary:
    return boundary_of(graph(text), targets=["train"])


def costs_of(found: Boundary, *, edges=EDGES) -> Costs:
    # The read runs beside the input: 0.1 of the client, 4 of both, 6 of the read, 1 + 2 + 3.
    untraced = UntracedSteps(steps=60, step_ns=15_100_000, cpu_ns=16_100_000)
    trace = timed_trace(STEP, untraced=untraced, source_cores=0.0)
    return node_costs(dataclasses.replace(trace, edges=make_trace(edges=edges).edges), found.view)


def staged(found: Boundary, *names: str) -> Candidate:
    moved = found.view.mask(map(found.view.number, names))
    stage = CandidateStage(side=found.sides[0], moved=moved, num_threads=1, capacity=1)
    return Candidate(label="a candidate", stages=(stage,))


def test_an_added_read_counts_with_its_variable_and_needs_the_lookup_that_it_replaced():
    found = boundary()
    (read,) = costs_of(found).added
    view = found.view
    assert read.host == view.number("table")
    assert read.reader == view.number("sums")
    assert set(read.lost) == {view.number("rows"), view.number("unique")}
    assert read.ns == pytest.approx(10e6)


def test_without_edges_its_place_is_not_known():
    costs = costs_of(boundary(), edges=[])
    assert costs.added == ()
    assert costs.unmatched_ns > 0


def test_a_stage_that_parts_the_lookup_undoes_the_read():
    found = boundary()
    costs = costs_of(found)
    whole = predict(found, costs, Candidate(label="none", stages=(), removes_own=True))
    beside = predict(found, costs, staged(found, "next"))
    parted = predict(found, costs, staged(found, "next", "unique"))
    # The read of 10 takes place beside the 4 of the input and the 1 of the ids, ...
    assert whole.step_ms == pytest.approx(15.1, rel=0.03)
    assert beside.step_ms == pytest.approx(15.1, rel=0.03)
    # ... and not at all where a stage makes the ids of which the lookup reads the rows.
    assert parted.step_ms == pytest.approx(5.1, rel=0.03)


def test_a_fused_lookup_undoes_the_read():
    found = boundary()
    costs = costs_of(found)
    fused = LOOKUP.replace("rows = ResourceGather(table, unique)\n", "").replace(
        "sums = SparseSegmentSum(rows, unique:1)", "sums = WorkbenchLookUp(table, next)"
    )
    there = boundary(fused)
    other = costs_in(costs, found.view, there.view)
    assert other.added == ()


def test_nodes_that_no_step_runs_cost_nothing_in_another_graph():
    found = boundary()
    costs = costs_of(found)
    there = boundary(LOOKUP + "left = Neg(sums)\n").view
    step = there.ancestors(there.mask([there.number("next")]))
    other = costs_in(costs, found.view, there, step)
    assert other.span_ns[there.number("sums")] == 0
    assert other.added == ()


def test_an_added_op_is_as_fast_as_the_work_that_it_is_for():
    found = boundary()
    faster = faster_costs(costs_of(found), found.view, (Faster(work="sums", times=2),))
    assert [each.ns for each in faster.added] == [pytest.approx(5e6)]


def test_an_op_moves_with_all_its_nodes_or_not_at_all():
    op = AddedOp(name="read", host=0, reader=1, lost=(2,), ns=1.0)
    assert op.moved(np.array([3, 2, 1])) == AddedOp(
        name="read", host=3, reader=2, lost=(1,), ns=1.0
    )
    assert op.moved(np.array([3, 2, -1])) is None
