"""95 % intervals of means and of their differences, of values that count as independent."""

from __future__ import annotations

import math

import numpy as np

NORMAL_95 = 1.959964


def mean_interval(values: np.ndarray) -> tuple[float, float] | None:
    """Student's interval of the mean; None of fewer than two values."""
    count = len(values)
    if count < 2:
        return None
    half = student_95(count - 1) * math.sqrt(_variance_of_mean(values))
    mean = float(values.mean())
    return mean - half, mean + half


def difference_interval(a: np.ndarray, b: np.ndarray) -> tuple[float, float] | None:
    """Welch's interval of the mean of `b` less that of `a`; None of fewer than two values."""
    if min(len(a), len(b)) < 2:
        return None
    difference = float(b.mean()) - float(a.mean())
    of_a, of_b = _variance_of_mean(a), _variance_of_mean(b)
    both = of_a + of_b
    if both == 0:
        return difference, difference
    freedom = both**2 / (of_a**2 / (len(a) - 1) + of_b**2 / (len(b) - 1))
    half = student_95(freedom) * math.sqrt(both)
    return difference - half, difference + half


def student_95(freedom: float) -> float:
    """97.5 % quantile of Student's t (exact for 1 and 2, else Cornish and Fisher's expansion)."""
    if freedom <= 2:
        return 12.7062 if freedom < 2 else 4.3027
    z, n = NORMAL_95, float(freedom)
    first = (z**3 + z) / 4
    second = (5 * z**5 + 16 * z**3 + 3 * z) / 96
    third = (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384
    return z + first / n + second / n**2 + third / n**3


def _variance_of_mean(values: np.ndarray) -> float:
    return float(values.var(ddof=1)) / len(values)
