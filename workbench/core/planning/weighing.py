"""Weighing: which of a side's candidates is predicted to be best."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from workbench.core.boundary.boundary import Boundary, Side
from workbench.core.boundary.candidates import (
    OWN_STAGE,
    UNSTAGED,
    WIDEST,
    Candidate,
    candidates_of,
)
from workbench.core.options import SmartStageOptions
from workbench.core.prediction.costs.node_costs import Costs
from workbench.core.prediction.predict import predict
from workbench.core.prediction.prediction import Prediction

# A rewrite must be predicted to gain this much over what the user has: less drowns in noise.
_WORTH = 0.98


def weigh(
    boundary: Boundary, side: Side, options: SmartStageOptions, costs: Costs, *, cores: int
) -> tuple[Candidate, list[Prediction]]:
    """The best candidate for one side, and what those worth showing would give.

    Args:
      boundary: what may run ahead.
      side: of which one candidate is chosen.
      options: what is wished.
      costs: of the graph's nodes.
      cores: to predict for.
    """
    candidates = candidates_of(boundary, side, options, cores=cores)
    predictions = [predict(boundary, costs, candidate, cores=cores) for candidate in candidates]
    # The first of these is what the user has: nothing is rewritten unless something beats it.
    possible = [
        i
        for i, candidate in enumerate(candidates)
        if not candidate.removes_own or not side.start.is_stage
    ]
    best = min(possible, key=lambda i: predictions[i].step_ms)
    # What is simpler to understand wins where the gain over it would drown in noise.
    for simpler in (possible[0], *_best_whole(candidates, predictions, possible)):
        if predictions[best].step_ms > _WORTH * predictions[simpler].step_ms:
            best = simpler
            break
    shown = [
        dataclasses.replace(each, chosen=i == best)
        for i, each in enumerate(predictions)
        if i == best or _is_shown(candidates[i], options)
    ]
    return candidates[best], shown


def _best_whole(
    candidates: Sequence[Candidate], predictions: Sequence[Prediction], possible: Sequence[int]
) -> list[int]:
    """The fastest of the candidates that take all that may move, if there is one."""
    whole = [i for i in possible if candidates[i].label.startswith(WIDEST)]
    return [min(whole, key=lambda i: predictions[i].step_ms)] if whole else []


def _is_shown(candidate: Candidate, options: SmartStageOptions) -> bool:
    """Whether a table names it besides the chosen one: un-staged, the user's stage, the widest."""
    threads = options.num_threads or 1
    return candidate.label in (UNSTAGED, OWN_STAGE) or (
        candidate.label.startswith(WIDEST) and candidate.stages[-1].num_threads == threads
    )
