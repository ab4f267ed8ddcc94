"""Calibration: predictions beside what was then measured."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from workbench.core.what_if.predictions import AS_GOOD, Predictions, simplest_of_best
from workbench.display import Displayed, charts

if TYPE_CHECKING:
    from plotly.graph_objects import Figure


@dataclasses.dataclass(frozen=True, kw_only=True)
class MeasuredRatio:
    """Steps/s of a setting over those of the traced one, measured; low, high: 95 % interval."""

    label: str
    ratio: float
    low: float
    high: float


@dataclasses.dataclass(frozen=True, kw_only=True)
class Check:
    """One setting, predicted and measured; ratios are of steps/s to the traced setting.

    Attributes:
      program: what was run.
      label: the setting.
      predicted, predicted_low, predicted_high: the ratio with its interval.
      measured, measured_low, measured_high: likewise.
      effort: how much the setting asks for, as of `Scenario`.
    """

    program: str
    label: str
    predicted: float
    predicted_low: float
    predicted_high: float
    measured: float
    measured_low: float
    measured_high: float
    effort: int = 0

    @property
    def error(self) -> float:
        """How much too high the prediction was, as a share of what was measured."""
        return self.predicted / self.measured - 1

    @property
    def clear(self) -> bool:
        """Whether the measured interval excludes 1, so that there is a sign to predict."""
        return self.measured_low > 1 or self.measured_high < 1

    @property
    def sign_right(self) -> bool:
        """Whether the prediction is on the measured side of 1."""
        return (self.predicted > 1) == (self.measured > 1)

    @property
    def inside(self) -> bool:
        """Whether the intervals share a ratio."""
        return self.predicted_low <= self.measured_high and self.measured_low <= self.predicted_high


@dataclasses.dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Calibration(Displayed):
    """Predictions beside what was then measured.

    Attributes:
      checks: one for each setting that was both predicted and measured.
      missing: measured settings of which nothing was predicted: program, label and the reason.
    """

    checks: tuple[Check, ...]
    missing: tuple[tuple[str, str, str], ...] = ()

    def __repr__(self) -> str:
        return f"Calibration({len(self.checks)} settings)"

    @property
    def mean_error(self) -> float | None:
        """Mean of the absolute errors, as a share; None without a check."""
        errors = [abs(check.error) for check in self.checks]
        return float(np.mean(errors)) if errors else None

    @property
    def signs(self) -> tuple[int, int]:
        """Of how many settings the sign is right, and how many have a clear one."""
        clear = [check for check in self.checks if check.clear]
        return sum(check.sign_right for check in clear), len(clear)

    @property
    def inside(self) -> int:
        """Of how many settings the intervals share a ratio."""
        return sum(check.inside for check in self.checks)

    def best(self, program: str) -> tuple[Check, Check] | None:
        """What was predicted to be best of a program, and what was; None where nothing was checked.

        Of settings that are predicted to be as good it is the simplest. What is predicted to be as
        fast as the traced setting at most leaves that one best.
        """
        own = [check for check in self.checks if check.program == program]
        chosen = simplest_of_best(own, lambda c: c.predicted, lambda c: c.effort)
        return (chosen, max(own, key=lambda c: c.measured)) if chosen else None

    def picks_best(self, program: str, *, within: float = AS_GOOD) -> bool | None:
        """Whether the setting predicted to be best measured within `within` of the best one.

        None where nothing was checked.
        """
        best = self.best(program)
        if best is None:
            return None
        picked = best[0].measured if best[0].predicted > 1 else 1.0
        return picked >= max(best[1].measured, 1.0) * (1 - within)

    @property
    def programs(self) -> tuple[str, ...]:
        """Their names."""
        return tuple(dict.fromkeys(check.program for check in self.checks))

    def plot(self, *, theme: str | None = None) -> Figure:
        """A plotly figure: each setting, predicted against measured, and a band of ±8 %.

        Args:
          theme: "light" or "dark"; None takes `plotly.io.templates.default` where one was set.

        Raises:
          OptionError: another theme, or nothing was both predicted and measured.
        """
        return charts().of_calibration(self, theme)

    @property
    def df(self) -> pd.DataFrame:
        """One row for each setting."""
        columns = [field.name for field in dataclasses.fields(Check)]
        columns += ["error", "clear", "sign_right", "inside"]
        rows = [[getattr(check, name) for name in columns] for check in self.checks]
        return pd.DataFrame(rows, columns=columns)


def calibrated(
    program: str, predictions: Predictions, measured: Sequence[MeasuredRatio]
) -> Calibration:
    """Joins predictions and measurements of one program by the names of the settings."""
    reasons = {setting.label: setting.reason for setting in predictions.withheld}
    checks, missing = [], []
    for result in measured:
        prediction = predictions.of(result.label)
        if prediction is None:
            reason = reasons.get(result.label, "it was not among the settings to predict")
            missing.append((program, result.label, reason))
            continue
        checks.append(
            Check(
                program=program,
                label=result.label,
                predicted=prediction.ratio,
                predicted_low=prediction.low,
                predicted_high=prediction.high,
                measured=result.ratio,
                measured_low=result.low,
                measured_high=result.high,
                effort=prediction.scenario.effort,
            )
        )
    return Calibration(checks=tuple(checks), missing=tuple(missing))


def joined(parts: Sequence[Calibration]) -> Calibration:
    """Calibrations of several programs as one."""
    return Calibration(
        checks=tuple(check for part in parts for check in part.checks),
        missing=tuple(each for part in parts for each in part.missing),
    )
