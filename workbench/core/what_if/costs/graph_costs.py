"""Costs of one graph → costs of another one that the same program builds."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

import numpy as np

from workbench.core.graph.graph_view import GraphView
from workbench.core.prediction.node_costs import Costs


def costs_in(
    costs: Costs, traced: GraphView, target: GraphView, added_ns: Mapping[int, float]
) -> Costs:
    """What the nodes of another graph cost.

    A node costs what the node of the same name costs in the traced graph, one that the traced
    graph lacks what is estimated of it.

    Args:
      costs: of the traced graph.
      traced: that graph.
      target: the other one.
      added_ns: time of nodes of the other graph that the traced one lacks; of the rest nothing.
    """
    if target is traced:
        return costs
    place = np.array([traced.index.get(name, -1) for name in target.names], np.int64)
    known = place >= 0
    span_ns = np.where(known, costs.span_ns[place], 0.0)
    runs = np.where(known, costs.runs[place], 0.0) if costs.runs is not None else None
    for node, ns in added_ns.items():
        span_ns[node] = ns + costs.between_ns
        if runs is not None:
            runs[node] = 1.0
    splits = np.where(known, costs.splits[place], False) if costs.splits is not None else None
    lanes = np.where(known, costs.lanes[place], 1.0) if costs.lanes is not None else None
    inputs = {}
    for node, each in costs.inputs.items():
        name = traced.names[node]
        if name in target.index:
            inputs[target.index[name]] = each
    return dataclasses.replace(
        costs, span_ns=span_ns, runs=runs, splits=splits, lanes=lanes, inputs=inputs
    )
