"""One step of a critical path: its stretch of the chain."""

from __future__ import annotations

import dataclasses

import numpy as np
import pandas as pd

from workbench.core.analysis.critical_path import CriticalPath
from workbench.errors import OptionError
from workbench.viz.style import format


@dataclasses.dataclass(frozen=True, eq=False)
class ShownStep:
    """The stretch of the chain from the end of the step before to the end of a step.

    Attributes:
      number: of the step.
      begin_ns, end_ns: the stretch.
      segments: those of the path that reach into it, cut to it; they join.
    """

    number: int
    begin_ns: int
    end_ns: int
    segments: pd.DataFrame

    @property
    def duration_ns(self) -> int:
        return self.end_ns - self.begin_ns


def shown_step(path: CriticalPath, number: int | None = None) -> ShownStep:
    """A step of the path; the one nearest to their median where no number is given.

    Raises:
      OptionError: the trace holds no such step.
    """
    numbers, begins, ends = _bounds(path)
    if number is None:
        took = ends - begins
        row = int(np.abs(took - np.median(took)).argmin())
    elif number in numbers:
        row = numbers.index(number)
    else:
        low, high = (format.integer(n) for n in (min(numbers), max(numbers)))
        raise OptionError(f"step is {number!r}; the trace holds the steps {low} to {high}")
    begin, end = int(begins[row]), int(ends[row])
    return ShownStep(numbers[row], begin, end, _cut(path.segments, begin, end))


def fastest_and_slowest(path: CriticalPath) -> tuple[int, int]:
    """Numbers of the shortest and the longest step."""
    numbers, begins, ends = _bounds(path)
    took = ends - begins
    return numbers[int(took.argmin())], numbers[int(took.argmax())]


def median_step_ns(path: CriticalPath) -> float:
    """Median of what the steps take, from the end of one to the end of the next."""
    _, begins, ends = _bounds(path)
    return float(np.median(ends - begins))


def _bounds(path: CriticalPath) -> tuple[list[int], np.ndarray, np.ndarray]:
    """Number of each step, where its stretch of the path begins, and where it ends; by time."""
    steps = path.trace.steps().sort_values("end_ns", kind="stable")
    ends = steps["end_ns"].to_numpy(np.int64)
    return steps["number"].tolist(), np.concatenate(([path.begin_ns], ends[:-1])), ends


def _cut(segments: pd.DataFrame, begin: int, end: int) -> pd.DataFrame:
    start = segments["start_ns"].to_numpy(np.int64)
    finish = start + segments["dur_ns"].to_numpy(np.int64)
    inside = (finish > begin) & (start < end)
    start, finish = np.maximum(start[inside], begin), np.minimum(finish[inside], end)
    kept = segments[inside].reset_index(drop=True)
    return kept.assign(start_ns=start, dur_ns=finish - start)
