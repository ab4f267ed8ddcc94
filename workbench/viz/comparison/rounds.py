"""Rounds as points of a chart: at most forty, each the mean of as many rounds in a row."""

from __future__ import annotations

import statistics
from collections.abc import Sequence

_MOST_POINTS = 40


def rounds_a_point(rounds: int) -> int:
    """How many rounds one point stands for."""
    return max(1, -(-rounds // _MOST_POINTS))


def in_points(values: Sequence[float]) -> tuple[float, ...]:
    """Geometric means of rounds in a row; the last one may be of fewer.

    Args:
      values: one of each round, above 0, in their order.
    """
    each = rounds_a_point(len(values))
    starts = range(0, len(values), each)
    return tuple(statistics.geometric_mean(values[start : start + each]) for start in starts)


def point_words(rounds: int) -> str:
    """What a point is, where it is not one round: "means of 3 rounds"; else ""."""
    each = rounds_a_point(rounds)
    return f"means of {each} rounds" if each > 1 else ""
