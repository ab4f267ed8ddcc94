"""Costs of a traced graph, in another one that the same program builds."""

from __future__ import annotations

import dataclasses

import numpy as np

from tests.builders.graphs import graph
from workbench.core.graph.graph_view import GraphView
from workbench.core.prediction.node_costs import Costs
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
    added = {fused.number("grouped"): 100.0, fused.number("update"): 200.0}
    found = spans(costs_in(costs_of(stock), stock, fused, added, {}), fused)
    assert found["grouped"] == 110 and found["update"] == 210
    assert {name: found[name] for name in ("ids", "table", "loss", "moment", "print", "train")} == {
        name: own[name] for name in ("ids", "table", "loss", "moment", "print", "train")
    }
    # They only hand on what a fused op did.
    assert found["lookup"] == found["moved"] == 0


def test_what_leads_nowhere_any_more_does_not_run():
    stock, fused = graph(STOCK), graph(FUSED)
    found = costs_in(costs_of(stock), stock, fused, {}, {})
    assert found.runs is not None
    decay = fused.number("decay")
    assert (found.span_ns[decay], found.runs[decay]) == (0, 0)
    same = costs_in(costs_of(stock), stock, graph(STOCK), {}, {})
    assert (same.span_ns == costs_of(stock).span_ns).all()


def test_nodes_that_are_like_a_traced_one_take_some_times_as_long():
    stock, fused = graph(STOCK), graph(FUSED)
    costs = costs_of(stock)
    likened = {fused.number("grouped"): ("print", 3.0), fused.number("update"): ("nothing", 3.0)}
    found = spans(costs_in(costs, stock, fused, {}, likened), fused)
    # What is between two ops is counted once for each.
    printed = max(0.0, spans(costs, stock)["print"] - costs.between_ns)
    assert found["grouped"] == 3 * printed + costs.between_ns
    assert found["update"] == 0


def test_a_product_that_an_activation_does_as_well_counts_with_it():
    stock = graph(
        "first = Sum float32\nx = Select(first) float32\nw = VariableV2 float32_ref\n"
        "product = MatMul(x, w) float32\nrelu = Relu(product) float32\ntrain = NoOp(^relu)"
    )
    fused = graph(
        "other = WorkbenchGroupedLookUp float32\nx = Identity(other) float32\n"
        "w = VariableV2 float32_ref\nrelu = WorkbenchMatMul(x, w) float32\ntrain = NoOp(^relu)"
    )
    costs = dataclasses.replace(
        costs_of(stock), span_ns=np.array([900.0, 900.0, 10.0, 110.0, 60.0, 10.0]), between_ns=10.0
    )
    likened = {fused.number("relu"): ("relu", 0.5)}
    found = spans(costs_in(costs, stock, fused, {}, likened), fused)
    # Half of the product's 100 and the activation's 50, and what stands between two ops. What feeds
    # the product is there, if from another op.
    assert found["relu"] == 85


def test_what_is_likened_splits_its_work_as_the_traced_op_does():
    stock, fused = graph(STOCK), graph(FUSED)
    splits = np.array([name == "loss" for name in stock.names])
    costs = dataclasses.replace(costs_of(stock), splits=splits, split_cores=2.0)
    likened = {fused.number("grouped"): ("loss", 0.5), fused.number("update"): ("decay", 1.0)}
    found = costs_in(costs, stock, fused, {}, likened)
    assert found.splits is not None
    split = {name for name, each in zip(fused.names, found.splits, strict=True) if each}
    assert split == {"grouped", "loss"}
