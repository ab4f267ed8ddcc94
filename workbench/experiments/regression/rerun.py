"""Rerun: whether what was found on another day still holds."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Literal

from workbench.experiments.comparison.measured import Ratio
from workbench.experiments.measurement.statistics import Interval
from workbench.experiments.regression.gate import quotient

Standing = Literal["holds", "no longer", "not clear"]
# That two results show no difference says something where a change of more than this would show.
_NARROW = 1.1


@dataclasses.dataclass(frozen=True, kw_only=True)
class Again:
    """One variant, measured then and now.

    Attributes:
      then, now: its ratio to the baseline.
      change: ratio now over ratio then, with the interval of both.
      standing: "holds" where the verdict is the same and the ratio does not differ clearly, or
        differs by more of the same; "no longer" where it differs clearly; "not clear" where an
        interval is too wide to tell, as it is where neither day showed a difference and a change
        of 10 % would not show.
    """

    then: Ratio
    now: Ratio
    change: Interval
    standing: Standing


def measured_again(then: Sequence[Ratio], now: Sequence[Ratio]) -> tuple[Again, ...]:
    """Every variant that was measured on both days."""
    found = {ratio.label: ratio for ratio in now}
    return tuple(_again(each, found[each.label]) for each in then if each.label in found)


def _again(then: Ratio, now: Ratio) -> Again:
    change = quotient(_interval(now), _interval(then))
    return Again(then=then, now=now, change=change, standing=_standing(then, now, change))


def _standing(then: Ratio, now: Ratio, change: Interval) -> Standing:
    differs = change.high < 1 or change.low > 1
    if then.verdict != now.verdict:
        turned = {then.verdict, now.verdict} == {"faster", "slower"}
        return "no longer" if differs or turned else "not clear"
    if then.verdict == "no clear difference" and not differs:
        narrow = change.low * _NARROW >= 1 and change.high <= _NARROW
        return "holds" if narrow else "not clear"
    more = {"faster": change.low > 1, "slower": change.high < 1}.get(then.verdict, False)
    return "holds" if more or not differs else "no longer"


def _interval(ratio: Ratio) -> Interval:
    return Interval(value=ratio.ratio, low=ratio.low, high=ratio.high)
