"""Predicted ratios against measured ones, as fractions of two equal axes."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from workbench.core.what_if.calibration import Check
from workbench.viz.predictions.ratio_axis import RatioAxis, ratio_axis
from workbench.viz.style import format
from workbench.viz.style.plain_text import plain

# Marks, one a program; programs beyond them share the last.
SHAPES = ("circle", "square", "triangle", "ring", "box", "plus", "cross")
_MOST_LABELS, _MOST_LETTERS, _TICKS = 6, 44, 8
# As fractions of the plot: a letter's width, a line's height, and from a mark to its words.
_LETTER, _LINE, _GAP = 0.0145, 0.034, 0.018


@dataclasses.dataclass(frozen=True, kw_only=True)
class Words:
    """Words beside a mark: where they begin, or end where `ends`."""

    text: str
    x: float
    y: float
    ends: bool

    @property
    def span(self) -> tuple[float, float]:
        """From where to where they reach."""
        wide = len(self.text) * _LETTER
        return (self.x - wide, self.x) if self.ends else (self.x, self.x + wide)

    def covers(self, x: float, y: float) -> bool:
        """Whether a mark there stands in them."""
        first, last = self.span
        return first - _GAP < x < last + _GAP and -_GAP < y - self.y < _LINE

    def meets(self, other: Words) -> bool:
        """Whether both stand in the same place."""
        (a, b), (c, d) = self.span, other.span
        return a < d and c < b and abs(self.y - other.y) < _LINE


@dataclasses.dataclass(frozen=True, kw_only=True)
class Point:
    """One setting: predicted to the right, measured upwards, both as fractions.

    Attributes:
      x, x_low, x_high: predicted. y, y_low, y_high: measured.
      shape: of its mark.
      title: what it is, in words.
      words: beside an outlier; None for others.
    """

    x: float
    x_low: float
    x_high: float
    y: float
    y_low: float
    y_high: float
    shape: str
    title: str
    words: Words | None


@dataclasses.dataclass(frozen=True, kw_only=True)
class Scatter:
    """The picture.

    Attributes:
      points: one for each setting.
      ticks: (fraction, words) of both axes. one: where 1× is.
      legend: (shape, program); empty where there is one program.
    """

    points: tuple[Point, ...]
    ticks: tuple[tuple[float, str], ...]
    one: float
    legend: tuple[tuple[str, str], ...]


def scatter_of(checks: Sequence[Check], programs: Sequence[str]) -> Scatter:
    """The picture of these checks; outliers are those whose intervals do not meet."""
    edges = [edge for check in checks for edge in _edges(check)]
    axis = ratio_axis(edges, logarithmic=True, most=_TICKS)
    shapes = {name: SHAPES[min(n, len(SHAPES) - 1)] for n, name in enumerate(programs)}
    words = _words(checks, axis, several=len(programs) > 1)
    legend = [(shapes[name], plain(name)) for name in programs[: len(SHAPES) - 1]]
    rest = programs[len(SHAPES) - 1 :]
    if rest:
        legend.append((SHAPES[-1], plain(", ".join(rest))))
    return Scatter(
        points=tuple(
            _point(check, axis, shapes[check.program], words.get(number))
            for number, check in enumerate(checks)
        ),
        ticks=axis.ticks,
        one=axis.at(1.0),
        legend=tuple(legend) if len(programs) > 1 else (),
    )


def _edges(check: Check) -> tuple[float, ...]:
    predicted = (check.predicted_low, check.predicted, check.predicted_high)
    return (*predicted, check.measured_low, check.measured, check.measured_high)


def _point(check: Check, axis: RatioAxis, shape: str, words: Words | None) -> Point:
    predicted = format.ratio(check.predicted)
    predicted += f" ({format.ratio_range(check.predicted_low, check.predicted_high)})"
    measured = format.ratio(check.measured)
    measured += f" ({format.ratio_range(check.measured_low, check.measured_high)})"
    named = plain(f"{check.program}: {check.label}")
    return Point(
        x=axis.at(check.predicted),
        x_low=axis.at(check.predicted_low),
        x_high=axis.at(check.predicted_high),
        y=axis.at(check.measured),
        y_low=axis.at(check.measured_low),
        y_high=axis.at(check.measured_high),
        shape=shape,
        title=f"{named}; predicted {predicted}, measured {measured}",
        words=words,
    )


def _words(checks: Sequence[Check], axis: RatioAxis, *, several: bool) -> dict[int, Words]:
    """Names of the worst outliers that have room for them, by number of the check."""
    outliers = [number for number, check in enumerate(checks) if not check.inside]
    outliers.sort(key=lambda number: -abs(checks[number].error))
    marks = [(axis.at(check.predicted), axis.at(check.measured)) for check in checks]
    placed: dict[int, Words] = {}
    for number in outliers[:_MOST_LABELS]:
        check = checks[number]
        name = plain(f"{check.program}: {check.label}" if several else check.label)
        if len(name) > _MOST_LETTERS:
            name = f"{name[: _MOST_LETTERS - 1]}…"
        at = axis.at(check.predicted), axis.at(check.measured)
        free = [
            words
            for words in _places(name, *at)
            if not any(words.meets(other) for other in placed.values())
            and not any(words.covers(*mark) for mark in marks if mark != at)
        ]
        if free:
            placed[number] = free[0]
    return placed


def _places(name: str, x: float, y: float) -> list[Words]:
    """Where a name may stand by its mark, away from the diagonal first."""
    above = y > x
    places = [
        Words(text=name, x=x - _GAP if left else x + _GAP, y=y - _LINE / 3 + rise, ends=left)
        for rise in (0.0, _LINE if above else -_LINE)
        for left in (above, not above)
    ]
    return [words for words in places if words.span[0] >= 0 and words.span[1] <= 1]
