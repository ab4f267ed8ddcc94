"""Which setting of a list was named best, beside those that measured best.

The best of several noisy measurements owes some of its lead to chance. So a named setting is
judged by the ratio of its blocks to a rival's blocks of the same rounds. There are two answers:
whether the ratio to the one that measured best is at most 2 % below 1, and whether any rival is
shown to be more than 2 % faster. The second one forgives what was measured too shortly. So both
are printed, with how wide the intervals are.
"""

from __future__ import annotations

import dataclasses
import statistics
from collections.abc import Mapping, Sequence

from workbench.core.what_if.calibration import Calibration
from workbench.core.what_if.predictions import AS_GOOD
from workbench.experiments.measurement.statistics import Interval, ratio_interval

OFF = "off"
LISTS = {
    "stages": ("stage", "smart stage"),
    "fusion": ("auto fused", "smart stage + auto fused"),
    "executors": ("inline executor", "cost model executor"),
    "unasked": ("smart stage", "auto fused", "inline executor", "cost model executor"),
    "all": (),
}
# Of a list the settings that may be the best, this many at most, are measured once more.
MOST_NEAR = 4
Rates = Mapping[str, Sequence[float]]


@dataclasses.dataclass(frozen=True, kw_only=True)
class Judged:
    """What was named best of one list.

    Attributes:
      among: name of the list.
      named, best: the setting that was predicted to be best, and the one that measured best.
      ratio, low, high: steps/s of the named one over those of the best one.
      slower: whether a rival is shown to be more than 2 % faster.
      first_ratio: steps/s of the setting that measured best at first over those of the best one,
        in the second measurement; None where there was only one. A prediction cannot be expected to
        name the best more often than a measurement does.
    """

    among: str
    named: str
    best: str
    ratio: float
    low: float
    high: float
    slower: bool
    first_ratio: float | None = None

    @property
    def within(self) -> bool:
        """Whether the named one is at most 2 % slower, by what was measured alone."""
        return self.ratio >= 1 - AS_GOOD

    @property
    def half_width(self) -> float:
        """Of the interval of the ratio, as a share."""
        return (self.high - self.low) / 2 / self.ratio

    def __str__(self) -> str:
        return (
            f"| {self.among} | {self.named} | {self.best} | {self.ratio:.3f} "
            f"({self.low:.3f}–{self.high:.3f}) | {'yes' if self.within else 'no'} "
            f"| {'no' if self.slower else 'yes'} |"
        )


HEAD = (
    "| list | named best | measured best | named beside best | within 2 % "
    "| not shown to be more than 2 % slower |\n|---|---|---|---|---|---|"
)


def judged(found: Calibration, rates: Rates, near: Rates) -> list[Judged]:
    """Of each list, what was named best beside what measured best.

    Args:
      found: the settings of one program.
      rates: steps/s of each setting's blocks, one for each round.
      near: the same of settings that were measured once more, beside each other.
    """
    results = []
    for name, kept in _lists(found).items():
        named = _named(kept)
        labels = [OFF, *(check.label for check in kept.checks)]
        # What was measured twice counts where it was measured longer. What is named now may not
        # have been named then.
        among = near if named in near else rates
        rivals = [label for label in labels if label in among]
        best = max(rivals, key=lambda label: statistics.geometric_mean(among[label]))
        beside = _beside(among, named, best)
        first = max(labels, key=lambda label: statistics.geometric_mean(rates[label]))
        twice = among is near and first in near
        others = [_beside(among, named, label) for label in rivals]
        results.append(
            Judged(
                among=name,
                named=named,
                best=best,
                ratio=beside.value,
                low=beside.low,
                high=beside.high,
                slower=any(each.high < 1 - AS_GOOD for each in others),
                first_ratio=_beside(near, first, best).value if twice else None,
            )
        )
    return results


def near_best(found: Calibration, rates: Rates) -> list[str]:
    """The settings to measure once more: of each list the named one, and what may be the best.

    What is off is none: it is the baseline of every measurement.
    """
    chosen: dict[str, None] = {}
    for kept in _lists(found).values():
        labels = [OFF, *(check.label for check in kept.checks)]
        ranked = sorted(labels, key=lambda label: -statistics.geometric_mean(rates[label]))
        may_be = [label for label in ranked if _beside(rates, label, ranked[0]).high >= 1]
        chosen |= dict.fromkeys([_named(kept), *may_be[:MOST_NEAR]])
    return [label for label in chosen if label != OFF]


def _lists(found: Calibration) -> dict[str, Calibration]:
    """By name the lists of which something was predicted and measured."""
    lists = {
        name: Calibration(checks=tuple(c for c in found.checks if not labels or c.label in labels))
        for name, labels in LISTS.items()
    }
    return {name: kept for name, kept in lists.items() if kept.checks}


def _named(kept: Calibration) -> str:
    """What `Predictions.best` says; the traced setting where none is predicted 2 % faster."""
    best = kept.best(kept.programs[0])
    highest = max(check.predicted for check in kept.checks)
    return best[0].label if best is not None and highest * (1 - AS_GOOD) > 1 else OFF


def _beside(rates: Rates, one: str, other: str) -> Interval:
    if one == other:
        return Interval(value=1.0, low=1.0, high=1.0)
    return ratio_interval(rates[one], rates[other])
