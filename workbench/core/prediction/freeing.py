"""What it would give if some blockers were none: the widest cut then, and its step time."""

from __future__ import annotations

from collections.abc import Iterable

from workbench.core.boundary.boundary import Boundary
from workbench.core.options import SmartStageOptions
from workbench.core.prediction.costs.node_costs import Costs
from workbench.core.prediction.cut_prediction import predict_cut
from workbench.core.prediction.prediction import Prediction


def predict_freed(
    boundary: Boundary,
    costs: Costs,
    freed: Iterable[int],
    options: SmartStageOptions | None = None,
) -> Prediction:
    """The step time to expect when all runs ahead that may, and what only these blockers hold back.

    Args:
      boundary: of the graph.
      costs: of its nodes.
      freed: numbers of blockers; none predicts the widest cut as it is.
      options: threads and capacity; None means the defaults.
    """
    view = boundary.view
    gone = set(freed)
    held = boundary.held.reached(view.mask(node for node in boundary.blockers if node not in gone))
    more = boundary.refused & boundary.step & ~held if gone else held & False
    moved = []
    for side in boundary.sides:
        below = view.reached(view.mask(side.start.nodes), within=~held)
        moved.append(side.widest | (below & more))
    return predict_cut(boundary, costs, moved, options)
