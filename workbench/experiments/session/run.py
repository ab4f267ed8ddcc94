"""Run: one setting of a session's program, measured beside the baseline."""

from __future__ import annotations

import dataclasses

from workbench.core.options import Optimizations
from workbench.experiments.comparison.results import Comparison, MeasuredVariant


@dataclasses.dataclass(frozen=True, kw_only=True, eq=False)
class Run:
    """One setting, measured beside the session's baseline.

    Attributes:
      number: 1, 2, … in the order in which the session got them.
      optimizations: the setting.
      comparison: where it was measured; several runs may share one.
      variant: its label there.
      started: when its measurement began, ISO 8601 with the time zone.
    """

    number: int
    optimizations: Optimizations
    comparison: Comparison
    variant: str
    started: str

    def __repr__(self) -> str:
        return f"Run({self.number}, {self.label!r}, {self.measured.steps_per_s:.4g} steps/s)"

    @property
    def label(self) -> str:
        """Name of the setting, with the capacities and threads of its stages."""
        return self.optimizations.label(in_full=True)

    @property
    def measured(self) -> MeasuredVariant:
        """What was measured of it."""
        return next(each for each in self.comparison.variants if each.label == self.variant)

    @property
    def is_baseline(self) -> bool:
        """Whether it is the setting that the others are compared with."""
        return self.variant == self.comparison.baseline
