"""Costs of one graph → costs of another one that the same program builds."""

from __future__ import annotations

import dataclasses

import numpy as np

from workbench.core.graph.graph_view import Bools, GraphView
from workbench.core.prediction.costs.node_costs import Costs


def costs_in(
    costs: Costs, traced: GraphView, target: GraphView, step: Bools | None = None
) -> Costs:
    """What the nodes of another graph cost.

    A node costs what the node of the same name and op costs in the traced graph. Of one that the
    traced graph lacks nothing is known.

    Args:
      costs: of the traced graph.
      traced: that graph.
      target: the other one.
      step: bool [nodes], which nodes of the other graph a step may run; None: all. What puts
        ahead of its takes runs, too.
    """
    if target is traced:
        return costs
    found = (traced.index.get(name, -1) for name in target.names)
    same = (
        at if at >= 0 and traced.ops[at] == op else -1
        for at, op in zip(found, target.ops, strict=True)
    )
    place = np.fromiter(same, np.int64, len(target.names))
    runs_there = _runs(traced, target)
    if step is not None:
        runs_there &= _with_stages(target, step)
    known = (place >= 0) & runs_there
    span_ns = np.where(known, costs.span_ns[place], 0.0)
    runs = np.where(known, costs.runs[place], 0.0) if costs.runs is not None else None
    splits = None
    if costs.splits is not None:
        splits = np.where(known, costs.splits[place], False)
    lanes = np.where(known, costs.lanes[place], 1.0) if costs.lanes is not None else None
    # From the traced graph to this one.
    there = np.full(len(traced), -1, np.int64)
    there[place[known]] = np.flatnonzero(known)
    moved = [op.moved(there) for op in costs.added]
    inputs = {}
    for node, each in costs.inputs.items():
        name = traced.names[node]
        at = target.index.get(name, -1)
        if at >= 0 and known[at]:
            inputs[at] = each
    return dataclasses.replace(
        costs,
        span_ns=span_ns,
        runs=runs,
        splits=splits,
        lanes=lanes,
        inputs=inputs,
        added=tuple(op for op in moved if op is not None),
    )


def _with_stages(view: GraphView, step: Bools) -> Bools:
    """The nodes of a step, and those of the stages that it takes from."""
    while True:
        puts = view.mask(put for put, take in view.puts_to_takes if step[take])
        if step[puts].all():
            return step
        step = step | view.ancestors(puts)


def _runs(traced: GraphView, target: GraphView) -> Bools:
    """Nodes that lead to an end of a graph; what fed another before and feeds none is dead."""
    fed = {traced.names[node] for node in np.flatnonzero(_feeds(traced)).tolist()}
    feeds = _feeds(target)
    ends = [not (feeds[node] or name in fed) for node, name in enumerate(target.names)]
    return target.ancestors(np.array(ends, bool))


def _feeds(view: GraphView) -> Bools:
    """Which nodes have a consumer."""
    return view.mask(np.concatenate([view.data[:, 0], view.control[:, 0]]))
