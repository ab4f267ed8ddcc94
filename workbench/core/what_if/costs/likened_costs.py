"""Fused layers, products and columns of text → the nodes that tell what they take.

They go through tensors of which only the traced steps know how many rows they have. The stock op
that gives the same result goes through as many, and leaves a node of its name.
"""

from __future__ import annotations

from workbench.core.graph.graph_view import GraphView

NORM, NORM_GRADIENT = "WorkbenchBatchNorm", "WorkbenchBatchNormGrad"
DOTS, DOTS_GRADIENT = "WorkbenchDotInteraction", "WorkbenchDotInteractionGrad"
FM, FM_GRADIENT = "WorkbenchFmInteraction", "WorkbenchFmInteractionGrad"
# They have the name of the stock one.
MATMUL, LINES = "WorkbenchMatMul", "WorkbenchDecodeCsv"
ADAM, OF_RESOURCES = "WorkbenchApplyAdam", "WorkbenchResourceApplyAdam"
_SAME_NAME = (MATMUL, LINES, ADAM, OF_RESOURCES)
# It stands for as many stock ones as it has inputs.
COLUMNS = "WorkbenchHashColumns"
LIKENED = (NORM, NORM_GRADIENT, DOTS, DOTS_GRADIENT, FM, FM_GRADIENT, COLUMNS, *_SAME_NAME)
_FORWARD = {DOTS_GRADIENT: DOTS, FM_GRADIENT: FM}
# The input of a normalization's gradient that the normalization gives, and that of an
# interaction's gradient that the interaction reads too.
_MEAN, _X = 3, 1


def like_results(view: GraphView) -> dict[int, str]:
    """By number of each fused op, the name of the node that gave the stock ops' result."""
    results = {
        source: view.names[target]
        for source, output, target, _ in view.data.tolist()
        if view.ops[source] in (NORM, DOTS, FM, COLUMNS) and output == 0
    }
    of_x = {(view.ops[node], view.inputs(node)[0]): node for node in results}
    found = dict(results)
    for node, op in enumerate(view.ops):
        if op in _SAME_NAME:
            found[node] = view.names[node]
            continue
        if op == NORM_GRADIENT:
            forward = view.inputs(node)[_MEAN][0]
        elif op in _FORWARD:
            forward = of_x.get((_FORWARD[op], view.inputs(node)[_X]), -1)
        else:
            continue
        if forward in results:
            found[node] = results[forward]
    return found


def stock_ops(view: GraphView, node: int) -> int:
    """Of how many ops like that node a fused one does the work."""
    return len(view.inputs(node)) if view.ops[node] == COLUMNS else 1
