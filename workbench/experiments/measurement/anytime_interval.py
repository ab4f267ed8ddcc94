"""Intervals that hold at every look: a measurement may stop whenever they say enough.

An interval of a fixed number of blocks errs far more often than it says when it is looked at after
every block and the measurement stops at the first look that pleases. A confidence sequence holds
for all looks at once.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from workbench.experiments.measurement.statistics import Interval

# Variance of the effects, in standard deviations of a block, that the mixture expects. Settings are
# apart by some per cent, blocks scatter by one or two. A large one excludes such effects early.
_EFFECT_VARIANCE = 30.0
# Of fewer values nothing is known: no sample of two excludes anything at the errors used here.
FEWEST_VALUES = 3


def anytime_half_width(count: int, deviation: float, error: float) -> float:
    """Half of the interval of the mean after `count` values; inf where they are too few.

    The t-test that mixes over the effect, as a confidence sequence. With t the usual statistic of
    n values and k = 1 + n g, the Bayes factor of a normal prior of variance g on the standardized
    effect and the right Haar prior on the deviation,

        k^(-1/2) * ((1 + t²/(n - 1)) / (1 + t²/(k (n - 1))))^(n/2),

    is a test martingale whatever the deviation is (Lai 1976, On confidence sequences; Gönen et al.
    2005, The Bayesian two-sample t test; Hendriksen, de Heide and Grünwald 2021, Optional stopping
    with Bayes factors; Wang and Ramdas 2024, Anytime-valid t-tests). By Ville's inequality it ever
    exceeds 1/error with a probability of at most `error`, so the means that it does not exclude
    hold the true one at all looks together. Chosen over spending the error on planned looks,
    because how many looks there will be is not known: settings come and go as time allows.

    Args:
      count: values so far, taken as independent and normal.
      deviation: their sample standard deviation.
      error: probability that any of all looks excludes the true mean.
    """
    if count < FEWEST_VALUES:
        return math.inf
    k = 1 + count * _EFFECT_VARIANCE
    a = (k / error**2) ** (1 / count)
    if a >= k:
        return math.inf
    t_squared = (count - 1) * (a - 1) / (1 - a / k)
    return deviation * math.sqrt(t_squared / count)


def anytime_interval(logs: Sequence[float], error: float) -> Interval:
    """The mean of logarithms of ratios as a ratio, with an interval that holds at every look."""
    if not len(logs):
        return Interval(value=math.nan, low=0.0, high=math.inf)
    mean = float(np.mean(logs))
    deviation = float(np.std(logs, ddof=1)) if len(logs) > 1 else math.inf
    half = anytime_half_width(len(logs), deviation, error)
    return Interval(
        value=math.exp(mean),
        low=math.exp(mean - half),
        high=math.exp(mean + half) if half < math.inf else math.inf,
    )
