"""Live bytes over one step, by op family or by name scope."""

from __future__ import annotations

import numpy as np
import pandas as pd

from workbench.core.analysis.memory.memory import BUFFER, By, Memory
from workbench.core.graph.op_families import FAMILY_NAMES, family_names
from workbench.errors import OptionError

OTHERS = "Others"
# Of more changes than a screen has room for, the moment with the most bytes of each window counts.
_WINDOWS = 400


def live_parts(
    memory: Memory, by: By = "family", step: int | None = None, *, depth: int = 2, most: int = 7
) -> pd.DataFrame:
    """What lives over one step: bytes by part, int64, at moments in ns from its begin on.

    Of each of 400 windows of the step it is what lives at the moment with the most bytes, so that
    the parts add up to what lived at one moment and no peak is lost.

    Args:
      memory: of the trace.
      by: "family" for op families in their order, "scope" for name scopes, the largest first;
        items in buffers are a part of their own.
      step: its number; None takes the one with the peak.
      depth: parts of a name scope that count.
      most: name scopes that are a part of their own; the rest is "Others".

    Raises:
      OptionError: no such step, or another `by`.
    """
    if by not in ("family", "scope"):
        raise OptionError(f"by is {by!r}; expected 'family' or 'scope'")
    begin, end, size, part = _lives(memory, by, depth)
    low, high = _bounds(memory, step)
    edges, moments = _moments(begin, end, size, low, high)
    parts = {
        str(name): _alive(begin[part == name], end[part == name], size[part == name], moments)
        for name in np.unique(part)
    }
    parts = {name: values for name, values in parts.items() if values.any()}
    ordered = _families(parts) if by == "family" else _largest(parts, most)
    return pd.DataFrame(ordered, index=pd.Index(edges - low, name="time_ns"))


def _lives(
    memory: Memory, by: By, depth: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Begin, end and bytes of all that lives, and the name of its part."""
    own = memory.trace.nodes.iloc[memory.lives.node]
    names, ops = own["name"].tolist(), own["op"].tolist()
    if by == "family":
        parts = family_names(ops, names)
    else:
        parts = ["/".join(name.split("/")[:-1][:depth]) or name for name in names]
    held = memory.held
    lives = (memory.lives.begin_ns, memory.lives.end_ns, memory.lives.bytes)
    columns = (held[name].to_numpy(np.int64) for name in ("begin_ns", "end_ns", "bytes"))
    begin, end, size = (np.concatenate(both) for both in zip(lives, columns, strict=True))
    return begin, end, size, np.array([*parts, *[BUFFER] * len(held)], object)


def _bounds(memory: Memory, step: int | None) -> tuple[int, int]:
    steps = memory.trace.steps()
    numbers = steps["number"].tolist()
    if step is None:
        row = int(memory.step_peaks.argmax())
    elif step in numbers:
        row = numbers.index(step)
    else:
        raise OptionError(f"step is {step!r}; expected one from {min(numbers)} to {max(numbers)}")
    low, high = (int(steps[name].iloc[row]) for name in ("start_ns", "end_ns"))
    return low, max(high, low + 1)


def _moments(
    begin: np.ndarray, end: np.ndarray, size: np.ndarray, low: int, high: int
) -> tuple[np.ndarray, np.ndarray]:
    """Where each window begins, and the moment in it at which the most lives."""
    windows = min(_WINDOWS, high - low)
    edges = low + (high - low) * np.arange(windows, dtype=np.int64) // windows
    changes = np.concatenate((begin, end))
    at = np.concatenate((edges, changes[(changes >= low) & (changes < high)]))
    window = np.searchsorted(edges, at, side="right") - 1
    order = np.lexsort((at, -_alive(begin, end, size, at), window))
    first = np.ones(len(order), bool)
    first[1:] = np.diff(window[order]) > 0
    return edges, at[order[first]]


def _alive(begin: np.ndarray, end: np.ndarray, size: np.ndarray, at: np.ndarray) -> np.ndarray:
    """Bytes that live at these moments, int64; what begins or ends at one lives then."""
    made, gone = np.argsort(begin), np.argsort(end)
    grown = np.append(0, np.cumsum(size[made]))[np.searchsorted(begin[made], at, side="right")]
    left = np.append(0, np.cumsum(size[gone]))[np.searchsorted(end[gone], at, side="left")]
    return np.asarray(grown - left, np.int64)


def _families(parts: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    return {name: parts[name] for name in (*FAMILY_NAMES, BUFFER) if name in parts}


def _largest(parts: dict[str, np.ndarray], most: int) -> dict[str, np.ndarray]:
    """The scopes with the most bytes at one moment, then all others as one, then buffers."""
    held = parts.pop(BUFFER, None)
    names = sorted(parts, key=lambda name: (-int(parts[name].max()), name))
    found = {name: parts[name] for name in names[:most]}
    if names[most:]:
        found[OTHERS] = np.sum([parts[name] for name in names[most:]], axis=0)
    return found if held is None else found | {BUFFER: held}
