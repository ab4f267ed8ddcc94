"""Costs of a traced graph, in another one that the same program builds."""

from __future__ import annotations

import dataclasses

import numpy as np

from tests.builders.graphs import graph
from workbench.core.graph.graph_view import GraphView
from workbench.core.prediction.costs.node_costs import Costs
from workbench.core.what_if.costs.graph_costs import costs_in

STOCK = """
ids = Placeholder int64
table = VariableV2 float32_ref
lookup = GatherV2(table, ids) float32
loss = Sum(lookup) float32
moment = VariableV2 float32_ref
decay = Mul(moment) float32
moved = AssignSub(table, decay) float32_ref
print = PrintV2(loss)
train = NoOp(^moved)
"""
# A fused op does the lookup, and one the update; their names are left, and so is the decay.
FUSED = """
ids = Placeholder int64
table = VariableV2 float32_ref
grouped = WorkbenchGroupedLookUp(table, ids) float32
lookup = Identity(grouped) float32
loss = Sum(lookup) float32
moment = VariableV2 float32_ref
decay = Mul(moment) float32
update = WorkbenchGroupedApplyAll(table, moment)
moved = NoOp(^update)
print = PrintV2(loss)
train = NoOp(^moved)
"""


def costs_of(view: GraphView) -> Costs:
    """Each node takes as many ns as its number and one."""
    return Costs(
        span_ns=np.arange(1.0, len(view) + 1),
        runs=np.ones(len(view)),
        inputs={},
        between_ns=10.0,
    )


def spans(costs: Costs, view: GraphView) -> dict[str, float]:
    return dict(zip(view.names, costs.span_ns.tolist(), strict=True))


def test_nodes_of_the_same_name_and_op_cost_the_same():
    stock, fused = graph(STOCK), graph(FUSED)
    own = spans(costs_of(stock), stock)
    found = spans(costs_in(costs_of(stock), stock, fused), fused)
    assert {name: found[name] for name in ("ids", "table", "loss", "moment", "print", "train")} == {
        name: own[name] for name in ("ids", "table", "loss", "moment", "print", "train")
    }
    # Of fused ops, and of those that only hand on what one did, nothing is known.
    assert {found[name] for name in ("grouped", "update", "lookup", "moved")} == {0.0}


def test_what_leads_nowhere_any_more_does_not_run():
    stock, fused = graph(STOCK), graph(FUSED)
    found = costs_in(costs_of(stock), stock, fused)
    assert found.runs is not None
    decay = fused.number("decay")
    assert (found.span_ns[decay], found.runs[decay]) == (0, 0)
    same = costs_in(costs_of(stock), stock, graph(STOCK))
    assert (same.span_ns == costs_of(stock).span_ns).all()


def test_what_splits_its_work_does_so_in_another_graph():
    stock, fused = graph(STOCK), graph(FUSED)
    splits = np.array([name in ("loss", "lookup") for name in stock.names])
    costs = dataclasses.replace(costs_of(stock), splits=splits, split_cores=2.0)
    found = costs_in(costs, stock, fused)
    assert found.splits is not None
    assert {name for name, each in zip(fused.names, found.splits, strict=True) if each} == {"loss"}
