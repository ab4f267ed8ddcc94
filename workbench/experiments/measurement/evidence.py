"""Evidence: what the blocks so far say of a variant, while more of them run."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence

import numpy as np

from workbench.experiments.measurement.anytime_interval import anytime_interval
from workbench.experiments.measurement.statistics import Interval, mean_interval, ratio_interval

# A difference below this share is none that matters.
TOLERANCE = 0.01
_ERROR = 0.05


@dataclasses.dataclass(frozen=True, kw_only=True)
class Evidence:
    """The rounds so far of one variant beside the baseline.

    Attributes:
      label: the variant.
      ratios: to the baseline, one for each round, in their order.
      rounds: how many are planned.
      interval: of their mean; while rounds run it holds at every look.
      final: whether no more rounds come.
    """

    label: str
    ratios: tuple[float, ...]
    rounds: int
    interval: Interval
    final: bool = False

    @property
    def is_clear(self) -> bool:
        """Whether it is faster, slower, or no different by more than 1 %."""
        return is_clear(self.interval)


def is_clear(interval: Interval) -> bool:
    """Whether an interval of a ratio excludes 1, or all that is further from 1 than 1 %."""
    low, high = interval.low, interval.high
    return low > 1 or high < 1 or (low > 1 - TOLERANCE and high < 1 + TOLERANCE)


def paired_ratio(
    rates: Sequence[float],
    baseline_rates: Sequence[float],
    scale: float = 1.0,
    *,
    seed: int = 0,
    anytime: bool = False,
) -> Interval:
    """How many times as fast as the baseline: mean of paired blocks, with its 95 % interval.

    Args:
      rates, baseline_rates: steps/s of one block for each round.
      scale: samples of a step over those of the baseline.
      seed: of the bootstrap.
      anytime: whether the interval has to hold at every look, because a look may end the blocks.
    """
    if anytime:
        apart = np.log(rates) - np.log(baseline_rates)
        return anytime_interval(list(apart), _ERROR).scaled(scale)
    return ratio_interval(rates, baseline_rates, seed).scaled(scale)


def rate_interval(rates: Sequence[float], *, seed: int = 0, anytime: bool = False) -> Interval:
    """Mean steps/s of blocks with its 95 % interval; the arguments are those of `paired_ratio`."""
    return anytime_interval(list(np.log(rates)), _ERROR) if anytime else mean_interval(rates, seed)


def evidence_of(
    rates: Mapping[str, Sequence[float]], scales: Mapping[str, float], rounds: int
) -> tuple[Evidence, ...]:
    """What whole rounds say of each variant.

    Args:
      rates: steps/s of each block, by label; the baseline first.
      scales: samples of a step over the baseline's, of the variants that are compared.
      rounds: how many are planned.
    """
    baseline = next(iter(rates))
    said = []
    for label, scale in scales.items():
        pairs = list(zip(rates.get(label, ()), rates[baseline], strict=False))
        if not pairs:
            continue
        own, other = zip(*pairs, strict=True)
        said.append(
            Evidence(
                label=label,
                ratios=tuple(scale * a / b for a, b in pairs),
                rounds=rounds,
                interval=paired_ratio(own, other, scale, anytime=True),
            )
        )
    return tuple(said)
