"""The rate of a setting that was not run."""

from __future__ import annotations

from workbench.core.what_if.predictions import Predicted
from workbench.experiments.session.session import Session


def steps_per_s(session: Session, prediction: Predicted) -> float | None:
    """The rate of a predicted setting: its ratio times what the newest run of the baseline gave.

    A trace takes its steps at another time, on a machine that may be faster or slower then.
    """
    baseline = session.run_of(session.baseline)
    if baseline is None:
        return None
    return baseline.measured.steps_per_s * prediction.ratio / prediction.scenario.batch_ratio
