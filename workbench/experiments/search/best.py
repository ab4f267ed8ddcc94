"""Best: what a search found, with its evidence."""

from __future__ import annotations

import dataclasses

import pandas as pd

from workbench.core.optimizations import Optimizations
from workbench.core.what_if.predictions import Predicted
from workbench.display import Displayed, text_of
from workbench.experiments.comparison.results import Comparison


@dataclasses.dataclass(frozen=True, kw_only=True)
class Raced:
    """A setting that was measured.

    Attributes:
      optimizations: the setting.
      ratio, low, high: steps/s against the baseline's in the same rounds, and the interval: 95 %,
        at whichever round the race was stopped. The interval of 0 to inf says that there were too
        few rounds.
      rounds: how many it ran.
      predicted: what was predicted of it; None where nothing was.
      memory_bytes: what its process took when it left the race.
      dropped_s: seconds from the begin of the search until it was dropped; None where it was not.
      reason: why it is not the best, a clause; "" of the best and of the baseline.
    """

    optimizations: Optimizations
    ratio: float
    low: float
    high: float
    rounds: int
    predicted: Predicted | None = None
    memory_bytes: int = 0
    dropped_s: float | None = None
    reason: str = ""

    @property
    def label(self) -> str:
        """Its name."""
        return self.optimizations.label(in_full=True)


@dataclasses.dataclass(frozen=True, kw_only=True)
class NotRaced:
    """A setting that was not measured.

    Attributes:
      optimizations: the setting.
      reason: why, a clause.
      predicted: what was predicted of it; None where nothing was.
    """

    optimizations: Optimizations
    reason: str
    predicted: Predicted | None = None

    @property
    def label(self) -> str:
        """Its name."""
        return self.optimizations.label(in_full=True)


@dataclasses.dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Best(Displayed):
    """The best setting of a program that a search found.

    Attributes:
      program: its name.
      baseline: what ratios are to.
      best: the setting that was fastest and trains the same; the baseline itself where none was
        faster.
      runners_up: the others that were measured, the fastest first.
      not_measured: settings that were not, each with the reason.
      comparison: baseline, best and nearest runners-up with all their blocks; whether the best
        trains the same; traces of it and the baseline.
      code: the cell that measures the best again.
      in_program: what to write in a program of one's own to have it.
      budget_s, took_s: seconds that were granted and taken.
      memory_limit_bytes: bytes that all processes might take together; None for no limit.
      memory_bytes: the most that they took.
      rounds: how many the baseline ran.
      notes: what a reader should know, a sentence each.
    """

    program: str
    baseline: Optimizations
    best: Raced
    runners_up: tuple[Raced, ...]
    not_measured: tuple[NotRaced, ...]
    comparison: Comparison
    code: str
    in_program: str
    budget_s: float
    took_s: float
    memory_limit_bytes: int | None
    memory_bytes: int
    rounds: int
    notes: tuple[str, ...] = ()

    def __repr__(self) -> str:
        return (
            f"Best({self.best.label!r}, {self.best.ratio:.2f}×, {len(self.runners_up)} runners-up, "
            f"{len(self.not_measured)} not measured)"
        )

    def __str__(self) -> str:
        """The answer and the table of settings, as a terminal shows it."""
        return text_of(self)

    @property
    def optimizations(self) -> Optimizations:
        """The best setting."""
        return self.best.optimizations

    @property
    def label(self) -> str:
        """Name of the best setting."""
        return self.best.label

    @property
    def ratio(self) -> float:
        """Steps/s of the best setting against the baseline's."""
        return self.best.ratio

    @property
    def df(self) -> pd.DataFrame:
        """One row for each setting, by label: the best, the runners-up, those not measured."""
        columns = ["ratio", "low", "high", "rounds", "predicted", "dropped_s", "memory_bytes"]
        rows = {
            raced.label: [
                *(raced.ratio, raced.low, raced.high, raced.rounds),
                raced.predicted.ratio if raced.predicted else None,
                *(raced.dropped_s, raced.memory_bytes, True, raced.reason),
            ]
            for raced in (self.best, *self.runners_up)
        }
        rows |= {
            unraced.label: [
                *(None, None, None, 0),
                unraced.predicted.ratio if unraced.predicted else None,
                *(None, None, False, unraced.reason),
            ]
            for unraced in self.not_measured
        }
        table = pd.DataFrame.from_dict(
            rows, orient="index", columns=[*columns, "measured", "reason"]
        )
        return table.rename_axis("setting")
