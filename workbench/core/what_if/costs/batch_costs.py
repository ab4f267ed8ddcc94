"""Costs at one size of a batch → costs at another one."""

from __future__ import annotations

import dataclasses

import numpy as np

from workbench.core.graph.graph_view import GraphView
from workbench.core.prediction.costs.node_costs import Costs

# Of each run of an op: checking its inputs and allocating its outputs take this long, whatever
# their size.
_FIXED_NS = 2_000.0
# They write a variable as a whole.
_WHOLE = ("Apply", "ResourceApply", "Assign", "WorkbenchApply", "WorkbenchResourceApply")


def costs_at_batch(costs: Costs, view: GraphView, ratio: float) -> Costs:
    """What the nodes cost with batches of another size.

    All that follows from the input is taken to grow with the batch beyond a fixed part of each
    run, and what delivers it to take as long for each sample; optimizers that write a whole
    variable, and what does not follow from the input, take as long as before.

    Args:
      costs: of the nodes.
      view: the graph.
      ratio: size of the new batches against that of the old ones.
    """
    if ratio == 1.0:
        return costs
    grows = view.reached(view.mask([*costs.inputs, *view.arguments]))
    grows &= ~np.array([op.startswith(_WHOLE) for op in view.ops], bool)
    runs = costs.runs if costs.runs is not None else (costs.span_ns > 0).astype(float)
    fixed = np.minimum(costs.span_ns, (_FIXED_NS + costs.dispatch.op_ns) * runs)
    span_ns = np.where(grows, fixed + (costs.span_ns - fixed) * ratio, costs.span_ns)
    inputs = {node: each.scaled(ratio) for node, each in costs.inputs.items()}
    added = tuple(each.longer(ratio) if grows[each.host] else each for each in costs.added)
    return dataclasses.replace(costs, span_ns=span_ns, inputs=inputs, added=added)
