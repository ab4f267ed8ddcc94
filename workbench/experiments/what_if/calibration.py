"""calibration(): predictions beside the comparison that measured the same settings."""

from __future__ import annotations

from workbench.core.what_if.calibration import Calibration, MeasuredRatio, calibrated
from workbench.core.what_if.predictions import Predictions
from workbench.errors import OptionError
from workbench.experiments.comparison.results import Comparison


def calibration(predictions: Predictions, comparison: Comparison) -> Calibration:
    """Sets predictions beside what was measured.

    Args:
      predictions: of a program, from `predict`.
      comparison: of the same program, from `compare`; its baseline is the traced setting.

    Raises:
      OptionError: no predictions, no comparison, or one with another baseline.
    """
    if not isinstance(predictions, Predictions) or not isinstance(comparison, Comparison):
        given = f"a {type(predictions).__name__} and a {type(comparison).__name__}"
        raise OptionError(f"calibration got {given}; expected Predictions and a Comparison")
    if comparison.baseline != predictions.traced.label:
        raise OptionError(
            f"the predictions are against {predictions.traced.label!r}, the comparison against "
            f"{comparison.baseline!r}; expected both against the traced setting"
        )
    measured = [
        MeasuredRatio(label=each.label, ratio=each.ratio, low=each.low, high=each.high)
        for each in comparison.ratios
    ]
    return calibrated(comparison.program, predictions, measured)
