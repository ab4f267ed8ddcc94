"""A setting of a session → the scenario to predict, beside the baseline that was traced."""

from __future__ import annotations

import dataclasses

from workbench.core.optimizations import Optimizations
from workbench.core.what_if.predictions import Withheld
from workbench.core.what_if.scenario import Scenario, scenario_of
from workbench.experiments.session.own_toggles import other_choices

_INTRA_OP = "what ops take with another number of intra-op threads is not known before it is run"
_INTER_OP = (
    "the baseline sets its inter-op threads and this setting leaves them to the program, whose own "
    "number is not known; give one"
)
_BATCH = "how many rows a batch of the program has is not known, so two sizes cannot be compared"


def traced_scenario(baseline: Optimizations) -> Scenario:
    """The scenario of the baseline itself: its threads and its batch are those of the trace."""
    return Scenario(optimizations=_toggles(baseline))


def scenario_beside(
    baseline: Optimizations, optimizations: Optimizations, own_batch: int | None
) -> Scenario | Withheld:
    """The scenario of a setting, or why nothing is predicted of it.

    Args:
      baseline: what was traced.
      optimizations: the setting.
      own_batch: rows of a batch where a setting does not say; None where that is not known.
    """
    others = other_choices(optimizations, baseline)
    if others:
        names = " + ".join(each.label for each in others)
        return _withheld(optimizations, f"what {names} gives is measured, and no model predicts it")
    if optimizations.intra_op_threads != baseline.intra_op_threads:
        return _withheld(optimizations, _INTRA_OP)
    inter_op = optimizations.inter_op_threads
    if inter_op is None and baseline.inter_op_threads is not None:
        return _withheld(optimizations, _INTER_OP)
    batch, traced_batch = optimizations.batch_size, baseline.batch_size
    if batch != traced_batch:
        batch, traced_batch = batch or own_batch, traced_batch or own_batch
        if not batch or not traced_batch:
            return _withheld(optimizations, _BATCH)
    same_threads = inter_op == baseline.inter_op_threads
    return scenario_of(
        dataclasses.replace(
            optimizations,
            inter_op_threads=None if same_threads else inter_op,
            batch_size=None if batch == traced_batch else batch,
        ),
        traced_batch,
    )


def like_baseline(baseline: Optimizations, toggles: Optimizations) -> Optimizations:
    """These toggles with the threads, the batch and the choices of the baseline."""
    return dataclasses.replace(
        toggles,
        inter_op_threads=baseline.inter_op_threads,
        intra_op_threads=baseline.intra_op_threads,
        batch_size=baseline.batch_size,
        chosen=baseline.chosen,
    )


def _toggles(optimizations: Optimizations) -> Optimizations:
    return dataclasses.replace(
        optimizations, inter_op_threads=None, intra_op_threads=None, batch_size=None
    )


def _withheld(optimizations: Optimizations, reason: str) -> Withheld:
    return Withheld(scenario=Scenario(optimizations=optimizations), reason=reason)
