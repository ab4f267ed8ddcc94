"""Fitted costs of fused ops, and the nodes of a graph that they are asked for."""

from __future__ import annotations

import dataclasses
import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.builders.graphs import graph
from workbench.core.analysis.embedding_lens.id_statistics import IdStatistics
from workbench.core.graph.graph_view import GraphView
from workbench.core.what_if.costs.fused_costs import FusedCosts, LookupLoad, Sample, fitted
from workbench.core.what_if.costs.fused_nodes import fused_ns

SMALL = 4.0 * 1000 * 16
LOADS = [
    LookupLoad(ids=ids, unique=unique, dim=dim, table_bytes=size)
    for ids, unique in ((100, 80), (1000, 300), (4000, 3500), (4000, 50))
    for dim in (8, 64)
    for size in (SMALL, 2.0**28)
]


def test_costs_that_follow_the_terms_are_found_again():
    def takes(load: LookupLoad) -> float:
        return 2000 + 5 * load.ids + 0.5 * load.ids * load.dim

    costs = fitted(
        [Sample(op="WorkbenchLocalLookUp", loads=(load,), ns=takes(load)) for load in LOADS]
    )
    assert costs.error == pytest.approx(0, abs=1e-6)
    other = LookupLoad(ids=2000, unique=10, dim=32, table_bytes=SMALL)
    assert costs.ns("WorkbenchLocalLookUp", [other]) == pytest.approx(takes(other), rel=1e-6)
    # what differs is how the table is stored
    assert costs.ns("WorkbenchResourceLocalLookUp", [other]) == pytest.approx(
        takes(other), rel=1e-6
    )
    assert costs.ns("WorkbenchPreLookUp", [other]) is None


def test_each_lookup_of_an_op_costs_something_beside_what_the_op_does():
    def takes(loads: tuple[LookupLoad, ...]) -> float:
        return 2000 + 3000 * len(loads) + 5 * sum(load.ids for load in loads)

    asked = [(load,) * count for load in LOADS for count in (1, 4, 20)]
    op = "WorkbenchGroupedLookUp"
    costs = fitted([Sample(op=op, loads=loads, ns=takes(loads)) for loads in asked])
    other = tuple(LOADS[:3])
    assert costs.ns(op, other) == pytest.approx(takes(other), rel=1e-6)


def test_an_op_of_all_rows_takes_as_long_as_its_table_is_large():
    def takes(load: LookupLoad) -> float:
        return 2000 + 5 * load.ids + 0.1 * load.table_bytes

    op = "WorkbenchResourceGroupedApplyAll"
    costs = fitted([Sample(op=op, loads=(load,), ns=takes(load)) for load in LOADS])
    other = LookupLoad(ids=10, unique=10, dim=32, table_bytes=2.0**25)
    assert costs.ns(op, [other]) == pytest.approx(takes(other), rel=1e-6)


@given(st.lists(st.floats(10, 1e6), min_size=len(LOADS), max_size=len(LOADS)))
def test_no_op_gets_cheaper_with_more_to_do(times: list[float]):
    samples = [Sample(op="Op", loads=(load,), ns=ns) for load, ns in zip(LOADS, times, strict=True)]
    weights = fitted(samples).weights["Op"]
    assert min(weights) >= 0
    assert np.isfinite(weights).all()


def test_costs_are_kept_as_json():
    costs = fitted([Sample(op="Op", loads=(load,), ns=load.ids) for load in LOADS])
    assert FusedCosts.from_json(json.loads(json.dumps(costs.to_json()))) == costs


FUSED = """
table = VariableV2 float32_ref
ids = Placeholder int64
c/fused_embedding_lookup/pre = WorkbenchPreLookUp(ids)
c/fused_embedding_lookup = WorkbenchLocalLookUp(table, c/fused_embedding_lookup/pre) float32
gradients/grad = WorkbenchLocalLookUpGrad(c/fused_embedding_lookup/pre)
update = WorkbenchRowsApply(table, gradients/grad)
"""


def ids(batch: float, unique_share: float | None = 0.5) -> IdStatistics:
    return IdStatistics(
        batches=2,
        per_batch=batch,
        per_batch_interval=None,
        unique_share=unique_share,
        seen=1,
        top_ids=1,
        top_share=None,
    )


COSTS = FusedCosts(
    weights={
        "WorkbenchPreLookUp": (0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0),
        "WorkbenchLocalLookUp": (0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0),
        "WorkbenchLocalLookUpGrad": (3.0, 4.0, 0.0, 0.0, 0.0, 0.0, 0.0),
        "WorkbenchRowsApply": (0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0),
    },
    error=0.0,
)


def fused_graph() -> GraphView:
    view = graph(FUSED)
    return dataclasses.replace(view, shapes={view.number("table"): ((1000, 16),)})


def test_each_op_of_a_fused_lookup_costs_what_its_table_is_asked_for():
    view = fused_graph()
    found, unknown, unmeasured = fused_ns(view, COSTS, {"table": ids(100)})
    assert unknown == unmeasured == set()
    assert {view.names[node].rpartition("/")[2]: ns for node, ns in found.items()} == {
        "pre": 100.0,
        "fused_embedding_lookup": 1600.0,
        "grad": 7.0,
        "update": 50.0 * 16,
    }


def test_a_gradient_that_reads_the_ids_of_a_lookup_and_nothing_else_of_it_is_of_its_table():
    apart = FUSED.replace("Grad(c/fused_embedding_lookup/pre)", "Grad(ids)").replace(
        "LookUp(table, c/fused_embedding_lookup/pre)", "LookUp(table, ids)"
    )
    apart = apart.replace("update = WorkbenchRowsApply(table, gradients/grad)\n", "")
    view = graph(apart)
    view = dataclasses.replace(view, shapes={view.number("table"): ((1000, 16),)})
    found, unknown, _ = fused_ns(view, COSTS, {"table": ids(100)})
    assert unknown == set() and found[view.number("gradients/grad")] == 7.0


def test_what_hands_a_result_on_costs_nothing():
    plain = fused_ns(fused_graph(), COSTS, {"table": ids(100)})
    lookup = next(line.split(" = ")[0] for line in FUSED.splitlines() if "LocalLookUp(" in line)
    view = graph(f"{FUSED}on = WorkbenchHandOn({lookup}) float32\n")
    view = dataclasses.replace(view, shapes={view.number("table"): ((1000, 16),)})
    assert fused_ns(view, COSTS, {"table": ids(100)}) == plain


@pytest.mark.parametrize("known", [{}, {"table": ids(0.0, None)}])
def test_a_table_whose_ids_are_not_known_is_named(known: dict[str, IdStatistics]):
    view = fused_graph()
    assert fused_ns(view, COSTS, known) == ({}, {"table"}, set())


def test_an_op_whose_cost_was_not_measured_is_named():
    weights = {op: each for op, each in COSTS.weights.items() if op != "WorkbenchLocalLookUp"}
    _, unknown, unmeasured = fused_ns(
        fused_graph(), FusedCosts(weights=weights, error=0.0), {"table": ids(100)}
    )
    assert (unknown, unmeasured) == (set(), {"WorkbenchLocalLookUp"})
