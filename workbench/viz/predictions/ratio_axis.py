"""An axis of ratios on which 1× always has its place."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Sequence

_STEPS = (0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0)
# Around 1×, where all else is as near to it.
_LEAST = (0.95, 1.05)
# From this ratio of its ends on, an axis of logarithms has ticks at 1, 2, 5, 10 and so on.
_WIDE = 4.0
# Words of two ticks need this part of the axis; the margin of an axis of logarithms is another.
_APART, _MARGIN = 0.08, 0.05


@dataclasses.dataclass(frozen=True, kw_only=True)
class RatioAxis:
    """Where ratios stand.

    Attributes:
      low, high: its ends.
      logarithmic: equal ratios are as far apart.
      ticks: (fraction of the axis, words); the words of some are "".
    """

    low: float
    high: float
    logarithmic: bool
    ticks: tuple[tuple[float, str], ...] = ()

    def at(self, ratio: float) -> float:
        """Its fraction of the axis; what lies beyond an end stands there."""
        ratio = min(max(ratio, self.low), self.high)
        if self.logarithmic:
            return math.log(ratio / self.low) / math.log(self.high / self.low)
        return (ratio - self.low) / (self.high - self.low)


def ratio_axis(ratios: Iterable[float], *, logarithmic: bool = False, most: int = 5) -> RatioAxis:
    """The axis that holds these ratios and 1×.

    Args:
      ratios: what is drawn; what is no number above 0 is not.
      logarithmic: equal ratios shall be as far apart.
      most: ticks with words, about.
    """
    drawn = [each for each in ratios if math.isfinite(each) and each > 0]
    low, high = min([*drawn, _LEAST[0]]), max([*drawn, _LEAST[1]])
    if logarithmic:
        room = (high / low) ** _MARGIN
        axis = RatioAxis(low=low / room, high=high * room, logarithmic=True)
        step = _step(axis.high - axis.low, most)
        values = _powers(axis) if high / low > _WIDE else _multiples(axis, step)
    else:
        step = _step(high - low, most)
        low, high = math.floor(low / step + 1e-9) * step, math.ceil(high / step - 1e-9) * step
        axis = RatioAxis(low=low, high=high, logarithmic=False)
        values = _multiples(axis, step)
    return dataclasses.replace(axis, ticks=_words(axis, values, most))


def _step(span: float, most: int) -> float:
    wide = (step for step in _STEPS if span / step <= most)
    return next(wide, 10.0 ** math.ceil(math.log10(span / most)))


def _multiples(axis: RatioAxis, step: float) -> list[float]:
    first, last = math.ceil(axis.low / step - 1e-9), math.floor(axis.high / step + 1e-9)
    return [number * step for number in range(first, last + 1)]


def _powers(axis: RatioAxis) -> list[float]:
    first, last = math.floor(math.log10(axis.low)), math.ceil(math.log10(axis.high))
    values = [digit * 10.0**power for power in range(first, last + 1) for digit in (1, 2, 5)]
    return [value for value in values if axis.low <= value <= axis.high]


def _words(axis: RatioAxis, values: Sequence[float], most: int) -> tuple[tuple[float, str], ...]:
    """The ticks, 1× always one of them; no other stands in its words, and of many each second."""
    one = axis.at(1.0)
    kept = sorted([*(v for v in values if abs(axis.at(v) - one) >= _APART), 1.0])
    first = kept.index(1.0)
    worded = [len(kept) <= most or (n - first) % 2 == 0 for n in range(len(kept))]
    return tuple(
        (axis.at(value), f"{value:.3g}×" if words else "")
        for value, words in zip(kept, worded, strict=True)
    )
