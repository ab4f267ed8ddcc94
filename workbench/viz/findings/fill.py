"""How full a buffer is over time, as a line of steps."""

from __future__ import annotations

import dataclasses

import numpy as np
import pandas as pd

# Windows of a line; more changes than a screen has room for become their mean.
_WINDOWS = 200
WIDTH, HEIGHT = 1000, 38


@dataclasses.dataclass(frozen=True)
class FillLine:
    """A buffer's fill over the steps.

    Attributes:
      stage: whose buffer it is.
      top: items at the top of the scale: the capacity, or the most that were in it.
      line, area: SVG paths, WIDTH by HEIGHT.
    """

    stage: str
    top: int
    line: str
    area: str


def fill_line(stage: str, changes: pd.DataFrame, end_ns: int, capacity: int | None) -> FillLine:
    """The line of one buffer.

    Args:
      stage: its name.
      changes: time_ns and count after it, from the begin of the steps on.
      end_ns: end of the steps.
      capacity: items that it holds at most; None where it is not known.
    """
    time = changes["time_ns"].to_numpy(np.int64)
    count = changes["count"].to_numpy(np.float64)
    top = max(capacity or 0, int(count.max(initial=0)), 1)
    edges = np.linspace(time[0], max(end_ns, int(time[0]) + 1), _WINDOWS + 1)
    sums = np.concatenate(([0.0], np.cumsum(np.diff(time) * count[:-1])))
    place = np.searchsorted(time, edges, side="right") - 1
    until = sums[place] + (edges - time[place]) * count[place]
    mean = np.diff(until) / np.diff(edges)
    height = HEIGHT - 1 - (HEIGHT - 2) * np.minimum(mean / top, 1)
    wide = WIDTH / _WINDOWS
    steps = " ".join(f"V{y:.1f}H{(i + 1) * wide:.0f}" for i, y in enumerate(height.tolist()))
    line = f"M0 {height[0]:.1f}{steps}"
    return FillLine(stage=stage, top=top, line=line, area=f"{line}V{HEIGHT}H0Z")
