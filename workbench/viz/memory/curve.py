"""Live bytes over one step, as areas of an SVG."""

from __future__ import annotations

import dataclasses

import numpy as np

from workbench.core.analysis.memory.memory import Memory
from workbench.viz.style import format

# Windows of a step; of more changes than a screen has room for, the most counts.
_WINDOWS = 400
WIDTH, HEIGHT = 1000, 160


@dataclasses.dataclass(frozen=True)
class Curve:
    """Live bytes over a step.

    Attributes:
      caption: which step it is.
      line, area, buffers: SVG paths, WIDTH by HEIGHT: all bytes, and those in buffers.
      top: bytes at the top of the scale. end: length of the step, both as words.
      peak: where the most live, as a fraction of the step.
      label: what the picture says, in words.
    """

    caption: str
    line: str
    area: str
    buffers: str
    top: str
    end: str
    peak: float
    label: str


def step_curve(memory: Memory) -> Curve:
    """The curve of the step with the peak of the trace."""
    steps = memory.trace.steps()
    start, end = (steps[name].to_numpy(np.int64) for name in ("start_ns", "end_ns"))
    step = int(memory.step_peaks.argmax())
    low, high = int(start[step]), max(int(end[step]), int(start[step]) + 1)
    time = memory.curve["time_ns"].to_numpy(np.int64)
    buffers = memory.curve["buffer_bytes"].to_numpy(np.int64)
    total = memory.curve["op_bytes"].to_numpy(np.int64) + buffers
    in_total, in_buffers = (_most(time, values, low, high) for values in (total, buffers))
    most = int(in_total.max())
    number = int(steps["number"].iloc[step])
    line = _path(in_total, most)
    words = format.size(most)
    return Curve(
        caption=f"Bytes that live over step {format.integer(number)}",
        line=line,
        area=f"{line}V{HEIGHT}H0Z",
        buffers=f"{_path(in_buffers, most)}V{HEIGHT}H0Z" if in_buffers.any() else "",
        top=words,
        end=format.duration(high - low),
        peak=(int(in_total.argmax()) + 0.5) / _WINDOWS,
        label=f"Bytes that live over step {number}, 0 to {words}; the tables below have the peak",
    )


def _most(time: np.ndarray, values: np.ndarray, low: int, high: int) -> np.ndarray:
    """The most of a step function in each window from `low` to `high`."""
    edges = np.linspace(low, high, _WINDOWS + 1)
    before = np.searchsorted(time, edges[:-1], side="right") - 1
    most = np.where(before >= 0, values[np.maximum(before, 0)], 0)
    window = np.searchsorted(edges, time, side="right") - 1
    inside = (window >= 0) & (window < _WINDOWS)
    np.maximum.at(most, window[inside], values[inside])
    return np.asarray(most, np.int64)


def _path(values: np.ndarray, most: int) -> str:
    height = HEIGHT - 1 - (HEIGHT - 2) * values / max(1, most)
    wide = WIDTH / _WINDOWS
    steps = " ".join(f"V{y:.1f}H{(i + 1) * wide:.1f}" for i, y in enumerate(height.tolist()))
    return f"M0 {height[0]:.1f}{steps}"
