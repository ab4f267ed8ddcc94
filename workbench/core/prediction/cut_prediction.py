"""A cut and costs → the step time to expect of the plan that takes it."""

from __future__ import annotations

from collections.abc import Sequence

from workbench.core.boundary.boundary import Boundary
from workbench.core.boundary.candidates import cut_of
from workbench.core.graph.graph_view import Bools
from workbench.core.options import SmartStageOptions
from workbench.core.prediction.costs.node_costs import Costs
from workbench.core.prediction.predict import predict
from workbench.core.prediction.prediction import Prediction


def predict_cut(
    boundary: Boundary,
    costs: Costs,
    moved: Sequence[Bools],
    options: SmartStageOptions | None = None,
    *,
    cores: int | None = None,
) -> Prediction:
    """The step time to expect when exactly these nodes run ahead, in one stage for each side.

    Args:
      boundary: of the graph.
      costs: of its nodes.
      moved: one set of nodes for each side, parts of `side.widest`; sides where nothing moves keep
        the user's own stage. Stale lookups count as if they stayed.
      options: threads and capacity; None means the defaults.
      cores: to predict for; None takes those of the costs.
    """
    exact = [
        boundary.exact_part(side, nodes) for side, nodes in zip(boundary.sides, moved, strict=True)
    ]
    cut = cut_of(boundary, exact, options or SmartStageOptions())
    return predict(boundary, costs, cut, cores=cores)
