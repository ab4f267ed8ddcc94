"""Reads labels and scores of variants that train another way, each in a session of its own.

The measured sessions fetch neither: what is read here costs their blocks nothing.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from workbench.experiments.measurement.auc import Auc, auc_of
from workbench.experiments.measurement.check_sessions import (
    close_session,
    open_session,
    run_steps,
)
from workbench.experiments.measurement.equivalence import Equivalence
from workbench.experiments.program.variant import Variant
from workbench.experiments.worker.process import Worker
from workbench.experiments.worker.wire.messages import SCORES, Steps

_SESSION = "scored"


def with_auc(
    checks: Sequence[Equivalence],
    variants: Sequence[Variant],
    workers: Sequence[Worker],
    seconds: float,
) -> list[Equivalence]:
    """The checks, where those of variants that train another way have AUC beside the losses.

    Each training runs again from its seed, for as many steps as were compared. Its AUC is over the
    later half of them.

    Args:
      checks: of `compare_losses`, one for each variant but the first.
      variants, workers: the baseline first.
      seconds: for running the steps; fewer are run where they are too few.
    """
    places = [0, *(n for n, check in enumerate(checks, 1) if check.asked_otherwise and check.steps)]
    if len(places) == 1:
        return list(checks)
    chosen = [workers[place] for place in places]
    for place in places:
        single = variants[place].with_threads(1)
        open_session(workers[place], _SESSION, "build", single, scored=True)
    scores = [worker.receive().has_scores or worker.failure is not None for worker in chosen]
    areas: dict[int, Auc] = {}
    if all(scores):
        steps = max(checks[place - 1].steps for place in places[1:])
        nothing_more = [0] * len(chosen)
        ran = run_steps(chosen, [_SESSION] * len(chosen), steps, nothing_more, SCORES, seconds)
        areas = dict(zip(places, map(_later_half, ran), strict=True))
    close_session(chosen, _SESSION)
    return [
        dataclasses.replace(check, auc=areas[place], baseline_auc=areas[0])
        if place in areas
        else check
        for place, check in enumerate(checks, 1)
    ]


def _later_half(ran: Steps) -> Auc:
    """The area over the later half of some steps, which the weights that begin say less of."""
    half = (len(ran.values) + 1) // 2
    return auc_of(ran.scored[-half:] if half else ())
