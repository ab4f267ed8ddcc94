"""Ratios of runs: paired where both ran beside each other, else through the baseline of both."""

from __future__ import annotations

import dataclasses
import math

from workbench.experiments.comparison.measured import Ratio
from workbench.experiments.measurement.evidence import paired_ratio
from workbench.experiments.measurement.statistics import Interval, verdict
from workbench.experiments.session.run import Run


def ratio_between(run: Run, to: Run) -> Ratio | None:
    """How many times as fast one run is as another one of the same session.

    1. One of them is the baseline: the ratio that the comparison of the other one has, or its
       inverse; both ran beside each other.
    2. Both are of one comparison: their blocks are paired round by round.
    3. Otherwise each has its ratio to the baseline that ran beside it, and the quotient of the two
       is taken; its interval is as wide as both together, in logarithms.

    Where batches differ in size these are ratios of samples/s.

    Args:
      run, to: with the same baseline.

    Returns:
      The ratio; None of a run and itself, and of two runs of the baseline, which are the measure
      themselves.
    """
    if run.number == to.number:
        return None
    own, other = _to_baseline(run), _to_baseline(to)
    if other is None:  # 1
        return dataclasses.replace(own, label=run.label) if own else None
    if own is None:  # 1
        return _ratio(run, _inverse(_interval_of(other)))
    quotient = _product(_interval_of(own), _inverse(_interval_of(other)))
    if run.comparison is to.comparison and _ran_in_turn(run):
        return _ratio(run, _paired(run, to, quotient.value))  # 2
    return _ratio(run, quotient)  # 3


def _to_baseline(run: Run) -> Ratio | None:
    """Its ratio to the baseline beside it; None of the baseline itself."""
    return next((each for each in run.comparison.ratios if each.label == run.variant), None)


def _ran_in_turn(run: Run) -> bool:
    """Whether all variants of its comparison ran in the same rounds."""
    return run.comparison.settings.get("groups", 1) == 1


def _paired(run: Run, to: Run, value: float) -> Interval:
    """The interval of paired blocks; around the given value, which counts samples."""
    settings = run.comparison.settings
    steps = paired_ratio(
        run.measured.block_steps_per_s,
        to.measured.block_steps_per_s,
        seed=settings.get("bootstrap_seed", 0),
        anytime=bool(settings.get("stop_when_clear")),
    )
    return steps.scaled(value / steps.value)


def _ratio(run: Run, found: Interval) -> Ratio:
    return Ratio(
        label=run.label,
        ratio=found.value,
        low=found.low,
        high=found.high,
        verdict=verdict(found),
    )


def _interval_of(ratio: Ratio) -> Interval:
    return Interval(value=ratio.ratio, low=ratio.low, high=ratio.high)


def _inverse(interval: Interval) -> Interval:
    return Interval(
        value=1 / interval.value,
        low=1 / interval.high,
        high=1 / interval.low if interval.low else math.inf,
    )


def _product(a: Interval, b: Interval) -> Interval:
    """The product of two that were measured independently of each other."""
    value = a.value * b.value
    below = math.hypot(_log(a.value) - _log(a.low), _log(b.value) - _log(b.low))
    above = math.hypot(_log(a.high) - _log(a.value), _log(b.high) - _log(b.value))
    return Interval(value=value, low=value * math.exp(-below), high=value * math.exp(above))


def _log(value: float) -> float:
    return math.log(value) if value else -math.inf
