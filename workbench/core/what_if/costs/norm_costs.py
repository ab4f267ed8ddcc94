"""A graph with fused batch normalizations → the nodes whose time tells what they take.

They go through a matrix of which only the traced steps know how many rows it has. The stock op that
gives the normalized matrix goes through it as well, and leaves a node of its name.
"""

from __future__ import annotations

from workbench.core.graph.graph_view import GraphView

NORM, GRADIENT = "WorkbenchBatchNorm", "WorkbenchBatchNormGrad"
# The input of the gradient that its normalization gives.
_MEAN = 3


def like_results(view: GraphView) -> dict[int, str]:
    """By number of each fused op, the name of the node that gave the normalized matrix."""
    results = {
        source: view.names[target]
        for source, output, target, _ in view.data.tolist()
        if view.ops[source] == NORM and output == 0
    }
    gradients = {
        node: results[view.inputs(node)[_MEAN][0]]
        for node, op in enumerate(view.ops)
        if op == GRADIENT and view.inputs(node)[_MEAN][0] in results
    }
    return results | gradients
