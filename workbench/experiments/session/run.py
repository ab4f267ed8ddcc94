"""Run: one setting of a session's program, measured beside the baseline."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence

from workbench.core.optimizations import Optimizations
from workbench.errors import OptionError
from workbench.experiments.comparison.measured import MeasuredVariant
from workbench.experiments.comparison.results import Comparison
from workbench.experiments.measurement.equivalence import Equivalence


@dataclasses.dataclass(frozen=True, kw_only=True, eq=False)
class Run:
    """One setting, measured beside the session's baseline.

    Attributes:
      number: 1, 2, … in the order in which the session got them.
      optimizations: the setting.
      comparison: where it was measured; several runs may share one.
      variant: its label there.
      started: when its measurement began, ISO 8601 with the time zone.
      name: what the user calls it; "" where the setting's name is enough.
      note: what the user wrote about it.
      group: what the user puts it together with others by.
    """

    number: int
    optimizations: Optimizations
    comparison: Comparison
    variant: str
    started: str
    name: str = ""
    note: str = ""
    group: str = ""

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
    def checks(self) -> tuple[Equivalence, ...]:
        """Whether it trains as the baseline does; empty where that was not compared."""
        return self.comparison.checks_of(self.variant)

    @property
    def is_baseline(self) -> bool:
        """Whether it is the setting that the others are compared with."""
        return self.variant == self.comparison.baseline


def comparisons_of(runs: Iterable[Run]) -> list[Comparison]:
    """Where these runs were measured, each once, in their order."""
    return list({id(run.comparison): run.comparison for run in runs}.values())


def require_setting(value: object) -> Optimizations:
    """The value as a setting.

    Raises:
      OptionError: it is none.
    """
    if not isinstance(value, Optimizations):
        raise OptionError(
            f"a setting is {value!r}; expected wb.Optimizations(…), such as "
            "wb.Optimizations(smart_stage=wb.SmartStageOptions())"
        )
    return value


def require_settings(
    comparison: Comparison, settings: Sequence[Optimizations], baseline: Optimizations
) -> None:
    """Requires that these are the settings of a comparison's variants, the baseline first.

    Raises:
      OptionError: they are not.
    """
    labels = [variant.label for variant in comparison.variants]
    named = [(setting.label(), setting.label(in_full=True)) for setting in settings]
    fits = len(named) == len(labels) and all(
        label in names for label, names in zip(labels, named, strict=True)
    )
    if not fits or settings[0] != baseline:
        raise OptionError(
            f"the settings are {[full for _, full in named]}, the comparison has {labels}; "
            "expected one for each in its order, and the session's baseline "
            f"{baseline.label(in_full=True)!r} first"
        )


def runs_of(
    comparison: Comparison,
    settings: Sequence[Optimizations],
    *,
    before: Sequence[Run],
    after: int,
    started: str,
) -> tuple[Run, ...]:
    """The runs that a comparison adds to those before.

    The baseline's own is among them where it has none yet, or where nothing else was measured.

    Args:
      comparison: what was measured.
      settings: of its variants, in their order; the baseline first.
      before: all runs so far.
      after: the largest number that a run has had.
      started: when it was begun.
    """
    known = any(run.is_baseline for run in before)
    first = 1 if known and len(settings) > 1 else 0
    return tuple(
        Run(
            number=number,
            optimizations=settings[place],
            comparison=comparison,
            variant=comparison.variants[place].label,
            started=started,
        )
        for number, place in enumerate(range(first, len(settings)), start=after + 1)
    )
